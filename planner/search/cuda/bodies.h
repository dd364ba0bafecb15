#pragma once

#include <cstddef>
#include <cstdint>

#include "planner/device/blocks.h"
#include "planner/search/elements.h"

// What one thread of each kernel does, and what the kernels are given. Used by the kernels
// themselves (launch.cu) and by the emulation that runs the same threads as loops
// (emulation.cc). C++17 and nothing but raw pointers, all of them into the backend's memory.
//
// Values are kept in tiles of 32 entries, within a tile column by column: neighbouring threads look
// at neighbouring entries, so that what they read lies side by side. One thread goes through the
// columns of one pair in the order in which the processor's loop does, with the same partial sums
// and the same places to stop: hence the same digits.
namespace mergeplan::search::device {

constexpr std::size_t kTile = 32;
using mergeplan::device::kThreads;

// Doubles that `entries` entries of n columns take.
MERGEPLAN_EACH std::size_t TiledSize(std::size_t n, std::size_t entries) {
  return (entries + kTile - 1) / kTile * kTile * n;
}
// Where column 0 of an entry lies; the next column is kTile further on.
MERGEPLAN_EACH std::size_t TiledRow(std::size_t n, std::size_t entry) {
  return entry / kTile * kTile * n + entry % kTile;
}
// The entry and column at a place in tiles.
struct Place {
  std::size_t entry, column;
};
MERGEPLAN_EACH Place PlaceOf(std::size_t n, std::size_t at) {
  return {at / (kTile * n) * kTile + at % kTile, at / kTile % n};
}

// How a value comes about; CandidateRule (kernels.h) in the backend's memory. n doubles behind each
// pointer.
enum RuleKind : std::int32_t { kProduct, kMerge, kCopyLeft };
struct Rule {
  double ju, jv, juv;
  const double* omg;
  const double* g;
  const double* start;   // null: the right part itself
  const double* offset;  // null: none
  RuleKind kind;
};

MERGEPLAN_EACH double ValueAt(const Rule& rule, std::size_t c, double u, double v) {
  if (rule.kind == kCopyLeft) return u;
  double x = rule.ju == 0 && rule.jv == 0 ? PlainProduct(rule.juv, u, v)
                                          : Product(rule.ju, rule.jv, rule.juv, u, v);
  if (rule.kind != kMerge) return x;
  x = Merged(rule.omg[c], rule.g[c], x, rule.start == nullptr ? v : rule.start[c]);
  return rule.offset == nullptr ? x : x + rule.offset[c];
}

// rows [entries][n] -> tiles, entries that do not exist set to 0; one thread a double of the tiles.
struct TileArgs {
  std::size_t n, entries;
  const double* rows;
  double* tiles;
};
MERGEPLAN_EACH void TileThread(const TileArgs& q, std::size_t at) {
  const Place place = PlaceOf(q.n, at);
  q.tiles[at] = place.entry < q.entries ? q.rows[place.entry * q.n + place.column] : 0.0;
}

// tiles -> rows [entries][n]; one thread a double of the tiles.
struct UntileArgs {
  std::size_t n, entries;
  const double* tiles;
  double* rows;
};
MERGEPLAN_EACH void UntileThread(const UntileArgs& q, std::size_t at) {
  const Place place = PlaceOf(q.n, at);
  if (place.entry < q.entries) q.rows[place.entry * q.n + place.column] = q.tiles[at];
}

// --- Candidates and their bounds ---

// All pairs of one left entry with the entries of a right part.
struct PairRun {
  const double* left;   // tiles
  const double* right;  // tiles
  std::uint64_t first;  // number of its first pair
  std::uint32_t left_entry, rule;
};
// A pair whose bound is below the limit.
struct Found {
  double bound;
  std::uint64_t pair;
};
struct PairArgs {
  std::size_t n;
  const PairRun* runs;  // [run_count], by `first`
  std::size_t run_count;
  std::uint64_t begin, end;  // pairs to look at, one a thread
  const Rule* rules;
  const double* a;  // [n]
  const double* b;  // [n]
  double limit;
  Found* found;  // room for end - begin; in any order
  unsigned long long* count;
};

// The run of a pair: the last one that begins no later.
MERGEPLAN_EACH std::size_t RunOf(const PairArgs& q, std::uint64_t pair) {
  std::size_t low = 0, high = q.run_count;
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    if (q.runs[middle].first <= pair) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// Is its bound below the limit? (CandidateBound)
MERGEPLAN_EACH bool PairThread(const PairArgs& q, std::uint64_t pair, double* bound) {
  const PairRun run = q.runs[RunOf(q, pair)];
  const Rule rule = q.rules[run.rule];
  const double* u = run.left + TiledRow(q.n, run.left_entry);
  const double* v = run.right + TiledRow(q.n, static_cast<std::size_t>(pair - run.first));
  double lanes[kLanes] = {};
  double sum = 0;
  for (std::size_t begin = 0; begin < q.n; begin += kBlock) {
    for (std::size_t half = begin; half < begin + kBlock; half += kLanes) {
      for (std::size_t l = 0; l < kLanes; ++l) {
        const std::size_t c = half + l;
        if (c < q.n)
          lanes[l] += Share(q.a[c], q.b[c], ValueAt(rule, c, u[c * kTile], v[c * kTile]));
      }
    }
    sum = SumOfLanes(lanes);
    if (sum > q.limit) return false;
  }
  *bound = sum;
  return sum < q.limit;
}

// --- The dominance filter ---

// A candidate by its parts.
struct Made {
  const double* left;   // tiles
  const double* right;  // tiles; unused by kCopyLeft
  std::uint32_t left_entry, right_entry;
  std::uint32_t rule;
};

// Values of candidates, and where `shares` is not null what each column adds to the bound; one
// thread a double of the tiles.
struct ValueArgs {
  std::size_t n, count;
  const Made* made;  // [count]
  const Rule* rules;
  const double* a;  // [n]
  const double* b;  // [n]
  double* values;   // tiles
  double* shares;   // tiles, or null
};
MERGEPLAN_EACH void ValueThread(const ValueArgs& q, std::size_t at) {
  const Place place = PlaceOf(q.n, at);
  if (place.entry >= q.count) return;
  const Made& made = q.made[place.entry];
  const std::size_t c = place.column;
  const Rule& rule = q.rules[made.rule];
  const double u = made.left[TiledRow(q.n, made.left_entry) + c * kTile];
  const double v =
      rule.kind == kCopyLeft ? 0.0 : made.right[TiledRow(q.n, made.right_entry) + c * kTile];
  const double x = ValueAt(rule, c, u, v);
  q.values[at] = x;
  if (q.shares != nullptr) q.shares[at] = Share(q.a[c], q.b[c], x);
}

struct Limits {
  std::int32_t merges, rounds;
};
MERGEPLAN_EACH bool NoMoreThan(const Limits& x, const Limits& y) {
  return x.merges <= y.merges && x.rounds <= y.rounds;
}

// Is x nowhere better than y? Both are the starts of tiled rows. (Dominates)
MERGEPLAN_EACH bool Covers(std::size_t n, const double* y, const double* x, const double* sign) {
  for (std::size_t c = 0; c < n; ++c) {
    if (Lead(sign[c], y[c * kTile], x[c * kTile]) < 0) return false;
  }
  return true;
}

// The first kept entry that covers each candidate of a batch. One thread a candidate and kTile
// entries.
struct CoveredArgs {
  std::size_t n, kept_count, batch_count;
  const double* kept;         // tiles
  const Limits* kept_limits;  // [kept_count]
  const double* batch;        // tiles
  const Limits* batch_limits;
  const double* sign;      // [n]
  std::uint32_t* covered;  // [batch_count], 0 before; kept_count - entry, 0: none covers it
};
MERGEPLAN_EACH std::size_t CoveredThreads(const CoveredArgs& q) {
  return (q.kept_count + kTile - 1) / kTile * q.batch_count;
}
// The entry's number as it stands in `covered`, 0: none of the thread's.
MERGEPLAN_EACH std::uint32_t CoveredThread(const CoveredArgs& q, std::size_t at) {
  const std::size_t candidate = at % q.batch_count;
  const std::size_t begin = at / q.batch_count * kTile;
  if (q.covered[candidate] > q.kept_count - begin) return 0;  // one before these
  const double* x = q.batch + TiledRow(q.n, candidate);
  for (std::size_t k = begin; k < begin + kTile && k < q.kept_count; ++k) {
    if (NoMoreThan(q.kept_limits[k], q.batch_limits[candidate]) &&
        Covers(q.n, q.kept + TiledRow(q.n, k), x, q.sign)) {
      return static_cast<std::uint32_t>(q.kept_count - k);
    }
  }
  return 0;
}

// Which candidates of a batch would an earlier one of it cover? One thread a pair.
struct AmongArgs {
  std::size_t n, count;
  const double* batch;           // tiles
  const Limits* limits;          // [count]
  const double* sign;            // [n]
  const std::uint32_t* covered;  // [count], not 0: these neither cover nor need to be covered
  unsigned char* among;          // [count][count]: does the first cover the second?
};
MERGEPLAN_EACH void AmongThread(const AmongArgs& q, std::size_t at) {
  const std::size_t first = at / q.count, second = at % q.count;
  q.among[at] =
      first < second && q.covered[first] == 0 && q.covered[second] == 0 &&
      NoMoreThan(q.limits[first], q.limits[second]) &&
      Covers(q.n, q.batch + TiledRow(q.n, first), q.batch + TiledRow(q.n, second), q.sign);
}

// Adds candidates of a batch to the kept entries; one thread a candidate and column.
struct AppendArgs {
  std::size_t n, count, kept_count;
  const std::uint32_t* which;  // [count]
  const double* batch;         // tiles
  const Limits* batch_limits;
  double* kept;  // tiles, room for kept_count + count
  Limits* kept_limits;
};
MERGEPLAN_EACH void AppendThread(const AppendArgs& q, std::size_t at) {
  const std::size_t k = at % q.count, c = at / q.count;
  const std::size_t to = q.kept_count + k, from = q.which[k];
  q.kept[TiledRow(q.n, to) + c * kTile] = q.batch[TiledRow(q.n, from) + c * kTile];
  if (c == 0) q.kept_limits[to] = q.batch_limits[from];
}

// --- The same with slack: kept entries stand for candidates, one candidate after the other ---

constexpr double kTooMuch = 1.7976931348623157e308;  // larger than any loss

struct SlackArgs {
  std::size_t n;
  double slack;
  std::size_t candidate;       // of the batch
  std::size_t most;            // no more entries are kept by now
  const double* batch;         // tiles
  const double* batch_shares;  // tiles
  const Limits* batch_limits;
  const double* sign;   // [n]
  double* kept;         // tiles, room for most + 1
  double* kept_shares;  // tiles
  Limits* kept_limits;
  double* losses;          // how much each entry's bound fell so far
  double* loss;            // [most]: how much it would fall by standing for the candidate
  std::uint64_t* count;    // of kept entries
  std::int64_t* decision;  // [batch]: the entry that stands for the candidate; -1: it is kept
};

// What would this entry's bound lose? (SquaresLoss) One thread an entry.
MERGEPLAN_EACH void LossThread(const SlackArgs& q, std::size_t k) {
  if (k >= *q.count) return;
  q.loss[k] = kTooMuch;
  if (!NoMoreThan(q.kept_limits[k], q.batch_limits[q.candidate])) return;
  const double left = q.slack - q.losses[k];
  const double* y = q.kept_shares + TiledRow(q.n, k);
  const double* x = q.batch_shares + TiledRow(q.n, q.candidate);
  double lanes[kLanes] = {};
  double sum = 0;
  for (std::size_t begin = 0; begin < q.n; begin += kBlock) {
    for (std::size_t half = begin; half < begin + kBlock; half += kLanes) {
      for (std::size_t l = 0; l < kLanes; ++l) {
        const std::size_t c = half + l;
        if (c < q.n) lanes[l] += Loss(y[c * kTile], x[c * kTile]);
      }
    }
    sum = SumOfLanes(lanes);
    if (sum > left) return;
  }
  if (sum <= left) q.loss[k] = sum;
}

struct Least {
  double loss;
  std::int64_t entry;  // the first one with this loss; -1: none
};
MERGEPLAN_EACH Least LeastOf(const Least& x, const Least& y) {
  if (y.loss < x.loss) return y;
  if (y.loss == x.loss && y.entry >= 0 && (x.entry < 0 || y.entry < x.entry)) return y;
  return x;
}
// One block of kThreads threads decides: each looks at its share of the entries, ...
MERGEPLAN_EACH Least DecideShare(const SlackArgs& q, std::size_t thread) {
  Least least = {kTooMuch, -1};
  for (std::size_t k = thread; k < *q.count; k += kThreads) {
    if (q.loss[k] < kTooMuch)
      least = LeastOf(least, Least{q.loss[k], static_cast<std::int64_t>(k)});
  }
  return least;
}
// ... once the least of all is known each brings its columns in, ...
MERGEPLAN_EACH void DecideColumns(const SlackArgs& q, const Least& least, std::size_t thread) {
  const bool stands = least.entry >= 0;
  const std::size_t to = TiledRow(
      q.n, stands ? static_cast<std::size_t>(least.entry) : static_cast<std::size_t>(*q.count));
  const std::size_t from = TiledRow(q.n, q.candidate);
  for (std::size_t c = thread; c < q.n; c += kThreads) {
    double& value = q.kept[to + c * kTile];
    double& share = q.kept_shares[to + c * kTile];
    const double x = q.batch[from + c * kTile];
    const double s = q.batch_shares[from + c * kTile];
    value = stands ? Better(q.sign[c], value, x) : x;
    share = stands ? Lesser(share, s) : s;
  }
}
// ... and when all have, one writes it down.
MERGEPLAN_EACH void DecideLast(const SlackArgs& q, const Least& least) {
  q.decision[q.candidate] = least.entry;
  if (least.entry >= 0) {
    q.losses[least.entry] += least.loss;
    return;
  }
  q.losses[*q.count] = 0;
  q.kept_limits[*q.count] = q.batch_limits[q.candidate];
  ++*q.count;
}

}  // namespace mergeplan::search::device
