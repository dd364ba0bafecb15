#include "planner/search/bounds.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "planner/operators/canonical.h"
#include "planner/search/parallel.h"
#include "planner/search/planes.h"

namespace mergeplan::search {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
// Inside planes are kept between the two rounds of Make up to this size, else made twice.
constexpr double kKeptBytes = 256e6;
constexpr Shape kStrategies[] = {Shape::kVanilla, Shape::kBoot, Shape::kConsistency};

// What the first round finds out about one target.
struct Seen {
  bool up = true, down = true;
  double spread = 0;
  double lo = 0, hi = 0;  // carried, whole plans
};

double PlaneToCarried(const ColumnProblem& column, int i, int j) {
  return column.jump == nullptr ? 1.0 : column.jump->over_d_first[i][j];
}

// Is every node of `only` as good as the best of `all`?
bool SameNodes(const InsideEnd& only, const InsideEnd& all, int steps) {
  for (int i = 1; i <= steps; ++i) {
    for (int j = i + 1; j <= steps; ++j) {
      const double best = all.s_first[i][j];
      if (!(std::abs(only.s_first[i][j] - best) <= 16.0 * steps * 0x1p-53 * std::abs(best))) {
        return false;
      }
    }
  }
  return true;
}

// Column c of the rows from its planes.
void Scatter(const ColumnProblem& column, const InsidePlanes& in, const OutsidePlanes& out,
             std::size_t c, Bounds& bounds) {
  const int T = column.steps;
  const auto slope = [&](double b, int i, int j) {
    return column.jump == nullptr ? b : b * column.jump->d_first[i][j];
  };
  std::size_t row = 0;
  for (int i = 1; i <= T; ++i) {
    for (int j = i; j <= T; ++j, ++row) {
      if (!bounds.InBlock(i, j)) continue;
      bounds.s_a[row][c] = out.s_a_first[i][j];
      bounds.s_b[row][c] = slope(out.s_b_first[i][j], i, j);
      if (bounds.shape == Shape::kNary) {
        bounds.q_a[row][c] = out.q_a_first[i][j];
        bounds.q_b[row][c] = slope(out.q_b_first[i][j], i, j);
      } else if (bounds.shape == Shape::kBinary || bounds.shape == Shape::kVanilla) {
        bounds.all_steps[row][c] = in.all_steps[i][j] * PlaneToCarried(column, i, j);
      }
    }
  }
  for (int count = 1; count <= bounds.blocks; ++count) {
    const int first = count == bounds.blocks ? T : count;
    for (int j = first; j <= T - (bounds.blocks - count); ++j) {
      bounds.prefix_a[bounds.Layer(count, j)][c] = out.prefix_a[count][j];
      bounds.prefix_b[bounds.Layer(count, j)][c] = slope(out.prefix_b[count][j], 1, j);
    }
  }
}

// The same of the products' ends.
void ScatterEnds(const InsidePlanes& in, std::size_t c, Bounds& bounds) {
  double least = kInf, most = -kInf;
  for (int j = 1; j <= bounds.steps; ++j) {
    for (int i = 1; i <= j; ++i) {
      least = std::min(least, in.lo.q_last[j][i]);
      most = std::max(most, in.hi.q_last[j][i]);
    }
    bounds.least_product[j - 1][c] = least;
    bounds.most_product[j - 1][c] = most;
  }
}

class Maker {
 public:
  Maker(const Model& model, const std::vector<Target>& targets, Shape shape, int blocks,
        bool narrow, int threads, const std::function<bool()>& stop, const BorderGuide& guide)
      : model_(model),
        targets_(targets),
        shape_(shape),
        blocks_(blocks),
        narrow_(narrow),
        threads_(threads),
        stop_(stop),
        guide_(guide) {
    if (model.carries_x0()) jump_ = std::make_unique<JumpForm>(model.schedule());
  }

