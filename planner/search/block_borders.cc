#include "planner/search/block_borders.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <tuple>

#include "planner/search/kernels.h"
#include "planner/search/parallel.h"

namespace mergeplan::search {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Where the loop over a layer is worth threads.
constexpr double kWorthThreads = 2e5;

}  // namespace

BlockBorders::BlockBorders(int steps, int blocks, const Columns& columns, const double* root_a,
                           const double* root_b, const Rows& best_node, int threads)
    : steps_(steps),
      blocks_(blocks),
      at_(steps),
      columns_(columns),
      n_(columns.size()),
      root_a_(root_a),
      root_b_(root_b),
      node_(best_node),
      threads_(threads),
      left_(blocks, std::vector<char>(at_.size(), 0)),
      heads_(static_cast<std::size_t>(blocks) * steps, n_, 0),
      tails_(static_cast<std::size_t>(blocks) * steps, n_, 0),
      has_head_(static_cast<std::size_t>(blocks) * steps, 0),
      has_tail_(static_cast<std::size_t>(blocks) * steps, 0),
      last_(steps + 2, 0),
      first_(steps + 2, 0) {
  for (int n = 1; n <= blocks; ++n) {
    for (int i = n; i <= LastEnd(n) && (n > 1 || i == 1); ++i) {
      for (int j = n == blocks ? steps : i; j <= LastEnd(n); ++j) {
        left_[n - 1][at_(i, j)] = 1;
        ++count_;
      }
    }
  }
  Limits();
}

double BlockBorders::Count(int steps, int blocks) {
  const double free = steps - blocks + 1;
  return 2 * free + (blocks - 2.0) * free * (free + 1) / 2;
}

const double* BlockBorders::head(int n, int j) const {
  return has_head_[Layer(n, j)] != 0 ? heads_[Layer(n, j)] : nullptr;
}

const double* BlockBorders::tail(int n, int i) const {
  return has_tail_[Layer(n, i)] != 0 ? tails_[Layer(n, i)] : nullptr;
}

// Makes the heads anew of what is left, and drops what they leave no hope for.
bool BlockBorders::Forward(double threshold, const std::function<bool()>& stop) {
  const CandidateRule product;
  std::atomic<std::int64_t> dropped{0};
  for (int n = 1; n <= blocks_; ++n) {
    if (stop && stop()) return false;
    const double work = static_cast<double>(count_) / blocks_ * static_cast<double>(n_);
    const int first = n == blocks_ ? steps_ : n;
    ParallelFor(work < kWorthThreads ? 1 : threads_, LastEnd(n) - first + 1, [&](int k) {
      const int j = first + k;
      const std::size_t layer = Layer(n, j);
      const double* after = n < blocks_ ? tail(blocks_ - n, j + 1) : nullptr;
      std::vector<double> x(n_);
      has_head_[layer] = 0;
      for (int i = n; i <= j; ++i) {
        char& left = left_[n - 1][at_(i, j)];
        if (left == 0) continue;
        const double* before = n > 1 ? head(n - 1, i - 1) : nullptr;
        const double* value = node_[at_(i, j)];
        double bound = kInf;
        if ((n == 1 || before != nullptr) && (n == blocks_ || after != nullptr)) {
          if (n > 1) {
            CandidateValue(n_, product, before, value, x.data());
            value = x.data();
          }
          bound = n == blocks_
                      ? RowBound(n_, value, root_a_, root_b_)
                      : CandidateBound(n_, product, value, after, root_a_, root_b_, threshold);
        }
        if (!(bound < threshold)) {
          left = 0;
          ++dropped;
          continue;
        }
        if (has_head_[layer] != 0) {
          Absorb(n_, heads_[layer], value, columns_.sign.data());
        } else {
          std::copy_n(value, n_, heads_[layer]);
          has_head_[layer] = 1;
        }
      }
    });
  }
  count_ -= dropped;
  return true;
}

