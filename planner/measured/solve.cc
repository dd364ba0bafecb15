#include "planner/measured/solve.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"
#include "planner/measured/chains.h"
#include "planner/measured/plan_error.h"
#include "planner/measured/program.h"
#include "planner/measured/sharing.h"
#include "planner/operators/canonical.h"

namespace mergeplan {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Sharing keeps the distances of all merges and starts in memory.
constexpr int kMostSharedSteps = 256;

absl::Status Bad(const std::string& message) { return absl::InvalidArgumentError(message); }

absl::Status CheckOptions(const MeasuredModel& model, const MeasuredOptions& options) {
  if (options.student_steps < 1 || options.student_steps > model.steps()) {
    return Bad(absl::StrCat("student steps is ", options.student_steps, ", expected 1..",
                            model.steps(), " (the teacher's steps)"));
  }
  if ((options.updates != 0) == (options.total_updates != 0)) {
    return Bad(options.updates == 0 ? "no budget: give the updates of every merge, or the total"
                                    : "updates of every merge and a total are given; give one");
  }
  for (const auto& [name, number] :
       {std::pair{"updates", options.updates}, {"total updates", options.total_updates}}) {
    if (number < 0 || number > kMostUpdates) {
      return Bad(absl::StrCat(name, " is ", number, ", expected 1..", kMostUpdates));
    }
  }
  if (options.max_children != 0 && options.max_children < 2) {
    return Bad(absl::StrCat("max children is ", options.max_children, ", expected 2 or more"));
  }
  if (options.max_merges < 0) {
    return Bad(absl::StrCat("max merges is ", options.max_merges, ", expected 1 or more"));
  }

  if (options.total_updates > 0 && model.steps() > kMostSharedSteps) {
    return Bad(absl::StrCat("a total of updates is shared for at most ", kMostSharedSteps,
                            " teacher steps, these tables have ", model.steps(),
                            "; give updates per merge"));
  }
  return absl::OkStatus();
}

// All sums are of products of numbers >= 0, so that only relative errors arise: at most about four
// roundings for each merge on the way from a step to the student, of which there are fewer than T.
double RelativeTolerance(const MeasuredModel& model) { return 8.0 * model.steps() * 0x1p-53; }

std::vector<double> GainFactors(const MeasuredModel& model, Combine combine) {
  const int steps = model.steps();
  std::vector<double> out(static_cast<size_t>(steps) * steps, 0.0);
  for (int i = 1; i <= steps; ++i) {
    for (int m = i; m < steps; ++m) {
      out[static_cast<size_t>(i - 1) * steps + (m - 1)] =
          GainFactor(combine, model.Gain(i, m).At(model.values()));
    }
  }
  return out;
}

// A plan with its error; the better of two is kept.
struct Incumbent {
  Plan plan;
  std::vector<std::int64_t> updates;
  double error = kInfinity;

