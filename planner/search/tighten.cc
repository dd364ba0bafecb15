// Bounds made anew from what a pass has left: few parts of many, so the work goes along the parts
// that are left, all columns of a part together, and not along whole planes.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "planner/search/bounds.h"
#include "planner/search/kernels.h"
#include "planner/search/parallel.h"
#include "planner/search/surplus.h"

namespace mergeplan::search {
namespace {

// Stands for "no context": such parts reach every threshold.
constexpr double kNothing = 1e307;

// What is left, looked up once for all columns.
struct Left {
  std::vector<const double*> node, product;  // by interval; null: none
  std::vector<const double*> prefix;         // by Layer
  // The splits of every interval, both parts being left.
  struct Splits {
    std::vector<std::size_t> first;  // those of interval ij are all[first[ij]..first[ij + 1])
    std::vector<int> all;
    std::pair<const int*, const int*> Of(std::size_t ij) const {
      return {all.data() + first[ij], all.data() + first[ij + 1]};
    }
  };
  Splits merges, products;
  // Can the n-th block begin behind step m and end at step j?
  std::function<bool(int n, int m, int j)> block;
};

// `given` may be empty: any.
Left::Splits LookUpSplits(const Left& left, const Intervals& at,
                          const std::vector<const double*>& part,
                          const std::function<absl::Span<const int>(int, int)>& given) {
  Left::Splits out;
  out.first.reserve(at.size() + 1);
  std::vector<int> any;
  for (int i = 1; i <= at.steps(); ++i) {
    for (int j = i; j <= at.steps(); ++j) {
      out.first.push_back(out.all.size());
      if (part[at(i, j)] == nullptr) continue;
      if (!given) {
        any.clear();
        for (int m = i; m < j; ++m) any.push_back(m);
      }
      for (int m : given ? given(i, j) : absl::MakeConstSpan(any)) {
        if (left.product[at(i, m)] != nullptr && left.node[at(m + 1, j)] != nullptr)
          out.all.push_back(m);
      }
    }
  }
  out.first.push_back(out.all.size());
  return out;
}

Left LookUp(const Bounds& bounds, const Intervals& at, const Survivors& survivors) {
  const int T = bounds.steps;
  Left left;
  left.node.resize(at.size());
  left.product.resize(at.size());
  for (int i = 1; i <= T; ++i) {
    for (int j = i; j <= T; ++j) {
      left.node[at(i, j)] = survivors.node(i, j);
      // Where there are no products, nodes are the cleaner parts.
      left.product[at(i, j)] =
          bounds.shape == Shape::kNary ? survivors.product(i, j) : left.node[at(i, j)];
    }
  }
  left.prefix.assign(static_cast<std::size_t>(bounds.blocks) * T, nullptr);
  for (int n = 1; n <= bounds.blocks; ++n) {
    for (int j = n; j <= T; ++j) left.prefix[bounds.Layer(n, j)] = survivors.prefix(n, j);
  }
  left.merges = LookUpSplits(left, at, left.node, survivors.merges);
  if (bounds.shape == Shape::kNary) {
    left.products = LookUpSplits(left, at, left.product, survivors.products);
  }
  left.block = [borders = survivors.borders](int n, int m, int j) {
    if (!borders || n == 1) return true;
    const absl::Span<const int> splits = borders(n, j);
    return std::binary_search(splits.begin(), splits.end(), m);
  };
  return left;
}

// The columns [begin, begin + n) of the bounds.
class Slice {
 public:
  Slice(const Model& model, const Left& left, std::size_t begin, std::size_t n, Bounds& bounds)
      : model_(model),
        left_(left),
        begin_(begin),
        n_(n),
        bounds_(bounds),
        at_(bounds.steps),
        steps_(bounds.steps),
        sign_(bounds.columns.sign.data() + begin),
        worst_node_(at_.size(), n, 0),
        worst_product_(products() ? at_.size() : 0, n, 0),
        worst_prefix_(static_cast<std::size_t>(bounds.blocks) * bounds.steps, n, 0),
        best_suffix_(static_cast<std::size_t>(bounds.blocks) * bounds.steps, n, 0),
        has_suffix_(static_cast<std::size_t>(bounds.blocks) * bounds.steps, false),
        start_(n),
        x_(n),
        y_(n) {}

