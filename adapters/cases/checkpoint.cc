#include "adapters/cases/checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/status_macros.h"
#include "planner/data/npz.h"

namespace mergeplan {
namespace {

using Type = NpzWriter::Type;
using Shape = std::vector<std::int64_t>;

constexpr int kFormat = 2;

// What an optimizer keeps besides the parameters; written where it is there.
constexpr std::pair<const char*, std::vector<double> TrainerState::*> kMoments[] = {
    {"active_first", &TrainerState::first},
    {"active_second", &TrainerState::second},
    {"active_average", &TrainerState::average}};

std::vector<double> Digits(const std::string& text) { return {text.begin(), text.end()}; }

// Reads one array and checks its shape; -1 stands for any length.
absl::StatusOr<NpyArray> ReadShaped(const std::string& path, const std::string& name,
                                    const Shape& shape) {
  absl::StatusOr<NpyArray> array = ReadNpzArray(path, name);
  if (!array.ok()) {
    return absl::DataLossError(absl::StrCat(path, ": ", array.status().message()));
  }
  bool fits = array->shape.size() == shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) {
    fits = shape[i] < 0 || shape[i] == array->shape[i];
  }
  if (!fits) {
    return absl::DataLossError(absl::StrCat(path, ": array ", name, " has shape (",
                                            absl::StrJoin(array->shape, ", "), "), expected (",
                                            absl::StrJoin(shape, ", "), "), -1 being any"));
  }
  return array;
}

std::vector<double> Row(const NpyArray& array, std::int64_t row) {
  const std::int64_t width = array.shape[1];
  return {array.values.begin() + row * width, array.values.begin() + (row + 1) * width};
}

}  // namespace

absl::Status WriteCheckpoint(const ExecutorState& state, const std::string& fingerprint,
                             const std::string& path) {
  const auto merges = static_cast<std::int64_t>(state.merges.size());
  size_t d = 0, points = 0;
  for (const TrainedMerge& record : state.merges) {
    d = std::max(d, record.value.size());
    points = std::max(points, record.curve.size());
  }
  std::vector<double> trained, value, curve, losses, seconds, counts;
  for (const TrainedMerge& record : state.merges) {
    trained.push_back(record.trained ? 1 : 0);
    value.insert(value.end(), record.value.begin(), record.value.end());
    value.resize(trained.size() * d);
    curve.insert(curve.end(), record.curve.begin(), record.curve.end());
    curve.resize(trained.size() * points);
    losses.insert(losses.end(), {record.initial_loss, record.final_loss});
    seconds.push_back(record.seconds);
    counts.insert(counts.end(),
                  {static_cast<double>(record.updates), static_cast<double>(record.teacher_calls)});
  }
  NpzWriter npz;
  npz.Add("format", {1}, {kFormat}, Type::kInt64);
  npz.Add("fingerprint", {static_cast<std::int64_t>(fingerprint.size())}, Digits(fingerprint),
          Type::kUint8);
  npz.Add("trained", {merges}, trained, Type::kUint8);
  if (d > 0) {
    npz.Add("value", {merges, static_cast<std::int64_t>(d)}, value);
    npz.Add("curve", {merges, static_cast<std::int64_t>(points)}, curve);
  }
  npz.Add("losses", {merges, 2}, losses);
  npz.Add("seconds", {merges}, seconds);
  npz.Add("counts", {merges, 2}, counts, Type::kInt64);

  const ActiveTraining& active = state.active;
  if (!active.merges.empty()) {
    const auto group = static_cast<std::int64_t>(active.merges.size());
    npz.Add("active", {group}, std::vector<double>(active.merges.begin(), active.merges.end()),
            Type::kInt64);
    npz.Add("active_updates", {1}, {static_cast<double>(active.state.updates)}, Type::kInt64);
    npz.Add("active_seconds", {1}, {active.seconds});
    npz.Add("active_parameters",
            {group, static_cast<std::int64_t>(active.state.parameters.size()) / group},
            active.state.parameters);
    npz.Add("active_curve", {group, static_cast<std::int64_t>(active.state.curve.size()) / group},
            active.state.curve);
    for (const auto& [name, member] : kMoments) {
      const std::vector<double>& values = active.state.*member;
      if (values.empty()) continue;
      npz.Add(name, {group, static_cast<std::int64_t>(values.size()) / group}, values);
    }
  }
  return npz.Write(path);
}

