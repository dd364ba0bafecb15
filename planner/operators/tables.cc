#include "planner/operators/tables.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"
#include "planner/plan/plan.h"

namespace mergeplan {
namespace {

// Above it no part of a plan may be: squares of errors then stay far from overflow.
constexpr double kLargest = 1e60;
// Tables with more levels are not searched for their extreme parts: O(T^2) memory, O(T^3) time.
constexpr int kMostExact = 2048;

absl::Status Wrong(const char* what, int t, int k, double found, const char* expected) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s at level %d, coordinate %d is %g, %s", what, t, k + 1, found, expected));
}

absl::Status CheckSize(const char* what, size_t size, size_t expected, const char* of_what) {
  if (size == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s has %d numbers, expected %d, %s", what, size, expected, of_what));
}

absl::Status CheckVector(const char* what, absl::Span<const double> values) {
  for (size_t k = 0; k < values.size(); ++k) {
    if (std::isfinite(values[k]) && values[k] >= 0) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s of coordinate %d is %g, expected a finite number >= 0", what, k + 1, values[k]));
  }
  return absl::OkStatus();
}

// One coordinate.
struct Column {
  Column(const ModelTables& tables, int coordinate)
      : steps(tables.steps), a(steps + 1), gamma(steps + 1), p(steps + 1), q(steps + 1) {
    for (int t = 1; t <= steps; ++t) {
      a[t] = tables.a[tables.at(t, coordinate)];
      gamma[t] = tables.gamma[tables.at(t, coordinate)];
      p[t] = tables.P(t, coordinate);
      q[t] = tables.Q(t, coordinate);
      if (t > 1) negative = negative || q[t] < 0;
    }
  }
  int steps;
  bool negative = false;  // is some q < 0?
  std::vector<double> a, gamma, p, q;
};

// An upper bound of every part's value with |q| for q. O(T), and O(T^2) where p >= 1 amplifies.
//
// Let no part over [i,j] be above B_i ... B_j, all B_t >= 1, where B_j = y is above the parts
// whose spine of noisiest children has r merges that end in j: one more merge has at most
// (1 - gamma) y B_i ... B_{j-1} + gamma (p y B_i ... B_{j-1} + |q|) <= (f y + gamma |q|) B_i ...
// B_{j-1} with f = 1 - gamma + gamma p. There are at most j - 1 such merges. For p < 1 what is
// repeated comes to no more than |q| / (1 - p).
double CheapLargest(const Column& c) {
  double product = 1;
  for (int j = 1; j <= c.steps; ++j) {
    double y = std::max(1.0, c.a[j]);
    const double offset = std::abs(c.q[j]);
    if (j > 1 && c.gamma[j] > 0) {
      if (c.p[j] < 1) {
        y = std::max(y, offset / (1 - c.p[j]));
      } else if (c.p[j] > 1 || offset > 0) {
        const double f = 1 - c.gamma[j] + c.gamma[j] * c.p[j];
        for (int r = 1; r < j && y <= kLargest; ++r) y = f * y + c.gamma[j] * offset;
      }
    }
    product *= y * (1 + 0x1p-40);  // above all rounding
    if (!(product <= kLargest)) return product;
  }
  return product;
}

// The least or largest values of all nodes S[i,j] and products of neighbouring nodes Q[i,j]; a
// value increases in those of its parts where no start is negative. O(T^3).
class Extremes {
 public:
  explicit Extremes(const Column& column)
      : c_(column), stride_(column.steps + 2), s_(stride_ * stride_), q_(stride_ * stride_) {}

  // The largest value of any part with |q| for q; its last level goes to `level`. May be infinite.
  double Largest(int* level) {
    double largest = 0;
    Run(true, [&](int /*i*/, int j, double /*s*/, double q) {
      if (q > largest || !std::isfinite(q)) {
        largest = q;
        *level = j;
      }
      return std::isfinite(q);
    });
    return largest;
  }

  struct NegativeStart {
    int first, last;  // of the noisiest child
    double value, start;
  };
  std::optional<NegativeStart> FindNegativeStart() {
    std::optional<NegativeStart> found;
    Run(false, [&](int i, int j, double s, double /*q*/) {
      if (i == 1) return true;  // nothing is merged with a node that begins at step 1 as noisiest
      const double start = c_.p[j] * s + c_.q[j];
      if (start < 0) found = NegativeStart{i, j, s, start};
      return !found.has_value();
    });
    return found;
  }

 private:
  // Calls done(i, j, s, q) for every part until it says false.
  template <typename Done>
  void Run(bool largest, Done done) {
    const auto better = [largest](double x, double y) {
      return largest ? std::max(x, y) : std::min(x, y);
    };
    for (int j = 1; j <= c_.steps; ++j) {
      const double offset = largest ? std::abs(c_.q[j]) : c_.q[j];
      const double omg = 1 - c_.gamma[j];
      double* nodes = &s_[static_cast<size_t>(j) * stride_];  // by first level
      for (int i = j; i >= 1; --i) {
        double* products = &q_[static_cast<size_t>(i) * stride_];  // by last level
        double s = c_.a[j], q = c_.a[j];
        for (int m = i; m < j; ++m) {
          const double product = products[m] * nodes[m + 1];
          const double node = omg * product + c_.gamma[j] * (c_.p[j] * nodes[m + 1] + offset);
          s = m == i ? node : better(s, node);
          q = m == i ? product : better(q, product);
        }
        if (i < j) q = better(q, s);
        nodes[i] = s;
        products[j] = q;
        if (!done(i, j, s, q)) return;
      }
    }
  }

  const Column& c_;
  size_t stride_;
  std::vector<double> s_, q_;
};

}  // namespace

absl::Status CheckTableNumbers(const ModelTables& tables) {
  if (tables.steps < 1 || tables.steps > kMaxTeacherSteps || tables.dimensions < 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "tables of %d levels and %d coordinates, expected 1..%d levels and at least one coordinate",
        tables.steps, tables.dimensions, kMaxTeacherSteps));
  }
  const size_t size = static_cast<size_t>(tables.steps) * static_cast<size_t>(tables.dimensions);
  const char* const per_level = "one per level and coordinate";
  MP_RETURN_IF_ERROR(CheckSize("A", tables.a.size(), size, per_level));
  MP_RETURN_IF_ERROR(CheckSize("gamma", tables.gamma.size(), size, per_level));
  if (!tables.p.empty()) MP_RETURN_IF_ERROR(CheckSize("p", tables.p.size(), size, per_level));
  if (!tables.q.empty()) MP_RETURN_IF_ERROR(CheckSize("q", tables.q.size(), size, per_level));
  const size_t d = static_cast<size_t>(tables.dimensions);
  if (!tables.tau.empty())
    MP_RETURN_IF_ERROR(CheckSize("tau", tables.tau.size(), d, "one per coordinate"));
  if (!tables.weights.empty())
    MP_RETURN_IF_ERROR(CheckSize("weights", tables.weights.size(), d, "one per coordinate"));
  for (int t = 1; t <= tables.steps; ++t) {
    for (int k = 0; k < tables.dimensions; ++k) {
      const double a = tables.a[tables.at(t, k)], gamma = tables.gamma[tables.at(t, k)];
      const double p = tables.P(t, k), q = tables.Q(t, k);
      if (!(std::isfinite(a) && a >= 0))
        return Wrong("A", t, k, a, "expected a finite number >= 0");
      if (!(gamma >= 0 && gamma <= 1)) return Wrong("gamma", t, k, gamma, "expected 0..1");
      if (!(std::isfinite(p) && p >= 0))
        return Wrong("p", t, k, p, "expected a finite number >= 0");
      if (!std::isfinite(q)) return Wrong("q", t, k, q, "expected a finite number");
    }
  }
  MP_RETURN_IF_ERROR(CheckVector("tau", tables.tau));
  return CheckVector("weight", tables.weights);
}

