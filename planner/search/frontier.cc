#include "planner/search/frontier.h"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

#include "planner/search/cuda/offload.h"
#include "planner/search/parallel.h"

namespace mergeplan::search {

Pass::Pass(const Model& model, const Bounds& bounds, PassOptions options)
    : model_(model),
      bounds_(bounds),
      columns_(bounds.columns),
      tables_(bounds.tables),
      shape_(bounds.shape),
      blocks_(bounds.blocks),
      options_(std::move(options)),
      at_(model.steps()),
      nodes_(at_.size()),
      products_(shape_ == Shape::kNary ? at_.size() : 0),
      prefixes_(static_cast<std::size_t>(blocks_) * model.steps()) {
  if (options_.offload != nullptr) options_.offload->NewPass();
}

bool Pass::Stopped() {
  if (stopped_.load(std::memory_order_relaxed)) return true;
  if (bytes_.load(std::memory_order_relaxed) > options_.memory_limit) {
    out_of_memory_ = true;
    stopped_ = true;
  } else if (candidates_.load(std::memory_order_relaxed) > options_.max_candidates ||
             (options_.stop && options_.stop())) {
    stopped_ = true;
  }
  return stopped_.load(std::memory_order_relaxed);
}

bool Pass::Allowed(const Counts& counts, int followed_by) const {
  const int most = std::numeric_limits<int>::max();
  return counts.merges + followed_by <= (options_.max_merges > 0 ? options_.max_merges : most) &&
         counts.rounds + followed_by <= (options_.max_rounds > 0 ? options_.max_rounds : most);
}

const Frontier& Pass::LeftOf(int i, int m) const {
  return shape_ == Shape::kNary ? products_[at_(i, m)] : nodes_[at_(i, m)];
}

void Pass::Pairs(const Place& place, const double* a, const double* b,
                 std::vector<Candidate>& out) {
  const std::size_t n = columns_.size();
  const int i = place.i, j = place.j;
  const bool merge = place.merge;
  const std::vector<double> start = merge ? tables_.ConstantStart(model_, columns_, i, j) : none_;
  constexpr std::int64_t kPerCheck = 1024;
  std::int64_t looked = 0;
  const double limit = Limit(place);
  const bool counted = limited();
  // A product is inside a merge; so is a node that is not a block.
  const bool may_be_block =
      place.merge && (blocks_ > 1 || (place.i == 1 && place.j == model_.steps()));
  const int followed_by = place.prefix || may_be_block ? 0 : 1;
  const auto counts_of = [&](int m, int l, int r) -> Counts {
    if (!counted) return {};
    const Counts left = LeftOf(place, m).counts[l], right = nodes_[at_(m + 1, j)].counts[r];
    return {left.merges + right.merges + (merge ? 1 : 0),
            std::max(left.rounds, right.rounds) + (merge ? 1 : 0)};
  };
  const auto add = [&](int m, int l, int r, double bound) {
    if (!(bound < limit)) return;
    const Counts counts = counts_of(m, l, r);
    if (counted && !Allowed(counts, followed_by)) return;
    out.push_back({bound, {Origin::kPair, m, l, r}, counts});
  };
  const auto look = [&](const CandidateRule& rule, int m, int l) {
    const double* u = LeftOf(place, m).row(l);
    const Frontier& right = nodes_[at_(m + 1, j)];
    for (int r = 0; r < right.size(); ++r) {
      if (counted && !Allowed(counts_of(m, l, r), followed_by)) continue;
      const double bound = CandidateBound(n, rule, u, right.row(r), a, b, limit);
      if (bound < limit) add(m, l, r, bound);
    }
  };
  // What may go to a device is put off until all of it is known.
  const bool put_off = PairsWorthDevice(place);
  std::vector<std::pair<int, int>> runs;  // middle, entry of the left part
  // In the value form one rule goes for all splits.
  CandidateRule rule = RuleFor(model_, tables_, i, i, j, merge, start);
  for (int m = i; m < j; ++m) {
    const Frontier& left = LeftOf(place, m);
    const Frontier& right = nodes_[at_(m + 1, j)];
    if (left.size() == 0 || right.size() == 0) continue;
    if (model_.carries_x0()) rule = RuleFor(model_, tables_, i, m, j, merge, start);
    // What the kept parts reach at best, column by column: a pair of frontiers, or a left part,
    // that fails even with that fails with all.
    const auto bound_of = [&](const double* u, const double* v) {
      return CandidateBound(n, rule, u, v, a, b, limit);
    };
    const bool many = left.size() > 1 || right.size() > 1;
    if (many && bound_of(left.best_row(), right.best_row()) >= limit) {
      ++looked;
      continue;
    }
    for (int l = 0; l < left.size(); ++l) {
      if (right.size() > 1 && left.size() > 1 && bound_of(left.row(l), right.best_row()) >= limit) {
        ++looked;
        continue;
      }
      looked += right.size();
      if (put_off) {
        runs.emplace_back(m, l);
      } else {
        look(rule, m, l);
      }
    }
    if (looked < kPerCheck) continue;
    candidates_ += std::exchange(looked, 0);
    if (Stopped()) return;
  }
  candidates_ += looked;
  if (runs.empty() || PairsOnDevice(place, a, b, runs, add)) return;
  for (const auto& [m, l] : runs) {
    if (Stopped()) return;
    look(RuleFor(model_, tables_, i, m, j, merge, start), m, l);
  }
}

void Pass::Select(bool root, const Place& place, const double* a, const double* b,
                  std::vector<Candidate>& candidates, Frontier& frontier,
                  const std::function<void(const Origin&, double*)>& value) {
  const std::size_t n = columns_.size();
  frontier.columns = n;
  // At the root the bound is the objective itself, so the first ones are enough.
  constexpr int kRootWidth = 64;
  const int width = std::min(root ? kRootWidth : std::numeric_limits<int>::max(),
                             options_.width.value_or(std::numeric_limits<int>::max()));
  // Best bound first: what comes later can hardly cover what came before. The origin breaks ties,
  // so that the result does not depend on how the candidates were found.
  const auto order = [](const Candidate& x, const Candidate& y) {
    return std::tie(x.bound, x.origin.kind, x.origin.middle, x.origin.left, x.origin.right) <
           std::tie(y.bound, y.origin.kind, y.origin.middle, y.origin.left, y.origin.right);
  };
  // A beam needs only the first few of them in order.
  const auto worse = [&order](const Candidate& x, const Candidate& y) { return order(y, x); };
  auto rest = candidates.end();
  if (options_.width) {
    std::make_heap(candidates.begin(), candidates.end(), worse);
  } else {
    std::sort(candidates.begin(), candidates.end(), order);
  }
  std::vector<double> x(n), squares(n);
  std::vector<double> kept_squares;  // of the entries, where slack is allowed
  const double* sign = columns_.sign.data();
  const bool counted = limited();
  int since_check = 0;
  const bool trace = options_.trace && !options_.width;
  if (trace && root) {  // of whole plans all are needed, each with its own bound
    for (const Candidate& candidate : candidates) {
      frontier.records.push_back({candidate.origin, 0});
      frontier.reach.push_back(candidate.bound);
    }
  }
  const auto record = [&](const Candidate& candidate, int kept) {
    if (!trace || root) return;
    frontier.records.push_back({candidate.origin, kept});
    bytes_ += sizeof(Record);
  };
  bool may_offload = options_.offload != nullptr && !root && !options_.width;
  for (std::size_t next = 0; next < candidates.size() && frontier.size() < width; ++next) {
    if (may_offload &&
        options_.offload->WorthFilter(candidates.size() - next, frontier.size(), n)) {
      if (SelectOnDevice(place, a, b, candidates, next, kept_squares, frontier)) break;
      may_offload = false;
    }
    if (options_.width) {
      std::pop_heap(candidates.begin(), rest, worse);
      --rest;
    }
    const Candidate& candidate = options_.width ? *rest : candidates[next];
    candidates_ += frontier.size() / 16;
    if (++since_check % 64 == 0 && Stopped()) return;
    value(candidate.origin, x.data());
    if (options_.slack > 0) {
      RowSquares(n, x.data(), a, b, squares.data());
      int best = -1;
      double least = std::numeric_limits<double>::infinity();
      for (int k = 0; k < frontier.size() && least > 0; ++k) {
        if (counted && !frontier.counts[k].NoMoreThan(candidate.counts)) continue;
        const double left = options_.slack - frontier.losses[k];
        const double loss =
            SquaresLoss(n, &kept_squares[k * n], squares.data(), std::min(least, left));
        if (loss < least && loss <= left) {
          least = loss;
          best = k;
        }
      }
      if (best >= 0) {
        Absorb(n, frontier.row(best), x.data(), sign);
        Lessen(n, &kept_squares[best * n], squares.data());
        frontier.losses[best] += least;
        record(candidate, best);
        continue;
      }
      kept_squares.insert(kept_squares.end(), squares.begin(), squares.end());
    } else {
      int covering = -1;
      for (int k = 0; k < frontier.size() && covering < 0; ++k) {
        if ((!counted || frontier.counts[k].NoMoreThan(candidate.counts)) &&
            Dominates(n, frontier.row(k), x.data(), sign)) {
          covering = k;
        }
      }
      if (covering >= 0) {
        record(candidate, covering);
        continue;
      }
    }
    record(candidate, frontier.size());
    frontier.values.insert(frontier.values.end(), x.begin(), x.end());
    frontier.origins.push_back(candidate.origin);
    frontier.losses.push_back(0);
    if (counted) frontier.counts.push_back(candidate.counts);
    bytes_ += n * sizeof(double);
  }
  SetBest(frontier);
  int largest = largest_;
  while (frontier.size() > largest && !largest_.compare_exchange_weak(largest, frontier.size())) {
  }
}

void Pass::SetBest(Frontier& frontier) const {
  if (frontier.size() < 2) return;
  const std::size_t n = columns_.size();
  frontier.best.assign(frontier.row(0), frontier.row(0) + n);
  for (int k = 1; k < frontier.size(); ++k)
    Absorb(n, frontier.best.data(), frontier.row(k), columns_.sign.data());
}

bool Pass::OnGrid(int i, int j) const {
  const int grid = options_.grid;
  return j - i < grid || (i - 1) % grid == 0 || j % grid == 0 || j == model_.steps();
}

void Pass::Interval(int i, int j) {
  const std::size_t n = columns_.size();
  if (!bounds_.InBlock(i, j)) return;
  const std::size_t ij = at_(i, j);
  const int T = model_.steps();
  const std::vector<double> start = tables_.ConstantStart(model_, columns_, i, j);
  std::vector<Candidate> candidates;
  const double limit = Limit({i, j});

  Frontier& nodes = nodes_[ij];
  const double* a = bounds_.s_a[ij];
  const double* b = bounds_.s_b[ij];
  if (i == j) {
    nodes.columns = n;
    nodes.values.assign(tables_.leaf[j - 1], tables_.leaf[j - 1] + n);
    nodes.origins.push_back({Origin::kStep, 0, 0, 0});
    nodes.losses.push_back(0);
    if (limited()) nodes.counts.emplace_back();
  } else {
    const auto all_steps = [&] { return RuleFor(model_, tables_, i, j - 1, j, true, start); };
    // Where there is one node per interval it is a part of longer ones, whatever its bound as a
    // block.
    if (shape_ == Shape::kVanilla) candidates.push_back({0, {Origin::kAllSteps, 0, 0, 0}, {}});
    if (shape_ == Shape::kBoot) candidates.push_back({0, {Origin::kPair, i, 0, 0}, {}});
    if (shape_ == Shape::kConsistency) candidates.push_back({0, {Origin::kPair, j - 1, 0, 0}, {}});
    if (shape_ == Shape::kBinary) {
      const double bound = CandidateBound(n, all_steps(), bounds_.all_steps[at_(i, j - 1)],
                                          tables_.leaf[j - 1], a, b, limit);
      if (bound < limit) candidates.push_back({bound, {Origin::kAllSteps, 0, 0, 0}, {1, 1}});
    }
    if (!OneNodePerInterval(shape_)) Pairs({i, j, true}, a, b, candidates);
    const auto value = [&](const Origin& origin, double* x) {
      if (origin.kind == Origin::kAllSteps) {
        CandidateValue(n, all_steps(), bounds_.all_steps[at_(i, j - 1)], tables_.leaf[j - 1], x);
        return;
      }
      const CandidateRule rule = RuleFor(model_, tables_, i, origin.middle, j, true, start);
      CandidateValue(n, rule, LeftOf(i, origin.middle).row(origin.left),
                     nodes_[at_(origin.middle + 1, j)].row(origin.right), x);
    };
    Select(i == 1 && j == T, {i, j, true}, a, b, candidates, nodes, value);
  }

  if (shape_ != Shape::kNary || j == T) return;  // a product is always followed by a node
  candidates.clear();
  a = bounds_.q_a[ij];
  b = bounds_.q_b[ij];
  for (int k = 0; k < nodes.size(); ++k) {
    const double bound = RowBound(n, nodes.row(k), a, b);
    const Counts counts = limited() ? nodes.counts[k] : Counts{};
    if (bound < limit && Allowed(counts, 1))
      candidates.push_back({bound, {Origin::kNode, 0, k, 0}, counts});
  }
  if (i < j) Pairs({i, j}, a, b, candidates);
  const auto value = [&](const Origin& origin, double* x) {
    if (origin.kind == Origin::kNode) {
      std::copy(nodes.row(origin.left), nodes.row(origin.left) + n, x);
      return;
    }
    const CandidateRule rule = RuleFor(model_, tables_, i, origin.middle, j, false, none_);
    CandidateValue(n, rule, LeftOf(i, origin.middle).row(origin.left),
                   nodes_[at_(origin.middle + 1, j)].row(origin.right), x);
  };
  Select(false, {i, j}, a, b, candidates, products_[ij], value);
}

void Pass::Prefixes() {
  const std::size_t n = columns_.size();
  const int T = model_.steps();
  for (int count = 1; count <= blocks_ && !Stopped(); ++count) {
    const int first = count == blocks_ ? T : count;
    const int last = count == blocks_ ? T : T - (blocks_ - count);
    ParallelFor(options_.threads, last - first + 1, [&](int k) {
      const int j = first + k;
      const std::size_t layer = bounds_.Layer(count, j);
      const double* a = bounds_.prefix_a[layer];
      const double* b = bounds_.prefix_b[layer];
      std::vector<Candidate> candidates;
      const Frontier& nodes = nodes_[at_(1, j)];
      if (count == 1) {
        for (int e = 0; e < nodes.size(); ++e) {
          const double bound = RowBound(n, nodes.row(e), a, b);
          if (bound < Limit({1, j, false, true, 0})) {
            candidates.push_back(
                {bound, {Origin::kNode, 0, e, 0}, limited() ? nodes.counts[e] : Counts{}});
          }
        }
      } else {
        Pairs({1, j, false, true, count - 1}, a, b, candidates);
      }
      const auto value = [&](const Origin& origin, double* x) {
        if (origin.kind == Origin::kNode) {
          std::copy(nodes.row(origin.left), nodes.row(origin.left) + n, x);
          return;
        }
        const CandidateRule rule = RuleFor(model_, tables_, 1, origin.middle, j, false, none_);
        CandidateValue(n, rule, prefixes_[bounds_.Layer(count - 1, origin.middle)].row(origin.left),
                       nodes_[at_(origin.middle + 1, j)].row(origin.right), x);
      };
      Select(count == blocks_, {1, j, false, true, count - 1}, a, b, candidates, prefixes_[layer],
             value);
    });
  }
}

Pass::Outcome Pass::Run() {
  const int T = model_.steps();
  // Threads where the intervals of the last length were worth them.
  constexpr std::int64_t kWorthThreads = 1 << 20;
  std::int64_t before = 0, work = 0;
  for (int length = 1; length <= T && !Stopped(); ++length) {
    ParallelFor(work < kWorthThreads ? 1 : options_.threads, T - length + 1, [&](int k) {
      if (!Stopped() && OnGrid(k + 1, k + length)) Interval(k + 1, k + length);
    });
    work = (candidates_ - before) * static_cast<std::int64_t>(columns_.size());
    before = candidates_;
  }
  if (!Stopped()) Prefixes();
  Stopped();  // the effort of the last interval counts too: whether a pass is done must not depend
              // on timing
  if (out_of_memory_) return Outcome::kOutOfMemory;
  return stopped_ ? Outcome::kStopped : Outcome::kDone;
}

double Pass::LowerBound() const {
  const std::size_t root = bounds_.root();
  const Frontier& frontier = prefixes_[root];
  double bound = options_.threshold;
  for (int k = 0; k < frontier.size(); ++k) {
    bound = std::min(bound, RowBound(columns_.size(), frontier.row(k), bounds_.prefix_a[root],
                                     bounds_.prefix_b[root]));
  }
  return bound;
}

std::int64_t Pass::kept() const {
  std::int64_t sum = 0;
  for (const auto* group : {&nodes_, &products_, &prefixes_}) {
    for (const Frontier& frontier : *group) sum += frontier.size();
  }
  return sum;
}

void Pass::BuildProduct(PlanBuilder& builder, int i, int j, int entry,
                        std::vector<Range>& out) const {
  if (shape_ != Shape::kNary) {
    out.push_back(Build(builder, i, j, entry));
    return;
  }
  const Origin& origin = products_[at_(i, j)].origins[entry];
  if (origin.kind == Origin::kNode) {
    out.push_back(Build(builder, i, j, origin.left));
    return;
  }
  BuildProduct(builder, i, origin.middle, origin.left, out);
  out.push_back(Build(builder, origin.middle + 1, j, origin.right));
}

Range Pass::Build(PlanBuilder& builder, int i, int j, int entry) const {
  const Origin& origin = nodes_[at_(i, j)].origins[entry];
  if (origin.kind == Origin::kStep) return PlanBuilder::Step(j);
  std::vector<Range> children;
  if (origin.kind == Origin::kAllSteps) {
    for (int t = i; t <= j; ++t) children.push_back(PlanBuilder::Step(t));
  } else {
    BuildProduct(builder, i, origin.middle, origin.left, children);
    children.push_back(Build(builder, origin.middle + 1, j, origin.right));
  }
  return builder.Merge(std::move(children));
}

std::vector<Plan> Pass::BestPlans(int count) const {
  const int T = model_.steps();
  const std::size_t root = bounds_.root();
  const Frontier& frontier = prefixes_[root];
  std::vector<std::pair<double, int>> order;
  order.reserve(frontier.origins.size());
  for (int k = 0; k < frontier.size(); ++k) {
    order.emplace_back(
        RowBound(columns_.size(), frontier.row(k), bounds_.prefix_a[root], bounds_.prefix_b[root]),
        k);
  }
  std::sort(order.begin(), order.end());
  std::vector<Plan> plans;
  for (const auto& [bound, entry] : order) {
    if (static_cast<int>(plans.size()) >= count) break;
    PlanBuilder builder(T);
    std::vector<Range> blocks;
    int layer = blocks_;
    int last = T;
    int at = entry;
    while (true) {
      const Origin& origin = prefixes_[bounds_.Layer(layer, last)].origins[at];
      if (origin.kind == Origin::kNode) {
        blocks.push_back(Build(builder, 1, last, origin.left));
        break;
      }
      blocks.push_back(Build(builder, origin.middle + 1, last, origin.right));
      at = origin.left;
      last = origin.middle;
      --layer;
    }
    std::reverse(blocks.begin(), blocks.end());
    absl::StatusOr<Plan> plan = builder.Finish(blocks);
    assert(plan.ok());
    if (plan.ok()) plans.push_back(*std::move(plan));
  }
  return plans;
}

}  // namespace mergeplan::search
