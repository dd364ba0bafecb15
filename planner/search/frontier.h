#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "planner/search/bounds.h"
#include "planner/search/columns.h"

namespace mergeplan::search {

class Offload;
namespace device {
struct Setting;
}

// Where a candidate comes from.
struct Origin {
  enum Kind : int { kStep, kAllSteps, kNode, kPair };
  Kind kind = kStep;
  int middle = 0;  // kPair: [i,m] x [m+1,j]
  int left = 0;    // kPair: entry of the left frontier; kNode: entry of the node frontier
  int right = 0;   // kPair: entry of the right frontier
};

// Merges and rounds of a part, counted where they are limited.
struct Counts {
  int merges = 0, rounds = 0;
  bool NoMoreThan(const Counts& other) const {
    return merges <= other.merges && rounds <= other.rounds;
  }
};

// A candidate below the threshold and the entry that stands for it.
struct Record {
  Origin origin;
  int kept = 0;
};

// The parts kept for one interval (or prefix): values that no other kept value covers.
struct Frontier {
  std::size_t columns = 0;
  std::vector<double>
      values;  // entries x columns; at least as good as what they stand for, in every column
  std::vector<Origin> origins;
  std::vector<Counts> counts;  // empty where nothing is limited
  std::vector<double> losses;  // how much the bound fell by standing for others
  std::vector<double> best;    // the best kept value, column by column, where more than one is kept
  // Where the pass traces: all candidates, and the least bound of a whole plan made with each
  // entry. (Of whole plans: every candidate's own bound.)
  std::vector<Record> records;
  std::vector<double> reach;
  std::vector<int> splits;  // of the candidates that lead to whole plans below the threshold

  int size() const { return static_cast<int>(origins.size()); }
  const double* row(int k) const { return values.data() + static_cast<std::size_t>(k) * columns; }
  const double* best_row() const { return origins.size() > 1 ? best.data() : values.data(); }
  double* row(int k) { return values.data() + static_cast<std::size_t>(k) * columns; }
};

struct PassOptions {
  // Candidates whose bound is not below this are dropped: no plan that contains them is better.
  double threshold = std::numeric_limits<double>::infinity();
  // A kept part may stand for another one where that lowers its bound by no more than this in all.
  // 0: only for parts that are nowhere better.
  double slack = 0;
  // Keep only the `width` best of each interval. Such a pass finds plans but proves nothing.
  std::optional<int> width;
  // With `width`: only intervals of up to so many steps, or that begin or end at a multiple of it.
  int grid = 1;
  // Largest numbers of merges and rounds of a plan; 0: any. A kept part then stands for others only
  // where it has no more of either.
  int max_merges = 0, max_rounds = 0;
  // Give up after so many candidates (a measure of effort that, unlike time, is the same on every
  // machine).
  std::int64_t max_candidates = std::numeric_limits<std::int64_t>::max();
  // Remember what every kept part stands for, so that Left() can leave out the parts that no plan
  // below the threshold is made of. Not with `width`.
  bool trace = false;
  int threads = 1;
  Offload* offload = nullptr;  // where the widest intervals go; null: none goes anywhere
  std::function<bool()> stop;  // asked now and then; true abandons the pass
  std::size_t memory_limit = std::size_t{6} << 30;  // bytes of frontier values
};

// One run of the dynamic program over intervals (alg:pareto_dp_merge, with products as a second
// table), from short to long. The root frontier's least bound and the threshold together bound
// every plan's objective from below.
class Pass {
 public:
  Pass(const Model& model, const Bounds& bounds, PassOptions options);

  enum class Outcome { kDone, kStopped, kOutOfMemory };
  Outcome Run();

