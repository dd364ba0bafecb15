#include "adapters/linear/sum_squares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace mergeplan {
namespace {

// Against the formula in long double, for all kinds of remainders of the tiles.
template <typename T>
void CompareWithFormula(double tolerance) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  for (const int d : {1, 2, 3, 7, 16, 31, 32, 33, 38, 100}) {
    for (const int rows : {1, 2, 31, 32, 33, 64, 200}) {
      std::vector<float> noise(static_cast<size_t>(rows) * d);
      for (float& x : noise) x = normal(random);
      std::vector<T> sums(d);
      for (int k = 0; k < d; ++k) sums[k] = static_cast<T>(k);  // it adds to what is there
      SumSquares(noise.data(), rows, d, sums.data());
      for (int k = 0; k < d; ++k) {
        long double sum = k;
        for (int b = 0; b < rows; ++b) {
          const long double x = noise[b * d + k];
          sum += x * x;
        }
        EXPECT_NEAR(sums[k], static_cast<double>(sum), tolerance * static_cast<double>(sum))
            << "d = " << d << ", rows = " << rows << ", k = " << k;
      }
    }
  }
}

TEST(SumSquares, IsTheFormulaInFloat64) { CompareWithFormula<double>(1e-14); }
TEST(SumSquares, IsTheFormulaInFloat32) { CompareWithFormula<float>(1e-5); }

}  // namespace
}  // namespace mergeplan
