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

using search::Columns;
using search::ColumnTables;
using search::Inside;
using search::Intervals;
using search::Outside;
using search::Pass;
using search::PassOptions;
using search::Shape;
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
    RaiseBound(search::RowBound(columns_.size(), best_end_.data(), RootA(), RootB()));
    if (Proven()) {
      why_ = "no plan is better in any dimension";
      return Finish();
    }
    for (int width : {4, 16, 64}) {
      if (Stop()) break;
      Beam(width);
    }
    if (!Stop() && !Proven()) Certify();
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

  // One column for every distinct variance, larger-is-better throughout; the orientation comes
  // later.
  Columns DistinctColumns() const {
    std::map<double, double> weights;
    std::map<double, int> first;
    for (int k = 0; k < model_.dimensions(); ++k) {
      const double weight = model_.objective_weights()[k];
      if (weight == 0) continue;
      weights[model_.lambda()[k]] += weight;
      first.emplace(model_.lambda()[k], k);
    }
    Columns columns;
    for (const auto& [lambda, weight] : weights) {
      const int k = first[lambda];
      columns.coordinate.push_back(k);
      columns.sign.push_back(1);
      columns.root_weight.push_back(std::sqrt(weight));
      columns.tau.push_back(model_.tau()[k]);
    }
    return columns;
  }

  Shape SpaceShape() const {
    return options_.space == Space::kNary ? Shape::kNary : Shape::kBinary;
  }

  bool Tables() {
    const Columns distinct = DistinctColumns();
    const Intervals at(model_.steps());
    if (static_cast<double>(at.size()) * static_cast<double>(distinct.size()) * 2 * 8 *
            sizeof(double) >
        kTableLimit) {
      return false;
    }
    shape_ = SpaceShape();
    ColumnTables tables(model_, distinct);
    const auto stop = [this] { return Stop(); };
    const Inside inside(model_, distinct, tables, shape_, options_.student_steps, threads_, stop);
    if (Stop()) return false;
    Orient(distinct, inside);
    tables_ = std::make_unique<ColumnTables>(model_, columns_);
    inside_ = std::make_unique<Inside>(model_, columns_, *tables_, shape_, options_.student_steps,
                                       threads_, stop);
    if (Stop()) return false;
    if (options_.student_steps > 1 && AllStepsIsBestEverywhere()) {
      shape_ = Shape::kDirect;
      inside_ = std::make_unique<Inside>(model_, columns_, *tables_, shape_, options_.student_steps,
                                         threads_, stop);
    }
    outside_ = std::make_unique<Outside>(model_, columns_, *tables_, *inside_, shape_,
                                         options_.student_steps, threads_, stop);
    if (Stop()) return false;
    const std::size_t root = inside_->Layer(options_.student_steps, model_.steps());
    best_end_.resize(columns_.size());
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      best_end_[c] =
          columns_.sign[c] > 0 ? inside_->prefix_hi[root][c] : inside_->prefix_lo[root][c];
    }
    return true;
  }

  // Dominance is valid in a coordinate exactly where tau does not lie strictly between the least
  // and the largest value that any whole plan can have. Columns with the widest weighted range come
  // first: they end most bounds early.
  void Orient(const Columns& distinct, const Inside& inside) {
    const int T = model_.steps();
    const std::size_t root = inside.Layer(options_.student_steps, T);
    const Model::Affine map = model_.CarriedToValue(1, T);
    std::vector<double> spread(distinct.size());
    std::vector<std::size_t> order(distinct.size());
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t c = 0; c < distinct.size(); ++c) {
      spread[c] = distinct.root_weight[c] * map.scale *
                  (inside.prefix_hi[root][c] - inside.prefix_lo[root][c]);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t x, std::size_t y) { return spread[x] > spread[y]; });
    for (std::size_t c : order) {
      const double lo = map.offset + map.scale * inside.prefix_lo[root][c];
      const double hi = map.offset + map.scale * inside.prefix_hi[root][c];
      const double tau = distinct.tau[c];
      const double rounding = 16.0 * T * 0x1p-53 * std::max(hi, tau);
      const bool up = tau >= hi - rounding;
      const bool down = tau <= lo + rounding;
      const auto add = [&](double sign) {
        columns_.coordinate.push_back(distinct.coordinate[c]);
        columns_.sign.push_back(sign);
        columns_.root_weight.push_back(distinct.root_weight[c]);
        columns_.tau.push_back(tau);
      };
      if (up || !down) add(1);
      if (!up) add(-1);
      if (!up && !down) columns_.dominance_everywhere = false;
    }
  }

  // Does merging all steps at once give every interval its best value in every column? Then every
  // block of a best plan is one merge, and only the borders are open (the theorems on the starts
  // `jump` and `teacher`, checked on this instance).
  bool AllStepsIsBestEverywhere() const {
    if (!columns_.dominance_everywhere) return false;
    const std::size_t n = columns_.size();
    const Inside direct(model_, columns_, *tables_, Shape::kDirect, 1, threads_, nullptr);
    const Intervals at(model_.steps());
    for (std::size_t row = 0; row < at.size(); ++row) {
      for (std::size_t c = 0; c < n; ++c) {
        const double best = columns_.sign[c] > 0 ? inside_->s_hi[row][c] : inside_->s_lo[row][c];
        if (std::abs(direct.s_hi[row][c] - best) > 16.0 * model_.steps() * 0x1p-53 * std::abs(best))
          return false;
      }
    }
    return true;
  }

  const double* RootA() const {
    return outside_->prefix_a[inside_->Layer(options_.student_steps, model_.steps())];
  }
  const double* RootB() const {
    return outside_->prefix_b[inside_->Layer(options_.student_steps, model_.steps())];
  }

  Pass MakePass(PassOptions options) {
    options.threads = threads_;
    return Pass(model_, columns_, *tables_, *inside_, *outside_, shape_, options_.student_steps,
                std::move(options));
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
          static_cast<std::int64_t>(*effort / static_cast<double>(columns_.size() + 1));
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

  void Certify() {
    // Small problems are solved exactly whatever gap was asked for.
    constexpr double kSmall = 2e7;
    if (Prove(objective_, 0, kSmall)) return;
    // Coarse passes first. Where a proof of optimality is asked for, one of them is enough: it
    // leaves a bound for the case that the exact pass runs out of time.
    const double aim = options_.gap > 0 ? options_.gap : 0.01;
    const double finest = options_.gap > 0 ? 1e-4 : 0.1;
    for (double share = 0.25; share > finest && !Stop() && !Proven() && !out_of_memory_;
         share /= 4) {
      Prove(Threshold(), share * aim * objective_);
    }
    if (!Stop() && !Proven() && !out_of_memory_) Prove(objective_, 0);
    if (out_of_memory_ && !Proven()) {
      stopped_ = true;
      why_ = "the frontiers outgrew the memory limit";
    }
  }

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
      if (shape_ == Shape::kDirect) {
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

  Shape shape_ = Shape::kNary;
  Columns columns_;
  std::unique_ptr<ColumnTables> tables_;
  std::unique_ptr<Inside> inside_;
  std::unique_ptr<Outside> outside_;
  std::vector<double> best_end_;

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
