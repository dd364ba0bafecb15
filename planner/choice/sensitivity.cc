#include "planner/choice/sensitivity.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/operators/canonical.h"
#include "planner/search/parallel.h"

namespace mergeplan {
namespace {

using Clock = std::chrono::steady_clock;

// z with P(|N(0,1)| < z) = confidence, by bisection.
double TwoSided(double confidence) {
  double low = 0, high = 40;
  for (int k = 0; k < 200; ++k) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::numbers::sqrt2) > 1 - confidence ? low : high) = middle;
  }
  return low;
}

// Wilson's interval at 95 %: sign -1 its lower end, 1 its upper.
double Wilson(const Share& share, int sign) {
  // The ends of no and all draws without rounding.
  if (share.of == 0 || share.count == (sign < 0 ? 0 : share.of)) return sign < 0 ? 0 : 1;
  constexpr double z = 1.959963984540054;
  const double n = share.of, p = share.share();
  const double middle = p + z * z / (2 * n);
  const double width = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return std::clamp((middle + sign * width) / (1 + z * z / n), 0.0, 1.0);
}

// Between the sorted numbers, linearly.
double Quantile(const std::vector<double>& sorted, double p) {
  if (sorted.empty()) return 0;
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

absl::Status CheckArguments(const Model& model, const VarianceIntervals& intervals,
                            const Plan& plan, const SensitivityOptions& options) {
  if (!model.has_schedule()) {
    return absl::FailedPreconditionError(
        "tables have no variances whose intervals could be drawn from");
  }
  const std::vector<double>& variances = model.spec().variances;
  if (intervals.low.size() != variances.size() || intervals.high.size() != variances.size()) {
    return absl::InvalidArgumentError(absl::StrCat("intervals of ", intervals.low.size(), " and ",
                                                   intervals.high.size(), " dimensions for ",
                                                   variances.size(), " variances"));
  }
  for (std::size_t k = 0; k < variances.size(); ++k) {
    const double low = intervals.low[k], high = intervals.high[k];
    if (low >= 0 && low <= variances[k] && variances[k] <= high && std::isfinite(high)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "interval ", k + 1, " is [", low, ", ", high,
        "], expected 0 <= low <= variance <= high, and the variance is ", variances[k]));
  }
  if (!(intervals.confidence > 0 && intervals.confidence < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("confidence is ", intervals.confidence,
                                                   ", expected a number between 0 and 1"));
  }
  if (options.draws < 1 || options.replans < 0) {
    return absl::InvalidArgumentError(absl::StrCat(options.draws, " draws and ", options.replans,
                                                   " of them planned for anew were asked for, "
                                                   "expected 1 or more, and 0 or more"));
  }
  if (plan.teacher_steps() != model.steps()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the plan has ", plan.teacher_steps(), " steps, the model ", model.steps()));
  }
  return absl::OkStatus();
}

class Analysis {
 public:
  Analysis(const Model& model, const VarianceIntervals& intervals,
           const SensitivityOptions& options)
      : model_(model), intervals_(intervals), options_(options) {
    out_.asked = options.draws;
    out_.seed = options.seed;
    out_.confidence = intervals.confidence;
  }

  absl::StatusOr<Sensitivity> Run(const Plan& plan, const std::string& name) {
    Add(name, plan, false);
    for (const Strategy strategy : kStrategies) {
      MP_ASSIGN_OR_RETURN(Plan canonical,
                          CanonicalPlan(strategy, model_.steps(), plan.student_steps()));
      if (Allowed(canonical)) {
        Add(std::string(ToString(strategy)), std::move(canonical), true);
      } else {
        out_.not_allowed.emplace_back(ToString(strategy));
      }
    }
    MP_RETURN_IF_ERROR(PlanAnew());
    for (Sensitivity::Candidate& c : out_.candidates) c.objective = model_.Objective(c.plan);
    Evaluate();
    Count();
    return std::move(out_);
  }

 private:
  bool Stop(double share) const {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    return seconds > share * options_.time_limit_seconds ||
           (options_.search.interrupted && options_.search.interrupted());
  }

