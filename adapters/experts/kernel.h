#pragma once

#include <cstddef>

// The inner loops of the student at a fixed level: forward for many rows, and forward with the sums
// over the rows that the gradient is made of. Own vector loops, one version for AVX-512, one for
// AVX2 with FMA and one for all other processors, chosen when they are called. For this folder
// only.
namespace mergeplan::experts {

// Rows are taken kTile at a time, side by side; sums over rows are kept apart per place in the
// tile (a lane), and added up at the end.
inline constexpr std::size_t kTile = 16;
// Rows that go through all layers before the next ones start.
inline constexpr std::size_t kChunk = 128;
// Experts are taken kExpertBlock at a time; a last block that is not full has weights 0.
inline constexpr std::size_t kExpertBlock = 8;

// The student at one level as plain arrays, see LevelNetwork. Everything begins at a cache line.
template <typename T>
struct LevelTables {
  std::size_t d = 0, E = 0, H = 0;
  std::size_t padded = 0;     // E rounded up to blocks
  const T* hidden = nullptr;  // H: W1 [0; emb] + b1, what the embedding gives to the hidden units
  const T* w1 = nullptr;      // H x d: the columns of W1 that the state meets
  const T* w2 = nullptr;      // H x padded: W2 transposed, 0 beyond E
  const T* b2 = nullptr;      // padded: -infinity beyond E
  const T* expert = nullptr;  // E x (d^2 + d): A row-major, then b
};

// Where the sums over the rows stand among `count` groups of kTile lanes each.
struct SumLayout {
  std::size_t hidden = 0;  // H: of the derivative by `hidden`
  std::size_t w1 = 0;      // H x d
  std::size_t w2 = 0;      // H x padded
  std::size_t b2 = 0;      // padded
  std::size_t expert = 0;  // E x (d^2 + d)
  std::size_t loss = 0;    // 1: the squared error, summed over dimensions and rows
  std::size_t count = 0;

  static SumLayout Of(std::size_t d, std::size_t E, std::size_t H);
};

// Numbers of scratch for the functions below, per table sizes.
std::size_t KernelScratch(std::size_t d, std::size_t E, std::size_t H);

// out = student(z), both rows x d, row-major; `out` may be z. `scratch` begins at a cache line. A
// row's result depends on that row only. O(rows (H (d + E) + E d^2)).
template <typename T>
void ForwardRows(const LevelTables<T>& tables, const double* z, std::size_t rows, double* out,
                 T* scratch);

// Adds to `lanes` (SumLayout.count x kTile) what the rows contribute to half the derivative of
// sum over rows of |student(z) - target|^2, and that sum itself. z and target are rows x d,
// row-major. The order of the additions depends on `rows` only. About three times ForwardRows.
template <typename T>
void AccumulateRows(const LevelTables<T>& tables, const double* z, const double* target,
                    std::size_t rows, T* lanes, T* scratch);

// sums[i] = the sum of the lanes of group i, in a fixed order.
template <typename T>
void SumLanes(const T* lanes, std::size_t count, T* sums);

// The versions that this processor can run: 1 (any processor), 2 (AVX2 and FMA too) or 3 (AVX-512
// too), and which of them (0, 1, 2) is used from now on, by default the last one. For tests and
// benchmarks; not while a loop runs.
int KernelVersions();
void UseKernelVersion(int version);

}  // namespace mergeplan::experts
