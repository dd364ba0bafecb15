// The engine's answers, digit by digit, against the processor's loops of kernels.h.
#include "planner/search/cuda/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <tuple>

#include "planner/search/kernels.h"
#include "tests/planner/search/cuda/backends.h"

namespace mergeplan::search::device {
namespace {

std::uint64_t Bits(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
std::vector<std::uint64_t> Bits(const std::vector<double>& values) {
  std::vector<std::uint64_t> bits;
  for (const double x : values) bits.push_back(Bits(x));
  return bits;
}

// A random setting that owns its tables and parts.
struct Problem {
  std::size_t n = 0;
  std::vector<std::vector<double>> tables, parts;
  Setting setting;
  bool merge = false;

  CandidateRule RuleOf(const Source& source) const {
    CandidateRule rule;
    rule.ju = source.ju;
    rule.jv = source.jv;
    rule.juv = source.juv;
    rule.merge = source.kind == kMerge;
    rule.omg = setting.omg;
    rule.g = setting.g;
    rule.start = setting.start;
    rule.offset = setting.offset;
    return rule;
  }
  std::vector<double> ValueOf(int source, int left, int right) const {
    const Source& from = setting.sources[source];
    const double* u = from.left.rows + left * n;
    if (from.kind == kCopyLeft) return std::vector<double>(u, u + n);
    std::vector<double> x(n);
    CandidateValue(n, RuleOf(from), u, from.right.rows + right * n, x.data());
    return x;
  }
};

// Coarse values, so that ties and coverings are common; now and then zeros and denormal numbers.
std::vector<double> Values(std::mt19937_64& random, std::size_t count, int grid) {
  std::vector<double> values(count);
  for (double& x : values) {
    x = static_cast<double>(1 + random() % grid) / grid;
    if (random() % 64 == 0) x = 0;
    if (random() % 64 == 0) x = 5e-320;
  }
  return values;
}

Problem MakeProblem(std::mt19937_64& random) {
  constexpr std::size_t kSizes[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 130};
  Problem p;
  const std::size_t n = p.n = kSizes[random() % std::size(kSizes)];
  const int grid = 2 + static_cast<int>(random() % 1000);
  p.merge = random() % 3 > 0;
  const auto table = [&] {
    p.tables.push_back(Values(random, n, 997));
    return p.tables.back().data();
  };
  p.tables.reserve(16);
  p.setting.n = n;
  double* a = table();
  double* b = table();
  double* sign = table();
  for (std::size_t c = 0; c < n; ++c) {
    sign[c] = random() % 2 == 0 ? 1 : -1;
    a[c] -= sign[c] > 0 ? 0.2 : 0.8;
    b[c] *= -sign[c];
  }
  p.setting.a = a;
  p.setting.b = b;
  p.setting.sign = sign;
  if (p.merge) {
    p.setting.omg = table();
    p.setting.g = table();
    if (random() % 2 == 0) p.setting.start = table();
    if (random() % 2 == 0) p.setting.offset = table();
  }
  const int sources = 1 + static_cast<int>(random() % 5);
  p.parts.reserve(2 * sources);
  const auto part = [&] {
    const std::size_t entries = 1 + random() % 70;
    p.parts.push_back(Values(random, entries * n, grid));
    return Part{p.parts.back().data(), entries};
  };
  for (int s = 0; s < sources; ++s) {
    Source source;
    source.left = part();
    source.kind = p.merge ? kMerge : random() % 4 == 0 ? kCopyLeft : kProduct;
    if (source.kind != kCopyLeft) source.right = part();
    if (random() % 2 == 0) {
      source.ju = 0.3;
      source.jv = 0.11;
      source.juv = 0.7;
    }
    p.setting.sources.push_back(source);
  }
  return p;
}

class EngineTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(On, EngineTest, testing::Values("emulation", "cuda"),
                         [](const auto& info) { return info.param; });

using PairKey = std::tuple<std::size_t, int, std::uint64_t>;  // run, right entry, bound

TEST_P(EngineTest, PairsAreThoseOfTheProcessor) {
  MERGEPLAN_OPEN_BACKEND(backend);
  // Few pairs a kernel and little memory at once, so that there are many of each.
  Engine engine(*std::move(backend), {700, 64, 20000});
  std::mt19937_64 random(11);
  std::size_t below = 0, above = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const Problem p = MakeProblem(random);
    engine.Forget();
    std::vector<LeftEntry> runs;
    for (std::size_t s = 0; s < p.setting.sources.size(); ++s) {
      if (p.setting.sources[s].kind == kCopyLeft) continue;
      for (std::size_t l = 0; l < p.setting.sources[s].left.entries; ++l) {
        if (random() % 4 > 0) runs.push_back({static_cast<int>(s), static_cast<int>(l)});
      }
    }
    if (runs.empty()) continue;
    std::shuffle(runs.begin(), runs.end(), random);
    // The bounds of all pairs, then a limit in the midst of them, and one that is one of them.
    std::vector<double> all;
    for (const LeftEntry& run : runs) {
      const Source& source = p.setting.sources[run.source];
      for (std::size_t r = 0; r < source.right.entries; ++r) {
        all.push_back(CandidateBound(p.n, p.RuleOf(source), source.left.rows + run.left * p.n,
                                     source.right.rows + r * p.n, p.setting.a, p.setting.b,
                                     std::numeric_limits<double>::infinity()));
      }
    }
    std::vector<double> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    const double limit = sorted[random() % sorted.size()] * (trial % 2 == 0 ? 1.0 : 1.0001);
    std::vector<PairKey> expected, got;
    std::size_t at = 0;
    for (std::size_t k = 0; k < runs.size(); ++k) {
      const std::size_t entries = p.setting.sources[runs[k].source].right.entries;
      for (std::size_t r = 0; r < entries; ++r, ++at) {
        if (all[at] < limit) expected.emplace_back(k, static_cast<int>(r), Bits(all[at]));
      }
    }
    below += expected.size();
    above += all.size() - expected.size();
    std::vector<FoundPair> found;
    const absl::Status status = engine.Pairs(
        p.setting, runs, limit, [] { return false; }, found);
    ASSERT_TRUE(status.ok()) << status;
    for (const FoundPair& pair : found) got.emplace_back(pair.run, pair.right, Bits(pair.bound));
    std::sort(got.begin(), got.end());
    ASSERT_EQ(got, expected) << "trial " << trial << ", n " << p.n;
  }
  EXPECT_GT(below, 10000u);
  EXPECT_GT(above, 10000u);
}

// What Pass::Select does, word by word.
Kept Reference(const Problem& p, double slack, const std::vector<FilterCandidate>& candidates,
               Kept kept, std::int64_t& sixteenths) {
  const std::size_t n = p.n;
  std::vector<double> squares(n);
  for (std::size_t k = 0; k < candidates.size(); ++k) {
    const FilterCandidate& one = candidates[k];
    const std::size_t size = kept.limits.size();
    sixteenths += static_cast<std::int64_t>(size / 16);
    const std::vector<double> x = p.ValueOf(one.source, one.left, one.right);
    if (slack > 0) {
      RowSquares(n, x.data(), p.setting.a, p.setting.b, squares.data());
      double least = std::numeric_limits<double>::infinity();
      int best = -1;
      for (std::size_t e = 0; e < size && least > 0; ++e) {
        if (!NoMoreThan(kept.limits[e], one.limits)) continue;
        const double left = slack - kept.losses[e];
        const double loss =
            SquaresLoss(n, &kept.shares[e * n], squares.data(), std::min(least, left));
        if (loss < least && loss <= left) {
          least = loss;
          best = static_cast<int>(e);
        }
      }
      if (best >= 0) {
        Absorb(n, &kept.values[best * n], x.data(), p.setting.sign);
        Lessen(n, &kept.shares[best * n], squares.data());
        kept.losses[best] += least;
        kept.stands.push_back(static_cast<std::uint32_t>(best));
        continue;
      }
      kept.shares.insert(kept.shares.end(), squares.begin(), squares.end());
      kept.losses.push_back(0);
    } else {
      std::size_t first = 0;
      while (first < size && !(NoMoreThan(kept.limits[first], one.limits) &&
                               Dominates(n, &kept.values[first * n], x.data(), p.setting.sign))) {
        ++first;
      }
      if (first < size) {
        kept.stands.push_back(static_cast<std::uint32_t>(first));
        continue;
      }
    }
    kept.values.insert(kept.values.end(), x.begin(), x.end());
    kept.limits.push_back(one.limits);
    kept.stands.push_back(static_cast<std::uint32_t>(size));
    kept.added.push_back(k);
  }
  return kept;
}

TEST_P(EngineTest, FilterKeepsWhatTheProcessorKeeps) {
  MERGEPLAN_OPEN_BACKEND(backend);
  Engine engine(*std::move(backend), {1 << 20, 48, 1 << 20});
  std::mt19937_64 random(12);
  std::size_t kept_in_all = 0, dropped = 0, stood_for = 0;
  for (int trial = 0; trial < 240; ++trial) {
    const Problem p = MakeProblem(random);
    engine.Forget();
    const bool limited = random() % 3 == 0;
    std::vector<FilterCandidate> candidates;
    const std::size_t count = random() % 300;
    while (candidates.size() < count) {
      FilterCandidate one;
      one.source = static_cast<int>(random() % p.setting.sources.size());
      const Source& source = p.setting.sources[one.source];
      one.left = static_cast<int>(random() % source.left.entries);
      if (source.kind != kCopyLeft) one.right = static_cast<int>(random() % source.right.entries);
      if (limited) one.limits = {static_cast<int>(random() % 5), static_cast<int>(random() % 3)};
      candidates.push_back(one);
    }
    double slack = trial % 2 == 0 ? 0 : 0.05 * static_cast<double>(p.n);
    if (trial % 8 == 1 && count > 1) {
      // The second candidate takes all of it.
      std::vector<double> shares[2] = {std::vector<double>(p.n), std::vector<double>(p.n)};
      for (int k = 0; k < 2; ++k) {
        const FilterCandidate& one = candidates[k];
        RowSquares(p.n, p.ValueOf(one.source, one.left, one.right).data(), p.setting.a, p.setting.b,
                   shares[k].data());
      }
      const double loss = SquaresLoss(p.n, shares[0].data(), shares[1].data(),
                                      std::numeric_limits<double>::infinity());
      if (loss > 0) slack = loss;
    }
    // The processor takes the first few, so that the engine starts with something.
    const std::size_t first = random() % (candidates.size() + 1);
    std::int64_t sixteenths = 0;
    Kept begin =
        Reference(p, slack, {candidates.begin(), candidates.begin() + first}, {}, sixteenths);
    begin.added.clear();
    begin.stands.clear();
    candidates.erase(candidates.begin(), candidates.begin() + first);
    sixteenths = 0;
    const Kept expected = Reference(p, slack, candidates, begin, sixteenths);
    Kept got = begin;
    std::int64_t told = 0;
    std::size_t more = 0, all = 0;
    const absl::Status status = engine.Filter(
        p.setting, slack, candidates,
        [&](std::size_t looked, std::size_t kept, std::int64_t work) {
          told += work;
          more += kept;
          all += looked;
          return true;
        },
        got);
    ASSERT_TRUE(status.ok()) << status;
    SCOPED_TRACE(testing::Message() << "trial " << trial << ", n " << p.n << ", " << first << " + "
                                    << candidates.size() << " candidates, slack " << slack);
    EXPECT_EQ(told, sixteenths);
    EXPECT_EQ(more, expected.added.size());
    EXPECT_EQ(all, candidates.size());
    ASSERT_EQ(got.stands, expected.stands);
    ASSERT_EQ(got.added, expected.added);
    ASSERT_EQ(Bits(got.values), Bits(expected.values));
    if (slack > 0) {
      ASSERT_EQ(Bits(got.losses), Bits(expected.losses));
    }
    ASSERT_EQ(got.limits.size(), expected.limits.size());
    for (std::size_t k = 0; k < got.limits.size(); ++k) {
      ASSERT_EQ(got.limits[k].merges, expected.limits[k].merges);
      ASSERT_EQ(got.limits[k].rounds, expected.limits[k].rounds);
    }
    kept_in_all += expected.added.size();
    (slack > 0 ? stood_for : dropped) += candidates.size() - expected.added.size();
  }
  EXPECT_GT(kept_in_all, 2000u);
  EXPECT_GT(dropped, 1000u);
  EXPECT_GT(stood_for, 1000u);
}

TEST_P(EngineTest, StopsWhenTold) {
  MERGEPLAN_OPEN_BACKEND(backend);
  Engine engine(*std::move(backend), {10, 4, 1 << 20});
  std::mt19937_64 random(13);
  Problem p = MakeProblem(random);
  while (p.merge || p.setting.sources[0].kind == kCopyLeft ||
         p.setting.sources[0].right.entries < 30) {
    p = MakeProblem(random);
  }
  int asked = 0;
  std::vector<FoundPair> found;
  const auto stop = [&asked] { return ++asked == 2; };
  ASSERT_TRUE(
      engine
          .Pairs(p.setting, {{0, 0}, {0, 0}}, std::numeric_limits<double>::infinity(), stop, found)
          .ok());
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(found.size(), 20u);
  std::vector<FilterCandidate> candidates(20);
  Kept kept;
  int batches = 0;
  ASSERT_TRUE(engine
                  .Filter(
                      p.setting, 0, candidates,
                      [&](std::size_t, std::size_t, std::int64_t) { return ++batches < 3; }, kept)
                  .ok());
  EXPECT_EQ(batches, 3);
  EXPECT_TRUE(kept.values.empty());
  EXPECT_TRUE(kept.added.empty());
}

}  // namespace
}  // namespace mergeplan::search::device
