#include "adapters/judge/neighbours.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace mergeplan::judge {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Rows = Eigen::Map<const Matrix>;

// Differences before squares: by products (|a|^2 + |b|^2 - 2 a b) equal points would not be at
// distance 0.
double Distance(const Rows& a, std::int64_t i, const Rows& b, std::int64_t j) {
  return (a.row(i) - b.row(j)).squaredNorm();
}

// Squared distance of every row to its k-th nearest other row.
std::vector<double> Radii(const Rows& set, int k) {
  const std::int64_t n = set.rows();
  std::vector<std::vector<double>> nearest(static_cast<std::size_t>(n));  // max-heaps of k
  const auto offer = [k](std::vector<double>& heap, double distance) {
    if (static_cast<int>(heap.size()) < k) {
      heap.push_back(distance);
      std::push_heap(heap.begin(), heap.end());
    } else if (distance < heap.front()) {
      std::pop_heap(heap.begin(), heap.end());
      heap.back() = distance;
      std::push_heap(heap.begin(), heap.end());
    }
  };
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = i + 1; j < n; ++j) {
      const double distance = Distance(set, i, set, j);
      offer(nearest[static_cast<std::size_t>(i)], distance);
      offer(nearest[static_cast<std::size_t>(j)], distance);
    }
  }
  std::vector<double> out;
  out.reserve(nearest.size());
  for (const std::vector<double>& heap : nearest) out.push_back(heap.front());
  return out;
}

// Share of the points inside a ball around a member of the set.
double Inside(const Rows& points, const Rows& set, const std::vector<double>& radii) {
  std::int64_t inside = 0;
  for (std::int64_t i = 0; i < points.rows(); ++i) {
    for (std::int64_t j = 0; j < set.rows(); ++j) {
      if (Distance(points, i, set, j) > radii[static_cast<std::size_t>(j)]) continue;
      ++inside;
      break;
    }
  }
  return static_cast<double>(inside) / static_cast<double>(points.rows());
}

absl::Status Check(const char* which, absl::Span<const double> features, int dimensions, int k) {
  if (dimensions < 1 || features.size() % static_cast<std::size_t>(dimensions) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("precision and recall: the ", which, " set has ",
                                                   features.size(), " numbers, expected rows of ",
                                                   dimensions));
  }
  const std::size_t rows = features.size() / static_cast<std::size_t>(dimensions);
  if (k < 1 || rows <= static_cast<std::size_t>(k)) {
    return absl::InvalidArgumentError(absl::StrCat("precision and recall: the ", which, " set has ",
                                                   rows, " samples, expected more than the ", k,
                                                   " neighbours, at least one"));
  }
  if (!Rows(features.data(), static_cast<std::int64_t>(rows), dimensions).allFinite()) {
    return absl::InvalidArgumentError(absl::StrCat("precision and recall: the ", which,
                                                   " set holds numbers that are not finite"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PrecisionRecall> NeighbourPrecisionRecall(absl::Span<const double> reference,
                                                         absl::Span<const double> generated,
                                                         int dimensions, int neighbours) {
  MP_RETURN_IF_ERROR(Check("reference", reference, dimensions, neighbours));
  MP_RETURN_IF_ERROR(Check("generated", generated, dimensions, neighbours));
  const Rows r(reference.data(), static_cast<std::int64_t>(reference.size()) / dimensions,
               dimensions);
  const Rows g(generated.data(), static_cast<std::int64_t>(generated.size()) / dimensions,
               dimensions);
  return PrecisionRecall{Inside(g, r, Radii(r, neighbours)), Inside(r, g, Radii(g, neighbours))};
}

}  // namespace mergeplan::judge
