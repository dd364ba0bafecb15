#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/search/bounds.h"
#include "planner/search/families.h"
#include "planner/search/frontier.h"
#include "planner/search/parallel.h"
#include "planner/search/search.h"

namespace mergeplan {
namespace {

using search::Bounds;
using search::Pass;
using search::PassOptions;
using search::Shape;
using search::Target;
using Clock = std::chrono::steady_clock;

// Bytes of the interval tables that a search may take; beyond it only simple plans are compared.
constexpr double kTableLimit = 6e9;

class Search {
 public:
  Search(const Model& model, const SearchOptions& options)
      : model_(model),
        options_(options),
        threads_(search::ThreadCount(options.threads)),
        begin_(Clock::now()) {}

  SearchResult Run() {
    search::SimplePlans(model_.steps(), options_.student_steps, options_.space == Space::kNary,
                        [this](Plan plan) {
                          Offer(std::move(plan));
                          return !Stop();
                        });
    if (!Tables()) {
      if (!Stop()) stopped_ = true;
      why_ =
          "the search tables do not fit the memory or the time limit; only simple plans were "
          "compared and the lower bound "
          "is trivial";
      return Finish();
    }
    RaiseBound(search::RowBound(bounds_->columns.size(), bounds_->best_end.data(),
                                bounds_->prefix_a[bounds_->root()],
                                bounds_->prefix_b[bounds_->root()]));
    if (Proven()) {
      why_ = "no plan is better in any dimension";
      return Finish();
    }
    Climb();
    return Finish();
  }

 private:
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  bool Stop() {
    if (interrupted_) return true;
    if (options_.interrupted && options_.interrupted()) {
      interrupted_ = true;
    } else if (Seconds() > options_.time_limit_seconds) {
      stopped_ = true;
    }
    return interrupted_ || stopped_;
  }

  void Offer(Plan plan) {
    const std::vector<double> value = model_.Value(plan);
    const double objective = model_.Objective(value, model_.spec().reference);
    if (have_plan_ && !(objective < objective_)) return;
    have_plan_ = true;
    objective_ = objective;
    tolerance_ = model_.Tolerance(value, model_.spec().reference);
    plan_ = std::move(plan);
  }

  void RaiseBound(double bound) { bound_ = std::max(bound_, bound); }
  bool Optimal() const { return objective_ - bound_ <= tolerance_; }
  bool Proven() const {
    return Optimal() || objective_ - (bound_ - tolerance_) <= options_.gap * objective_;
  }

  // One target for every distinct variance.
  std::vector<Target> DistinctTargets() const {
    std::map<double, Target> targets;
    for (int k = 0; k < model_.dimensions(); ++k) {
      const double weight = model_.objective_weights()[k];
      if (weight == 0) continue;
      const double tau = model_.tau()[k];
      const auto [at, fresh] = targets.try_emplace(model_.lambda()[k], Target{k, 0, tau, tau, tau});
      at->second.weight += weight;
    }
    std::vector<Target> out;
    for (const auto& [lambda, target] : targets) out.push_back(target);
    return out;
  }

  bool Tables() {
    const std::vector<Target> targets = DistinctTargets();
    if (Bounds::Bytes(model_.steps(), targets.size(), options_.student_steps, threads_) >
        kTableLimit)
      return false;
    bounds_ = Bounds::Make(model_, targets,
                           options_.space == Space::kNary ? Shape::kNary : Shape::kBinary,
                           options_.student_steps, threads_, [this] { return Stop(); });
    return bounds_.has_value() && !Stop();
  }

  Pass MakePass(PassOptions options) {
    options.threads = threads_;
    return Pass(model_, *bounds_, std::move(options));
  }

  void Beam(int width) {
    PassOptions options;
    options.threshold = objective_;
    options.width = width;
    options.stop = [this] { return Stop(); };
    Pass pass = MakePass(std::move(options));
    if (pass.Run() != Pass::Outcome::kDone) return;
    for (Plan& plan : pass.BestPlans(8)) Offer(std::move(plan));
  }

