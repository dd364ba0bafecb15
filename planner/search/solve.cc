#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"
#include "planner/operators/canonical.h"
#include "planner/operators/regimes.h"
#include "planner/search/best_column.h"
#include "planner/search/block_plans.h"
#include "planner/search/bounds.h"
#include "planner/search/cuda/offload.h"
#include "planner/search/families.h"
#include "planner/search/frontier.h"
#include "planner/search/grouping.h"
#include "planner/search/known.h"
#include "planner/search/options.h"
#include "planner/search/parallel.h"
#include "planner/search/search.h"
#include "planner/search/two_columns.h"

namespace mergeplan {
namespace {

using search::Bounds;
using search::Pass;
using search::PassOptions;
using search::Shape;
using search::Target;

// Bytes that tables and frontiers of a search may take together.
constexpr double kTableLimit = 6e9;
constexpr double kNoLimit = 1e300;

class Search {
 public:
  Search(const Model& model, const SearchOptions& options, search::Offload* offload)
      : model_(model),
        options_(options),
        offload_(offload),
        threads_(search::ThreadCount(options.threads)),
        deadline_(options),
        stop_([this] { return Stop(); }),
        known_(model, options, deadline_) {}

  SearchResult Run() {
    if (options_.student_steps == model_.steps()) {
      SinglePlan();
      return Finish();
    }
    proven_ = ProvenBest(model_, options_.student_steps);
    if (proven_ && options_.student_steps > 1 && limited()) proven_.reset();
    if (proven_ && options_.student_steps == 1) {
      known_.Offer(*CanonicalPlan(proven_->strategy, model_.steps()));
      if (!known_.have_plan()) proven_.reset();  // not within the limits
    }
    if (proven_ && options_.student_steps == 1) {
      known_.RaiseBound(known_.objective());
      why_ = absl::StrFormat("%s is best: %s (%s)", std::string(ToString(proven_->strategy)),
                             std::string(proven_->reason), std::string(proven_->theorem));
      return Finish();
    }
    const std::vector<Target> distinct = search::DistinctTargets(model_);
    if (distinct.size() == 1 && !limited() && OneColumn(distinct[0])) return Finish();
    Simple(distinct);
    if (Stop()) return Finish();
    if (UseGroups(distinct.size())) {
      Grouped(distinct.size());
    } else if (FitsMemory(distinct.size()) && Tables(model_, distinct)) {
      Climb(model_);
    }
    return Finish();
  }

 private:
  bool Stop() { return deadline_.Stop(); }

  // As many steps as the teacher: nothing is merged.
  void SinglePlan() {
    known_.Offer(*CanonicalPlan(Strategy::kVanilla, model_.steps(), model_.steps()));
    known_.RaiseBound(known_.objective());
    why_ = "the teacher's own steps are the only plan with as many blocks";
  }

  bool limited() const { return options_.max_merges > 0 || options_.max_rounds > 0; }

  bool Done() { return Stop() || known_.Proven() || out_of_memory_; }

  Shape SpaceShape() const {
    return options_.space == Space::kNary ? Shape::kNary : Shape::kBinary;
  }

  // The shape to search: of blocks that are proven to be of one strategy only the borders are open.
  Shape SearchShape() const {
    if (!proven_) return SpaceShape();
    switch (proven_->strategy) {
      case Strategy::kBoot:
        return Shape::kBoot;
      case Strategy::kConsistency:
        return Shape::kConsistency;
      default:
        return Shape::kVanilla;
    }
  }

  // A problem of one variance in which larger (or smaller) is better throughout.
  bool OneColumn(const Target& target) {
    const double steps = model_.steps();
    if (40 * steps * steps > kTableLimit) return false;
    std::optional<Plan> plan = search::BestPlanOfColumn(model_, target, SpaceShape(),
                                                        options_.student_steps, threads_, stop_);
    if (!plan) return false;
    known_.Offer(*std::move(plan));
    known_.RaiseBound(known_.objective());
    why_ = "one variance: the dynamic program over intervals is exact";
    return true;
  }

