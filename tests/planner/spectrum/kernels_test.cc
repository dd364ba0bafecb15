#include "planner/spectrum/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "planner/spectrum/parallel.h"

namespace mergeplan {
namespace {

std::string Output(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::string text;
  std::array<char, 4096> buffer;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    text.append(buffer.data(), got);
  }
  EXPECT_EQ(pclose(pipe), 0) << command << "\n" << text;
  return text;
}

// The linker keeps one of several equal inline functions. None that the AVX2 copy brings along may
// stand in for that of another object: all it defines for others must carry its own namespace.
void ExpectOnlyOwnSymbols(const std::string& object, const std::string& name) {
  const std::string symbols =
      Output(std::string(MERGEPLAN_NM) + " --defined-only --extern-only --format=posix \"" +
             object + "\"");
  int own = 0;
  for (std::size_t begin = 0; begin < symbols.size();) {
    const std::size_t end = std::min(symbols.find('\n', begin), symbols.size());
    const std::string line = symbols.substr(begin, end - begin);
    begin = end + 1;
    // A pointer that exception tables use, the same in every object: data, not code.
    if (line.starts_with("DW.ref.")) continue;
    EXPECT_NE(line.find(name), std::string::npos) << object << " defines " << line;
    ++own;
  }
  EXPECT_GT(own, 0) << symbols;
  const std::string sections =
      Output(std::string(MERGEPLAN_OBJDUMP) + " --section-headers \"" + object + "\"");
  EXPECT_EQ(sections.find(".init_array"), std::string::npos)
      << "code that runs before main in " << object;
}

TEST(KernelObjects, DefineNothingThatAnotherObjectCouldTake) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer adds symbols and start-up code of its own to every object";
#endif
  ExpectOnlyOwnSymbols(MERGEPLAN_BASELINE_OBJECT, "kernels_baseline");
#ifdef MERGEPLAN_V3_OBJECT
  ExpectOnlyOwnSymbols(MERGEPLAN_V3_OBJECT, "kernels_x86_64_v3");
  ExpectOnlyOwnSymbols(MERGEPLAN_V4_OBJECT, "kernels_x86_64_v4");
#endif
}

#ifdef MERGEPLAN_V3_OBJECT
TEST(KernelObjects, UseWideRegistersInTheirOwnCopiesOnly) {
  const auto count = [](const std::string& object, const std::string& registers) {
    const std::string code =
        Output(std::string(MERGEPLAN_OBJDUMP) + " --disassemble --no-show-raw-insn \"" + object +
               "\" | grep -c '%" + registers + "' || true");
    return std::stoi(code);
  };
  EXPECT_EQ(count(MERGEPLAN_BASELINE_OBJECT, "ymm"), 0);
  EXPECT_EQ(count(MERGEPLAN_BASELINE_OBJECT, "zmm"), 0);
  EXPECT_GT(count(MERGEPLAN_V3_OBJECT, "ymm"), 1000);
  EXPECT_EQ(count(MERGEPLAN_V3_OBJECT, "zmm"), 0);
  EXPECT_GT(count(MERGEPLAN_V4_OBJECT, "zmm"), 100);
}
#endif

TEST(BestKernels, AreTheFastestUsable) {
  EXPECT_STREQ(BaselineKernels().name, "baseline");
  const Kernels* expected = &BaselineKernels();
  if (X8664V3Kernels() != nullptr) {
    expected = X8664V3Kernels();
    EXPECT_STREQ(expected->name, "x86-64-v3");
  }
  if (X8664V4Kernels() != nullptr) {
    expected = X8664V4Kernels();
    EXPECT_STREQ(expected->name, "x86-64-v4");
    EXPECT_NE(X8664V3Kernels(), nullptr);
  }
  EXPECT_EQ(&BestKernels(), expected);
}

