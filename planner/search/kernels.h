#pragma once

#include <cstddef>

namespace mergeplan::search {

// Loops over the columns of one candidate. All pointers have `n` entries and do not overlap unless
// said. Compiled for x86-64-v3 and for the baseline, chosen when the program starts; the arithmetic
// (no contraction, fixed order) and so every result is the same in both.

// Coefficients of a candidate made of a left part u and a right part v:
//   product = ju u + jv v + juv u v
//   merge   = omg * product + g * start + offset     (start: v itself where null)
struct CandidateRule {
  double ju = 0, jv = 0, juv = 1;
  bool merge = false;
  const double* omg = nullptr;
  const double* g = nullptr;
  const double* start = nullptr;
  const double* offset = nullptr;  // null: none
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

// squares = max(0, a + b x)^2 by column; gives their sum.
double RowSquares(std::size_t n, const double* x, const double* a, const double* b,
                  double* squares);

// sum_c max(0, y - x), or the first partial sum above `limit`: how much the bound of a row with the
// squares y falls when it takes over the better value of a row with the squares x in every column.
double SquaresLoss(std::size_t n, const double* y, const double* x, double limit);

// y = the lesser of x and y in every column.
void Lessen(std::size_t n, double* y, const double* x);

// worse = the worse of itself and the candidate's value in every column.
void KeepWorse(std::size_t n, const CandidateRule& rule, const double* u, const double* v,
               const double* sign, double* worse);

// The error of whole plans at the best and the worst value of two parts u and v, through the part
// made of them, whose line is a + b x: each with the other at its best. The four errors become the
// lesser of themselves and that.
struct PartEnds {
  const double* best;
  const double* worst;
  double* error_best;
  double* error_worst;
};
void LessenThrough(std::size_t n, const CandidateRule& rule, const PartEnds& u, const PartEnds& v,
                   const double* a, const double* b);

// error = the lesser of itself and a + b x.
void LessenOnLine(std::size_t n, const double* x, const double* a, const double* b, double* error);

// y = the better of x and y in every column.
void Absorb(std::size_t n, double* y, const double* x, const double* sign);

}  // namespace mergeplan::search