  bool Run(const std::function<bool()>& stop) {
    for (int length = 1; length <= steps_; ++length) {
      if (stop && stop()) return false;
      for (int i = 1; i + length - 1 <= steps_; ++i) Worst(i, i + length - 1);
    }
    Layers();
    for (std::size_t row = 0; row < at_.size(); ++row) {
      std::fill_n(Row(bounds_.s_a, row), n_, kNothing);
      std::fill_n(Row(bounds_.s_b, row), n_, kNothing);
      if (!products()) continue;
      std::fill_n(Row(bounds_.q_a, row), n_, kNothing);
      std::fill_n(Row(bounds_.q_b, row), n_, kNothing);
    }
    for (int length = steps_; length >= 1; --length) {
      if (stop && stop()) return false;
      for (int i = 1; i + length - 1 <= steps_; ++i) Lines(i, i + length - 1);
    }
    return true;
  }

 private:
  bool products() const { return bounds_.shape == Shape::kNary; }
  bool pairs() const { return !OneNodePerInterval(bounds_.shape); }
  double* Row(Rows& rows, std::size_t row) const { return rows[row] + begin_; }
  const double* Node(int i, int j) const { return Shifted(left_.node[at_(i, j)]); }
  const double* Product(int i, int j) const { return Shifted(left_.product[at_(i, j)]); }
  const double* Prefix(int n, int j) const { return Shifted(left_.prefix[bounds_.Layer(n, j)]); }
  const double* Shifted(const double* row) const { return row == nullptr ? row : row + begin_; }

  // Of the merges over [i,j], or of products; the start is made by Start.
  CandidateRule Rule(int i, int m, int j, bool merge) const {
    CandidateRule rule = RuleFor(model_, bounds_.tables, i, m, j, merge, none_);
    rule.omg += begin_;
    rule.g += begin_;
    if (rule.offset != nullptr) rule.offset += begin_;
    if (merge && !model_.starts_from_child()) rule.start = start_.data();
    return rule;
  }
  void Start(int i, int j) {
    if (model_.starts_from_child()) return;
    for (std::size_t c = 0; c < n_; ++c)
      start_[c] = model_.ConstantStart(i, j, bounds_.columns.coordinate[begin_ + c]);
  }

  // The worst value of the parts over [i,j] made of parts that are left.
  void Worst(int i, int j) {
    const std::size_t ij = at_(i, j);
    const double* node = Node(i, j);
    if (node != nullptr) {
      double* worst = worst_node_[ij];
      std::copy_n(node, n_, worst);
      if (i < j && pairs()) {
        Start(i, j);
        const auto [from, to] = left_.merges.Of(ij);
        for (const int* m = from; m < to; ++m) {
          KeepWorse(n_, Rule(i, *m, j, true), WorstLeft(i, *m), worst_node_[at_(*m + 1, j)], sign_,
                    worst);
        }
        if (bounds_.shape == Shape::kBinary) {
          KeepWorse(n_, Rule(i, j - 1, j, true), Row(bounds_.all_steps, at_(i, j - 1)),
                    bounds_.tables.leaf[j - 1] + begin_, sign_, worst);
        }
      }
    }
    if (!products() || Product(i, j) == nullptr) return;
    double* worst = worst_product_[ij];
    std::copy_n(Product(i, j), n_, worst);
    if (node != nullptr) {
      for (std::size_t c = 0; c < n_; ++c) {
        worst[c] = sign_[c] > 0 ? std::min(worst[c], worst_node_[ij][c])
                                : std::max(worst[c], worst_node_[ij][c]);
      }
    }
    const auto [from, to] = left_.products.Of(ij);
    for (const int* m = from; m < to; ++m) {
      KeepWorse(n_, Rule(i, *m, j, false), WorstLeft(i, *m), worst_node_[at_(*m + 1, j)], sign_,
                worst);
    }
  }

  double* WorstLeft(int i, int m) {
    return products() ? worst_product_[at_(i, m)] : worst_node_[at_(i, m)];
  }