  bool Allowed(const Plan& plan) const {
    const SearchOptions& search = options_.search;
    return (search.max_merges == 0 || plan.size() <= search.max_merges) &&
           (search.max_rounds == 0 || plan.rounds() <= search.max_rounds);
  }

  std::size_t Add(const std::string& name, Plan plan, bool canonical) {
    for (std::size_t c = 0; c < out_.candidates.size(); ++c) {
      Sensitivity::Candidate& old = out_.candidates[c];
      if (old.plan != plan) continue;
      if (std::find(old.names.begin(), old.names.end(), name) == old.names.end())
        old.names.push_back(name);
      old.canonical = old.canonical || canonical;
      return c;
    }
    Sensitivity::Candidate& c = out_.candidates.emplace_back();
    c.names.push_back(name);
    c.plan = std::move(plan);
    c.canonical = canonical;
    return out_.candidates.size() - 1;
  }

  // Nothing where the variances drawn are too large for the budget.
  std::optional<Model> ModelOfDraw(int draw) const {
    ModelSpec spec = model_.spec();
    spec.variances = DrawVariances(spec.variances, intervals_, options_.seed, draw);
    absl::StatusOr<Model> model = Model::Create(std::move(spec));
    return model.ok() ? std::optional<Model>(*std::move(model)) : std::nullopt;
  }

  absl::Status PlanAnew() {
    const int most = std::min(options_.replans, options_.draws);
    constexpr double kShare = 0.5;  // of the time
    for (int draw = 0; draw < most && !Stop(kShare); ++draw) {
      const std::optional<Model> model = ModelOfDraw(draw);
      if (!model) continue;
      SearchOptions search = options_.search;
      search.progress = nullptr;
      search.gap = options_.replan_gap;
      search.time_limit_seconds =
          std::max(1e-3, kShare * options_.time_limit_seconds / static_cast<double>(most));
      MP_ASSIGN_OR_RETURN(const SearchResult result, Solve(*model, search));
      Add(absl::StrCat("draw ", draw + 1), result.plan, false);
      replanned_.push_back({draw, result.lower_bound});
    }
    return absl::OkStatus();
  }

  void Evaluate() {
    const std::size_t count = out_.candidates.size();
    objectives_.assign(static_cast<std::size_t>(options_.draws) * count, 0);
    state_.assign(static_cast<std::size_t>(options_.draws), kLeftOut);
    // Every thread has a model of its own.
    constexpr double kBytes = 80, kMemory = 2e9;
    const double each = kBytes * model_.steps() * model_.dimensions();
    const int threads = std::clamp(static_cast<int>(std::min(kMemory / each, 1e4)), 1,
                                   search::ThreadCount(options_.search.threads));
    search::ParallelFor(threads, options_.draws, [&](int k) {
      if (Stop(1)) return;
      const std::optional<Model> model = ModelOfDraw(k);
      if (!model) {
        state_[static_cast<std::size_t>(k)] = kRefused;
        return;
      }
      for (std::size_t c = 0; c < count; ++c) {
        objectives_[static_cast<std::size_t>(k) * count + c] =
            model->Objective(out_.candidates[c].plan);
      }
      state_[static_cast<std::size_t>(k)] = kDone;
    });
  }

