#include "adapters/network/signature.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

constexpr std::array<std::pair<Prediction, std::string_view>, 4> kPredictions = {
    {{Prediction::kEpsilon, "epsilon"},
     {Prediction::kSample, "sample"},
     {Prediction::kVPrediction, "v_prediction"},
     {Prediction::kFlow, "flow"}}};
constexpr std::array<std::pair<TimeKind, std::string_view>, 5> kTimes = {
    {{TimeKind::kTimestep, "timestep"},
     {TimeKind::kFraction, "level/T"},
     {TimeKind::kSigma, "sigma"},
     {TimeKind::kLogSnr, "log-snr"},
     {TimeKind::kTable, "table"}}};
constexpr std::int64_t kMostClasses = 1 << 30;
constexpr std::array<std::string_view, 4> kTypes = {"float32", "float64", "float16", "bfloat16"};

template <typename Words>
std::string Listed(const Words& words) {
  return absl::StrJoin(words, ", ", [](std::string* out, const auto& word) {
    absl::StrAppend(out, std::string(word.second));
  });
}

template <typename Words, typename Word>
std::string_view NameOf(const Words& words, Word word) {
  for (const auto& [value, name] : words) {
    if (value == word) return name;
  }
  return "";
}

absl::Status ValidateTable(const TrainingTable& table, TimeKind time, const std::string& where) {
  const std::size_t n = table.alpha.size();
  const auto wrong = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": key 'schedule': ", what));
  };
  if (n < 2 || table.sigma.size() != n) {
    return wrong(absl::StrCat("alpha has ", n, " numbers and sigma ", table.sigma.size(),
                              ", expected equally many, two or more"));
  }
  if (table.timestep.size() != n) {
    return wrong(absl::StrCat("there are ", table.timestep.size(), " timesteps, expected ", n));
  }
  if (time == TimeKind::kTable && table.time.size() != n) {
    return wrong(absl::StrCat("the array of times has ", table.time.size(), " numbers, expected ",
                              n, ", one for each alpha"));
  }
  for (std::size_t s = 0; s < n; ++s) {
    const double a = table.alpha[s], b = table.sigma[s];
    if (!std::isfinite(a) || !std::isfinite(b) || a < 0 || b < 0 || (a == 0 && b == 0)) {
      return wrong(absl::StrCat("entry ", s, " is alpha ", a, ", sigma ", b,
                                ", expected finite numbers >= 0, not both 0"));
    }
    // alpha / sigma falls, without dividing.
    if (s > 0 && !(a * table.sigma[s - 1] < table.alpha[s - 1] * b)) {
      return wrong(absl::StrCat("alpha / sigma does not fall from entry ", s - 1, " to ", s,
                                ", expected the clean end first"));
    }
    if (!table.time.empty() && !std::isfinite(table.time[s])) {
      return wrong(absl::StrCat("the time of entry ", s, " is ", table.time[s],
                                ", expected a finite number"));
    }
  }
  if (time == TimeKind::kFraction && !(std::isfinite(table.steps) && table.steps > 0)) {
    return wrong(absl::StrCat("steps is ", table.steps, ", expected a positive number"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view ToString(Prediction prediction) { return NameOf(kPredictions, prediction); }
std::string_view ToString(TimeKind kind) { return NameOf(kTimes, kind); }

absl::StatusOr<Prediction> ParsePrediction(std::string_view word) {
  if (word == "flow_prediction") return Prediction::kFlow;
  for (const auto& [value, name] : kPredictions) {
    if (word == name) return value;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "prediction '", std::string(word), "' is unknown, expected one of ", Listed(kPredictions)));
}

absl::StatusOr<TimeKind> ParseTimeKind(std::string_view word) {
  for (const auto& [value, name] : kTimes) {
    if (word == name) return value;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("time '", std::string(word), "' is unknown, expected one of ", Listed(kTimes)));
}

std::int64_t Signature::dimensions() const {
  std::int64_t d = 1;
  for (const std::int64_t extent : shape) d *= extent;
  return d;
}

absl::Status Validate(const Signature& signature, const std::string& where) {
  const auto wrong = [&](const char* key, const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": key '", key, "': ", what));
  };
  double d = signature.shape.empty() ? 0 : 1;
  for (const std::int64_t extent : signature.shape) d *= static_cast<double>(extent);
  if (signature.shape.size() > 6 || !(d >= 1) || d > 1e9 ||
      std::any_of(signature.shape.begin(), signature.shape.end(),
                  [](std::int64_t extent) { return extent < 1; })) {
    return wrong("shape", absl::StrCat("is [", absl::StrJoin(signature.shape, ", "),
                                       "], expected the shape of one sample, such as [1, 28, 28], "
                                       "with extents of 1 or more"));
  }
  if (std::find(kTypes.begin(), kTypes.end(), signature.dtype) == kTypes.end()) {
    return wrong("dtype", absl::StrCat("is \"", signature.dtype,
                                       "\", expected float32, float64, float16 or bfloat16"));
  }
  if (signature.classes < 0 || signature.classes > kMostClasses) {
    return wrong("classes", absl::StrCat("is ", signature.classes, ", expected 1 to ", kMostClasses,
                                         ", or none"));
  }
  std::vector<std::string> arguments = signature.arguments;
  std::sort(arguments.begin(), arguments.end());
  std::vector<std::string> expected = {"time", "z"};
  if (signature.classes > 0) expected.insert(expected.begin(), "label");
  if (arguments != expected) {
    const bool label = std::find(arguments.begin(), arguments.end(), "label") != arguments.end();
    return wrong("arguments",
                 absl::StrCat("is [", absl::StrJoin(signature.arguments, ", "), "], expected ",
                              signature.classes > 0 ? "z, time and label" : "z and time",
                              " in the order of forward",
                              label && signature.classes == 0
                                  ? "; a network that is told a label has classes = HOW MANY"
                                  : ""));
  }
  if (!(signature.sigma_data > 0) || !std::isfinite(signature.sigma_data)) {
    return wrong("sigma_data",
                 absl::StrCat("is ", signature.sigma_data, ", expected a positive number"));
  }
  if (!std::isfinite(signature.time_scale) || signature.time_scale == 0 ||
      !std::isfinite(signature.time_offset)) {
    return wrong("time.scale", "expected finite numbers, the scale not 0");
  }
  if (signature.time == TimeKind::kTable && !signature.table) {
    return wrong("time.kind",
                 "is \"table\", expected [schedule] with arrays, alpha, sigma and time beside it");
  }
  if (signature.table) return ValidateTable(*signature.table, signature.time, where);
  return absl::OkStatus();
}

}  // namespace mergeplan::network
