#include "planner/search/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/search/parallel.h"

namespace mergeplan::search {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace

CandidateRule RuleFor(const Model& model, const ColumnTables& tables, int i, int m, int j,
                      bool merge, const std::vector<double>& start) {
  const Model::Join join = model.ProductOf(i, m, j);
  CandidateRule rule;
  rule.ju = join.u;
  rule.jv = join.v;
  rule.juv = join.uv;
  rule.merge = merge;
  rule.omg = tables.omg[j - 1];
  rule.g = tables.gamma[j - 1];
  rule.start = start.empty() ? nullptr : start.data();
  return rule;
}

Inside::Inside(const Model& model, const Columns& columns, const ColumnTables& tables, Shape shape,
               int blocks, int threads, const std::function<bool()>& stop)
    : steps(model.steps()) {
  const int T = model.steps();
  const std::size_t n = columns.size();
  const Intervals at(T);
  s_lo = Rows(at.size(), n, kInf);
  s_hi = Rows(at.size(), n, -kInf);
  if (shape == Shape::kNary) {
    q_lo = Rows(at.size(), n, kInf);
    q_hi = Rows(at.size(), n, -kInf);
  } else {
    steps_product = Rows(at.size(), n, 0);
  }

  for (int length = 1; length <= T; ++length) {
    ParallelFor(n * length < 4096 ? 1 : threads, T - length + 1, [&](int k) {
      if (stop && stop()) return;
      const int i = k + 1;
      const int j = i + length - 1;
      const std::size_t ij = at(i, j);
      const std::vector<double> none;
      const double* leaf = tables.leaf[j - 1];
      if (length == 1) {
        std::copy(leaf, leaf + n, s_lo[ij]);
        std::copy(leaf, leaf + n, s_hi[ij]);
        if (shape != Shape::kNary) std::copy(leaf, leaf + n, steps_product[ij]);
      } else {
        const std::vector<double> start = tables.ConstantStart(model, columns, i, j);
        if (shape != Shape::kNary) {
          const double* head = steps_product[at(i, j - 1)];
          CandidateValue(n, RuleFor(model, tables, i, j - 1, j, false, none), head, leaf,
                         steps_product[ij]);
          WidenByCandidate(n, RuleFor(model, tables, i, j - 1, j, true, start), head, head, leaf,
                           leaf, s_lo[ij], s_hi[ij]);
        }
        if (shape != Shape::kDirect) {
          const Rows& left_lo = shape == Shape::kNary ? q_lo : s_lo;
          const Rows& left_hi = shape == Shape::kNary ? q_hi : s_hi;
          for (int m = i; m < j; ++m) {
            const std::size_t l = at(i, m);
            const std::size_t r = at(m + 1, j);
            WidenByCandidate(n, RuleFor(model, tables, i, m, j, true, start), left_lo[l],
                             left_hi[l], s_lo[r], s_hi[r], s_lo[ij], s_hi[ij]);
            if (shape == Shape::kNary) {
              WidenByCandidate(n, RuleFor(model, tables, i, m, j, false, none), q_lo[l], q_hi[l],
                               s_lo[r], s_hi[r], q_lo[ij], q_hi[ij]);
            }
          }
        }
      }
      if (shape == Shape::kNary) {
        for (std::size_t c = 0; c < n; ++c) {
          q_lo[ij][c] = std::min(q_lo[ij][c], s_lo[ij][c]);
          q_hi[ij][c] = std::max(q_hi[ij][c], s_hi[ij][c]);
        }
      }
    });
  }

  // Layers of blocks.
  const std::size_t layers = static_cast<std::size_t>(blocks) * T;
  prefix_lo = Rows(layers, n, kInf);
  prefix_hi = Rows(layers, n, -kInf);
  suffix_lo = Rows(layers, n, kInf);
  suffix_hi = Rows(layers, n, -kInf);
  const std::vector<double> none;
  for (int j = 1; j <= T; ++j) {
    const std::size_t head = at(1, j);
    const std::size_t tail = at(j, T);
    std::copy(s_lo[head], s_lo[head] + n, prefix_lo[Layer(1, j)]);
    std::copy(s_hi[head], s_hi[head] + n, prefix_hi[Layer(1, j)]);
    std::copy(s_lo[tail], s_lo[tail] + n, suffix_lo[Layer(1, j)]);
    std::copy(s_hi[tail], s_hi[tail] + n, suffix_hi[Layer(1, j)]);
  }
  for (int count = 2; count <= blocks; ++count) {
    ParallelFor(threads, T - count + 1, [&](int k) {
      const int j = count + k;  // prefix 1..j
      for (int m = count - 1; m < j; ++m) {
        const std::size_t l = Layer(count - 1, m);
        const std::size_t r = at(m + 1, j);
        WidenByCandidate(n, RuleFor(model, tables, 1, m, j, false, none), prefix_lo[l],
                         prefix_hi[l], s_lo[r], s_hi[r], prefix_lo[Layer(count, j)],
                         prefix_hi[Layer(count, j)]);
      }
      const int i = k + 1;  // suffix i..T, T - i + 1 >= count
      for (int m = i; T - m >= count - 1; ++m) {
        const std::size_t l = at(i, m);
        const std::size_t r = Layer(count - 1, m + 1);
        WidenByCandidate(n, RuleFor(model, tables, i, m, T, false, none), s_lo[l], s_hi[l],
                         suffix_lo[r], suffix_hi[r], suffix_lo[Layer(count, i)],
                         suffix_hi[Layer(count, i)]);
      }
    });
  }
}

namespace {

// Everything that the outside pass reads, and its small steps.
class OutsidePass {
 public:
  OutsidePass(const Model& model, const Columns& columns, const ColumnTables& tables,
              const Inside& inside, Shape shape, int blocks, Outside& out)
      : model_(model),
        columns_(columns),
        tables_(tables),
        inside_(inside),
        shape_(shape),
        blocks_(blocks),
        out_(out),
        at_(model.steps()),
        n_(columns.size()) {}

