#pragma once

#include <cstdint>

namespace mergeplan {

// The forward and backward pass of one diagonal student on a piece of a batch, fused, on the CPU.
//
// For the samples z[b][k] = scale[k] noise[b][k], b < samples, k < d, with the student a z and the
// target p z, adds up per dimension
//
//   gradient[k] += sum_b z[b][k] (a[k] z[b][k] - p[k] z[b][k])
//   loss[k]     += sum_b        (a[k] z[b][k] - p[k] z[b][k])^2
//
// so that 2/B times the gradient is the derivative by a of the batch mean of the squared error
// summed over the dimensions (as:trajectory_distillation_loss). `noise` is samples x d, row-major.
// The order of the additions depends on nothing but `samples`. O(samples d), about half a
// nanosecond per number; vectorised for x86-64-v3 where the processor has it.
void AccumulateGradient(const float* noise, std::int64_t samples, std::int64_t d,
                        const double* scale, const double* a, const double* p, double* gradient,
                        double* loss);
void AccumulateGradient(const float* noise, std::int64_t samples, std::int64_t d,
                        const float* scale, const float* a, const float* p, float* gradient,
                        float* loss);

}  // namespace mergeplan
