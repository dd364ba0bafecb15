#include "planner/search/shared_time.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"
#include "planner/operators/canonical.h"
#include "planner/search/families.h"
#include "planner/search/grouping.h"
#include "planner/search/options.h"
#include "planner/search/parallel.h"
#include "planner/search/shared/allocate.h"
#include "planner/search/shared/borders.h"
#include "planner/search/shared/dropped.h"
#include "planner/search/shared/ends.h"
#include "planner/search/shared/proposals.h"
#include "planner/search/shared/screening.h"
#include "planner/search/shared/tree.h"

namespace mergeplan {
namespace {

using search::Allocation;
using search::SharedPlan;
using search::SharedProblem;
using search::SharedTree;
using search::Target;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

absl::Status Check(const Model& model, double total) {
  if (!model.has_schedule()) {
    return absl::FailedPreconditionError(
        "a shared total: the model is given by tables, which do not say how shrinkage depends on "
        "training; give a schedule and variances");
  }
  if (!std::isfinite(total) || total <= 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("total of training is %g, expected a positive, finite %s", total,
                        model.budget().sgd ? "number of updates" : "time"));
  }
  if (model.budget().sgd && (total != std::floor(total) || total > 9e15)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("total of training is %.17g updates, expected a whole number", total));
  }
  return absl::OkStatus();
}

// Is every block a single step or one merge of single steps?
bool BlocksAreVanilla(const Plan& plan) { return plan.rounds() <= 1; }

class Sharing {
 public:
  Sharing(const Model& model, double total, const SearchOptions& options)
      : model_(model),
        total_(total),
        options_(options),
        threads_(search::ThreadCount(options.threads)),
        deadline_(options),
        stop_([this] { return Stop(); }),
        targets_(search::DistinctTargets(model)),
        problem_(model, total, targets_),
        sides_(search::WhereVanillaIsExtreme(problem_)),
        // What rounding makes of the objective, at the teacher's product.
        floor_(std::max(1e-300, model.Tolerance(model.tau(Reference::kTeacher)))),
        screening_(model, total, targets_, floor_, threads_, stop_,
                   [this](const Plan& plan) { return Fits(plan); }) {}

  bool Stop() { return deadline_.Stop(); }

  // ---- one plan

  SharedAllocation Allocated(const Plan& plan) {
    SharedTree tree(problem_, plan);
    return Finished(tree, search::Allocate(tree, {}, 80, floor_, stop_));
  }

  // ---- all plans