template <typename T>
void ExpectProductsOfPlainLoops(const Kernels& kernels,
                                void (*moments)(const T*, std::ptrdiff_t, std::ptrdiff_t,
                                                const double*, double*, double*, double*, double*,
                                                double*)) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> normal;
  EXPECT_EQ(96 % kernels.panel, 0);
  // Sizes around panels and tiles; all of it, and by columns.
  for (const auto& [n, d] : {std::pair(1, 1),
                             {2, 3},
                             {191, 5},
                             {192, 48},
                             {113, 97},
                             {40, 203},
                             {85, 24},
                             {50, 96},
                             {7, 192}}) {
    const std::ptrdiff_t panel = kernels.panel, padded = (d + panel - 1) / panel * panel;
    std::vector<T> x(n * d);
    std::vector<double> shift(d, 0.25), mean(d), m2(d), m3(d), m4(d), other(d);
    for (T& v : x) v = static_cast<T>(normal(random));
    // Every place is written.
    std::vector<double> packed(n * padded, std::nan("")), sums(d * d, 1.0);
    moments(x.data(), n, d, shift.data(), packed.data(), mean.data(), m2.data(), m3.data(),
            m4.data());
    for (int first = 0; first < d; first += 96) {
      kernels.rank_update(packed.data(), n, d, first, std::min(d, first + 96), sums.data());
    }
    const auto deviation = [&](int r, int i) {
      return static_cast<double>(x[r * d + i]) - 0.25 - mean[i];
    };
    for (int j = 0; j < d; ++j) {
      double m = 0, third = 0, fourth = 0;
      for (int r = 0; r < n; ++r) {
        m += static_cast<double>(x[r * d + j]) - 0.25;
        third += std::pow(deviation(r, j), 3);
        fourth += std::pow(deviation(r, j), 4);
      }
      ASSERT_NEAR(mean[j], m / n, 1e-14);
      ASSERT_NEAR(m2[j], sums[j * d + j] - 1, 1e-12 * n);
      ASSERT_NEAR(m3[j], third, 1e-12 * n);
      ASSERT_NEAR(m4[j], fourth, 1e-12 * n);
      for (int i = 0; i < d; ++i) {
        double plain = 1;
        for (int r = 0; i >= j && r < n; ++r) plain += deviation(r, i) * deviation(r, j);
        ASSERT_NEAR(sums[j * d + i], plain, 1e-12 * n)
            << kernels.name << " " << n << " x " << d << " at " << i << ", " << j;
      }
    }
    // Without a place for the deviations the moments are the same.
    moments(x.data(), n, d, shift.data(), nullptr, other.data(), m2.data(), m3.data(), m4.data());
    EXPECT_EQ(other, mean);
  }
}

TEST(Kernels, AddProductsOfPackedBlocksAsThePlainLoopsDo) {
  for (const Kernels* kernels : {&BaselineKernels(), X8664V3Kernels(), X8664V4Kernels()}) {
    if (kernels == nullptr) continue;
    ExpectProductsOfPlainLoops<float>(*kernels, kernels->moments_f32);
    ExpectProductsOfPlainLoops<double>(*kernels, kernels->moments_f64);
  }
}

template <typename T>
void ExpectPowersOfPlainLoops(const Kernels& kernels,
                              void (*add)(const T*, std::ptrdiff_t, std::ptrdiff_t, std::ptrdiff_t,
                                          const T*, double*)) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(7, 2);
  for (const auto& [n, width, more] : {std::array{1, 1, 0},
                                       {5, 7, 3},
                                       {2, 8, 0},
                                       {40, 16, 1},
                                       {3, 33, 0},
                                       {9, 100, 28},
                                       {0, 20, 0}}) {
    const int stride = width + more;
    std::vector<T> x(n * stride + stride), about(width);
    for (T& v : x) v = static_cast<T>(normal(random));
    for (T& v : about) v = static_cast<T>(normal(random));
    std::vector<double> sums(4 * width);
    for (double& v : sums) v = normal(random);
    const std::vector<double> before = sums;
    add(x.data(), n, stride, width, about.data(), sums.data());
    for (int c = 0; c < width; ++c) {
      for (int power = 1; power <= 4; ++power) {
        long double plain = before[(power - 1) * width + c], size = std::abs(plain);
        for (int r = 0; r < n; ++r) {
          long double term = 1;
          for (int k = 0; k < power; ++k) {
            term *= static_cast<double>(x[r * stride + c]) - static_cast<double>(about[c]);
          }
          plain += term;
          size += std::abs(term);
        }
        ASSERT_NEAR(sums[(power - 1) * width + c], static_cast<double>(plain),
                    1e-15 * (n + 4) * static_cast<double>(size))
            << kernels.name << " " << n << " x " << width << " at " << c << ", power " << power;
      }
    }
  }
}