// The same of the tails. Where there are no heads yet (threshold infinite), nothing is dropped.
bool BlockBorders::Backward(double threshold, const std::function<bool()>& stop) {
  const CandidateRule product;
  const bool drop = threshold < kInf;
  std::atomic<std::int64_t> dropped{0};
  for (int n = blocks_; n >= 1; --n) {
    if (stop && stop()) return false;
    const double work = static_cast<double>(count_) / blocks_ * static_cast<double>(n_);
    const int end = n == 1 ? 1 : LastEnd(n);
    ParallelFor(work < kWorthThreads ? 1 : threads_, end - n + 1, [&](int k) {
      const int i = n + k;
      const std::size_t layer = Layer(blocks_ - n + 1, i);
      const double* before = n > 1 ? head(n - 1, i - 1) : nullptr;
      std::vector<double> x(n_);
      has_tail_[layer] = 0;
      for (int j = i; j <= LastEnd(n); ++j) {
        char& left = left_[n - 1][at_(i, j)];
        if (left == 0) continue;
        const double* after = n < blocks_ ? tail(blocks_ - n, j + 1) : nullptr;
        const double* value = node_[at_(i, j)];
        double bound = kInf;
        if (n == blocks_ || after != nullptr) {
          if (n < blocks_) {
            CandidateValue(n_, product, value, after, x.data());
            value = x.data();
          }
          if (!drop) {
            bound = 0;
          } else if (n == 1) {
            bound = RowBound(n_, value, root_a_, root_b_);
          } else if (before != nullptr) {
            bound = CandidateBound(n_, product, before, value, root_a_, root_b_, threshold);
          }
        }
        if (!(bound < threshold)) {
          left = 0;
          ++dropped;
          continue;
        }
        if (has_tail_[layer] != 0) {
          Absorb(n_, tails_[layer], value, columns_.sign.data());
        } else {
          std::copy_n(value, n_, tails_[layer]);
          has_tail_[layer] = 1;
        }
      }
    });
  }
  count_ -= dropped;
  return true;
}

void BlockBorders::Limits() {
  std::fill(last_.begin(), last_.end(), 0);
  std::fill(first_.begin(), first_.end(), steps_ + 1);
  for (int n = 1; n <= blocks_; ++n) {
    for (int i = n; i <= LastEnd(n); ++i) {
      for (int j = LastEnd(n); j > std::max(last_[i], i - 1); --j) {
        if (left(n, i, j)) last_[i] = j;
      }
    }
  }
  for (int i = 1; i <= steps_; ++i) {
    last_[i] = std::max(last_[i], last_[i - 1]);
    if (last_[i] < i) last_[i] = 0;
  }
  for (int i = steps_; i >= 1; --i) {
    for (int j = i; j <= last_[i]; ++j) first_[j] = i;
  }
}

bool BlockBorders::Sweep(double threshold, const std::function<bool()>& stop) {
  constexpr int kRounds = 8;
  if (has_tail_[Layer(blocks_, 1)] == 0 && !Backward(kInf, stop)) return false;
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t before = count_;
    if (!Forward(threshold, stop) || !Backward(threshold, stop)) return false;
    if (count_ > before - before / 10) break;
  }
  Limits();
  return true;
}

// The prefixes of n blocks over 1..j, of those of n - 1 blocks.
std::int64_t BlockBorders::Extend(int n, int j, double threshold, double slack) {
  const CandidateRule product;
  const double* after = n < blocks_ ? tail(blocks_ - n, j + 1) : nullptr;
  if (n < blocks_ && after == nullptr) return 0;
  std::vector<double> b(root_b_, root_b_ + n_);  // of a prefix with the best that can follow it
  for (std::size_t c = 0; c < n_ && n < blocks_; ++c) b[c] *= after[c];
  std::vector<Candidate> candidates;
  std::int64_t looked = 0;
  for (int i = n; i <= j; ++i) {
    if (!left(n, i, j)) continue;
    const double* value = node_[at_(i, j)];
    if (n == 1) {
      const double bound = RowBound(n_, value, root_a_, b.data());
      if (bound < threshold) candidates.push_back({bound, {i, 0}});
      continue;
    }
    const Frontier& before = frontiers_[Layer(n - 1, i - 1)];
    looked += before.size();
    for (int k = 0; k < before.size(); ++k) {
      const double bound =
          CandidateBound(n_, product, &before.values[k * n_], value, root_a_, b.data(), threshold);
      if (bound < threshold) candidates.push_back({bound, {i, k}});
    }
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& x, const Candidate& y) {
    return std::tie(x.bound, x.origin.first, x.origin.left) <
           std::tie(y.bound, y.origin.first, y.origin.left);
  });
  Select(n, candidates, b.data(), slack, j, looked);
  return looked;
}