  // The signed error of a whole plan as a function of its carried value.
  void Root() {
    const int T = model_.steps();
    const Model::Affine map = model_.CarriedToValue(1, T);
    double* a = out_.prefix_a[inside_.Layer(blocks_, T)];
    double* b = out_.prefix_b[inside_.Layer(blocks_, T)];
    for (std::size_t c = 0; c < n_; ++c) {
      const double scale = columns_.root_weight[c] * columns_.sign[c];
      a[c] = scale * (columns_.tau[c] - map.offset);
      b[c] = -scale * map.scale;
    }
  }

  // n < N blocks over 1..j, followed by the best N - n blocks.
  void Prefix(int count, int j) {
    const int T = model_.steps();
    const std::size_t layer = inside_.Layer(count, j);
    std::vector<double> lo(n_, kInf), hi(n_, kInf);
    const std::vector<double> tail =
        Best(inside_.suffix_lo, inside_.suffix_hi, inside_.Layer(blocks_ - count, j + 1));
    const CandidateRule rule = RuleFor(model_, tables_, 1, j, T, false, none_);
    Through(rule, true, inside_.prefix_lo[layer], inside_.prefix_hi[layer], tail.data(), RootA(),
            RootB(), lo, hi);
    Chord(inside_.prefix_lo[layer], inside_.prefix_hi[layer], lo, hi, out_.prefix_a[layer],
          out_.prefix_b[layer]);
  }

  // A node or a product over [i,j] as the left part of something longer that ends at m.
  void LeftOf(int i, int j, bool whole_nodes, const double* part_lo, const double* part_hi,
              std::vector<double>& lo, std::vector<double>& hi) {
    for (int m = j + 1; m <= model_.steps(); ++m) {
      const std::vector<double> right = Best(inside_.s_lo, inside_.s_hi, at_(j + 1, m));
      const std::vector<double> start = tables_.ConstantStart(model_, columns_, i, m);
      const std::size_t im = at_(i, m);
      Through(RuleFor(model_, tables_, i, j, m, true, start), true, part_lo, part_hi, right.data(),
              out_.s_a[im], out_.s_b[im], lo, hi);
      if (!whole_nodes && m < model_.steps()) {
        Through(RuleFor(model_, tables_, i, j, m, false, none_), true, part_lo, part_hi,
                right.data(), out_.q_a[im], out_.q_b[im], lo, hi);
      }
    }
  }

