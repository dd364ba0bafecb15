#include "adapters/network/data.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/network/signature.h"
#include "adapters/network/try.h"
#include "planner/base/memory.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::network {
namespace {

constexpr std::int64_t kRowsAtATime = 256;

}  // namespace

absl::StatusOr<at::Tensor> LoadData(const std::string& path, const SamplesOptions& options,
                                    const std::string& scaling,
                                    const std::vector<std::int64_t>& shape, std::int64_t most) {
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<SampleSource> source, OpenSamples(path, options));
  std::int64_t d = 1;
  for (const std::int64_t extent : shape) d *= extent;
  if (source->dimensions() != d) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": samples have the shape [", absl::StrJoin(source->shape(), ", "),
                     "], expected the network's, [", absl::StrJoin(shape, ", "), "]"));
  }
  std::string text = scaling;
  if (text.empty()) text = source->is_pixels() ? kPixelScaling : "none";
  MP_ASSIGN_OR_RETURN(const Scaling scale, ParseScaling(text));
  if (source->size()) {
    const std::int64_t rows = most > 0 ? std::min(most, *source->size()) : *source->size();
    MP_RETURN_IF_ERROR(CheckMemory(absl::StrCat(path, ": its ", rows, " samples"),
                                   static_cast<double>(rows) * static_cast<double>(d) * 4));
  }
  std::vector<float> numbers;
  std::vector<double> block(static_cast<std::size_t>(kRowsAtATime * d));
  std::int64_t rows = 0;
  while (most == 0 || rows < most) {
    MP_ASSIGN_OR_RETURN(std::int64_t found, source->Read(absl::MakeSpan(block)));
    if (found == 0) break;
    if (most > 0) found = std::min(found, most - rows);
    for (std::int64_t k = 0; k < found * d; ++k) {
      numbers.push_back(static_cast<float>(scale.Apply(block[static_cast<std::size_t>(k)])));
    }
    rows += found;
  }
  if (rows == 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": holds no samples"));
  }
  return Try(path, [&]() -> absl::StatusOr<at::Tensor> {
    std::vector<std::int64_t> sizes = {rows};
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    return at::tensor(numbers).view(sizes);
  });
}

}  // namespace mergeplan::network
