#include "adapters/runtime/noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace mergeplan {
namespace {

std::vector<float> Draw(NoiseStream& stream, int count) {
  std::vector<float> out(count);
  stream.Fill(out.data(), count);
  return out;
}

TEST(NoiseStream, ItsNameDecidesItsNumbers) {
  NoiseStream a(7, 1, 8, 0), b(7, 1, 8, 0);
  EXPECT_EQ(Draw(a, 1000), Draw(b, 1000));
  EXPECT_EQ(Draw(a, 17), Draw(b, 17));
}

TEST(NoiseStream, EveryPartOfTheNameCounts) {
  // Also the upper half of the seed, which torch's own seeding ignores.
  std::vector<NoiseStream> streams;
  streams.emplace_back(7, 1, 8, 0);
  streams.emplace_back(8, 1, 8, 0);
  streams.emplace_back(7 + (std::uint64_t{1} << 32), 1, 8, 0);
  streams.emplace_back(7, 2, 8, 0);
  streams.emplace_back(7, 1, 9, 0);
  streams.emplace_back(7, 1, 8, 1);
  std::set<std::vector<float>> seen;
  for (NoiseStream& stream : streams) seen.insert(Draw(stream, 16));
  EXPECT_EQ(seen.size(), streams.size());
}

TEST(NoiseStream, GoesOnFromASavedState) {
  NoiseStream a(3, 2, 5, 1);
  Draw(a, 1001);  // in the middle of a block of the generator
  const std::vector<std::uint8_t> state = a.Save();
  const std::vector<float> expected = Draw(a, 500);
  NoiseStream b(99, 1, 2, 0);
  ASSERT_TRUE(b.Restore(state).ok());
  EXPECT_EQ(Draw(b, 500), expected);
}

TEST(NoiseStream, RefusesADamagedState) {
  NoiseStream a(3, 2, 5, 1);
  std::vector<std::uint8_t> state = a.Save();
  state.pop_back();
  EXPECT_EQ(a.Restore(state).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(a.Restore(std::vector<std::uint8_t>(a.Save().size(), 0xff)).code(),
            absl::StatusCode::kDataLoss);
}

TEST(NoiseStream, IsStandardNormal) {
  // 2^20 numbers: mean, variance, and fourth moment within five standard errors.
  constexpr int kCount = 1 << 20;
  NoiseStream stream(11, 1, 2, 0);
  double sum = 0, squares = 0, fourth = 0;
  for (const float x : Draw(stream, kCount)) {
    const double z = x;
    sum += z;
    squares += z * z;
    fourth += z * z * z * z;
  }
  const double n = kCount;
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(fourth / n, 3, 5 * std::sqrt(96 / n));
}

}  // namespace
}  // namespace mergeplan