  // Worst prefixes and best suffixes of n blocks.
  void Layers() {
    const int blocks = bounds_.blocks;
    for (int n = 1; n < blocks; ++n) {
      for (int j = n; j <= steps_ - (blocks - n); ++j) {
        if (Prefix(n, j) == nullptr) continue;
        double* worst = worst_prefix_[bounds_.Layer(n, j)];
        std::copy_n(Prefix(n, j), n_, worst);
        if (n == 1 && Node(1, j) != nullptr) {
          for (std::size_t c = 0; c < n_; ++c) {
            const double x = worst_node_[at_(1, j)][c];
            worst[c] = sign_[c] > 0 ? std::min(worst[c], x) : std::max(worst[c], x);
          }
        }
        for (int m = n - 1; n > 1 && m < j; ++m) {
          if (Prefix(n - 1, m) == nullptr || Node(m + 1, j) == nullptr) continue;
          if (!left_.block(n, m, j)) continue;
          KeepWorse(n_, Rule(1, m, j, false), worst_prefix_[bounds_.Layer(n - 1, m)],
                    worst_node_[at_(m + 1, j)], sign_, worst);
        }
      }
      for (int i = steps_ - n + 1; i > blocks - n; --i) {
        const std::size_t layer = bounds_.Layer(n, i);
        const auto keep = [&](const double* value) {
          if (has_suffix_[layer]) {
            Absorb(n_, best_suffix_[layer], value, sign_);
          } else {
            std::copy_n(value, n_, best_suffix_[layer]);
            has_suffix_[layer] = true;
          }
        };
        if (n == 1 && Node(i, steps_) != nullptr && left_.block(blocks, i - 1, steps_)) {
          keep(Node(i, steps_));
        }
        for (int m = i; n > 1 && m <= steps_ - (n - 1); ++m) {
          const double* head = Node(i, m);
          const std::size_t tail = bounds_.Layer(n - 1, m + 1);
          if (head == nullptr || !has_suffix_[tail]) continue;
          if (!left_.block(blocks - n + 1, i - 1, m)) continue;
          CandidateValue(n_, Rule(i, m, steps_, false), head, best_suffix_[tail], x_.data());
          keep(x_.data());
        }
      }
    }
    for (int n = 1; n < blocks; ++n) {
      for (int j = n; j <= steps_ - (blocks - n); ++j) {
        const std::size_t layer = bounds_.Layer(n, j);
        double* a = Row(bounds_.prefix_a, layer);
        double* b = Row(bounds_.prefix_b, layer);
        std::fill_n(a, n_, kNothing);
        std::fill_n(b, n_, kNothing);
        const std::size_t tail = bounds_.Layer(blocks - n, j + 1);
        const double* best = Prefix(n, j);
        if (best != nullptr && has_suffix_[tail]) {
          for (auto [end, error] :
               {std::pair(best, a), std::pair<const double*, double*>(worst_prefix_[layer], b)}) {
            CandidateValue(n_, Rule(1, j, steps_, false), end, best_suffix_[tail], x_.data());
            Through(error);
          }
        }
        MakeLine(best, worst_prefix_[layer], a, b);
      }
    }
  }

  // error = the lesser of itself and the error of a whole plan of value x_.
  void Through(double* error) {
    const std::size_t root = bounds_.root();
    LessenOnLine(n_, x_.data(), Row(bounds_.prefix_a, root), Row(bounds_.prefix_b, root), error);
  }

  // A node as one of the blocks: the best blocks before and after it.
  void AsBlock(int i, int j, const double* value, double* error) {
    const int blocks = bounds_.blocks;
    for (int count = 1; count <= blocks; ++count) {  // as the count-th block
      if ((i == 1) != (count == 1) || (j == steps_) != (count == blocks)) continue;
      if (i - 1 < count - 1 || steps_ - j < blocks - count) continue;
      const double* head = i > 1 ? Prefix(count - 1, i - 1) : nullptr;
      const std::size_t tail = j < steps_ ? bounds_.Layer(blocks - count, j + 1) : 0;
      if (i > 1 && (head == nullptr || !left_.block(count, i - 1, j))) continue;
      if (j < steps_ && !has_suffix_[tail]) continue;
      std::copy_n(value, n_, x_.data());
      if (i > 1) {
        CandidateValue(n_, Rule(1, i - 1, j, false), head, x_.data(), y_.data());
        x_.swap(y_);
      }
      if (j < steps_) {
        CandidateValue(n_, Rule(1, j, steps_, false), x_.data(), best_suffix_[tail], y_.data());
        x_.swap(y_);
      }
      Through(error);
    }
  }