  void Offer(const MeasuredModel& model, Combine combine, const Plan& other,
             const std::vector<std::int64_t>& other_updates) {
    const double value = PlanError(model, other, other_updates, combine).At(model.values());
    if (!(value < error)) return;
    plan = other;
    updates = other_updates;
    error = value;
  }
};

// The limit on merges, 0 for none: no plan has more than T-1.
int MergeLimit(const MeasuredModel& model, const MeasuredOptions& options) {
  return options.max_merges >= model.steps() - 1 ? 0 : options.max_merges;
}

absl::Status TooManyMerges(const MeasuredModel& model, int limit) {
  return absl::ResourceExhaustedError(
      absl::StrCat("max merges: ", limit, " merges of ", model.steps(),
                   " steps are too many to be counted exactly; give a smaller limit or none"));
}

// " with at most 2 children per merge and at most 3 merges", or nothing.
std::string LimitWords(const MeasuredOptions& options) {
  std::string out;
  if (options.max_children > 0) {
    absl::StrAppend(&out, " with at most ", options.max_children, " children per merge");
  }
  if (options.max_merges > 0) {
    absl::StrAppend(&out, out.empty() ? " with" : " and", " at most ", options.max_merges, " merge",
                    options.max_merges > 1 ? "s" : "");
  }
  return out;
}

absl::StatusOr<MeasuredResult> SolvePerMerge(const MeasuredModel& model,
                                             const MeasuredOptions& options) {
  const Combine combine = options.combine;
  const int limit = MergeLimit(model, options);
  if (limit > 0 &&
      TreeProgram::Effort(model.steps(), options.max_children, limit, 0) > options.effort) {
    return TooManyMerges(model, limit);
  }
  TreeProblem problem;
  problem.steps = model.steps();
  problem.max_children = options.max_children;
  problem.max_merges = limit;
  problem.weight = GainFactors(model, combine);
  std::vector<double> distances(model.steps());
  problem.own = [&](int i, int j, absl::Span<double> out) {
    const double left = model.Residual(i, j, options.updates).At(model.values());
    const double floor = model.Floor(i, j).At(model.values());
    const absl::Span<double> row = absl::MakeSpan(distances).first(static_cast<size_t>(j) - i);
    model.Distances(i, j, model.values(), row);
    for (int n = 0; n < j - i; ++n) out[n] = OwnCost(combine, left, row[n], floor);
  };
  const TreeAnswer answer = TreeProgram(std::move(problem)).Best(options.student_steps);
  if (!(answer.value < kInfinity)) {
    return Bad(absl::StrCat("no plan has ", options.student_steps, " student step",
                            options.student_steps > 1 ? "s" : "", LimitWords(options),
                            "; allow more"));
  }
  MeasuredResult result;
  result.plan = answer.plan;
  result.updates.assign(answer.plan.size(), options.updates);
  result.error = PlanError(model, result.plan, result.updates, combine).At(model.values());
  // The two are the same sum, up to rounding.
  result.lower_bound =
      std::min(result.error, ErrorOf(combine, answer.value)) * (1 - RelativeTolerance(model));
  result.optimal = true;
  result.guarantee = absl::StrCat(
      "proven optimal for the measured values, up to rounding: an exact dynamic program over all "
      "plans",
      LimitWords(options));
  return result;
}

// One total of updates for all merges.
class Sharing {
 public:
  Sharing(const MeasuredModel& model, const MeasuredOptions& options)
      : model_(model),
        options_(options),
        combine_(options.combine),
        steps_(model.steps()),
        limit_(MergeLimit(model, options)) {
    ranges_.resize(static_cast<size_t>(steps_) * steps_);
    for (int i = 1; i <= steps_; ++i) {
      for (int j = i + 1; j <= steps_; ++j) {
        MergeRange& range = At(i, j);
        range.left = model.ResidualCurve(i, j, model.values());
        range.convex = ConvexBelow(range.left);
        range.floor = model.Floor(i, j).At(model.values());
        range.distances.resize(j - i);
        model.Distances(i, j, model.values(), absl::MakeSpan(range.distances));
      }
    }
    factors_ = GainFactors(model, combine_);
  }

  absl::StatusOr<MeasuredResult> Solve() {
    const std::int64_t total = options_.total_updates;
    const int most = LargestResource();
    double bound = options_.student_steps == 1 ? LastMergeAlone() : 0;  // in contributions
    OfferStrategies();
    bool exact = false;
    if (!Reached(bound) && total <= most) {
      exact = true;
      const TreeAnswer answer = Units(1, static_cast<int>(total), 0);
      if (!(answer.value < kInfinity)) return NoPlan();
      Offer(answer.plan, std::vector<std::int64_t>(answer.shares.begin(), answer.shares.end()));
      bound = answer.value;
    } else {
      if (!Reached(bound)) Relax(bound);
      if (!Reached(bound)) OfferEqualShares();
      if (!Reached(bound)) OfferUnits(most, bound);
      Climb(bound);
      if (!(best_.error < kInfinity)) {
        return limit_ > 0 && most == 0 ? TooManyMerges(model_, limit_) : NoPlan();
      }
    }
    MeasuredResult result;
    result.plan = std::move(best_.plan);
    result.updates = std::move(best_.updates);
    result.error = best_.error;
    result.lower_bound = LowerBound(bound);
    result.optimal = exact || Reached(bound);
    result.guarantee = Guarantee(result, exact);
    return result;
  }