  absl::StatusOr<SharedTimeResult> Run() {
    ends_ = search::EndsOfValues(problem_, options_.student_steps, threads_, stop_);
    bound_ = search::DistanceToEnds(problem_, ends_);
    why_ = bound_ > 0
               ? "in no single dimension a plan with this total comes closer to the reference"
               : "no bound but zero was found";
    Vanilla();
    if (options_.student_steps == model_.steps()) bound_ = kInfinity;  // there is one plan
    if (!Done()) Borders();
    if (!Done()) Together();
    if (!Done()) Candidates();
    if (!have_plan_) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "no plan of %d blocks with at most %d merges and %d rounds (0: any number) was found; "
          "allow more",
          options_.student_steps, options_.max_merges, options_.max_rounds));
    }
    return Finish();
  }

 private:
  double Seconds() const { return deadline_.Seconds(); }

  bool Fits(const Plan& plan) const {
    if (plan.student_steps() != options_.student_steps) return false;
    if (options_.max_merges > 0 && plan.size() > options_.max_merges) return false;
    if (options_.max_rounds > 0 && plan.rounds() > options_.max_rounds) return false;
    if (options_.space == Space::kNary) return true;
    return std::all_of(plan.merges().begin(), plan.merges().end(), [](const Merge& merge) {
      return merge.children.size() == 2 || merge.round == 1;
    });
  }

  SharedAllocation Finished(SharedTree& tree, Allocation found) {
    SharedAllocation out;
    out.convex = sides_.everywhere && BlocksAreVanilla(tree.plan());
    if (out.convex) {
      // Only where the point lies in the region of convexity; else its bound is no such thing.
      const double bound = search::VanillaLowerBound(tree, found, sides_);
      out.convex = bound >= found.objective - found.stationarity - floor_;
    }
    out.stationarity = found.stationarity;
    out.objective = found.objective;
    out.shares = std::move(found.shares);
    if (!model_.budget().sgd) return out;
    const auto total = static_cast<std::int64_t>(total_);
    search::Updates rounded = search::RoundToUpdates(tree, out.shares, total, stop_);
    out.updates = std::move(rounded.updates);
    out.exchanged = rounded.exchanged;
    out.objective = rounded.objective;
    for (std::size_t m = 0; m < out.updates.size(); ++m) {
      out.shares[m] = static_cast<double>(out.updates[m]) / total_;
    }
    return out;
  }

  // In full: all dimensions, more evaluations.
  void Offer(const Plan& plan, absl::Span<const std::vector<double>> starts, bool only_these) {
    if (!Fits(plan)) return;
    SharedTree tree(problem_, plan);
    const int evaluations = static_cast<int>(std::clamp(1e8 / tree.Work(), 60.0, 3000.0));
    Allocation found;
    if (only_these && tree.merges() > 0) {
      found.objective = kInfinity;
      for (const std::vector<double>& start : starts) {
        Allocation one = search::Polish(tree, {start, 0, 0}, evaluations, 1e-12, floor_, stop_);
        if (one.objective < found.objective) found = std::move(one);
      }
    } else {
      found = search::Allocate(tree, starts, 60, floor_, stop_);
    }
    ++plans_;
    Take(plan, Finished(tree, std::move(found)));
  }

  void Take(const Plan& plan, SharedAllocation allocation) {
    if (have_plan_ && !(allocation.objective < allocation_.objective)) return;
    have_plan_ = true;
    plan_ = plan;
    allocation_ = std::move(allocation);
    std::vector<double> amounts = allocation_.shares;
    for (double& amount : amounts) amount *= total_;
    const std::vector<double> value = *SharedTimeValue(model_, plan_, amounts);
    allocation_.objective = model_.Objective(value);
    tolerance_ = model_.Tolerance(value);
    Report();
  }

  void Report() const {
    if (options_.progress && have_plan_) {
      options_.progress({Seconds(), allocation_.objective, LowerBound()});
    }
  }

  double LowerBound() const {
    return std::max(0.0, std::min(bound_, allocation_.objective) - tolerance_);
  }
  bool Optimal() const { return have_plan_ && allocation_.objective - bound_ <= tolerance_; }
  bool Done() {
    if (Stop() && have_plan_) return true;
    return have_plan_ && (Optimal() || allocation_.objective - LowerBound() <=
                                           options_.gap * allocation_.objective);
  }

  void Raise(double bound, std::string why) {
    if (!(bound > bound_)) return;
    bound_ = bound;
    why_ = std::move(why);
    Report();
  }

  void Vanilla() {
    const Plan plan = *CanonicalPlan(Strategy::kVanilla, model_.steps(), options_.student_steps);
    SharedTree tree(problem_, plan);
    SharedAllocation allocation = Finished(tree, search::Allocate(tree, {}, 80, floor_, stop_));
    vanilla_objective_ = allocation.objective;
    ++plans_;
    if (Fits(plan)) Take(plan, std::move(allocation));
  }

  // N blocks that are proven to be vanilla: only the borders and the shares are open.
  void Borders() {
    const int N = options_.student_steps;
    if (!sides_.everywhere || N == 1) return;
    constexpr double kMost = 20000, kWork = 2e10;
    const double count = search::CountBorders(model_.steps(), N, kMost);
    const double work =
        60.0 * count * (3.0 * model_.steps() + 8.0 * N) * static_cast<double>(problem_.width());
    if (count > kMost || work > kWork) return;
    const search::BordersResult result =
        search::BestBorders(problem_, N, sides_, have_plan_ ? allocation_.objective : kInfinity,
                            floor_, threads_, stop_);
    plans_ += result.borders;
    if (result.plan.teacher_steps() > 0) {
      Offer(result.plan, {result.allocation.shares}, true);
    }
    if (result.complete) {
      Raise(result.lower_bound,
            absl::StrFormat(
                "the blocks are proven to be vanilla, and for each of the %d sets of borders "
                "the allocation is bounded by convexity, or by what a value below half "
                "of tau costs",
                result.borders));
    }
  }

  // ---- plans of all kinds, compared on the representatives

  // What Solve finds when every merge gets `each` of the training.
  std::optional<Plan> SolvedWithEach(double each) {
    Budget budget = model_.budget();
    budget.train_time = each;
    budget.iterations = std::max<std::int64_t>(1, std::llround(each));
    absl::StatusOr<Model> model = model_.WithBudget(budget);
    if (!model.ok()) return std::nullopt;
    SearchOptions options = options_;
    options.progress = nullptr;
    options.gap = std::max(options_.gap, 1e-2);
    options.time_limit_seconds = std::min(3.0, 0.1 * options_.time_limit_seconds);
    absl::StatusOr<SearchResult> result = Solve(*model, options);
    if (!result.ok()) return std::nullopt;
    return std::move(result->plan);
  }

  void Candidates() {
    constexpr int kEveryPlan = 6;
    const int T = model_.steps(), N = options_.student_steps;
    std::vector<SharedPlan> candidates;
    std::set<std::string> seen;
    const auto add = [&](Plan plan) {
      if (Fits(plan) && plan.size() > 0 && seen.insert(plan.ToString()).second) {
        candidates.push_back({std::move(plan), {}});
      }
      return candidates.empty() || !Stop();
    };
    search::SimplePlans(T, N, options_.space == Space::kNary, add);
    if (T <= kEveryPlan) {
      for (Plan& plan : search::EveryPlan(T, N)) add(std::move(plan));
    }
    if (N > 1) {
      for (Plan& plan : search::VanillaBlockPlans(T, N, 128)) add(std::move(plan));
    }
    if (N == 1 && !problem_.model->carries_x0()) {
      for (Plan& plan : search::DroppingPlans(screening_.problem(), 48)) add(std::move(plan));
    }
    if (T > N) {
      for (const double each : {total_ / (T - N), total_}) {
        if (std::optional<Plan> plan = SolvedWithEach(each)) add(*std::move(plan));
        if (Stop()) break;
      }
    }
    if (!have_plan_ && !candidates.empty()) Offer(candidates[0].plan, {}, false);
    std::vector<search::Screened> screened = screening_.All(candidates);
    const std::size_t climbs = T <= kEveryPlan ? 24 : T <= 64 ? 6 : 2;
    if (screened.size() > climbs) screened.resize(climbs);
    for (search::Screened& start : screened) {
      if (!std::isfinite(start.objective)) continue;
      const SharedPlan best = screening_.Climb(std::move(start)).plan;
      Offer(best.plan, {best.shares}, true);
      if (Done()) return;
    }
  }

  // The bound that looks at all dimensions together. It may take a part of the time only.
  void Together() {
    const Init init = model_.init();
    if (init != Init::kChild && init != Init::kTeacher) return;
    const double until = Seconds() + 0.3 * options_.time_limit_seconds;
    const double enough = have_plan_ ? allocation_.objective : kInfinity;
    Raise(search::DroppedStepsBound(problem_, options_.student_steps, ends_, 1.0, enough,
                                    [&] { return Stop() || Seconds() > until; }),
          "a step that merges drop for a variance is dropped for all smaller ones, so that low "
          "and high variances cannot both have their best plan");
  }

  SharedTimeResult Finish() {
    SharedTimeResult result;
    result.plan = plan_;
    result.total = total_;
    result.objective = allocation_.objective;
    result.tolerance = tolerance_;
    result.lower_bound = LowerBound();
    result.vanilla_objective = vanilla_objective_;
    result.plans = plans_ + screening_.plans();
    const std::size_t M = allocation_.shares.size();
    SharedTree tree(problem_, plan_);
    result.equal_shares_objective =
        tree.Objective(std::vector<double>(M, M > 0 ? 1.0 / static_cast<double>(M) : 0.0), nullptr);
    for (std::size_t m = 0; m < M; ++m) {
      result.untrained += allocation_.shares[m] < (model_.budget().sgd ? 0.5 / total_ : 1e-9);
    }
    result.allocation = allocation_;
    if (Optimal()) {
      result.status = SharedTimeStatus::kOptimal;
    } else if (result.objective - result.lower_bound <= options_.gap * result.objective) {
      result.status = SharedTimeStatus::kWithinGap;
    } else if (deadline_.interrupted()) {
      result.status = SharedTimeStatus::kInterrupted;
    } else {
      result.status =
          deadline_.stopped() ? SharedTimeStatus::kTimeLimit : SharedTimeStatus::kBestKnown;
    }
    result.guarantee = Words(result);
    result.seconds = Seconds();
    return result;
  }

  std::string Words(const SharedTimeResult& result) const {
    std::string words;
    const bool vanilla = options_.student_steps == 1 && plan_.size() == 1;
    if (plan_.size() == 0) {
      return "optimal: with as many blocks as steps nothing is merged, and there is one plan only";
    }
    if (result.status == SharedTimeStatus::kOptimal) {
      words = vanilla && sides_.everywhere
                  ? "optimal: vanilla with the whole total; proven for every plan and every "
                    "allocation"
                  : "optimal: no plan of so many blocks with any allocation of the total is "
                    "better";
    } else {
      absl::StrAppendFormat(
          &words,
          "%s: no plan of so many blocks, with any allocation of the total, is better by more than "
          "%.3g %%",
          result.status == SharedTimeStatus::kWithinGap    ? "within the gap"
          : deadline_.stopped() || deadline_.interrupted() ? "stopped early"
                                                           : "best of the plans tried",
          100 * result.gap());
    }
    absl::StrAppend(&words, "; ", why_);
    if (result.allocation.convex) {
      absl::StrAppendFormat(&words,
                            "; for this plan no allocation is better by more than %.3g (convex)",
                            result.allocation.stationarity);
    } else if (result.status != SharedTimeStatus::kOptimal) {
      absl::StrAppendFormat(&words,
                            "; the allocation is the best of descents from several starts, with a "
                            "first-order gain of at most %.3g left",
                            result.allocation.stationarity);
    }
    if (model_.budget().sgd && result.status != SharedTimeStatus::kOptimal) {
      absl::StrAppend(&words, result.allocation.exchanged
                                  ? "; moving one update between two merges does not help"
                                  : "; not all moves of one update between two merges were tried");
    }
    if (result.untrained > 0) {
      absl::StrAppendFormat(&words, "; %d of %d merges get no training and stay where they start",
                            result.untrained, plan_.size());
    }
    return words;
  }

  const Model& model_;
  const double total_;
  const SearchOptions& options_;
  const int threads_;
  search::Deadline deadline_;
  const std::function<bool()> stop_;
  const std::vector<Target> targets_;
  const SharedProblem problem_;
  const search::VanillaSides sides_;
  const double floor_;
  search::Screening screening_;

  search::Ends ends_;
  double bound_ = 0;
  std::string why_;
  bool have_plan_ = false;
  Plan plan_;
  SharedAllocation allocation_;
  double tolerance_ = 0, vanilla_objective_ = 0;
  int plans_ = 0;
};