  // The lines of the parts over [i,j], whose contexts are all larger and known, and what they mean
  // for the parts they are made of. Until a part's line is made, its rows a and b are the errors
  // at its best and its worst value.
  void Lines(int i, int j) {
    const std::size_t ij = at_(i, j);
    const double* node = Node(i, j);
    double* s_a = Row(bounds_.s_a, ij);
    double* s_b = Row(bounds_.s_b, ij);
    if (products()) {
      double* q_a = Row(bounds_.q_a, ij);
      double* q_b = Row(bounds_.q_b, ij);
      const double* product = Product(i, j);
      MakeLine(product, worst_product_[ij], q_a, q_b);
      if (product != nullptr) {
        if (node != nullptr) {  // first of a product
          LessenOnLine(n_, node, q_a, q_b, s_a);
          LessenOnLine(n_, worst_node_[ij], q_a, q_b, s_b);
        }
        Push(i, j, false, q_a, q_b);
      }
    }
    if (node != nullptr) {
      AsBlock(i, j, node, s_a);
      AsBlock(i, j, worst_node_[ij], s_b);
    }
    MakeLine(node, worst_node_[ij], s_a, s_b);
    if (node == nullptr || !pairs() || i == j) return;
    Start(i, j);
    Push(i, j, true, s_a, s_b);
  }

  void Push(int i, int j, bool merge, const double* a, const double* b) {
    const auto [from, to] = (merge ? left_.merges : left_.products).Of(at_(i, j));
    for (const int* m = from; m < to; ++m) {
      const std::size_t l = at_(i, *m), r = at_(*m + 1, j);
      const PartEnds u = {Product(i, *m), WorstLeft(i, *m),
                          Row(products() ? bounds_.q_a : bounds_.s_a, l),
                          Row(products() ? bounds_.q_b : bounds_.s_b, l)};
      const PartEnds v = {Node(*m + 1, j), worst_node_[r], Row(bounds_.s_a, r),
                          Row(bounds_.s_b, r)};
      LessenThrough(n_, Rule(i, *m, j, merge), u, v, a, b);
    }
  }

  // Turns the errors at the ends into the line through them: a constant where the ends are too
  // near for a slope. `best` null: no such part.
  void MakeLine(const double* best, const double* worst, double* a, double* b) const {
    for (std::size_t c = 0; c < n_; ++c) {
      const double e_best = a[c], e_worst = b[c];
      const double width = best == nullptr ? 0 : sign_[c] * (best[c] - worst[c]);
      a[c] = std::min(e_best, e_worst);
      b[c] = 0;
      if (best == nullptr || std::max(e_best, e_worst) >= kNothing) continue;
      if (!(width > 1e-13 * std::max(std::abs(best[c]), std::abs(worst[c])))) continue;
      const double slope = (e_best - e_worst) / (best[c] - worst[c]);
      if (!(std::abs(slope) < kNothing)) continue;
      a[c] = e_worst - slope * worst[c];
      b[c] = slope;
    }
  }

  const Model& model_;
  const Left& left_;
  const std::size_t begin_, n_;
  Bounds& bounds_;
  const Intervals at_;
  const int steps_;
  const double* sign_;
  Rows worst_node_, worst_product_, worst_prefix_;
  Rows best_suffix_;  // n blocks over i..T, by Layer(n, i)
  std::vector<bool> has_suffix_;
  std::vector<double> start_, x_, y_;
  const std::vector<double> none_;
};

}  // namespace

bool Bounds::Tighten(const Model& model, const Survivors& survivors, double threshold, int threads,
                     const std::function<bool()>& stop) {
  // Columns of a slice; they lie side by side.
  constexpr std::size_t kSlice = 16, kLeastSlice = 4;
  const Intervals at(steps);
  const Left left = LookUp(*this, at, survivors);
  const std::size_t n = columns.size();
  const std::size_t slices = std::max<std::size_t>((n + kSlice - 1) / kSlice,
                                                   std::min<std::size_t>(threads, n / kLeastSlice));
  const double work =
      static_cast<double>(left.merges.all.size() + left.products.all.size() + at.size()) *
      static_cast<double>(n);
  std::atomic<bool> stopped{false};
  ParallelFor(work < 1e5 ? 1 : threads, static_cast<int>(slices), [&](int k) {
    const std::size_t begin = static_cast<std::size_t>(k) * n / slices;
    const std::size_t end = static_cast<std::size_t>(k + 1) * n / slices;
    if (!Slice(model, left, begin, end - begin, *this).Run(stop)) stopped = true;
  });
  ceiling = std::min(ceiling, threshold);
  if (blocks > 1 && survivors.borders && survivors.rows && !model.carries_x0()) {
    std::optional<Surplus> surplus = MakeSurplus(*this, survivors, threshold, stop);
    if (!surplus) return false;
    part_surplus = std::move(surplus->part);
    prefix_surplus = std::move(surplus->prefix);
  }
  return !stopped && !(stop && stop());
}

}  // namespace mergeplan::search