 private:
  struct MergeRange {
    Curve left, convex;
    double floor = 0;
    std::vector<double> distances;  // by start, i+1..j
  };
  MergeRange& At(int i, int j) { return ranges_[static_cast<size_t>(i - 1) * steps_ + (j - 1)]; }

  // The bound that may be stated, rounding taken off, and whether the best plan is at it.
  double LowerBound(double bound) const {
    return std::min(best_.error, ErrorOf(combine_, bound)) * (1 - RelativeTolerance(model_));
  }
  bool Reached(double bound) const {
    return best_.error < kInfinity &&
           best_.error - LowerBound(bound) <= 2 * RelativeTolerance(model_) * best_.error;
  }

  absl::Status NoPlan() const {
    return Bad(absl::StrCat("total updates is ", options_.total_updates, ": no plan with ",
                            options_.student_steps, " student step",
                            options_.student_steps > 1 ? "s" : "", LimitWords(options_),
                            " has so few merges; allow more"));
  }

  // The most units that the exact program may share; 0: none.
  int LargestResource() const {
    int most = 0;
    while (most < 100'000 && TreeProgram::Effort(steps_, options_.max_children, limit_, most + 1) <=
                                 options_.effort) {
      ++most;
    }
    return most;
  }

  // The tree program with `resource` units. A merge that takes k > 0 of them has k * unit updates;
  // with `bonus` it has that many more, and may take none.
  TreeAnswer Units(std::int64_t unit, int resource, std::int64_t bonus) {
    TreeProblem problem;
    problem.steps = steps_;
    problem.max_children = options_.max_children;
    problem.max_merges = limit_;
    problem.resource = resource;
    problem.weight = factors_;
    std::vector<double> left(resource + 1);
    problem.own = [&](int i, int j, absl::Span<double> out) {
      const MergeRange& range = At(i, j);
      for (int k = 0; k <= resource; ++k) {
        left[k] = range.left.At(std::min(k * unit + bonus, options_.total_updates));
      }
      for (int n = 0; n < j - i; ++n) {
        double* cell = &out[static_cast<size_t>(n) * (resource + 1)];
        for (int k = 0; k <= resource; ++k) {
          cell[k] = k * unit + bonus == 0
                        ? kInfinity
                        : OwnCost(combine_, left[k], range.distances[n], range.floor);
        }
      }
    };
    return TreeProgram(std::move(problem)).Best(options_.student_steps);
  }

  // Keeps the plan if it is the best so far, with these updates (what is left over goes to the last
  // merge) or with those that ShareUpdates finds.
  void Offer(const Plan& plan, std::vector<std::int64_t> updates) {
    if (!updates.empty()) {
      std::int64_t spent = 0;
      for (const std::int64_t u : updates) spent += u;
      updates.back() += options_.total_updates - spent;
      best_.Offer(model_, combine_, plan, updates);
    }
    OfferShared(plan);
  }
  void OfferShared(const Plan& plan) {
    if (!KeepsLimits(plan, options_)) return;
    const auto shared = ShareUpdates(model_, plan, combine_, options_.total_updates);
    if (shared.ok()) best_.Offer(model_, combine_, plan, *shared);
  }

  void OfferStrategies() {
    for (const Strategy strategy : kStrategies) {
      const auto plan = CanonicalPlan(strategy, steps_, options_.student_steps);
      if (plan.ok()) OfferShared(*plan);
    }
  }