absl::StatusOr<ExecutorState> ReadCheckpoint(const std::string& fingerprint,
                                             const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) {
    return absl::NotFoundError(absl::StrCat(path, ": there is no checkpoint yet"));
  }
  MP_ASSIGN_OR_RETURN(const NpyArray format, ReadShaped(path, "format", {1}));
  if (format.values[0] != kFormat) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": is a checkpoint of format ", format.values[0], ", this version reads ", kFormat,
        format.values[0] < kFormat
            ? "; an older version of mergeplan, which drew other noise, wrote it"
            : "; a newer version of mergeplan wrote it"));
  }
  MP_ASSIGN_OR_RETURN(const NpyArray print, ReadShaped(path, "fingerprint", {-1}));
  if (print.values != Digits(fingerprint)) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": belongs to a run with another plan, spectrum, budget, seed, dtype or device"));
  }
  MP_ASSIGN_OR_RETURN(const NpyArray trained, ReadShaped(path, "trained", {-1}));
  const std::int64_t merges = trained.shape[0];
  MP_ASSIGN_OR_RETURN(const NpyArray losses, ReadShaped(path, "losses", {merges, 2}));
  MP_ASSIGN_OR_RETURN(const NpyArray seconds, ReadShaped(path, "seconds", {merges}));
  MP_ASSIGN_OR_RETURN(const NpyArray counts, ReadShaped(path, "counts", {merges, 2}));
  MP_ASSIGN_OR_RETURN(const std::vector<std::string> names, NpzNames(path));
  const auto has = [&names](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  ExecutorState state;
  state.merges.resize(merges);
  if (has("value")) {
    MP_ASSIGN_OR_RETURN(const NpyArray value, ReadShaped(path, "value", {merges, -1}));
    MP_ASSIGN_OR_RETURN(const NpyArray curve, ReadShaped(path, "curve", {merges, -1}));
    for (std::int64_t m = 0; m < merges; ++m) {
      TrainedMerge& record = state.merges[m];
      if (trained.values[m] == 0) continue;
      record.trained = true;
      record.value = Row(value, m);
      record.curve = Row(curve, m);
      record.initial_loss = losses.values[2 * m];
      record.final_loss = losses.values[2 * m + 1];
      record.seconds = seconds.values[m];
      record.updates = static_cast<std::int64_t>(counts.values[2 * m]);
      record.teacher_calls = static_cast<std::int64_t>(counts.values[2 * m + 1]);
    }
  }
  if (!has("active")) return state;

  MP_ASSIGN_OR_RETURN(const NpyArray active, ReadShaped(path, "active", {-1}));
  const std::int64_t group = active.shape[0];
  MP_ASSIGN_OR_RETURN(const NpyArray updates, ReadShaped(path, "active_updates", {1}));
  MP_ASSIGN_OR_RETURN(const NpyArray spent, ReadShaped(path, "active_seconds", {1}));
  if (has("active_generators")) {
    return absl::DataLossError(
        absl::StrCat(path,
                     ": holds active_generators, as versions wrote that drew other noise on a "
                     "device than on the processor; train again from the beginning"));
  }
  MP_ASSIGN_OR_RETURN(NpyArray parameters, ReadShaped(path, "active_parameters", {group, -1}));
  MP_ASSIGN_OR_RETURN(NpyArray curve, ReadShaped(path, "active_curve", {group, -1}));
  for (const double merge : active.values) state.active.merges.push_back(static_cast<int>(merge));
  state.active.seconds = spent.values[0];
  state.active.state.updates = static_cast<std::int64_t>(updates.values[0]);
  state.active.state.parameters = std::move(parameters.values);
  state.active.state.curve = std::move(curve.values);
  for (const auto& [name, member] : kMoments) {
    if (!has(name)) continue;
    MP_ASSIGN_OR_RETURN(NpyArray moments, ReadShaped(path, name, {group, -1}));
    state.active.state.*member = std::move(moments.values);
  }
  return state;
}

}  // namespace mergeplan
