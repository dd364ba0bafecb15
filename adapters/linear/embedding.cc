#include "adapters/linear/embedding.h"

#include <cmath>

namespace mergeplan {

std::vector<double> SinusoidalEmbedding(double u) {
  std::vector<double> out;
  for (int i = 1; i <= kEmbeddingSize / 2; ++i) {
    const double w = std::pow(10000.0, -2.0 * i / kEmbeddingSize);
    out.push_back(std::sin(w * u));
    out.push_back(std::cos(w * u));
  }
  return out;
}

}  // namespace mergeplan