TEST(Kernels, AddPowersAsThePlainLoopsDo) {
  for (const Kernels* kernels : {&BaselineKernels(), X8664V3Kernels(), X8664V4Kernels()}) {
    if (kernels == nullptr) continue;
    ExpectPowersOfPlainLoops<float>(*kernels, kernels->add_powers_f32);
    ExpectPowersOfPlainLoops<double>(*kernels, kernels->add_powers_f64);
  }
}

TEST(Kernels, MultiplyAsThePlainLoopsDo) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const Kernels* kernels : {&BaselineKernels(), X8664V3Kernels(), X8664V4Kernels()}) {
    if (kernels == nullptr) continue;
    for (const auto& [n, d] : {std::pair(1, 1), {3, 5}, {7, 64}, {33, 17}}) {
      std::vector<double> a(n * d), b(d * d), out(n * d), transposed(n * d);
      for (double& x : a) x = uniform(random);
      for (double& x : b) x = uniform(random);
      const std::vector<float> af(a.begin(), a.end()), bf(b.begin(), b.end());
      std::vector<float> outf(n * d);
      ASSERT_TRUE(kernels->multiply_f64(a.data(), n, d, b.data(), out.data()));
      ASSERT_TRUE(kernels->multiply_transposed_f64(a.data(), n, d, b.data(), d, transposed.data()));
      ASSERT_TRUE(kernels->multiply_transposed_f32(af.data(), n, d, bf.data(), d, outf.data()));
      for (int r = 0; r < n; ++r) {
        for (int i = 0; i < d; ++i) {
          double plain = 0, plain_transposed = 0;
          for (int k = 0; k < d; ++k) {
            plain += a[r * d + k] * b[k * d + i];
            plain_transposed += a[r * d + k] * b[i * d + k];
          }
          ASSERT_NEAR(out[r * d + i], plain, 1e-14 * d);
          ASSERT_NEAR(transposed[r * d + i], plain_transposed, 1e-14 * d);
          ASSERT_NEAR(outf[r * d + i], plain_transposed, 1e-6 * d);
        }
      }
    }
  }
}

// The same numbers elsewhere in memory give the same bits.
TEST(Kernels, DoNotDependOnAddresses) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (const Kernels* kernels : {&BaselineKernels(), X8664V3Kernels(), X8664V4Kernels()}) {
    if (kernels == nullptr) continue;
    for (const auto& [n, d] : {std::pair(1, 4), {3, 5}, {4, 4}, {2, 11}, {33, 17}}) {
      std::vector<double> x(n * d), b(d * d);
      for (double& v : x) v = normal(random);
      for (double& v : b) v = normal(random);
      std::vector<std::vector<double>> found;
      for (int offset = 0; offset < 8; ++offset) {
        std::vector<double> mine(offset), other(offset), out(3 * n * d + d * d + offset);
        mine.insert(mine.end(), x.begin(), x.end());
        other.insert(other.end(), b.begin(), b.end());
        double* to = out.data() + offset;
        ASSERT_TRUE(kernels->multiply_f64(mine.data() + offset, n, d, other.data() + offset, to));
        ASSERT_TRUE(kernels->multiply_transposed_f64(mine.data() + offset, n, d,
                                                     other.data() + offset, d, to + n * d));
        ASSERT_TRUE(kernels->accumulate(mine.data() + offset, mine.data() + offset, n, d, d, 0, d,
                                        to + 3 * n * d));
        found.emplace_back(to, out.data() + out.size());
        EXPECT_EQ(found.back(), found.front()) << kernels->name << " " << n << " x " << d;
      }
    }
  }
}

TEST(ParallelFor, CallsEveryTaskOnceAndReportsFailure) {
  for (const int threads : {1, 2, 5}) {
    std::vector<int> calls(100);
    EXPECT_TRUE(ParallelFor(100, threads, [&](int task) { return ++calls[task] == 1; }).ok());
    EXPECT_EQ(calls, std::vector<int>(100, 1));
    EXPECT_EQ(ParallelFor(100, threads, [](int task) { return task != 50; }).code(),
              absl::StatusCode::kResourceExhausted);
  }
  EXPECT_TRUE(ParallelFor(0, 4, [](int) { return false; }).ok());
}

}  // namespace
}  // namespace mergeplan