absl::StatusOr<std::vector<double>> CheckTables(const ModelTables& tables) {
  MP_RETURN_IF_ERROR(CheckTableNumbers(tables));
  std::vector<double> magnitude(static_cast<size_t>(tables.dimensions), 0.0);
  for (int k = 0; k < tables.dimensions; ++k) {
    const Column column(tables, k);
    if (column.negative && tables.steps > kMostExact) {
      return absl::InvalidArgumentError(
          absl::StrFormat("q is negative in coordinate %d: whether starts are then >= 0 is only "
                          "checked up to %d levels, and there are %d; expected q >= 0",
                          k + 1, kMostExact, tables.steps));
    }
    if (column.negative) {
      const auto found = Extremes(column).FindNegativeStart();
      if (found) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "q at level %d, coordinate %d is %g: a merge whose noisiest child is [%d,%d] with the "
            "value %g would start as p V + q = %g, expected >= 0; give a larger q or p",
            found->last, k + 1, column.q[found->last], found->first, found->last, found->value,
            found->start));
      }
    }
    double largest = CheapLargest(column);
    if (column.negative || !(largest <= kLargest)) {
      int level = column.steps;
      if (column.steps <= kMostExact) largest = Extremes(column).Largest(&level);
      if (!(largest <= kLargest)) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "A, p and q at level %d, coordinate %d and below: a part of a plan could have the "
            "value %g, expected at most %g; give smaller numbers",
            level, k + 1, largest, kLargest));
      }
      if (column.negative) magnitude[k] = largest;
    }
    const double tau = tables.tau.empty() ? 0.0 : tables.tau[k];
    const double weight = tables.weights.empty() ? 1.0 : tables.weights[k];
    const double scale = std::max({largest, tau, 1.0});
    if (!(weight * scale * scale < 1e300 / tables.dimensions)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("coordinate %d has values up to %g, tau %g and the weight %g: the "
                          "objective could overflow, expected smaller numbers",
                          k + 1, largest, tau, weight));
    }
  }
  return magnitude;
}

}  // namespace mergeplan