  void Product(int i, int j) {
    const std::size_t ij = at_(i, j);
    std::vector<double> lo(n_, kInf), hi(n_, kInf);
    LeftOf(i, j, false, inside_.q_lo[ij], inside_.q_hi[ij], lo, hi);
    Chord(inside_.q_lo[ij], inside_.q_hi[ij], lo, hi, out_.q_a[ij], out_.q_b[ij]);
  }

  void Node(int i, int j) {
    const std::size_t ij = at_(i, j);
    const double* part_lo = inside_.s_lo[ij];
    const double* part_hi = inside_.s_hi[ij];
    std::vector<double> lo(n_, kInf), hi(n_, kInf);
    Block(i, j, part_lo, part_hi, lo, hi);
    if (shape_ == Shape::kNary && j < model_.steps()) {  // first of a product
      for (std::size_t c = 0; c < n_; ++c) {
        lo[c] = std::min(lo[c], out_.q_a[ij][c] + out_.q_b[ij][c] * part_lo[c]);
        hi[c] = std::min(hi[c], out_.q_a[ij][c] + out_.q_b[ij][c] * part_hi[c]);
      }
    }
    if (shape_ == Shape::kBinary) LeftOf(i, j, true, part_lo, part_hi, lo, hi);
    if (shape_ != Shape::kDirect) {
      const Rows& left_lo = shape_ == Shape::kNary ? inside_.q_lo : inside_.s_lo;
      const Rows& left_hi = shape_ == Shape::kNary ? inside_.q_hi : inside_.s_hi;
      for (int h = 1; h < i; ++h) {
        const std::vector<double> left = Best(left_lo, left_hi, at_(h, i - 1));
        const std::vector<double> start = tables_.ConstantStart(model_, columns_, h, j);
        const std::size_t hj = at_(h, j);
        Through(RuleFor(model_, tables_, h, i - 1, j, true, start), false, part_lo, part_hi,
                left.data(), out_.s_a[hj], out_.s_b[hj], lo, hi);
        if (shape_ == Shape::kNary && j < model_.steps()) {
          Through(RuleFor(model_, tables_, h, i - 1, j, false, none_), false, part_lo, part_hi,
                  left.data(), out_.q_a[hj], out_.q_b[hj], lo, hi);
        }
      }
    }
    Chord(part_lo, part_hi, lo, hi, out_.s_a[ij], out_.s_b[ij]);
  }

 private:
  // A node as one of the N blocks: the best blocks before and after it.
  void Block(int i, int j, const double* part_lo, const double* part_hi, std::vector<double>& lo,
             std::vector<double>& hi) {
    const int T = model_.steps();
    std::vector<double> x_lo(n_), x_hi(n_);
    for (int count = 1; count <= blocks_; ++count) {  // as the count-th block
      if ((i == 1) != (count == 1) || (j == T) != (count == blocks_)) continue;
      if (i - 1 < count - 1 || T - j < blocks_ - count) continue;
      std::copy(part_lo, part_lo + n_, x_lo.begin());
      std::copy(part_hi, part_hi + n_, x_hi.begin());
      if (i > 1) {
        const std::vector<double> head =
            Best(inside_.prefix_lo, inside_.prefix_hi, inside_.Layer(count - 1, i - 1));
        const CandidateRule rule = RuleFor(model_, tables_, 1, i - 1, j, false, none_);
        CandidateValue(n_, rule, head.data(), part_lo, x_lo.data());
        CandidateValue(n_, rule, head.data(), part_hi, x_hi.data());
      }
      if (j < T) {
        const std::vector<double> tail =
            Best(inside_.suffix_lo, inside_.suffix_hi, inside_.Layer(blocks_ - count, j + 1));
        Through(RuleFor(model_, tables_, 1, j, T, false, none_), true, x_lo.data(), x_hi.data(),
                tail.data(), RootA(), RootB(), lo, hi);
      } else {
        for (std::size_t c = 0; c < n_; ++c) {
          lo[c] = std::min(lo[c], RootA()[c] + RootB()[c] * x_lo[c]);
          hi[c] = std::min(hi[c], RootA()[c] + RootB()[c] * x_hi[c]);
        }
      }
    }
  }