void BlockBorders::Select(int n, std::vector<Candidate>& candidates, const double* b, double slack,
                          int j, std::int64_t& looked) {
  const CandidateRule product;
  Frontier& frontier = frontiers_[Layer(n, j)];
  std::vector<double> x(n_), squares(n_);
  for (const Candidate& candidate : candidates) {
    int best = -1;
    if (n < blocks_) {
      const auto [i, k] = candidate.origin;
      const double* value = node_[at_(i, j)];
      if (n > 1) {
        CandidateValue(n_, product, &frontiers_[Layer(n - 1, i - 1)].values[k * n_], value,
                       x.data());
        value = x.data();
      }
      RowSquares(n_, value, root_a_, b, squares.data());
      double least = kInf;
      looked += frontier.size() / 16;
      for (int e = 0; e < frontier.size() && least > 0; ++e) {
        const double room = slack - frontier.losses[e];
        const double loss =
            SquaresLoss(n_, &frontier.squares[e * n_], squares.data(), std::min(least, room));
        if (loss < least && loss <= room) {
          least = loss;
          best = e;
        }
      }
      if (best >= 0) {
        Absorb(n_, &frontier.values[best * n_], value, columns_.sign.data());
        Lessen(n_, &frontier.squares[best * n_], squares.data());
        frontier.losses[best] += least;
      } else {
        best = frontier.size();
        frontier.values.insert(frontier.values.end(), value, value + n_);
        frontier.squares.insert(frontier.squares.end(), squares.begin(), squares.end());
        frontier.losses.push_back(0);
        frontier.origins.push_back(candidate.origin);
      }
    }
    frontier.records.push_back({candidate.origin, best, candidate.bound});
  }
}

bool BlockBorders::Pass(double threshold, double slack, std::int64_t most,
                        const std::function<bool()>& stop) {
  frontiers_.assign(static_cast<std::size_t>(blocks_) * steps_, {});
  std::atomic<std::int64_t> looked{0};
  for (int n = 1; n <= blocks_; ++n) {
    if (stop && stop()) return false;
    const double work = static_cast<double>(count_) / blocks_ * static_cast<double>(n_);
    const int first = n == blocks_ ? steps_ : n;
    ParallelFor(work < kWorthThreads ? 1 : threads_, LastEnd(n) - first + 1, [&](int k) {
      if (looked <= most) looked += Extend(n, first + k, threshold, slack);
    });
    if (looked > most) return false;
  }
  if (stop && stop()) return false;
  const std::vector<Record>& whole = frontiers_[Layer(blocks_, steps_)].records;
  lower_bound_ = whole.empty() ? threshold : std::min(threshold, whole.front().bound);
  TraceBack(threshold);
  if (!Backward(threshold, stop)) return false;
  Limits();
  return true;
}

// From the whole rows down to the prefixes they are made of. Heads become those of what is left.
void BlockBorders::TraceBack(double threshold) {
  for (Frontier& frontier : frontiers_) frontier.reach.assign(frontier.origins.size(), kInf);
  for (std::vector<char>& left : left_) std::fill(left.begin(), left.end(), 0);
  count_ = 0;
  for (int n = blocks_; n >= 1; --n) {
    for (int j = n == blocks_ ? steps_ : n; j <= LastEnd(n); ++j) {
      const Frontier& frontier = frontiers_[Layer(n, j)];
      for (const Record& record : frontier.records) {
        const double reach = n == blocks_ ? record.bound : frontier.reach[record.kept];
        if (!(reach < threshold)) continue;
        char& left = left_[n - 1][at_(record.origin.first, j)];
        count_ += left == 0 ? 1 : 0;
        left = 1;
        if (n == 1) continue;
        double& before =
            frontiers_[Layer(n - 1, record.origin.first - 1)].reach[record.origin.left];
        before = std::min(before, reach);
      }
      if (n == blocks_) continue;
      const std::size_t layer = Layer(n, j);
      has_head_[layer] = 0;
      for (int e = 0; e < frontier.size(); ++e) {
        if (!(frontier.reach[e] < threshold)) continue;
        if (has_head_[layer] != 0) {
          Absorb(n_, heads_[layer], &frontier.values[e * n_], columns_.sign.data());
        } else {
          std::copy_n(&frontier.values[e * n_], n_, heads_[layer]);
          has_head_[layer] = 1;
        }
      }
    }
  }
}

std::vector<std::vector<int>> BlockBorders::Promising(int count) const {
  std::vector<std::vector<int>> out;
  if (frontiers_.empty()) return out;
  for (const Record& record : frontiers_[Layer(blocks_, steps_)].records) {
    if (static_cast<int>(out.size()) >= count) break;
    std::vector<int> last(blocks_);
    Origin origin = record.origin;
    last[blocks_ - 1] = steps_;
    for (int n = blocks_ - 1; n >= 1; --n) {
      last[n - 1] = origin.first - 1;
      origin = frontiers_[Layer(n, origin.first - 1)].origins[origin.left];
    }
    if (std::find(out.begin(), out.end(), last) == out.end()) out.push_back(std::move(last));
  }
  return out;
}

}  // namespace mergeplan::search