absl::Status CheckSteps(const Model& model, const Plan& plan) {
  if (plan.teacher_steps() == model.steps()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("the plan has %d steps, the model %d", plan.teacher_steps(), model.steps()));
}

}  // namespace

std::string_view ToString(SharedTimeStatus status) {
  switch (status) {
    case SharedTimeStatus::kOptimal:
      return "optimal";
    case SharedTimeStatus::kWithinGap:
      return "within_gap";
    case SharedTimeStatus::kBestKnown:
      return "best_known";
    case SharedTimeStatus::kTimeLimit:
      return "time_limit";
    case SharedTimeStatus::kInterrupted:
      break;
  }
  return "interrupted";
}

absl::StatusOr<std::vector<double>> SharedTimeValue(const Model& model, const Plan& plan,
                                                    absl::Span<const double> amounts) {
  MP_RETURN_IF_ERROR(Check(model, 1));
  MP_RETURN_IF_ERROR(CheckSteps(model, plan));
  if (amounts.size() != static_cast<std::size_t>(plan.size())) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%d amounts of training for a plan of %d merges", amounts.size(), plan.size()));
  }
  for (std::size_t m = 0; m < amounts.size(); ++m) {
    if (!std::isfinite(amounts[m]) || amounts[m] < 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "training of merge %d is %g, expected a finite number >= 0", m + 1, amounts[m]));
    }
  }
  const SharedProblem problem(model, 1.0);
  return SharedTree(problem, plan).Value(amounts);
}

absl::StatusOr<SharedAllocation> AllocateSharedTime(const Model& model, const Plan& plan,
                                                    double total_time_or_updates,
                                                    const SearchOptions& options) {
  MP_RETURN_IF_ERROR(Check(model, total_time_or_updates));
  MP_RETURN_IF_ERROR(CheckSteps(model, plan));
  return Sharing(model, total_time_or_updates, options).Allocated(plan);
}

absl::StatusOr<SharedTimeResult> SolveSharedTime(const Model& model, double total_time_or_updates,
                                                 const SearchOptions& options) {
  MP_RETURN_IF_ERROR(Check(model, total_time_or_updates));
  MP_RETURN_IF_ERROR(search::CheckOptions(model, options));
  return Sharing(model, total_time_or_updates, options).Run();
}

}  // namespace mergeplan
