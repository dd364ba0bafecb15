#pragma once

#include <vector>

namespace mergeplan {

// The paper's sinusoidal embedding of a level (subsec:gaussian_dataset): for u = t / T the 64
// numbers sin(w_1 u), cos(w_1 u), ..., sin(w_32 u), cos(w_32 u), w_i = 10000^(-2 i / 64). Their
// squares add up to 32 for every u.
inline constexpr int kEmbeddingSize = 64;
inline constexpr double kEmbeddingNorm = 32;
std::vector<double> SinusoidalEmbedding(double u);

}  // namespace mergeplan
