#include "adapters/runtime/kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace mergeplan {
namespace {

// Against the formula, written out in long double, for all kinds of remainders of the tiles.
template <typename T>
void CompareWithFormula(double tolerance) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for (const int d : {1, 2, 15, 16, 17, 31, 33, 100}) {
    for (const int samples : {1, 2, 7, 64}) {
      std::vector<float> noise(samples * d);
      for (float& x : noise) x = static_cast<float>(normal(random));
      std::vector<T> scale(d), a(d), p(d), gradient(d), loss(d);
      for (int k = 0; k < d; ++k) {
        scale[k] = static_cast<T>(std::exp(normal(random)));
        a[k] = static_cast<T>(normal(random));
        p[k] = static_cast<T>(normal(random));
        gradient[k] = static_cast<T>(k);  // it adds to what is there
        loss[k] = static_cast<T>(2 * k);
      }
      AccumulateGradient(noise.data(), samples, d, scale.data(), a.data(), p.data(),
                         gradient.data(), loss.data());
      for (int k = 0; k < d; ++k) {
        long double g = k, l = 2 * k, size = k + 1;
        for (int b = 0; b < samples; ++b) {
          const long double z = static_cast<long double>(scale[k]) * noise[b * d + k];
          const long double error = (static_cast<long double>(a[k]) - p[k]) * z;
          g += z * error;
          l += error * error;
          size += z * z * (std::abs(a[k]) + std::abs(p[k])) + error * error;
        }
        EXPECT_NEAR(gradient[k], static_cast<double>(g), tolerance * static_cast<double>(size))
            << "d = " << d << ", samples = " << samples << ", k = " << k;
        EXPECT_NEAR(loss[k], static_cast<double>(l), tolerance * static_cast<double>(size));
      }
    }
  }
}

TEST(AccumulateGradient, IsTheFormulaInFloat64) { CompareWithFormula<double>(1e-14); }
TEST(AccumulateGradient, IsTheFormulaInFloat32) { CompareWithFormula<float>(1e-5); }

}  // namespace
}  // namespace mergeplan