  // The best plans of at most m merges that train total / m updates each.
  void OfferEqualShares() {
    MeasuredOptions equal = options_;
    equal.total_updates = 0;
    for (int merges = 1; merges <= 12 && merges <= options_.total_updates; ++merges) {
      if (limit_ > 0 && merges > limit_) return;
      equal.max_merges = merges;
      equal.updates = options_.total_updates / merges;
      if (12 * TreeProgram::Effort(steps_, options_.max_children, merges, 0) > options_.effort) {
        return;
      }
      const absl::StatusOr<MeasuredResult> result = SolvePerMerge(model_, equal);
      if (result.ok()) OfferShared(result->plan);
    }
  }

  // From the best plan to a better neighbour, as long as there is one.
  void Climb(double bound) {
    for (int left = 5000; left > 0 && best_.error < kInfinity && !Reached(bound);) {
      const double before = best_.error;
      for (const Plan& plan : NeighboursOf(best_.plan)) {
        if (--left < 0 || best_.error < before) break;
        OfferShared(plan);
      }
      if (!(best_.error < before)) return;
    }
  }

  void OfferUnits(int most, double& bound) {
    if (most == 0) return;
    const std::int64_t unit = (options_.total_updates + most - 1) / most;
    const auto resource = static_cast<int>(options_.total_updates / unit);
    const TreeAnswer answer = Units(unit, resource, 0);
    if (answer.value < kInfinity) {
      std::vector<std::int64_t> updates;
      for (const int share : answer.shares) updates.push_back(share * unit);
      Offer(answer.plan, std::move(updates));
    }
    bound = std::max(bound, Units(unit, resource, unit - 1).value);
  }

  // Own contributions at a price per update, with the least factors that any place in a plan gives.
  double Priced(int i, int j, int a, double price, std::int64_t& updates) {
    const MergeRange& range = At(i, j);
    const double distance = range.distances[a - i - 1];
    updates =
        UpdatesWorth(range.convex, combine_, least_[i], distance, price, options_.total_updates);
    return least_[i] * OwnCost(combine_, range.convex.At(updates), distance, range.floor) +
           price * static_cast<double>(updates);
  }

  // Raises the bound to the relaxed problem's at this price, offers its plan and says how many
  // updates that takes.
  double RelaxAt(double price, double& bound) {
    TreeProblem problem;
    problem.steps = steps_;
    problem.max_children = options_.max_children;
    // There are about 75 prices.
    if (75 * TreeProgram::Effort(steps_, options_.max_children, limit_, 0) <= options_.effort) {
      problem.max_merges = limit_;
    }
    problem.weight.assign(static_cast<size_t>(steps_) * steps_, 1.0);
    std::int64_t updates = 0;
    problem.own = [&](int i, int j, absl::Span<double> out) {
      for (int a = i + 1; a <= j; ++a) out[a - i - 1] = Priced(i, j, a, price, updates);
    };
    const TreeAnswer answer = TreeProgram(std::move(problem)).Best(options_.student_steps);
    if (!(answer.value < kInfinity)) return 0;
    OfferShared(answer.plan);
    const double paid = price * static_cast<double>(options_.total_updates);
    // The difference of two large numbers: their rounding goes off.
    bound = std::max(bound, answer.value - paid - 2 * RelativeTolerance(model_) * answer.value);
    double spent = 0;
    for (const Merge& merge : answer.plan.merges()) {
      Priced(merge.first, merge.last, StartOf(answer.plan, merge), price, updates);
      spent += static_cast<double>(updates);
    }
    return spent;
  }

