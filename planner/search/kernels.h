#pragma once

#include <cstddef>

namespace mergeplan::search {

// Loops over the columns of one candidate. All pointers have `n` entries and do not overlap unless
// said. Compiled for x86-64-v3 and for the baseline, chosen when the program starts; the arithmetic
// (no contraction, fixed order) and so every result is the same in both.

// Coefficients of a candidate made of a left part u and a right part v:
//   product = ju u + jv v + juv u v
//   merge   = omg * product + g * start      (start: v itself where null)
struct CandidateRule {
  double ju = 0, jv = 0, juv = 1;
  bool merge = false;
  const double* omg = nullptr;
  const double* g = nullptr;
  const double* start = nullptr;
};

// out = the candidate's value.
void CandidateValue(std::size_t n, const CandidateRule& rule, const double* u, const double* v,
                    double* out);

// sum_c max(0, a + b x)^2 of the candidate's value x, or the first partial sum above `limit`.
double CandidateBound(std::size_t n, const CandidateRule& rule, const double* u, const double* v,
                      const double* a, const double* b, double limit);

// sum_c max(0, a + b x)^2.
double RowBound(std::size_t n, const double* x, const double* a, const double* b);

// Is x nowhere better than y? sign +1: larger is better, -1: smaller is better.
bool Dominates(std::size_t n, const double* y, const double* x, const double* sign);

// How much RowBound falls when y is replaced by the better of x and y in every column; stops above
// `limit`.
double AbsorbLoss(std::size_t n, const double* y, const double* x, const double* sign,
                  const double* a, const double* b, double limit);

// y = the better of x and y in every column.
void Absorb(std::size_t n, double* y, const double* x, const double* sign);

// Interval arithmetic over all candidates: lo = min(lo, candidate of the lower ends), hi likewise.
void WidenByCandidate(std::size_t n, const CandidateRule& rule, const double* u_lo,
                      const double* u_hi, const double* v_lo, const double* v_hi, double* lo,
                      double* hi);

// One context of a part: the part's value x at its two ends becomes `ends`; err = min(err, a + b *
// context value), where the part is the left (u) or right (v) side of the candidate and its sibling
// has the value given.
void ErrorThroughContext(std::size_t n, const CandidateRule& rule, bool part_is_left,
                         const double* part, const double* sibling, const double* a,
                         const double* b, double* err);

}  // namespace mergeplan::search