  std::optional<Bounds> Run() {
    seen_.resize(targets_.size());
    kept_.resize(targets_.size());
    const bool keep =
        static_cast<double>(targets_.size()) * 9 * Plane(model_.steps()).bytes() < kKeptBytes;
    if (!ForTargets([&](std::size_t k, Scratch& scratch) { Look(k, keep, scratch); })) return {};
    bounds_.steps = model_.steps();
    bounds_.blocks = blocks_;
    bounds_.shape = Narrowed();
    Orient();
    Allocate();
    if (guide_ && blocks_ > 1 && jump_ == nullptr && !OneNodePerInterval(bounds_.shape) &&
        bounds_.columns.size() > 2 && !LeaveOutBlocks()) {
      return {};
    }
    if (!ForTargets([&](std::size_t k, Scratch& scratch) { Fill(k, scratch); })) return {};
    return std::move(bounds_);
  }

 private:
  // Planes of one thread, made when first needed.
  struct Scratch {
    std::unique_ptr<InsidePlanes> inside, other;
    std::unique_ptr<OutsidePlanes> outside;
  };

  InsidePlanes& Ready(std::unique_ptr<InsidePlanes>& planes) const {
    if (!planes) planes = std::make_unique<InsidePlanes>(model_.steps(), blocks_);
    return *planes;
  }

  bool ForTargets(const std::function<void(std::size_t, Scratch&)>& body) {
    const double work = std::pow(model_.steps(), 3) * static_cast<double>(targets_.size());
    const int threads = work < 3e6 ? 1 : std::min<int>(threads_, static_cast<int>(targets_.size()));
    std::vector<Scratch> scratch(threads);
    std::atomic<std::size_t> next{0};
    std::atomic<bool> stopped{false};
    ParallelFor(threads, threads, [&](int thread) {
      for (std::size_t k = next++; k < targets_.size(); k = next++) {
        if (stopped || (stop_ && stop_())) {
          stopped = true;
          return;
        }
        body(k, scratch[thread]);
      }
    });
    return !stopped && !(stop_ && stop_());
  }

  void Look(std::size_t k, bool keep, Scratch& scratch) {
    const int T = model_.steps();
    const Target& target = targets_[k];
    const ColumnProblem column(model_, target.coordinate, jump_.get());
    InsidePlanes& in = Ready(keep ? kept_[k] : scratch.inside);
    if (!in.Run(column, shape_, stop_)) return;
    Seen& seen = seen_[k];
    const Model::Affine map = model_.CarriedToValue(1, T);
    seen.lo = in.lo.prefix[blocks_][T] * PlaneToCarried(column, 1, T);
    seen.hi = in.hi.prefix[blocks_][T] * PlaneToCarried(column, 1, T);
    const double lo = map.offset + map.scale * seen.lo;
    const double hi = map.offset + map.scale * seen.hi;
    // Dominance is valid exactly where tau does not lie strictly between the least and the largest
    // value that any whole plan can have. A column that leaves out one side is sound in any case:
    // it leaves out a part of the error that is not negative.
    const double rounding = model_.Rounding(target.coordinate, hi, target.tau);
    seen.up = target.tau >= hi - rounding - (target.tau - target.tau_up);
    seen.down = target.tau <= lo + rounding + (target.tau_down - target.tau);
    seen.spread = std::sqrt(target.weight) * (hi - lo);
    if (blocks_ == 1 || !narrow_ || OneNodePerInterval(shape_)) return;
    for (int s = 0; s < 3; ++s) {
      if (!may_narrow_[s]) continue;  // another target needs more
      bool same = seen.up || seen.down;
      if (same) {
        InsidePlanes& other = Ready(scratch.other);
        if (!other.Run(column, kStrategies[s], stop_)) return;
        same = seen.up ? SameNodes(other.hi, in.hi, T) : SameNodes(other.lo, in.lo, T);
      }
      if (!same) may_narrow_[s] = false;
    }
  }

  Shape Narrowed() const {
    for (int s = 0; s < 3 && blocks_ > 1 && narrow_ && !OneNodePerInterval(shape_); ++s) {
      if (may_narrow_[s]) return kStrategies[s];
    }
    return shape_;
  }