  // Plans of simple shape. With many dimensions they are compared on a few representative ones, and
  // only the best of them are evaluated in full.
  void Simple(const std::vector<Target>& distinct) {
    constexpr std::size_t kRepresentatives = 48, kFinalists = 4;
    std::optional<Model> screen;
    if (model_.has_schedule() && distinct.size() > 4 * kRepresentatives)
      screen = Representatives(distinct, kRepresentatives);
    std::vector<std::pair<double, Plan>> finalists;
    const auto take = [&](Plan plan) {
      if (!screen || !known_.have_plan()) {
        known_.Offer(std::move(plan));
        return !Stop();
      }
      finalists.emplace_back(screen->Objective(plan), std::move(plan));
      std::inplace_merge(finalists.begin(), finalists.end() - 1, finalists.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
      if (finalists.size() > kFinalists) finalists.pop_back();
      return !Stop();
    };
    const bool nary = options_.space == Space::kNary;
    if (options_.student_steps > 1) {
      search::SimplePlans(model_.steps(), options_.student_steps, nary, take);
    } else {
      search::CanonicalPlans(model_.steps(), 1, take);
      // Only the best are built.
      std::size_t left = screen ? kFinalists : 1;
      for (const search::MixedPlan& mixed :
           search::RateMixedPlans(screen ? *screen : model_, nary, stop_)) {
        if (options_.max_merges > 0 && mixed.border > options_.max_merges) continue;
        if (options_.max_rounds > 0 && mixed.border > options_.max_rounds) continue;
        absl::StatusOr<Plan> plan = search::Build(mixed, model_.steps());
        if (!plan.ok() || !take(*std::move(plan)) || --left == 0) break;
      }
    }
    for (auto& [objective, plan] : finalists) known_.Offer(std::move(plan));
  }

  // Every so many-th of the distinct variances with the weight of its neighbours: for comparing
  // plans, not for bounds.
  std::optional<Model> Representatives(const std::vector<Target>& distinct,
                                       std::size_t count) const {
    ModelSpec spec = model_.spec();
    const double scale2 = model_.schedule().data_scale * model_.schedule().data_scale;
    spec.variances.clear();
    spec.weights.clear();
    for (std::size_t g = 0; g < count; ++g) {
      const std::size_t begin = g * distinct.size() / count;
      const std::size_t end = (g + 1) * distinct.size() / count;
      double weight = 0;
      for (std::size_t k = begin; k < end; ++k) weight += distinct[k].weight;
      spec.variances.push_back(model_.lambda()[distinct[(begin + end) / 2].coordinate] * scale2);
      spec.weights.push_back(weight / scale2);
    }
    absl::StatusOr<Model> model = Model::Create(std::move(spec));
    return model.ok() ? std::optional<Model>(*std::move(model)) : std::nullopt;
  }

  double Bytes(std::size_t targets) const {
    return Bounds::Bytes(model_.steps(), targets, options_.student_steps, threads_);
  }

  bool FitsMemory(std::size_t targets) {
    if (Bytes(targets) <= kTableLimit) return true;
    why_ =
        "the search tables do not fit the memory; only simple plans were compared and the lower "
        "bound is trivial";
    deadline_.GiveUp();
    return false;
  }

  bool UseGroups(std::size_t distinct) const {
    if (!model_.has_schedule()) return false;  // groups are of neighbouring variances
    if (options_.groups > 0) return static_cast<std::size_t>(options_.groups) < distinct;
    if (Bytes(distinct) > kTableLimit) return true;
    // Tables that take no time need no groups; exact proofs are not made of groups.
    const double work = std::pow(model_.steps(), 3) * static_cast<double>(distinct);
    return options_.gap > 0 && distinct > 64 && work > 3e8;
  }

  // Groups of neighbouring variances, more of them until they cost little of the gap asked for.
  void Grouped(std::size_t distinct) {
    std::size_t most = options_.groups > 0 ? static_cast<std::size_t>(options_.groups) : distinct;
    while (most > 1 && Bytes(most) > kTableLimit) most = most * 7 / 8;
    if (!FitsMemory(most)) return;
    const double aim = options_.gap > 0 ? options_.gap : 0.01;
    for (double share = 0.1; !Done(); share /= 4) {
      std::optional<search::Grouping> groups =
          search::MakeGroups(model_, known_.value(), SearchShape(), options_.student_steps,
                             share * aim * known_.objective(), most, threads_, stop_);
      if (!groups) return;
      groups_ = static_cast<int>(groups->targets.size());
      if (!Tables(groups->model, groups->targets)) return;
      Climb(groups->model);
      if (Done()) return;
      if (groups->targets.size() >= most || groups->loss == 0 || share < 1e-6) {
        deadline_.GiveUp();
        why_ = options_.groups > 0
                   ? "more groups of variances, which the proof needs, were not allowed"
                   : "more groups of variances, which the proof needs, do not fit the memory";
      }
    }
  }

  // The tables of a problem that bounds the model's, and the bound at their root.
  bool Tables(const Model& model, const std::vector<Target>& targets) {
    bounds_.reset();
    // Small problems are solved exactly whatever gap was asked for.
    const bool small = std::pow(model.steps(), 3) * static_cast<double>(targets.size()) < 1e6;
    std::optional<search::BlockPlans> plans;
    const search::BorderGuide guide = [&](const Bounds& bounds,
                                          const std::vector<std::vector<int>>& borders) {
      if (BlockPlanBytes(bounds.columns.size()) < kTableLimit / 4) {
        if (!plans) plans.emplace(model, bounds);
        for (const std::vector<int>& last : borders) {
          if (Stop()) break;
          if (std::optional<Plan> plan = plans->From(last, stop_)) known_.Offer(*std::move(plan));
        }
      }
      return small ? known_.objective() : known_.Threshold();
    };
    bounds_ = Bounds::Make(model, targets, SearchShape(), options_.student_steps, !limited(),
                           threads_, stop_, guide);
    if (!bounds_) return false;
    // Before a time limit is looked at: what the tables say holds, however late it is.
    known_.RaiseBound(bounds_->border_bound);
    known_.RaiseBound(search::RowBound(bounds_->columns.size(), bounds_->best_end.data(),
                                       bounds_->prefix_a[bounds_->root()],
                                       bounds_->prefix_b[bounds_->root()]));
    if (known_.Proven() && groups_ == 0) why_ = "no plan is better in any dimension";
    return !Stop();
  }

  double BlockPlanBytes(std::size_t columns) const {
    const double steps = model_.steps();
    return steps * steps / 2 * std::min(steps, 50.0) * 2 * static_cast<double>(columns) * 8;
  }

  void Beam(const Model& model, int width, int grid = 1) {
    PassOptions options;
    options.threshold = known_.objective();
    options.width = width;
    options.grid = grid;
    options.max_merges = options_.max_merges;
    options.max_rounds = options_.max_rounds;
    options.stop = stop_;
    options.threads = threads_;
    options.offload = offload_;
    Pass pass(model, *bounds_, std::move(options));
    if (pass.Run() != Pass::Outcome::kDone) return;
    known_.Offer(pass.BestPlans(8));
  }

  // One pass that proves something, after which the bounds are those of what it has left; false
  // where it had to be given up. `effort` bounds the candidates times columns.
  bool Prove(const Model& model, double threshold, double slack, double effort = kNoLimit) {
    PassOptions options;
    // The bounds say nothing of plans that are not below their ceiling.
    options.threshold = threshold = std::min(threshold, bounds_->ceiling);
    options.slack = slack;
    options.trace = slack > 0;
    options.max_merges = options_.max_merges;
    options.max_rounds = options_.max_rounds;
    options.stop = stop_;
    options.threads = threads_;
    options.offload = offload_;
    if (effort < kNoLimit) {
      options.max_candidates =
          static_cast<std::int64_t>(effort / static_cast<double>(bounds_->columns.size() + 1));
    }
    Pass pass(model, *bounds_, std::move(options));
    const Pass::Outcome outcome = pass.Run();
    spent_ += static_cast<double>(pass.candidates()) * static_cast<double>(bounds_->columns.size());
    if (outcome == Pass::Outcome::kOutOfMemory) out_of_memory_ = true;
    if (outcome != Pass::Outcome::kDone) return false;
    known_.Offer(pass.BestPlans(64));
    known_.RaiseBound(pass.LowerBound());
    if (!Done()) bounds_->Tighten(model, pass.Left(), threshold, threads_, stop_);
    return true;
  }

  // Two columns: bounds a tangent of the objective, where very few parts have to be kept. At first
  // it touches at the best plan so far; if plans below it turn up, at the nearest of their convex
  // combinations. Where the best plan is on the hull of all plans, as nearly always, its own
  // tangent is the proof; where it is inside, the last tangent leaves little to go through.
  void Tangents(const Model& model) {
    constexpr int kRounds = 32;
    constexpr std::int64_t kMostCandidates = 100'000'000;
    if (groups_ > 0 || limited() || !search::TwoColumns::Applies(model, *bounds_)) return;
    search::TwoColumns pass(model, *bounds_);
    // What a beam takes: if the tangent of the first plan takes longer, a better plan comes first.
    std::int64_t most = 32 * std::int64_t{model.steps()} * model.steps();
    std::array<double, 2> tangent = BestErrors();
    // A plan that is better by half the tolerance only is as good.
    const auto goal = [this] {
      return std::min(known_.Threshold(), known_.objective() - known_.tolerance() / 2);
    };
    for (int round = 0; round < kRounds && !Done(); ++round) {
      if (!pass.Run(tangent, goal(), most, stop_)) {
        if (Done() || most == kMostCandidates) return;
        most = kMostCandidates;
        Beam(model, 1);
        tangent = BestErrors();
        continue;
      }
      known_.RaiseBound(pass.LowerBound());
      if (Done()) return;
      if (std::optional<Plan> plan = pass.BestPlan()) known_.Offer(*std::move(plan));
      const std::array<double, 2> touched = std::exchange(tangent, pass.Nearest(BestErrors()));
      const double nearest = tangent[0] * tangent[0] + tangent[1] * tangent[1];
      if (pass.LowerBound() < nearest - known_.tolerance() / 2) continue;
      // No tangent proves more: the best plan is inside the hull.
      const double least = pass.LowerBound() - known_.tolerance();
      if (pass.Lens(touched, least, goal(), kMostCandidates, stop_)) {
        known_.RaiseBound(pass.LowerBound());
        if (std::optional<Plan> plan = pass.BestPlan()) known_.Offer(*std::move(plan));
      }
      return;
    }
  }

  // Of the best plan, by column.
  std::array<double, 2> BestErrors() const {
    std::array<double, 2> errors{};
    const search::Columns& columns = bounds_->columns;
    for (std::size_t c = 0; c < 2; ++c) {
      const double error =
          columns.sign[c] * (columns.tau[c] - known_.value()[columns.coordinate[c]]);
      errors[c] = std::max(0.0, columns.root_weight[c] * error);
    }
    return errors;
  }

  // Passes with slack, each finer than the last. A pass leaves tighter bounds for the next one, so
  // that finer passes need not take longer; the last one has no slack. Beams look for better plans
  // now and then.
  void Climb(const Model& model) {
    // Small problems are solved exactly whatever gap was asked for.
    constexpr double kSmall = 3e5;
    constexpr double kMany = 8;  // columns
    Tangents(model);
    if (Done()) return;
    // The first plans may be too poor for passes without limit. Over many steps a beam along a grid
    // finds nearly as good ones in a fraction of the time; wider ones take long before passes have
    // left out most parts.
    const int T = model_.steps();
    const int grid = std::max(1, T / 32);
    int width = T < 128 ? 4 : 1;
    const bool blocks = options_.student_steps > 1;
    // Plans of several blocks were looked for before the bounds were made (BlockPlans).
    bool put_off = grid > 1 && !(blocks && options_.gap > 0);
    Beam(model, 1, grid);
    if (grid == 1) Beam(model, width);
    if (Done()) return;
    const double aim = std::max(options_.gap, 0.01);
    const double columns = static_cast<double>(bounds_->columns.size());
    // Not where every part of a plan alone would take more.
    if (groups_ == 0 && std::pow(T, 2) * columns < kSmall &&
        Prove(model, known_.objective(), 0, kSmall)) {
      return;
    }
    // Enough for one candidate at every split of every interval.
    const double splits = std::pow(T, 3) / 2;
    double effort = std::max(50 * std::pow(T, 2), splits) * columns;
    // Slack finer than what the groups lose proves nothing more.
    const double finest = groups_ > 0 ? 0.02 : 1e-12;
    double last = 0;  // of the last pass that was not given up
    int passes = 0;
    // Slack adds up over the blocks of a plan.
    for (double share = blocks && grid > 1 ? 0.1 : 0.5; share > finest && !Done();) {
      const double before = spent_;
      if (!Prove(model, known_.Threshold(), share * aim * known_.objective(), effort)) {
        if (Done()) break;
        // Too much at once: a smaller step, and where that is small already, better plans and more
        // time.
        if (last > 1.9 * share) {
          share = std::sqrt(last * share);
        } else {
          effort *= 8;
          if (width < 256) Beam(model, width *= 2);
        }
        continue;
      }
      // The finer the slack the more a pass takes, at some point all of a sudden, but bounds made
      // anew take little.
      const double took = spent_ - before;
      last = share;
      share /= 4;
      if (std::exchange(put_off, false) && !Done()) Beam(model, width);
      // Where very many plans are almost as good as the best, a pass without slack ends it sooner.
      // One that is of use takes far less than the pass before it, or nothing tells beforehand;
      // with many columns that is never so.
      const double hope = options_.gap > 0 || columns > kMany
                              ? took / 16
                              : std::min(took, std::max(splits / 6 * columns, took / 8));
      if (groups_ == 0 && !Done() && Prove(model, known_.Threshold(), 0, hope)) return;
      if (++passes % 6 == 0 && width < 64 && !Done()) Beam(model, width *= 4);
    }
    if (!Done() && groups_ == 0) Prove(model, known_.Threshold(), 0);
    if (out_of_memory_ && !known_.Proven()) {
      deadline_.GiveUp();
      why_ = "the frontiers outgrew the memory limit";
    }
  }

  SearchResult Finish() {
    SearchResult result = known_.Result();
    result.groups = groups_;
    if (offload_ != nullptr) result.device = offload_->Used();
    if (groups_ > 0)
      absl::StrAppend(&result.guarantee,
                      "; the bound holds for every dimension and was computed with ", groups_,
                      " groups of neighbouring variances");
    if (bounds_ && search::OneNodePerInterval(bounds_->shape)) {
      absl::StrAppend(&result.guarantee, "; every block is merged by ", BlockStrategy(),
                      ", which is best in every dimension, and the borders were searched");
    }
    if (!why_.empty()) absl::StrAppend(&result.guarantee, "; ", why_);
    return result;
  }

  const char* BlockStrategy() const {
    if (bounds_->shape == Shape::kBoot) return "boot";
    return bounds_->shape == Shape::kConsistency ? "consistency" : "vanilla";
  }

  const Model& model_;
  const SearchOptions& options_;
  search::Offload* const offload_;  // null: everything stays on the processor
  int threads_;
  search::Deadline deadline_;
  std::function<bool()> stop_;
  search::Known known_;

  std::optional<ProvenStrategy> proven_;
  std::optional<Bounds> bounds_;
  int groups_ = 0;

  double spent_ = 0;  // candidates times columns of all passes
  std::string why_;
  bool out_of_memory_ = false;
};

}  // namespace

std::string_view ToString(SearchStatus status) {
  switch (status) {
    case SearchStatus::kOptimal:
      return "optimal";
    case SearchStatus::kWithinGap:
      return "within_gap";
    case SearchStatus::kTimeLimit:
      return "time_limit";
    case SearchStatus::kInterrupted:
      break;
  }
  return "interrupted";
}

absl::StatusOr<SearchResult> Solve(const Model& model, const SearchOptions& options) {
  MP_RETURN_IF_ERROR(search::CheckOptions(model, options));
  absl::StatusOr<std::unique_ptr<search::Offload>> offload =
      search::Offload::Make(options.device, options.device_least_work);
  if (!offload.ok()) return offload.status();
  return Search(model, options, offload->get()).Run();
}

}  // namespace mergeplan
