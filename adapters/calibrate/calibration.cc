#include "adapters/calibrate/calibration.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/calibrate/probes.h"
#include "planner/base/status_macros.h"

namespace mergeplan::calibrate {
namespace {

// How fast this machine is: a few updates of the longest and of a short merge, thrown away, and the
// held-out rows of one step.
absl::StatusOr<Speed> MeasureSpeed(Pilots& pilots, int T) {
  Speed speed;
  MP_ASSIGN_OR_RETURN(const double whole, pilots.SecondsPerUpdate({1, T}));
  double one = whole, per_step = 0;
  if (T > 2) {
    MP_ASSIGN_OR_RETURN(one, pilots.SecondsPerUpdate({T - 1, T}));
    per_step = std::max(0.0, (whole - one) / (T - 2));
  }
  speed.update = [one, per_step](int steps) { return one + per_step * (steps - 2); };
  MP_ASSIGN_OR_RETURN(const at::Tensor z, pilots.held_out().States(T));
  const auto begin = std::chrono::steady_clock::now();
  MP_RETURN_IF_ERROR(pilots.held_out()
                         .Run({network::Link{T, T - 1, -1, 0}}, z, pilots.held_out().Labels(T))
                         .status());
  speed.call = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() /
               static_cast<double>(z.size(0));
  return speed;
}

bool NeededLater(const Design& design, std::size_t from, Range range) {
  for (std::size_t k = from; k < design.pilots.size(); ++k) {
    const std::vector<Range>& trained = design.pilots[k].trained;
    if (std::find(trained.begin(), trained.end(), range) != trained.end()) return true;
  }
  return false;
}

// The pilots' length in an earlier part; 0 where none was trained.
std::int64_t UpdatesBefore(const Measurements& before) {
  return before.pilots.empty() ? 0 : before.pilots.front().updates.back();
}

}  // namespace

absl::StatusOr<Calibration> Calibrate(Setting setting, const CalibrateOptions& options) {
  Calibration out;
  Measurements& m = out.measured;
  const Schedule& schedule = setting.steps->schedule();
  setting.options.stop = options.stop;
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<Pilots> pilots, Pilots::Create(std::move(setting)));

  DesignQuestion question = options.question;
  const bool resumed = !options.before.fingerprint.empty();
  if (resumed) m = options.before;
  if (UpdatesBefore(m) > 0) question.pilot_updates = UpdatesBefore(m);
  MP_RETURN_IF_ERROR(MakeDesign(question, {}).status());  // before anything takes time
  MP_ASSIGN_OR_RETURN(const Speed speed, MeasureSpeed(*pilots, schedule.steps()));
  MP_ASSIGN_OR_RETURN(out.design, MakeDesign(question, speed));
  const Design& design = out.design;
  m.fingerprint = options.fingerprint;
  m.chosen = options.chosen;
  m.teacher_steps = schedule.steps();
  m.data_scale = schedule.data_scale;
  int there = 0;
  for (const Pilot& pilot : design.pilots) there += FindPilot(m, pilot) != nullptr ? 1 : 0;
  if (options.forecast) options.forecast(design, there);

  const auto keep = [&] {
    return options.file.empty() ? absl::OkStatus() : WriteMeasurements(m, options.file);
  };
  const auto ended = [&](absl::Status status) -> absl::StatusOr<Calibration> {
    MP_RETURN_IF_ERROR(keep());
    out.stopped = true;
    if (!absl::IsCancelled(status)) out.why = std::string(status.message());
    return std::move(out);
  };
  if (m.distances.empty()) {
    Measurements with = m;
    absl::Status status = MeasureDistances(*pilots, design, &with);
    if (status.ok()) status = MeasureGains(*pilots, design, &with);
    if (absl::IsCancelled(status)) return ended(status);
    MP_RETURN_IF_ERROR(status);
    m = std::move(with);
    MP_RETURN_IF_ERROR(keep());
  }
  for (std::size_t k = 0; k < design.pilots.size(); ++k) {
    const Pilot& pilot = design.pilots[k];
    if (FindPilot(m, pilot) != nullptr) continue;
    if (options.progress) {
      options.progress(static_cast<int>(m.pilots.size()), static_cast<int>(design.pilots.size()),
                       pilot);
    }
    if (pilot.trained.empty() && NeededLater(design, k + 1, pilot.range)) pilots->Keep(pilot.range);
    absl::StatusOr<PilotResult> result = pilots->Train(pilot, design.checkpoints);
    if (!result.ok()) return ended(result.status());
    m.pilots.push_back(*std::move(result));
    if (pilot.trained.empty() && pilot.replicate == 0 && !pilot.held_out) {
      const absl::Status status = MeasureTrainedGain(*pilots, pilot.range, pilots->last(), &m);
      if (absl::IsCancelled(status)) {
        m.pilots.pop_back();  // it is trained again, with its gain
        return ended(status);
      }
      MP_RETURN_IF_ERROR(status);
    }
    for (const Range& child : pilot.trained) {
      if (!NeededLater(design, k + 1, child)) pilots->Drop(child);
    }
    MP_RETURN_IF_ERROR(keep());
  }
  return out;
}

}  // namespace mergeplan::calibrate