  void Orient() {
    std::vector<std::size_t> order(targets_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [this](std::size_t x, std::size_t y) {
      return seen_[x].spread > seen_[y].spread;
    });
    first_column_.resize(targets_.size());
    Columns& columns = bounds_.columns;
    for (std::size_t k : order) {
      first_column_[k] = columns.size();
      const Target& target = targets_[k];
      const Seen& seen = seen_[k];
      const auto add = [&](double sign) {
        columns.coordinate.push_back(target.coordinate);
        columns.sign.push_back(sign);
        columns.root_weight.push_back(std::sqrt(target.weight));
        columns.tau.push_back(sign > 0 ? target.tau_up : target.tau_down);
        bounds_.best_end.push_back(sign > 0 ? seen.hi : seen.lo);
        bounds_.worst_end.push_back(sign > 0 ? seen.lo : seen.hi);
      };
      if (seen.up || !seen.down) add(1);
      if (!seen.up) add(-1);
      if (!seen.up && !seen.down) columns.dominance_everywhere = false;
    }
    bounds_.tables = ColumnTables(model_, columns);
  }

  void Allocate() {
    const std::size_t n = bounds_.columns.size();
    const std::size_t intervals = Intervals(model_.steps()).size();
    bounds_.s_a = Rows(intervals, n, kInf);
    bounds_.s_b = Rows(intervals, n, 0);
    if (bounds_.shape == Shape::kNary) {
      bounds_.q_a = Rows(intervals, n, kInf);
      bounds_.q_b = Rows(intervals, n, 0);
    }
    if (bounds_.shape == Shape::kNary && jump_ == nullptr) {
      bounds_.least_product = Rows(model_.steps(), n, 0);
      bounds_.most_product = Rows(model_.steps(), n, 0);
    }
    if (bounds_.shape == Shape::kBinary || bounds_.shape == Shape::kVanilla) {
      bounds_.all_steps = Rows(intervals, n, 0);
    }
    bounds_.prefix_a = Rows(static_cast<std::size_t>(blocks_) * model_.steps(), n, kInf);
    bounds_.prefix_b = Rows(static_cast<std::size_t>(blocks_) * model_.steps(), n, 0);
  }

  // Finds the blocks that plans below the guide's threshold can have.
  bool LeaveOutBlocks() {
    constexpr double kMostWork = 4e9;
    constexpr double kFirstSlack = 0.05, kLastSlack = 0.01;  // of the threshold
    constexpr std::int64_t kMostCandidates = 2'000'000;
    constexpr int kPromising = 4;
    const int T = model_.steps();
    const std::size_t n = bounds_.columns.size();
    if (BlockBorders::Count(T, blocks_) * static_cast<double>(n) > kMostWork) return true;
    bounds_.best_node = Rows(Intervals(T).size(), n, 0);
    if (!ForTargets([&](std::size_t k, Scratch& scratch) { GatherBest(k, scratch); })) return false;
    auto borders = std::make_shared<BlockBorders>(
        T, blocks_, bounds_.columns, bounds_.prefix_a[bounds_.root()],
        bounds_.prefix_b[bounds_.root()], bounds_.best_node, threads_);
    std::vector<int> equal;
    for (const Range& range : EqualBlocks(T, blocks_)) equal.push_back(range.last);
    double threshold = guide_(bounds_, {equal});
    const auto most = static_cast<std::int64_t>(kMostCandidates / (1 + n / 32));
    if (!borders->Sweep(threshold, stop_)) return false;
    if (borders->Pass(threshold, kFirstSlack * threshold, most, stop_)) {
      threshold = std::min(threshold, guide_(bounds_, borders->Promising(kPromising)));
      if (!borders->Sweep(threshold, stop_)) return false;
    }
    if (borders->Pass(threshold, kLastSlack * threshold, most, stop_)) {
      bounds_.border_bound = borders->LowerBound();
    }
    bounds_.ceiling = threshold;
    borders->Forget();
    bounds_.best_node = Rows();
    bounds_.borders = std::move(borders);
    return !(stop_ && stop_());
  }

  void GatherBest(std::size_t k, Scratch& scratch) {
    const int T = model_.steps();
    InsidePlanes& in = Ready(kept_[k] ? kept_[k] : scratch.inside);
    if (!kept_[k]) {
      const ColumnProblem column(model_, targets_[k].coordinate, jump_.get());
      in.Run(column, bounds_.shape, stop_);
    }
    for (std::size_t c = first_column_[k];
         c < bounds_.columns.size() && bounds_.columns.coordinate[c] == targets_[k].coordinate;
         ++c) {
      const double sign = bounds_.columns.sign[c];
      const InsideEnd& best = sign > 0 ? in.hi : in.lo;
      const std::size_t root = bounds_.root();
      RootLine(c, bounds_.prefix_a[root][c], bounds_.prefix_b[root][c]);
      std::size_t row = 0;
      for (int i = 1; i <= T; ++i) {
        for (int j = i; j <= T; ++j, ++row) bounds_.best_node[row][c] = best.s_first[i][j];
      }
    }
  }

