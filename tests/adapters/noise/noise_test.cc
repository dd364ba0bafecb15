#include "adapters/noise/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "adapters/noise/normal.h"

namespace mergeplan {
namespace {

std::vector<float> Draw(NoiseStream& stream, int count) {
  std::vector<float> out(count);
  stream.Fill(out.data(), count);
  return out;
}

// The known answers that come with the authors' own implementation (Random123, kat_vectors).
TEST(Philox, GivesTheKnownAnswers) {
  const auto expect = [](PhiloxWords counter, PhiloxKey key, PhiloxWords answer) {
    const PhiloxWords words = Philox(counter, key);
    for (int w = 0; w < 4; ++w) EXPECT_EQ(words.w[w], answer.w[w]) << w;
  };
  expect({{0, 0, 0, 0}}, {{0, 0}}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  const std::uint32_t ones = 0xffffffff;
  expect({{ones, ones, ones, ones}}, {{ones, ones}},
         {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  expect({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, {{0xa4093822, 0x299f31d0}},
         {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

// Against the functions of the C library in float64, for words of all sizes.
TEST(NormalPair, IsBoxMuller) {
  double worst = 0, worst_size = 0;
  std::uint64_t state = 1;
  for (int i = 0; i < 200000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const auto radius_word = static_cast<std::uint32_t>(state >> 32) >> (i % 32);
    const auto angle_word = static_cast<std::uint32_t>(state >> 7);
    const double u = (radius_word + 0.5) * 0x1p-32;
    const double r = std::sqrt(-2 * std::log(u)), turn = 2 * M_PI * angle_word * 0x1p-32;
    float x = 0, y = 0;
    NormalPair(radius_word, angle_word, &x, &y);
    // u is rounded to 24 bits, which moves r by up to 2^-24 / r.
    const double error = std::hypot(x - r * std::cos(turn), y - r * std::sin(turn));
    worst = std::max(worst, error / (1 + r + 1 / r));
    worst_size = std::max<double>(worst_size, std::hypot(x, y));
  }
  EXPECT_LT(worst, 3e-7);
  EXPECT_LE(worst_size, kLargestNormal);
  float x = 0, y = 0;
  NormalPair(0, 0, &x, &y);  // the largest
  EXPECT_NEAR(x, std::sqrt(66 * std::log(2.0)), 1e-5);
  EXPECT_LE(x, kLargestNormal);
  EXPECT_EQ(y, 0);
  NormalPair(0xffffffff, 0x40000000, &x, &y);  // the smallest: u is 1
  EXPECT_EQ(y, 0);
}

TEST(NoiseStream, BothLoopsGiveTheSameBits) {
  constexpr int kGroups = 2000;
  const StreamName name = StreamName::Of(5, 3, 9, 1);
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{77},
                                    (std::uint64_t{1} << 29) - 9, (std::uint64_t{1} << 50) + 1}) {
    std::vector<float> plain(kGroups * kNoiseGroup), wide(plain.size());
    FillGroupsPlain(name, first, kGroups, plain.data());
    if (!FillGroupsAvx2(name, first, kGroups, wide.data())) GTEST_SKIP() << "no AVX2 here";
    EXPECT_EQ(plain, wide);
  }
}

TEST(NoiseStream, TheNumbersAreThoseOfTheDocument) {
  const StreamName name = StreamName::Of(1, 2, 3, 0);
  std::vector<float> group(32);
  NoiseStream(name).FillAt(32 * 5, group.data(), 32);
  for (int l = 0; l < 8; ++l) {
    const PhiloxWords words = name.Words(8 * 5 + l);
    for (int half = 0; half < 2; ++half) {
      float x = 0, y = 0;
      NormalPair(words.w[2 * half], words.w[2 * half + 1], &x, &y);
      EXPECT_EQ(group[16 * half + l], x);
      EXPECT_EQ(group[16 * half + 8 + l], y);
    }
  }
}

TEST(NoiseStream, DoesNotDependOnHowItIsAsked) {
  NoiseStream whole(7, 1, 8, 0);
  const std::vector<float> expected = Draw(whole, 1000);
  std::uint64_t state = 1;
  for (int trial = 0; trial < 50; ++trial) {
    NoiseStream pieces(7, 1, 8, 0);
    std::vector<float> got;
    while (got.size() < expected.size()) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const auto count =
          std::min<size_t>((state >> 40) % (trial < 25 ? 20 : 150), expected.size() - got.size());
      EXPECT_EQ(pieces.position(), got.size());
      const std::vector<float> piece = Draw(pieces, static_cast<int>(count));
      got.insert(got.end(), piece.begin(), piece.end());
    }
    EXPECT_EQ(got, expected);
  }
  NoiseStream late(7, 1, 8, 0);
  late.Seek(333);
  EXPECT_EQ(Draw(late, 100), std::vector<float>(expected.begin() + 333, expected.begin() + 433));
}

TEST(NoiseStream, EveryPartOfTheNameCounts) {
  std::set<std::vector<float>> seen;
  const std::uint64_t upper = std::uint64_t{1} << 32;
  const std::vector<std::tuple<std::uint64_t, int, int, int>> names = {
      {7, 1, 8, 0}, {8, 1, 8, 0}, {7 + upper, 1, 8, 0}, {7, 2, 8, 0},
      {7, 1, 9, 0}, {7, 1, 8, 1}, {7, 8, 1, 0}};
  for (const auto& [seed, first, last, lane] : names) {
    NoiseStream stream(seed, first, last, lane), twin(seed, first, last, lane);
    const std::vector<float> numbers = Draw(stream, 16);
    EXPECT_EQ(Draw(twin, 16), numbers);
    seen.insert(numbers);
  }
  EXPECT_EQ(seen.size(), names.size());
}

double NormalTail(double x) { return std::erfc(x / std::sqrt(2.0)) / 2; }

// 2^24 numbers of one stream, and as many that are the first of 2^19 streams of neighbouring names:
// moments, distance of the distribution functions, tails. All limits are five standard errors, or a
// probability of 1e-6 (Kolmogorov and Smirnov: 2 exp(-2 x^2), x = 2.7).
void ExpectStandardNormal(std::vector<float> z) {
  const auto n = static_cast<double>(z.size());
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0, m6 = 0;
  for (const float v : z) {
    const double x = v, y = x * x;
    m1 += x;
    m2 += y;
    m3 += x * y;
    m4 += y * y;
    m6 += y * y * y;
  }
  EXPECT_NEAR(m1 / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(m2 / n, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(m3 / n, 0, 5 * std::sqrt(15 / n));
  EXPECT_NEAR(m4 / n, 3, 5 * std::sqrt(96 / n));
  EXPECT_NEAR(m6 / n, 15, 5 * std::sqrt((10395 - 225) / n));
  std::sort(z.begin(), z.end());
  double distance = 0;
  for (size_t i = 0; i < z.size(); i += 16) {
    const double cdf = 1 - NormalTail(z[i]);
    distance = std::max(distance, std::abs(cdf - (static_cast<double>(i) + 0.5) / n));
  }
  EXPECT_LT(distance * std::sqrt(n), 2.7 + 16 / std::sqrt(n));
  for (const double edge : {2.0, 3.0, 4.0, 4.5, 5.0}) {
    const double expected = n * NormalTail(edge);
    const auto above = static_cast<double>(
        z.end() - std::upper_bound(z.begin(), z.end(), static_cast<float>(edge)));
    const auto below = static_cast<double>(
        std::lower_bound(z.begin(), z.end(), static_cast<float>(-edge)) - z.begin());
    EXPECT_NEAR(above, expected, 5 * std::sqrt(expected) + 5) << edge;
    EXPECT_NEAR(below, expected, 5 * std::sqrt(expected) + 5) << edge;
  }
}

TEST(NoiseStream, IsStandardNormal) {
  constexpr int kCount = 1 << 24;
  NoiseStream stream(11, 1, 2, 0);
  ExpectStandardNormal(Draw(stream, kCount));
}

TEST(NoiseStream, IsStandardNormalAcrossStreams) {
  std::vector<float> z;
  for (int i = 0; i < (1 << 19); ++i) {
    NoiseStream stream(static_cast<std::uint64_t>(i % 64), i / 64 % 128, i / 8192, 0);
    const std::vector<float> numbers = Draw(stream, 32);
    z.insert(z.end(), numbers.begin(), numbers.end());
  }
  ExpectStandardNormal(std::move(z));
}

// No correlation of numbers, nor of their squares, between places of a stream or between streams.
TEST(NoiseStream, NeighboursAndStreamsAreIndependent) {
  constexpr int kCount = 1 << 20;
  const auto stream = [](std::uint64_t seed, int first, int last, int lane) {
    NoiseStream s(seed, first, last, lane);
    return Draw(s, kCount + 64);
  };
  const std::vector<float> a = stream(1, 1, 2, 0);
  const auto expect_none = [&](const std::vector<float>& b, int lag) {
    double product = 0, squares = 0;
    for (int i = 0; i < kCount; ++i) {
      const double x = a[i], y = b[i + lag];
      product += x * y;
      squares += (x * x - 1) * (y * y - 1);
    }
    EXPECT_LT(std::abs(product), 5 * std::sqrt(kCount)) << lag;
    EXPECT_LT(std::abs(squares), 5 * 2 * std::sqrt(kCount)) << lag;
  };
  for (const int lag : {1, 2, 7, 8, 9, 16, 24, 31, 32, 33, 64}) expect_none(a, lag);
  for (const auto& b : {stream(2, 1, 2, 0), stream(1, 2, 2, 0), stream(1, 1, 3, 0),
                        stream(1, 1, 2, 1), stream(1 + (std::uint64_t{1} << 32), 1, 2, 0)}) {
    for (const int lag : {0, 8, 32}) expect_none(b, lag);
  }
}

}  // namespace
}  // namespace mergeplan
