#include "adapters/experts/state_file.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/status_macros.h"
#include "planner/data/npz.h"

namespace mergeplan::experts {
namespace {

using Type = NpzWriter::Type;
using Shape = std::vector<std::int64_t>;

constexpr int kFormat = 1;

std::vector<double> Digits(const std::string& text) { return {text.begin(), text.end()}; }

void Append(std::vector<double>& to, const std::vector<double>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

std::int64_t Size(const std::vector<double>& values) {
  return static_cast<std::int64_t>(values.size());
}

// Reads arrays of one file; the first fault stays.
class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  // -1 stands for any length.
  NpyArray Read(const std::string& name, const Shape& shape) {
    if (!status_.ok()) return {};
    absl::StatusOr<NpyArray> array = ReadNpzArray(path_, name);
    if (!array.ok()) {
      status_ = absl::DataLossError(absl::StrCat(path_, ": ", array.status().message()));
      return {};
    }
    bool fits = array->shape.size() == shape.size();
    for (std::size_t i = 0; fits && i < shape.size(); ++i) {
      fits = shape[i] < 0 || shape[i] == array->shape[i];
    }
    if (!fits) {
      status_ = absl::DataLossError(absl::StrCat(path_, ": array ", name, " has shape (",
                                                 absl::StrJoin(array->shape, ", "), "), expected (",
                                                 absl::StrJoin(shape, ", "), "), -1 being any"));
      return {};
    }
    return *std::move(array);
  }

  // Lists one after the other, cut at `ends`.
  std::vector<std::vector<double>> ReadLists(const std::string& name, std::int64_t count) {
    const NpyArray ends = Read(absl::StrCat(name, "_ends"), {count});
    const NpyArray values = Read(name, {-1});
    std::vector<std::vector<double>> out;
    if (!status_.ok()) return out;
    std::int64_t begin = 0;
    for (const double value : ends.values) {
      const auto end = static_cast<std::int64_t>(value);
      if (end < begin || end > values.shape[0]) {
        status_ = absl::DataLossError(absl::StrCat(path_, ": array ", name, "_ends has ", end,
                                                   " after ", begin, ", expected a number from ",
                                                   begin, " to ", values.shape[0]));
        return {};
      }
      out.emplace_back(values.values.begin() + begin, values.values.begin() + end);
      begin = end;
    }
    return out;
  }

  const absl::Status& status() const { return status_; }

 private:
  std::string path_;
  absl::Status status_;
};

std::vector<double> Row(const NpyArray& array, std::int64_t row) {
  const std::int64_t width = array.size() / std::max<std::int64_t>(1, array.shape[0]);
  return {array.values.begin() + row * width, array.values.begin() + (row + 1) * width};
}

void AddRecords(const ExecutorState& state, NpzWriter& npz) {
  std::vector<double> trained, losses, errors, counts, seconds, ends, curve, held, parameters;
  std::int64_t students = 0, size = 0;
  const auto add = [&](const StudentRecord& r) {
    trained.push_back(r.trained ? 1 : 0);
    Append(losses, {r.initial_loss, r.final_loss});
    for (const ErrorEstimate& e : {r.own, r.teacher}) {
      Append(errors, {e.mean, e.standard_error, static_cast<double>(e.rows)});
    }
    Append(counts, {static_cast<double>(r.updates), static_cast<double>(r.teacher_calls)});
    seconds.push_back(r.seconds);
    Append(curve, r.curve);
    ends.push_back(static_cast<double>(curve.size()));
    held.push_back(r.parameters != nullptr ? 1 : 0);
    if (r.parameters == nullptr) return;
    Append(parameters, *r.parameters);
    size = Size(*r.parameters);
    ++students;
  };
  for (const TrialRecord& trial : state.trials) {
    add(trial.fit);
    for (const StudentRecord& merge : trial.merges) add(merge);
  }
  const std::int64_t R = Size(trained);
  npz.Add("trained", {R}, trained, Type::kUint8);
  npz.Add("losses", {R, 2}, losses);
  npz.Add("errors", {R, 6}, errors);
  npz.Add("counts", {R, 2}, counts, Type::kInt64);
  npz.Add("seconds", {R}, seconds);
  npz.Add("curve_ends", {R}, ends, Type::kInt64);
  npz.Add("curve", {Size(curve)}, curve);
  npz.Add("held", {R}, held, Type::kUint8);
  npz.Add("parameters", {students, size}, parameters);
}

void AddActive(const std::vector<ActiveTask>& tasks, NpzWriter& npz) {
  std::vector<double> active, seconds, ends, curve, parameters, moments;
  for (const ActiveTask& task : tasks) {
    Append(active, {static_cast<double>(task.trial), static_cast<double>(task.merge),
                    static_cast<double>(task.state.updates)});
    seconds.push_back(task.seconds);
    Append(curve, task.state.curve);
    ends.push_back(static_cast<double>(curve.size()));
    Append(parameters, task.state.parameters);
    Append(moments, task.state.first_moment);
    Append(moments, task.state.second_moment);
  }
  const std::int64_t A = Size(seconds), n = Size(tasks.front().state.parameters);
  npz.Add("active", {A, 3}, active, Type::kInt64);
  npz.Add("active_seconds", {A}, seconds);
  npz.Add("active_curve_ends", {A}, ends, Type::kInt64);
  npz.Add("active_curve", {Size(curve)}, curve);
  npz.Add("active_parameters", {A, n}, parameters);
  if (!moments.empty()) npz.Add("active_moments", {A, 2, n}, moments);
}

}  // namespace

absl::Status WriteState(const ExecutorState& state, const std::string& fingerprint,
                        const std::string& path) {
  const auto trials = static_cast<double>(state.trials.size());
  const auto merges =
      static_cast<double>(state.trials.empty() ? 0 : state.trials.front().merges.size());
  NpzWriter npz;
  npz.Add("format", {1}, {kFormat}, Type::kInt64);
  npz.Add("fingerprint", {static_cast<std::int64_t>(fingerprint.size())}, Digits(fingerprint),
          Type::kUint8);
  npz.Add("shape", {2}, {trials, merges}, Type::kInt64);
  AddRecords(state, npz);
  if (!state.active.empty()) AddActive(state.active, npz);
  return npz.Write(path);
}

absl::StatusOr<ExecutorState> ReadState(const std::string& fingerprint, const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) {
    return absl::NotFoundError(absl::StrCat(path, ": there is no saved state yet"));
  }
  Reader file(path);
  const NpyArray format = file.Read("format", {1});
  MP_RETURN_IF_ERROR(file.status());
  if (format.values[0] != kFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": format ", format.values[0], ", this version reads ", kFormat));
  }
  const NpyArray print = file.Read("fingerprint", {-1});
  MP_RETURN_IF_ERROR(file.status());
  if (print.values != Digits(fingerprint)) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": belongs to a run with another mixture, schedule, plan or other options"));
  }
  const NpyArray shape = file.Read("shape", {2});
  const NpyArray trained = file.Read("trained", {-1});
  MP_RETURN_IF_ERROR(file.status());
  const std::int64_t R = trained.shape[0];
  const auto trials = static_cast<std::int64_t>(shape.values[0]);
  const auto merges = static_cast<std::int64_t>(shape.values[1]);
  if (trials < 1 || merges < 0 || R % trials != 0 || R / trials != merges + 1) {
    return absl::DataLossError(absl::StrCat(path, ": array trained has ", R, " entries, but shape ",
                                            "says ", trials, " trials of ", merges, " merges"));
  }
  const NpyArray losses = file.Read("losses", {R, 2});
  const NpyArray errors = file.Read("errors", {R, 6});
  const NpyArray counts = file.Read("counts", {R, 2});
  const NpyArray seconds = file.Read("seconds", {R});
  std::vector<std::vector<double>> curves = file.ReadLists("curve", R);
  const NpyArray held = file.Read("held", {R});
  const auto students = std::count(held.values.begin(), held.values.end(), 1.0);
  const NpyArray parameters = file.Read("parameters", {students, -1});
  MP_RETURN_IF_ERROR(file.status());

  ExecutorState state;
  std::int64_t row = 0, student = 0;
  const auto next = [&] {
    StudentRecord r;
    r.trained = trained.values[row] != 0;
    r.initial_loss = losses.values[2 * row];
    r.final_loss = losses.values[2 * row + 1];
    const double* e = errors.values.data() + 6 * row;
    r.own = {e[0], e[1], static_cast<std::size_t>(e[2])};
    r.teacher = {e[3], e[4], static_cast<std::size_t>(e[5])};
    r.updates = static_cast<std::int64_t>(counts.values[2 * row]);
    r.teacher_calls = static_cast<std::int64_t>(counts.values[2 * row + 1]);
    r.seconds = seconds.values[row];
    r.curve = std::move(curves[row]);
    if (held.values[row] == 1) {
      r.parameters = std::make_shared<const std::vector<double>>(Row(parameters, student++));
    }
    ++row;
    return r;
  };
  state.trials.resize(trials);
  for (TrialRecord& trial : state.trials) {
    trial.fit = next();
    for (std::int64_t m = 0; m < merges; ++m) trial.merges.push_back(next());
  }

  MP_ASSIGN_OR_RETURN(const std::vector<std::string> names, NpzNames(path));
  const auto has = [&names](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (!has("active")) return state;
  const NpyArray active = file.Read("active", {-1, 3});
  MP_RETURN_IF_ERROR(file.status());
  const std::int64_t A = active.shape[0];
  const NpyArray spent = file.Read("active_seconds", {A});
  curves = file.ReadLists("active_curve", A);
  const NpyArray weights = file.Read("active_parameters", {A, -1});
  NpyArray moments;
  if (has("active_moments") && file.status().ok()) {
    moments = file.Read("active_moments", {A, 2, weights.shape[1]});
  }
  MP_RETURN_IF_ERROR(file.status());
  for (std::int64_t a = 0; a < A; ++a) {
    ActiveTask task;
    task.trial = static_cast<int>(active.values[3 * a]);
    task.merge = static_cast<int>(active.values[3 * a + 1]);
    task.seconds = spent.values[a];
    task.state.updates = static_cast<std::int64_t>(active.values[3 * a + 2]);
    task.state.curve = std::move(curves[a]);
    task.state.parameters = Row(weights, a);
    if (!moments.values.empty()) {
      const std::vector<double> both = Row(moments, a);
      const auto half = both.begin() + weights.shape[1];
      task.state.first_moment.assign(both.begin(), half);
      task.state.second_moment.assign(half, both.end());
    }
    state.active.push_back(std::move(task));
  }
  return state;
}

}  // namespace mergeplan::experts
