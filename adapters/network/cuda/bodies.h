#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "planner/device/blocks.h"
#include "planner/device/numbers.h"

// What one thread of each kernel does. Used by the kernels themselves (launch.cu) and by the
// emulation. C++17 and nothing but raw pointers, all of them into the device's memory.
namespace mergeplan::network_device {

using device::kThreads;
using device::Number;

// States are float, or double where the network is.
template <typename X>
using StateOf = std::conditional_t<std::is_same_v<X, double>, double, float>;

// What the DDIM wrapper makes of a state z and the network's output at it: state z + output out,
// the factors those of a number's row, or the same for all where the arrays are null. A thread for
// each number. The digits are those of LibTorch's three operations one after the other.
struct LandArgs {
  std::int64_t numbers, each;  // in all, and of a row
  Number number;               // of the output
  const void* z;               // [numbers] of StateOf
  const void* out;             // [numbers]
  double state, output;
  const void *states, *outputs;  // [numbers / each] of StateOf, or null
  void* landed;                  // [numbers] of StateOf
};
template <typename Z>
MERGEPLAN_HOST_DEVICE Z FactorAt(const void* factors, double of_all, std::int64_t row) {
  return factors == nullptr ? static_cast<Z>(of_all) : static_cast<const Z*>(factors)[row];
}
template <typename X>
MERGEPLAN_HOST_DEVICE void LandThread(const LandArgs& q, std::int64_t at) {
  using Z = StateOf<X>;
  const std::int64_t row = q.states == nullptr ? 0 : at / q.each;
  const Z kept = static_cast<const Z*>(q.z)[at] * FactorAt<Z>(q.states, q.state, row);
  const Z moved =
      device::Widen(static_cast<const X*>(q.out)[at]) * FactorAt<Z>(q.outputs, q.output, row);
  static_cast<Z*>(q.landed)[at] = kept + moved;
}

// Its derivative by the output: output g. A thread for each number.
struct PullArgs {
  std::int64_t numbers, each;
  Number number;         // of the output
  const void* gradient;  // [numbers] of StateOf
  double output;
  const void* outputs;  // [numbers / each] of StateOf, or null
  void* pulled;         // [numbers]
};
template <typename X>
MERGEPLAN_HOST_DEVICE void PullThread(const PullArgs& q, std::int64_t at) {
  using Z = StateOf<X>;
  const Z factor = FactorAt<Z>(q.outputs, q.output, q.outputs == nullptr ? 0 : at / q.each);
  device::Narrow(static_cast<const Z*>(q.gradient)[at] * factor, static_cast<X*>(q.pulled) + at);
}

// All parameters of a network and their averages, in pieces that a block of threads takes each.
constexpr std::int64_t kPiece = 4096;
struct Piece {
  void* average;
  const void* parameter;
  std::int64_t numbers;  // kPiece at most
};
// average += weight (parameter - average), by the formula of LibTorch's lerp. kThreads threads for
// each piece.
struct AverageArgs {
  std::int64_t pieces;
  const Piece* piece;
  bool wide;  // double, else float
  double weight;
};
template <typename T>
MERGEPLAN_HOST_DEVICE void AverageThread(const AverageArgs& q, std::int64_t at) {
  const Piece piece = q.piece[at / kThreads];
  T* average = static_cast<T*>(piece.average);
  const T* parameter = static_cast<const T*>(piece.parameter);
  const T weight = static_cast<T>(q.weight);
  // From the nearer end.
  const bool from_average = std::fabs(weight) < static_cast<T>(0.5);
  const T factor = from_average ? weight : weight - 1;
  for (std::int64_t i = at % kThreads; i < piece.numbers; i += kThreads) {
    const T old = average[i], now = parameter[i];
    average[i] = std::fma(factor, now - old, from_average ? old : now);
  }
}

}  // namespace mergeplan::network_device
