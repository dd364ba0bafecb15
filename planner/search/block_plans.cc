#include "planner/search/block_plans.h"

#include <algorithm>
#include <utility>

#include "planner/search/kernels.h"

namespace mergeplan::search {

// Borders and what is chosen of each block.
struct BlockPlans::State {
  std::vector<int> last;
  std::vector<const Options*> options;
  std::vector<std::size_t> choice;
  double objective = 0;

  int first(int block) const { return block == 0 ? 1 : last[block - 1] + 1; }
};

BlockPlans::BlockPlans(const Model& model, const Bounds& bounds)
    : model_(model),
      bounds_(bounds),
      steps_(bounds.steps),
      blocks_(bounds.blocks),
      n_(bounds.columns.size()),
      at_(bounds.steps),
      options_(at_.size()),
      slope_(n_) {}

BlockPlans::~BlockPlans() = default;

void BlockPlans::Merge(int i, int j, const double* product, const double* child, double* out) {
  const double* omg = bounds_.tables.omg[j - 1];
  const double* g = bounds_.tables.slope[j - 1];
  const double* offset = bounds_.tables.offset.rows() == 0 ? nullptr : bounds_.tables.offset[j - 1];
  start_ = bounds_.tables.ConstantStart(model_, bounds_.columns, i, j);
  const double* start = start_.empty() ? child : start_.data();
  for (std::size_t c = 0; c < n_; ++c) {
    out[c] = omg[c] * product[c] + g[c] * start[c] + (offset == nullptr ? 0 : offset[c]);
  }
}

const BlockPlans::Options& BlockPlans::Of(int i, int j) {
  std::unique_ptr<Options>& slot = options_[at_(i, j)];
  if (slot) return *slot;
  slot = std::make_unique<Options>();
  Options& out = *slot;
  const auto leaf = [this](int t) { return bounds_.tables.leaf[t - 1]; };
  const auto times = [this](const double* u, const double* v, double* to) {
    CandidateValue(n_, CandidateRule(), u, v, to);
  };
  if (i == j) {
    out.choices.push_back({true, j});
    out.values = Rows(1, n_, 0);
    std::copy_n(leaf(j), n_, out.values[0]);
    return out;
  }
  constexpr int kBorders = 24;
  const int stride = (j - i + kBorders - 1) / kBorders;
  const bool nary = bounds_.shape == Shape::kNary;
  std::vector<int> boot, consistency;
  for (int c = i; c < j; c += stride) boot.push_back(c);
  if (boot.back() != j - 1) boot.push_back(j - 1);
  for (int c = i + 1; nary && c < j - 1; c += stride) consistency.push_back(c);
  if (j - i > 1) consistency.push_back(j - 1);
  out.values = Rows(boot.size() + consistency.size(), n_, 0);
  // Products of the steps t..j, by t - i.
  Rows rest(static_cast<std::size_t>(j - i) + 1, n_, 0);
  std::copy_n(leaf(j), n_, rest[j - i]);
  for (int t = j - 1; t >= i; --t) times(leaf(t), rest[t + 1 - i], rest[t - i]);
  std::vector<double> product(n_), head(n_);
  for (int c : boot) {
    double* value = out.values[out.choices.size()];
    out.choices.push_back({true, c});
    Merge(c, j, rest[c - i], leaf(j), value);
    for (int t = c - 1; t >= i; --t) {
      times(leaf(t), value, product.data());
      Merge(t, j, product.data(), value, value);
    }
  }
  std::copy_n(leaf(i), n_, head.data());
  auto next = consistency.begin();
  for (int c = i + 1; c < j && next != consistency.end(); ++c) {
    times(head.data(), leaf(c), product.data());
    Merge(i, c, product.data(), leaf(c), head.data());
    if (*next != c) continue;
    ++next;
    times(head.data(), rest[c + 1 - i], product.data());
    double* value = out.values[out.choices.size()];
    out.choices.push_back({false, c});
    Merge(i, j, product.data(), leaf(j), value);
  }
  return out;
}

// The choice that goes best with a product of all other blocks.
std::size_t BlockPlans::Best(const Options& options, const std::vector<double>& others,
                             double* objective) {
  const std::size_t root = bounds_.root();
  const double* a = bounds_.prefix_a[root];
  const double* b = bounds_.prefix_b[root];
  for (std::size_t c = 0; c < n_; ++c) slope_[c] = b[c] * others[c];
  std::size_t best = 0;
  for (std::size_t k = 0; k < options.choices.size(); ++k) {
    const double bound = RowBound(n_, options.values[k], a, slope_.data());
    if (k > 0 && !(bound < *objective)) continue;
    *objective = bound;
    best = k;
  }
  return best;
}

// Chooses anew in the blocks from..to, one after the other, until nothing gets better.
void BlockPlans::Choose(State& state, int from, int to) {
  constexpr int kRounds = 4;
  std::vector<double> others(n_);
  for (int round = 0; round < kRounds; ++round) {
    bool changed = false;
    for (int block = from; block <= to; ++block) {
      std::fill(others.begin(), others.end(), 1.0);
      for (int other = 0; other < blocks_; ++other) {
        if (other == block) continue;
        const double* value = state.options[other]->values[state.choice[other]];
        for (std::size_t c = 0; c < n_; ++c) others[c] *= value[c];
      }
      const std::size_t best = Best(*state.options[block], others, &state.objective);
      changed = changed || best != state.choice[block];
      state.choice[block] = best;
    }
    if (!changed) break;
  }
}

// Moves the border after a block; false, and nothing done, where that does not help.
bool BlockPlans::Move(State& state, int block, int by) {
  const int to = state.last[block] + by;
  if (to < state.first(block) || to >= state.last[block + 1]) return false;
  State moved = state;
  moved.last[block] = to;
  for (int k : {block, block + 1}) {
    const Choice was = state.options[k]->choices[state.choice[k]];
    moved.options[k] = &Of(moved.first(k), moved.last[k]);
    // The nearest of the same kind.
    const std::vector<Choice>& choices = moved.options[k]->choices;
    std::size_t nearest = 0;
    for (std::size_t e = 1; e < choices.size(); ++e) {
      const auto far = [&](const Choice& choice) {
        return std::abs(choice.border - was.border) + (choice.boot == was.boot ? 0 : 2 * steps_);
      };
      if (far(choices[e]) < far(choices[nearest])) nearest = e;
    }
    moved.choice[k] = nearest;
  }
  Choose(moved, block, block + 1);
  if (!(moved.objective < state.objective)) return false;
  state = std::move(moved);
  return true;
}

std::optional<Plan> BlockPlans::From(std::vector<int> last, const std::function<bool()>& stop) {
  constexpr int kRounds = 8;
  State state;
  state.last = std::move(last);
  const auto stopped = [&stop] { return stop && stop(); };
  for (int block = 0; block < blocks_; ++block) {
    if (stopped()) return std::nullopt;
    state.options.push_back(&Of(state.first(block), state.last[block]));
    state.choice.push_back(0);
  }
  Choose(state, 0, blocks_ - 1);
  for (int round = 0; round < kRounds; ++round) {
    bool moved = false;
    for (int block = 0; block + 1 < blocks_; ++block) {
      for (int by = std::max(1, steps_ / (4 * blocks_)); by >= 1; by /= 2) {
        for (int sign : {1, -1}) {
          while (!stopped() && Move(state, block, sign * by)) moved = true;
        }
      }
    }
    if (!moved) break;
    Choose(state, 0, blocks_ - 1);
  }
  PlanBuilder builder(steps_);
  std::vector<Range> blocks;
  blocks.reserve(static_cast<std::size_t>(blocks_));
  for (int block = 0; block < blocks_; ++block) {
    blocks.push_back(Build(builder, state.first(block), state.last[block],
                           state.options[block]->choices[state.choice[block]]));
  }
  absl::StatusOr<Plan> plan = builder.Finish(blocks);
  if (!plan.ok()) return std::nullopt;
  return *std::move(plan);
}

Range BlockPlans::Build(PlanBuilder& builder, int i, int j, const Choice& choice) const {
  if (i == j) return PlanBuilder::Step(j);
  const int c = choice.border;
  std::vector<Range> children;
  if (choice.boot) {
    for (int t = c; t <= j; ++t) children.push_back(PlanBuilder::Step(t));
    Range top = builder.Merge(std::move(children));
    for (int t = c - 1; t >= i; --t) top = builder.Merge({PlanBuilder::Step(t), top});
    return top;
  }
  Range head = PlanBuilder::Step(i);
  for (int t = i + 1; t <= c; ++t) head = builder.Merge({head, PlanBuilder::Step(t)});
  children.push_back(head);
  for (int t = c + 1; t <= j; ++t) children.push_back(PlanBuilder::Step(t));
  return builder.Merge(std::move(children));
}

}  // namespace mergeplan::search