  // The error of a whole plan of value V of a plane is a + b V.
  void RootLine(std::size_t c, double& a, double& b) const {
    const double scale = bounds_.columns.root_weight[c] * bounds_.columns.sign[c];
    const Model::Affine map = model_.CarriedToValue(1, model_.steps());
    a = scale * (bounds_.columns.tau[c] - map.offset);
    b = -scale * map.scale;
  }

  void Fill(std::size_t k, Scratch& scratch) {
    const ColumnProblem column(model_, targets_[k].coordinate, jump_.get());
    InsidePlanes& in = Ready(kept_[k] ? kept_[k] : scratch.inside);
    if (!kept_[k] || bounds_.shape != shape_) in.Run(column, bounds_.shape, stop_);
    if (!scratch.outside)
      scratch.outside = std::make_unique<OutsidePlanes>(model_.steps(), blocks_);
    for (std::size_t c = first_column_[k];
         c < bounds_.columns.size() && bounds_.columns.coordinate[c] == targets_[k].coordinate;
         ++c) {
      FillColumn(c, column, in, *scratch.outside);
    }
    kept_[k].reset();
  }

  void FillColumn(std::size_t c, const ColumnProblem& column, const InsidePlanes& in,
                  OutsidePlanes& out) {
    const int T = model_.steps();
    double a, b;
    RootLine(c, a, b);
    out.Run(column, bounds_.shape, in, bounds_.columns.sign[c] > 0, a,
            b * PlaneToCarried(column, 1, T), {bounds_.borders.get(), c}, stop_);
    Scatter(column, in, out, c, bounds_);
    if (bounds_.least_product.rows() > 0) ScatterEnds(in, c, bounds_);
  }

  const Model& model_;
  const std::vector<Target>& targets_;
  Shape shape_;
  int blocks_;
  bool narrow_;
  int threads_;
  const std::function<bool()>& stop_;
  const BorderGuide& guide_;
  std::unique_ptr<JumpForm> jump_;
  std::vector<Seen> seen_;
  // Is every interval's best node of kStrategies[s], in all targets looked at so far?
  std::atomic<bool> may_narrow_[3] = {true, true, true};
  std::vector<std::unique_ptr<InsidePlanes>> kept_;
  std::vector<std::size_t> first_column_;
  Bounds bounds_;
};

}  // namespace

CandidateRule RuleFor(const Model& model, const ColumnTables& tables, int i, int m, int j,
                      bool merge, const std::vector<double>& start) {
  const Model::Join join = model.ProductOf(i, m, j);
  CandidateRule rule;
  rule.ju = join.u;
  rule.jv = join.v;
  rule.juv = join.uv;
  rule.merge = merge;
  rule.omg = tables.omg[j - 1];
  rule.g = tables.slope[j - 1];
  rule.start = start.empty() ? nullptr : start.data();
  rule.offset = tables.offset.rows() == 0 ? nullptr : tables.offset[j - 1];
  return rule;
}

std::optional<Bounds> Bounds::Make(const Model& model, const std::vector<Target>& targets,
                                   Shape shape, int blocks, bool narrow, int threads,
                                   const std::function<bool()>& stop, const BorderGuide& guide) {
  return Maker(model, targets, shape, blocks, narrow, threads, stop, guide).Run();
}

double Bounds::Bytes(int steps, std::size_t targets, int blocks, int threads) {
  const double columns = 2.0 * static_cast<double>(targets);
  const double plane = 8.0 * (steps + 2.0) * (steps + 2.0);
  // With several blocks their best nodes and which of them are left.
  const double tables = blocks > 1 ? 5 : 4;
  return columns * 8 * (tables * Intervals(steps).size() + 4.0 * blocks * steps) +
         (blocks > 1 ? 1.0 * blocks * Intervals(steps).size() : 0) +
         std::min<double>(threads, static_cast<double>(targets)) * 26 * plane;
}

}  // namespace mergeplan::search