  // One pass that proves something; false where it had to be given up. `effort` bounds the
  // candidates times columns.
  bool Prove(double threshold, double slack, std::optional<double> effort = std::nullopt) {
    PassOptions options;
    options.threshold = threshold;
    options.slack = slack;
    options.stop = [this] { return Stop(); };
    if (effort)
      options.max_candidates =
          static_cast<std::int64_t>(*effort / static_cast<double>(bounds_->columns.size() + 1));
    Pass pass = MakePass(std::move(options));
    const Pass::Outcome outcome = pass.Run();
    if (outcome == Pass::Outcome::kOutOfMemory) out_of_memory_ = true;
    if (outcome != Pass::Outcome::kDone) return false;
    for (Plan& plan : pass.BestPlans(64)) Offer(std::move(plan));
    RaiseBound(pass.LowerBound());
    return true;
  }

  // Plans whose bound is not below this need not be found: the gap asked for is then proven,
  // rounding included.
  double Threshold() const {
    return std::min(objective_, objective_ * (1 - options_.gap) + 2 * tolerance_);
  }

  // Beams for plans and passes with slack for the bound, by turns, each finer than the last; a pass
  // without slack ends it.
  void Climb() {
    const double aim = options_.gap > 0 ? options_.gap : 0.01;
    const double finest = options_.gap > 0 ? 1e-4 : 0.05;
    int width = 4;
    Beam(width);
    // Small problems are solved exactly whatever gap was asked for.
    constexpr double kSmall = 3e6;
    if (Done() || Prove(objective_, 0, kSmall)) return;
    for (double share = 0.25; share > finest; share /= 4) {
      if (Done()) return;
      Prove(Threshold(), share * aim * objective_);
      if (Done()) return;
      if (width < 64) Beam(width *= 4);
    }
    if (!Done()) Prove(objective_, 0);
    if (out_of_memory_ && !Proven()) {
      stopped_ = true;
      why_ = "the frontiers outgrew the memory limit";
    }
  }

  bool Done() { return Stop() || Proven() || out_of_memory_; }

  SearchResult Finish() {
    SearchResult result;
    result.plan = plan_;
    result.objective = objective_;
    result.tolerance = tolerance_;
    result.lower_bound = std::max(0.0, std::min(bound_, objective_) - tolerance_);
    result.seconds = Seconds();
    const std::string space = absl::StrFormat(
        "%s plans with %d block%s", options_.space == Space::kNary ? "n-ary" : "binary",
        options_.student_steps, options_.student_steps == 1 ? "" : "s");
    if (Optimal()) {
      result.status = SearchStatus::kOptimal;
      result.guarantee = absl::StrFormat("optimal among all %s, up to the rounding tolerance %.3g",
                                         space, tolerance_);
      if (bounds_ && search::OneNodePerInterval(bounds_->shape)) {
        absl::StrAppend(
            &result.guarantee,
            "; one merge per block is best in every dimension, the borders were searched");
      }
    } else if (Proven()) {
      result.status = SearchStatus::kWithinGap;
      result.guarantee =
          absl::StrFormat("no %s is better by more than %.3g %%", space, 100 * result.gap());
    } else {
      result.status = interrupted_ ? SearchStatus::kInterrupted : SearchStatus::kTimeLimit;
      result.guarantee =
          absl::StrFormat("stopped early: a plan among all %s may be better by up to %.3g %%",
                          space, 100 * result.gap());
    }
    if (!why_.empty()) absl::StrAppend(&result.guarantee, "; ", why_);
    return result;
  }

  const Model& model_;
  const SearchOptions& options_;
  int threads_;
  Clock::time_point begin_;

  std::optional<Bounds> bounds_;

  bool have_plan_ = false;
  Plan plan_;
  double objective_ = 0, tolerance_ = 0;
  double bound_ = 0;
  std::string why_;
  std::atomic<bool> interrupted_{false}, stopped_{false};
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
  if (options.student_steps < 1 || options.student_steps > model.steps()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("student steps is %d, expected 1..%d (the teacher's steps)",
                        options.student_steps, model.steps()));
  }
  if (!(options.gap >= 0) || options.gap >= 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("gap is %g, expected 0 <= gap < 1", options.gap));
  }
  if (!(options.time_limit_seconds > 0)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "time limit is %g seconds, expected a positive number", options.time_limit_seconds));
  }
  return Search(model, options).Run();
}

}  // namespace mergeplan
