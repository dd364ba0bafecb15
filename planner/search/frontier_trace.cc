// What a finished pass leaves: from the whole plans down to the parts they are made of.
#include <algorithm>
#include <limits>

#include "planner/search/frontier.h"

namespace mergeplan::search {

bool Pass::Whole(const Frontier& frontier) const {
  return &frontier == &nodes_[at_(1, model_.steps())] || &frontier == &prefixes_[bounds_.root()];
}

void Pass::Hand(Frontier& from, int i, int j, const Place& place) {
  const bool whole = Whole(from);
  for (std::size_t r = 0; r < from.records.size(); ++r) {
    const Record& record = from.records[r];
    const double reach = whole ? from.reach[r] : from.reach[record.kept];
    if (!(reach < options_.threshold)) continue;
    const auto hand = [reach](Frontier& to, int entry) {
      to.reach[entry] = std::min(to.reach[entry], reach);
    };
    const Origin& origin = record.origin;
    if (origin.kind == Origin::kNode) hand(nodes_[at_(i, j)], origin.left);
    if (origin.kind != Origin::kPair) continue;
    const int m = origin.middle;
    from.splits.push_back(m);
    hand(place.prefix             ? prefixes_[bounds_.Layer(place.layer, m)]
         : shape_ == Shape::kNary ? products_[at_(i, m)]
                                  : nodes_[at_(i, m)],
         origin.left);
    hand(nodes_[at_(m + 1, j)], origin.right);
  }
  std::sort(from.splits.begin(), from.splits.end());
  from.splits.erase(std::unique(from.splits.begin(), from.splits.end()), from.splits.end());
}

void Pass::TraceBack() {
  const int T = model_.steps();
  for (auto* group : {&nodes_, &products_, &prefixes_}) {
    for (Frontier& frontier : *group) {
      frontier.splits.clear();
      if (Whole(frontier)) continue;
      frontier.reach.assign(frontier.origins.size(), std::numeric_limits<double>::infinity());
    }
  }
  if (blocks_ > 1) {
    for (int count = blocks_; count >= 1; --count) {
      for (int j = count; j <= T; ++j) {
        Frontier& prefix = prefixes_[bounds_.Layer(count, j)];
        Hand(prefix, 1, j, {1, j, false, true, count - 1});
      }
    }
  }
  for (int length = T; length > 1; --length) {
    for (int i = 1; i + length - 1 <= T; ++i) {
      const int j = i + length - 1;
      if (shape_ == Shape::kNary) Hand(products_[at_(i, j)], i, j, {i, j});
      Hand(nodes_[at_(i, j)], i, j, {i, j, true});
    }
  }
  if (shape_ == Shape::kNary) {  // products of a single step
    for (int i = 1; i <= T; ++i) Hand(products_[at_(i, i)], i, i, {i, i});
  }
}

Survivors Pass::Left() {
  if (!options_.trace || OneNodePerInterval(shape_)) {
    const auto best = [](const Frontier& frontier) {
      return frontier.size() == 0 ? nullptr : frontier.best_row();
    };
    return {[this, best](int i, int j) { return best(nodes_[at_(i, j)]); },
            [this, best](int i, int j) { return best(products_[at_(i, j)]); },
            [this, best](int n, int j) { return best(prefixes_[bounds_.Layer(n, j)]); },
            nullptr,
            nullptr,
            nullptr,
            nullptr};
  }
  TraceBack();
  const std::size_t n = columns_.size();
  const auto keep = [&](Frontier& frontier, int k) {
    if (frontier.best.empty()) {
      frontier.best.assign(frontier.row(k), frontier.row(k) + n);
    } else {
      Absorb(n, frontier.best.data(), frontier.row(k), columns_.sign.data());
    }
  };
  for (auto* group : {&nodes_, &products_, &prefixes_}) {
    for (Frontier& frontier : *group) {
      frontier.best.clear();
      for (int k = 0; k < frontier.size(); ++k) {
        if (Whole(frontier) || frontier.reach[k] < options_.threshold) keep(frontier, k);
      }
    }
  }
  const auto best = [](const Frontier& frontier) {
    return frontier.best.empty() ? nullptr : frontier.best.data();
  };
  return {
      [this, best](int i, int j) { return best(nodes_[at_(i, j)]); },
      [this, best](int i, int j) { return best(products_[at_(i, j)]); },
      [this, best](int n, int j) { return best(prefixes_[bounds_.Layer(n, j)]); },
      [this](int i, int j) { return absl::MakeConstSpan(nodes_[at_(i, j)].splits); },
      [this](int i, int j) { return absl::MakeConstSpan(products_[at_(i, j)].splits); },
      [this](int n, int j) { return absl::MakeConstSpan(prefixes_[bounds_.Layer(n, j)].splits); },
      [this](int i, int j, const std::function<void(const double*)>& look) {
        const Frontier& nodes = nodes_[at_(i, j)];
        for (int k = 0; k < nodes.size(); ++k) {
          if (Whole(nodes) || nodes.reach[k] < options_.threshold) look(nodes.row(k));
        }
      }};
}

}  // namespace mergeplan::search