  // min(threshold, least bound among the root's parts): no plan is better. Only after Run() ==
  // kDone without width.
  double LowerBound() const;
  // The up to `count` root parts with the least bounds, as plans.
  std::vector<Plan> BestPlans(int count) const;
  // What is left after Run() == kDone without width. Valid as long as the pass.
  //
  // With `trace`, of every kept part the least bound of the whole plans made with it is found by
  // going through all candidates from the whole plans down: a plan below the threshold has, for
  // each of its parts, an entry that stands for it, and these entries' candidates lead to a whole
  // plan whose bound is no higher than the plan's objective. Entries that lead to none below the
  // threshold are left out, and so are splits at which all candidates lead to none. Time and memory
  // as the candidates.
  Survivors Left();
  // Candidates looked at (comparisons count a sixteenth) and parts kept. Of a pass that was given
  // up for its effort, max_candidates: how far it came depends on the threads.
  std::int64_t candidates() const { return std::min(candidates_.load(), options_.max_candidates); }
  std::int64_t kept() const;

 private:
  struct Candidate {
    double bound;
    Origin origin;
    Counts counts;
  };

  // The interval (or prefix, of `layer` blocks and one more) that candidates are for.
  struct Place {
    int i = 0, j = 0;
    bool merge = false, prefix = false;
    int layer = 0;
  };

  // What the bound of a candidate has to stay below.
  double Limit(const Place& place) const {
    if (bounds_.part_surplus.empty()) return options_.threshold;
    return options_.threshold -
           (place.prefix ? bounds_.prefix_surplus[bounds_.Layer(place.layer + 1, place.j)]
                         : bounds_.part_surplus[at_(place.i, place.j)]);
  }
  bool OnGrid(int i, int j) const;
  void Interval(int i, int j);
  void Prefixes();
  // Looks at all pairs left[m] x right(m+1..j) and adds those below the threshold to `out`.
  void Pairs(const Place& place, const double* a, const double* b, std::vector<Candidate>& out);
  // Keeps what no kept part covers.
  void Select(bool root, const Place& place, const double* a, const double* b,
              std::vector<Candidate>& candidates, Frontier& frontier,
              const std::function<void(const Origin&, double*)>& value);
  // The same on a device (cuda/pass.cc): `look` is told the middle, left and right entry and bound
  // of every pair of `runs` (middle, left entry) below the threshold. False, with nothing done:
  // there is no device, or it failed.
  bool PairsWorthDevice(const Place& place) const;
  bool PairsOnDevice(const Place& place, const double* a, const double* b,
                     const std::vector<std::pair<int, int>>& runs,
                     const std::function<void(int, int, int, double)>& look);
  // Takes the candidates from `next` on.
  bool SelectOnDevice(const Place& place, const double* a, const double* b,
                      const std::vector<Candidate>& candidates, std::size_t next,
                      const std::vector<double>& kept_squares, Frontier& frontier);
  device::Setting SettingOf(const Place& place, const double* a, const double* b,
                            const std::vector<double>& start) const;
  void SetBest(Frontier& frontier) const;
  // Fills `reach` from the whole plans down, and then `best` and `values` of what reaches below the
  // threshold.
  void TraceBack();
  void Hand(Frontier& from, int i, int j, const Place& place);
  bool Whole(const Frontier& frontier) const;  // of plans over all steps
  bool limited() const { return options_.max_merges > 0 || options_.max_rounds > 0; }
  // Can a part with these counts be a part of a plan within the limits, where so many merges are
  // certain to follow (0 or 1)?
  bool Allowed(const Counts& counts, int followed_by) const;
  bool Stopped();

  Range Build(PlanBuilder& builder, int i, int j, int entry) const;
  void BuildProduct(PlanBuilder& builder, int i, int j, int entry, std::vector<Range>& out) const;

  const Frontier& LeftOf(int i, int m) const;
  const Frontier& LeftOf(const Place& place, int m) const {
    return place.prefix ? prefixes_[bounds_.Layer(place.layer, m)] : LeftOf(place.i, m);
  }

  const Model& model_;
  const Bounds& bounds_;
  const Columns& columns_;
  const ColumnTables& tables_;
  const Shape shape_;
  const int blocks_;
  PassOptions options_;
  Intervals at_;
  std::vector<Frontier> nodes_, products_, prefixes_;
  std::vector<double> none_;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> out_of_memory_{false};
  std::atomic<std::int64_t> candidates_{0};
  std::atomic<std::size_t> bytes_{0};
  std::atomic<int> largest_{1};  // entries of a frontier
};

}  // namespace mergeplan::search