  // The bound is concave in the price, and U less what is spent is its slope: the best price is
  // where that changes its sign.
  void Relax(double& bound) {
    least_.assign(steps_ + 1, kInfinity);
    least_[1] = 1;
    for (int a = 2; a <= steps_; ++a) {
      for (int i = 1; i < a; ++i) {
        least_[a] = std::min(least_[a],
                             least_[i] * factors_[static_cast<size_t>(i - 1) * steps_ + (a - 2)]);
      }
    }
    const auto total = static_cast<double>(options_.total_updates);
    if (RelaxAt(0, bound) <= total) return;
    double scale = 0;  // no update is worth more
    for (int i = 1; i <= steps_; ++i) {
      for (int j = i + 1; j <= steps_; ++j) {
        for (const double g : At(i, j).distances) {
          scale = std::max(scale, least_[i] * OwnCost(combine_, 1, g, At(i, j).floor));
        }
      }
    }
    if (!(scale > 0 && scale < kInfinity)) return;
    double low = std::log(scale) - 2 * std::log(total) - 40, high = std::log(scale) + 1;
    for (int n = 0; n < 48; ++n) {
      const double middle = (low + high) / 2;
      (RelaxAt(std::exp(middle), bound) > total ? low : high) = middle;
    }
    // The bound is found; prices around it give other plans, some of which share better.
    for (int n = 1; n <= 12 && !Reached(bound); ++n) {
      RelaxAt(std::exp(high + 0.1 * n), bound);
      RelaxAt(std::exp(high - 0.1 * n), bound);
    }
  }

  // The last merge's own contribution with all updates, at its best start.
  double LastMergeAlone() {
    const MergeRange& range = At(1, steps_);
    const double nearest = *std::min_element(range.distances.begin(), range.distances.end());
    return OwnCost(combine_, range.left.At(options_.total_updates), nearest, range.floor);
  }

  std::string Guarantee(const MeasuredResult& result, bool exact) const {
    const std::string limits = LimitWords(options_);
    if (exact) {
      return absl::StrCat(
          "proven optimal for the measured values, up to rounding: an exact dynamic program over "
          "all plans",
          limits, " and all ways to share ", options_.total_updates, " updates");
    }
    if (result.optimal) {
      return absl::StrCat(
          "proven optimal for the measured values, up to rounding: a lower bound "
          "of all plans",
          limits, " and all ways to share the updates is reached");
    }
    return absl::StrFormat(
        "within %.3g %% of the least error of all plans%s and all ways to share the updates (lower "
        "bounds by a price per update and by whole units of updates); for this plan the updates "
        "are shared %s",
        100 * result.gap(), limits,
        model_.convex() ? "in the best way (residuals are convex: greedy is optimal)"
                        : "well, not provably best (some residuals are not convex)");
  }

  const MeasuredModel& model_;
  const MeasuredOptions& options_;
  Combine combine_;
  int steps_;
  int limit_;  // on merges
  std::vector<MergeRange> ranges_;
  std::vector<double> factors_;
  std::vector<double> least_;  // omega, by the first step
  Incumbent best_;
};

}  // namespace

bool KeepsLimits(const Plan& plan, const MeasuredOptions& options) {
  if (options.max_merges > 0 && plan.size() > options.max_merges) return false;
  return std::all_of(plan.merges().begin(), plan.merges().end(), [&](const Merge& merge) {
    return options.max_children == 0 ||
           static_cast<int>(merge.children.size()) <= options.max_children;
  });
}

absl::StatusOr<std::vector<std::int64_t>> UpdatesOf(const MeasuredModel& model, const Plan& plan,
                                                    const MeasuredOptions& options) {
  if (options.total_updates > 0) {
    return ShareUpdates(model, plan, options.combine, options.total_updates);
  }
  return std::vector<std::int64_t>(plan.size(), options.updates);
}

absl::StatusOr<MeasuredResult> SolveMeasured(const MeasuredModel& model,
                                             const MeasuredOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  MP_RETURN_IF_ERROR(CheckOptions(model, options));
  absl::StatusOr<MeasuredResult> result =
      options.total_updates > 0 ? Sharing(model, options).Solve() : SolvePerMerge(model, options);
  if (result.ok()) {
    result->seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return result;
}

}  // namespace mergeplan
