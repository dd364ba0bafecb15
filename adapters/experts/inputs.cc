#include "adapters/experts/inputs.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/mixture/draw.h"
#include "planner/mixture/row_numbers.h"

namespace mergeplan::experts {
namespace {

// The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection of 64 bits that mixes well.
std::uint64_t Scramble(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

}  // namespace

std::string_view ToString(InputKind kind) {
  switch (kind) {
    case InputKind::kFresh:
      return "fresh";
    case InputKind::kPool:
      return "pool";
    case InputKind::kData:
      break;
  }
  return "data";
}

absl::StatusOr<InputKind> ParseInputKind(std::string_view word) {
  for (const InputKind kind : {InputKind::kFresh, InputKind::kPool, InputKind::kData}) {
    if (word == ToString(kind)) return kind;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("inputs '", std::string(word), "' are unknown, expected fresh, pool or data"));
}

std::uint64_t MixSeed(std::uint64_t seed, std::uint64_t first, std::uint64_t last) {
  return Scramble(Scramble(Scramble(seed) ^ first) ^ last);
}

absl::StatusOr<Inputs> Inputs::FromData(std::shared_ptr<const MixtureTrajectory> teacher,
                                        std::vector<double> data) {
  const auto d = static_cast<std::size_t>(teacher->dimensions());
  if (data.empty() || data.size() % d != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("training data: ", data.size(), " numbers, expected one or more rows of ", d));
  }
  const auto bad =
      std::find_if(data.begin(), data.end(), [](double x) { return !std::isfinite(x); });
  if (bad != data.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("training data: row ", (bad - data.begin()) / static_cast<std::ptrdiff_t>(d),
                     " holds ", *bad, ", expected finite numbers"));
  }
  Inputs inputs(std::move(teacher));
  inputs.data_ = std::make_shared<const std::vector<double>>(std::move(data));
  return inputs;
}

void Inputs::Draw(int level, std::uint64_t seed, Stream stream, std::uint64_t first_row,
                  std::size_t rows, double* z) const {
  const NoiseLevel at = teacher_->level(level);
  const auto number = static_cast<std::uint32_t>(stream);
  if (data_ == nullptr) {
    DrawRows(teacher_->mixture(), at, {seed, number}, first_row, rows, z, nullptr);
    return;
  }
  const auto d = static_cast<std::size_t>(teacher_->dimensions());
  const DataTables data{data_->data(), data_->size() / d, d, at.alpha, at.sigma};
  for (std::size_t r = 0; r < rows; ++r) {
    mixture::RowNumbers numbers(seed, number, first_row + r);
    DrawFromData(data, numbers, {z + r * d, 1});
  }
}

}  // namespace mergeplan::experts
