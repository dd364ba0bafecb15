#include "adapters/noise/chi_squared.h"

#include <cmath>
#include <cstring>

namespace mergeplan {
namespace {

// Sum of 2 s^(2j + 1) / (2j + 1): log((1 + s) / (1 - s)), |s| <= 0.172, so that 0.0295^11 / 23 is
// what the first term left out has of the sum.
double LogOfRatio(double s) {
  const double y = s * s;
  double sum = 0;
  for (int j = 21; j >= 3; j -= 2) sum = (sum + 1.0 / j) * y;
  return 2 * s + 2 * s * sum;
}

// Taylor series for |x| <= pi / 4; the first terms left out are below 1e-18.
double CosineNearZero(double x) {
  const double y = x * x;
  double sum = 1;
  for (int j = 18; j >= 4; j -= 2) sum = 1 - sum * y / (j * (j - 1));
  return 1 - y / 2 * sum;
}
double SineNearZero(double x) {
  const double y = x * x;
  double sum = 1;
  for (int j = 19; j >= 3; j -= 2) sum = 1 - sum * y / (j * (j - 1));
  return x * sum;
}

}  // namespace

double PortableLog(double x) {
  constexpr std::uint64_t kRootHalf = 0x3FE6A09E667F3BCD;  // bits of sqrt(1/2)
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  const std::uint64_t shifted = bits - kRootHalf;
  const auto e = static_cast<double>(static_cast<std::int64_t>(shifted) >> 52);
  bits = (shifted & 0x000FFFFFFFFFFFFF) + kRootHalf;
  double m;
  std::memcpy(&m, &bits, sizeof(m));
  return e * 0.693147180559945309417 + LogOfRatio((m - 1) / (m + 1));
}

double PortableCosine(std::uint32_t word) {
  const std::uint32_t turned = word + 0x20000000U;
  const double x =
      static_cast<double>(static_cast<std::int32_t>(turned & 0x3FFFFFFF) - 0x20000000) *
      (1.57079632679489661923 * 0x1p-30);
  switch (turned >> 30) {
    case 0:
      return CosineNearZero(x);
    case 1:
      return -SineNearZero(x);
    case 2:
      return -CosineNearZero(x);
    default:
      return SineNearZero(x);
  }
}

ChiSquaredStream::ChiSquaredStream(const StreamName& name, std::int64_t count)
    : name_(name),
      single_(count == 1),
      d_(static_cast<double>(count) / 2 - 1.0 / 3),
      c_(single_ ? 0 : 1 / std::sqrt(9 * d_)) {}

double ChiSquaredStream::At(std::uint64_t index) const {
  for (std::uint64_t attempt = 0;; ++attempt) {
    const PhiloxWords words = name_.Words(index | attempt << 48);
    const std::uint64_t fraction =
        (static_cast<std::uint64_t>(words.w[0]) << 32 | words.w[1]) >> 11;
    const double radius_uniform = (static_cast<double>(fraction) + 0.5) * 0x1p-53;
    const double x = std::sqrt(-2 * PortableLog(radius_uniform)) * PortableCosine(words.w[2]);
    if (single_) return x * x;
    const double root = 1 + c_ * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    const double u = (words.w[3] + 0.5) * 0x1p-32;
    const double x2 = x * x;
    if (u < 1 - 0.0331 * x2 * x2 || PortableLog(u) < x2 / 2 + d_ * (1 - v + PortableLog(v))) {
      return 2 * d_ * v;
    }
  }
}

}  // namespace mergeplan
