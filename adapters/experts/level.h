#pragma once

#include <cstdint>
#include <vector>

#include "adapters/experts/aligned.h"
#include "adapters/experts/kernel.h"
#include "adapters/experts/network.h"

namespace mergeplan::experts {

// The student at one level. What depends on the time only (the embedding's part of the gate, the
// whole expert net) is computed once in Prepare, not for every row. T is float or double: the
// numbers' type inside; states come and go as double.
template <typename T>
class LevelNetwork {
 public:
  // `time` is t/T.
  LevelNetwork(const NetworkShape& shape, double time);
  // Prepare has to follow.
  void SetTime(double time);

  // Takes over the parameters (NetworkShape has their order). O(parameters).
  void Prepare(const T* parameters);
  // Of the last Prepare; valid as long as this object stays where it is.
  LevelTables<T> tables() const;

  // Adds to `gradient` (one number per parameter) what follows from the sums of AccumulateRows
  // (after SumLanes): gradient += scale * J^T sums. O(parameters).
  void AddGradient(const T* parameters, const T* sums, T scale, T* gradient);

 private:
  NetworkShape shape_;
  AlignedVector<T> embedding_, hidden_, w1_, w2_, b2_, expert_;
  AlignedVector<T> expert_hidden_;  // H: the activated hidden units of the expert net
  AlignedVector<T> pull_, scaled_;  // scratch of AddGradient
};

extern template class LevelNetwork<float>;
extern template class LevelNetwork<double>;

}  // namespace mergeplan::experts
