#include "adapters/network/labels.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "adapters/network/try.h"
#include "planner/base/status_macros.h"
#include "planner/data/npz.h"
#include "planner/data/samples.h"

namespace mergeplan::network {

at::Tensor UniformLabels(const StreamName& name, std::uint64_t first_row, std::int64_t rows,
                         std::int64_t classes) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(rows));
  for (std::int64_t r = 0; r < rows; ++r) {
    const PhiloxWords words = name.Words(first_row + static_cast<std::uint64_t>(r));
    const auto bits = static_cast<unsigned __int128>(std::uint64_t{words.w[0]} << 32 | words.w[1]);
    out[static_cast<std::size_t>(r)] =
        static_cast<std::int64_t>(bits * static_cast<std::uint64_t>(classes) >> 64);
  }
  return at::tensor(out, at::kLong);
}

at::Tensor TurnLabels(std::uint64_t first, std::int64_t rows, std::int64_t classes) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(rows));
  for (std::int64_t r = 0; r < rows; ++r) {
    out[static_cast<std::size_t>(r)] = static_cast<std::int64_t>(
        (first + static_cast<std::uint64_t>(r)) % static_cast<std::uint64_t>(classes));
  }
  return at::tensor(out, at::kLong);
}

absl::StatusOr<at::Tensor> LoadLabels(const std::string& path, const std::string& array,
                                      std::int64_t classes, std::int64_t samples, bool part) {
  constexpr std::int64_t kAtATime = 4096;
  SamplesOptions options;
  options.array = array;
  options.keep_nonfinite = true;  // which is no class
  absl::StatusOr<std::unique_ptr<SampleSource>> opened = OpenSamples(path, options);
  if (!opened.ok()) {
    // The array is that of the labels.
    return absl::Status(
        opened.status().code(),
        absl::StrReplaceAll(opened.status().message(), {{"--array", "--label-array"}}));
  }
  const std::unique_ptr<SampleSource> source = *std::move(opened);
  if (source->dimensions() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has ", source->dimensions(),
                     " numbers for every sample, expected one label for each"));
  }
  std::vector<std::int64_t> labels;
  std::vector<double> block(kAtATime);
  while (true) {
    MP_ASSIGN_OR_RETURN(const std::int64_t found, source->Read(absl::MakeSpan(block)));
    if (found == 0) break;
    for (std::int64_t k = 0; k < found; ++k) {
      const double value = block[static_cast<std::size_t>(k)];
      if (!(value >= 0 && value < static_cast<double>(classes)) || value != std::floor(value)) {
        return absl::InvalidArgumentError(absl::StrCat(
            path, ": the label of sample ", labels.size(), " is ", value,
            ", expected a whole number from 0 to ", classes - 1, ", of ", classes, " classes"));
      }
      labels.push_back(static_cast<std::int64_t>(value));
    }
  }
  const auto found = static_cast<std::int64_t>(labels.size());
  if (found < samples || (found > samples && !part)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": holds ", found, " labels, expected one for each of the ", samples, " samples"));
  }
  labels.resize(static_cast<std::size_t>(samples));
  return Try(path, [&]() -> absl::StatusOr<at::Tensor> { return at::tensor(labels, at::kLong); });
}

std::string LabelArrayOf(const std::string& path) {
  if (!absl::EndsWith(path, ".npz")) return "";
  const absl::StatusOr<std::vector<std::string>> names = NpzNames(path);
  if (!names.ok()) return "";
  for (const char* name : {"labels", "label", "y"}) {
    if (std::find(names->begin(), names->end(), name) != names->end()) return name;
  }
  return "";
}

}  // namespace mergeplan::network