  void Through(const CandidateRule& rule, bool part_is_left, const double* part_lo,
               const double* part_hi, const double* sibling, const double* a, const double* b,
               std::vector<double>& lo, std::vector<double>& hi) const {
    ErrorThroughContext(n_, rule, part_is_left, part_lo, sibling, a, b, lo.data());
    ErrorThroughContext(n_, rule, part_is_left, part_hi, sibling, a, b, hi.data());
  }

  // The end of a part that is better for the whole, by column.
  std::vector<double> Best(const Rows& lo, const Rows& hi, std::size_t row) const {
    std::vector<double> out(n_);
    for (std::size_t c = 0; c < n_; ++c) out[c] = columns_.sign[c] > 0 ? hi[row][c] : lo[row][c];
    return out;
  }

  // The line through (x_lo, e_lo) and (x_hi, e_hi); a constant where the ends are too near for a
  // slope. A part without any context gets +infinity: nothing can be made of it.
  void Chord(const double* x_lo, const double* x_hi, const std::vector<double>& e_lo,
             const std::vector<double>& e_hi, double* a, double* b) const {
    for (std::size_t c = 0; c < n_; ++c) {
      const double width = x_hi[c] - x_lo[c];
      if (!(width > 1e-13 * std::abs(x_hi[c]))) {
        a[c] = std::min(e_lo[c], e_hi[c]);
        b[c] = 0;
        continue;
      }
      b[c] = (e_hi[c] - e_lo[c]) / width;
      a[c] = e_lo[c] - b[c] * x_lo[c];
      if (!std::isfinite(b[c])) {
        a[c] = std::min(e_lo[c], e_hi[c]);
        b[c] = 0;
      }
    }
  }

  const double* RootA() const { return out_.prefix_a[inside_.Layer(blocks_, model_.steps())]; }
  const double* RootB() const { return out_.prefix_b[inside_.Layer(blocks_, model_.steps())]; }

  const Model& model_;
  const Columns& columns_;
  const ColumnTables& tables_;
  const Inside& inside_;
  Shape shape_;
  int blocks_;
  Outside& out_;
  Intervals at_;
  std::size_t n_;
  std::vector<double> none_;
};

}  // namespace

Outside::Outside(const Model& model, const Columns& columns, const ColumnTables& tables,
                 const Inside& inside, Shape shape, int blocks, int threads,
                 const std::function<bool()>& stop) {
  const int T = model.steps();
  const std::size_t n = columns.size();
  const Intervals at(T);
  s_a = Rows(at.size(), n, kInf);
  s_b = Rows(at.size(), n, 0);
  if (shape == Shape::kNary) {
    q_a = Rows(at.size(), n, kInf);
    q_b = Rows(at.size(), n, 0);
  }
  prefix_a = Rows(static_cast<std::size_t>(blocks) * T, n, kInf);
  prefix_b = Rows(static_cast<std::size_t>(blocks) * T, n, 0);

  OutsidePass pass(model, columns, tables, inside, shape, blocks, *this);
  pass.Root();
  for (int count = 1; count < blocks; ++count) {
    for (int j = count; j <= T - (blocks - count); ++j) pass.Prefix(count, j);
  }
  for (int length = T; length >= 1; --length) {
    ParallelFor(n * T < 4096 ? 1 : threads, T - length + 1, [&](int k) {
      if (stop && stop()) return;
      const int i = k + 1;
      const int j = i + length - 1;
      if (shape == Shape::kNary && j < T) pass.Product(i, j);
      pass.Node(i, j);
    });
  }
}

}  // namespace mergeplan::search
