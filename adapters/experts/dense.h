#pragma once

#include <cstddef>

// Small dense loops for what is done once per update: the expert net, the embedding's part of the
// gate, the optimizer. float and double; one version for x86-64-v3 and one for all others. The
// order of the additions depends on the sizes only.
namespace mergeplan::experts {

// out[i] = bias[i] + sum_j m[i stride + j] x[j], i < rows, j < columns.
void Multiply(const float* m, std::size_t rows, std::size_t columns, std::size_t stride,
              const float* x, const float* bias, float* out);
void Multiply(const double* m, std::size_t rows, std::size_t columns, std::size_t stride,
              const double* x, const double* bias, double* out);

// out[j] = sum_i m[i stride + j] y[i].
void MultiplyTransposed(const float* m, std::size_t rows, std::size_t columns, std::size_t stride,
                        const float* y, float* out);
void MultiplyTransposed(const double* m, std::size_t rows, std::size_t columns, std::size_t stride,
                        const double* y, double* out);

// m[i stride + j] += y[i] x[j].
void AddOuter(const float* y, const float* x, std::size_t rows, std::size_t columns,
              std::size_t stride, float* m);
void AddOuter(const double* y, const double* x, std::size_t rows, std::size_t columns,
              std::size_t stride, double* m);

// to[i] += from[i].
void Add(const float* from, std::size_t count, float* to);
void Add(const double* from, std::size_t count, double* to);

// Are all numbers finite?
bool AllFinite(const float* values, std::size_t count);
bool AllFinite(const double* values, std::size_t count);

// One step of Adam for `count` parameters (p, g, m, v side by side): see optimizer.h.
void AdamLoop(std::size_t count, float beta1, float beta2, float root_scale, float epsilon,
              float rate, const float* g, float* m, float* v, float* p);
void AdamLoop(std::size_t count, double beta1, double beta2, double root_scale, double epsilon,
              double rate, const double* g, double* m, double* v, double* p);

// p -= rate g.
void SgdLoop(std::size_t count, float rate, const float* g, float* p);
void SgdLoop(std::size_t count, double rate, const double* g, double* p);

}  // namespace mergeplan::experts
