#include "adapters/calibrate/judge.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/base/status_macros.h"

namespace mergeplan::calibrate {
namespace {

double OwnAt(const MeasuredModel& model, Combine combine, Range range, int start,
             std::int64_t updates, const std::vector<double>& scenario) {
  return OwnCost(combine, model.Residual(range.first, range.last, updates).At(scenario),
                 model.Distance(range.first, start, range.last).At(scenario),
                 model.Floor(range.first, range.last).At(scenario));
}

double ContributionsAt(const MeasuredModel& model, Combine combine, const Pilot& pilot,
                       std::int64_t updates, const std::vector<double>& scenario) {
  double sum = OwnAt(model, combine, pilot.range, pilot.start(), updates, scenario);
  for (const Range& child : pilot.trained) {
    const double gain = model.Gain(pilot.range.first, child.first - 1).At(scenario);
    sum += GainFactor(combine, gain) * OwnAt(model, combine, child, child.last, updates, scenario);
  }
  return sum;
}

template <typename Value>
ErrorRange RangeOf(const MeasuredModel& model, Combine combine, const Value& value) {
  return {ErrorOf(combine, value(model.values())), ErrorOf(combine, value(model.lows())),
          ErrorOf(combine, value(model.highs()))};
}

void Add(double predicted, double measured, Score* score) {
  if (!(measured > 0)) return;
  const double off = std::log(std::max(predicted, 1e-12 * measured) / measured);
  score->off += off * off;
  score->bias += off;
  ++score->merges;
}
void Finish(Score* score) {
  if (score->merges == 0) return;
  score->off = std::sqrt(score->off / score->merges);
  score->bias /= score->merges;
}
bool Within(const ErrorRange& range, double measured) {
  return measured >= range.low && measured <= range.high;
}

}  // namespace

double Score::factor() const { return std::exp(off); }

ErrorRange PredictPilot(const MeasuredModel& model, Combine combine, const Pilot& pilot,
                        std::int64_t updates) {
  return RangeOf(model, combine, [&](const std::vector<double>& scenario) {
    return ContributionsAt(model, combine, pilot, updates, scenario);
  });
}

ErrorRange PredictOwn(const MeasuredModel& model, Combine combine, const Pilot& pilot,
                      std::int64_t updates) {
  return RangeOf(model, combine, [&](const std::vector<double>& scenario) {
    return OwnAt(model, combine, pilot.range, pilot.start(), updates, scenario);
  });
}

absl::StatusOr<Judgement> Judge(const Measurements& m, const MeasuredModel& sum,
                                const MeasuredModel& rms, const LinearModel& linear) {
  Judgement out;
  for (const PilotResult& r : m.pilots) {
    if (r.pilot.replicate > 0) continue;
    Judged j;
    j.pilot = r.pilot;
    j.measured = std::sqrt(r.teacher) * m.data_scale;
    if (r.teacher > 0) j.measured_error = j.measured * r.teacher_error / r.teacher / 2;
    j.own = std::sqrt(r.error.back()) * m.data_scale;
    j.start = std::sqrt(r.start) * m.data_scale;
    const std::int64_t updates = r.updates.back();
    j.sum = PredictPilot(sum, Combine::kSum, r.pilot, updates);
    j.rms = PredictPilot(rms, Combine::kRms, r.pilot, updates);
    j.own_sum = PredictOwn(sum, Combine::kSum, r.pilot, updates);
    j.own_rms = PredictOwn(rms, Combine::kRms, r.pilot, updates);
    j.start_predicted =
        sum.Distance(r.pilot.range.first, r.pilot.start(), r.pilot.range.last).At(sum.values());
    MP_ASSIGN_OR_RETURN(j.linear, linear.ErrorOf(r.pilot));
    (r.pilot.held_out ? out.held_out : out.fitted).push_back(std::move(j));
  }
  for (const Judged& j : out.held_out) {
    Add(j.sum.value, j.measured, &out.sum);
    Add(j.rms.value, j.measured, &out.rms);
    Add(j.linear, j.measured, &out.linear);
    out.sum.within += Within(j.sum, j.measured) ? 1 : 0;
    out.rms.within += Within(j.rms, j.measured) ? 1 : 0;
  }
  for (Score* score : {&out.sum, &out.rms, &out.linear}) Finish(score);
  out.chosen = out.sum.merges > 0;
  out.rule = out.chosen && out.rms.off < out.sum.off ? Combine::kRms : Combine::kSum;
  return out;
}

}  // namespace mergeplan::calibrate