  void Count() {
    const std::size_t count = out_.candidates.size();
    std::vector<double> lead;
    for (int k = 0; k < options_.draws; ++k) {
      if (state_[static_cast<std::size_t>(k)] == kRefused) ++out_.refused;
      if (state_[static_cast<std::size_t>(k)] != kDone) continue;
      ++out_.draws;
      const double* row = objectives_.data() + static_cast<std::size_t>(k) * count;
      std::size_t best = 0, strategy = count;
      double rival = std::numeric_limits<double>::infinity();
      for (std::size_t c = 0; c < count; ++c) {
        if (row[c] < row[best]) best = c;
        if (!out_.candidates[c].canonical) continue;
        if (strategy == count || row[c] < row[strategy]) strategy = c;
        if (c > 0) rival = std::min(rival, row[c]);
      }
      for (std::size_t c = 0; c < count; ++c) {
        Sensitivity::Candidate& candidate = out_.candidates[c];
        ++candidate.best.of;
        candidate.best.count += c == best ? 1 : 0;
        if (!candidate.canonical) continue;
        ++candidate.best_strategy.of;
        candidate.best_strategy.count += c == strategy ? 1 : 0;
      }
      if (!std::isfinite(rival)) continue;
      ++out_.not_beaten.of;
      out_.not_beaten.count += row[0] <= rival ? 1 : 0;
      const double larger = std::max(rival, row[0]);
      lead.push_back(larger > 0 ? (rival - row[0]) / larger : 0);
    }
    std::sort(lead.begin(), lead.end());
    out_.lead = {Quantile(lead, 0.05), Quantile(lead, 0.5), Quantile(lead, 0.95)};

    std::vector<double> regret;
    for (const auto& [draw, lower_bound] : replanned_) {
      if (state_[static_cast<std::size_t>(draw)] != kDone) continue;
      const double* row = objectives_.data() + static_cast<std::size_t>(draw) * count;
      if (!(row[0] > 0)) {
        regret.push_back(0);
        continue;
      }
      regret.push_back((row[0] - *std::min_element(row, row + count)) / row[0]);
      out_.regret_bound = std::max(out_.regret_bound, (row[0] - lower_bound) / row[0]);
    }
    std::sort(regret.begin(), regret.end());
    out_.replans = static_cast<int>(regret.size());
    out_.regret_median = Quantile(regret, 0.5);
    out_.regret_largest = regret.empty() ? 0 : regret.back();
  }

  enum State : char { kLeftOut, kRefused, kDone };
  struct Replan {
    int draw;
    double lower_bound;
  };

  const Model& model_;
  const VarianceIntervals& intervals_;
  const SensitivityOptions& options_;
  const Clock::time_point begin_ = Clock::now();
  Sensitivity out_;
  std::vector<Replan> replanned_;
  std::vector<double> objectives_;  // draws x candidates
  std::vector<State> state_;        // of the draws
};

}  // namespace

VarianceIntervals RelativeIntervals(const std::vector<double>& variances, double relative_error) {
  VarianceIntervals out;
  for (const double v : variances) {
    out.low.push_back(v / (1 + relative_error));
    out.high.push_back(v * (1 + relative_error));
  }
  return out;
}

std::vector<double> DrawVariances(const std::vector<double>& variances,
                                  const VarianceIntervals& intervals, std::uint64_t seed,
                                  int draw) {
  std::seed_seq words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                      static_cast<std::uint32_t>(draw)};
  std::mt19937_64 random(words);
  const auto uniform = [&random] {  // inside (0, 1)
    return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
  };
  const double z = TwoSided(intervals.confidence);
  std::vector<double> out;
  out.reserve(variances.size());
  for (std::size_t k = 0; k < variances.size(); ++k) {
    // Box and Muller's, so that the digits are the same with every standard library.
    const double radius = std::sqrt(-2 * std::log(uniform()));
    const double normal = radius * std::cos(2 * std::numbers::pi * uniform());
    const double v = variances[k], low = intervals.low[k], high = intervals.high[k];
    if (v == 0) {
      out.push_back(0);
      continue;
    }
    const double up = std::log(high / v), down = low > 0 ? std::log(v / low) : up;
    out.push_back(v * std::exp(normal / z * (normal > 0 ? up : down)));
  }
  return out;
}

double Share::low() const { return Wilson(*this, -1); }
double Share::high() const { return Wilson(*this, 1); }

absl::StatusOr<Sensitivity> AnalyzeSensitivity(const Model& model,
                                               const VarianceIntervals& intervals, const Plan& plan,
                                               const std::string& name,
                                               const SensitivityOptions& options) {
  MP_RETURN_IF_ERROR(CheckArguments(model, intervals, plan, options));
  return Analysis(model, intervals, options).Run(plan, name);
}

}  // namespace mergeplan
