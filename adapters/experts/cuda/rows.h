#pragma once

#include "adapters/experts/cuda/training.h"
#include "planner/base/exponential.h"

// Threads that draw rows of inputs and follow their targets, each a row at a time.
namespace mergeplan::experts_device {

using mixture::Lane;

// Numbers of scratch of a thread: two states, and what a step, a draw or a student needs.
MERGEPLAN_HOST_DEVICE std::size_t RowScratch(std::size_t K, std::size_t d, std::size_t r,
                                             std::size_t E) {
  const std::size_t step = mixture::RowStepScratch(K, d, r);
  return 2 * d + (step > E ? step : E);
}

// out = a frozen student of z, d numbers each, not overlapping; scratch has E numbers.
template <typename T>
MERGEPLAN_HOST_DEVICE void RowStudent(const experts::LevelTables<T>& s, Lane z, Lane out,
                                      Lane scratch) {
  constexpr std::size_t kBlock = experts::kExpertBlock;
  for (std::size_t e = 0; e < s.E; e += kBlock) {
    T sum[kBlock];
    for (std::size_t i = 0; i < kBlock; ++i) sum[i] = s.b2[e + i];
    for (std::size_t h = 0; h < s.H; ++h) {
      T unit = s.hidden[h];
      for (std::size_t j = 0; j < s.d; ++j) unit += s.w1[h * s.d + j] * static_cast<T>(z[j]);
      unit = unit < 0 ? T{0} : unit;  // Not a maximum: a NaN has to pass.
      for (std::size_t i = 0; i < kBlock; ++i) sum[i] += s.w2[h * s.padded + e + i] * unit;
    }
    for (std::size_t i = 0; i < kBlock && e + i < s.E; ++i) scratch[e + i] = sum[i];
  }
  T top = static_cast<T>(scratch[0]), total = 0;
  for (std::size_t e = 1; e < s.E; ++e) {
    const T logit = static_cast<T>(scratch[e]);
    top = logit > top ? logit : top;
  }
  for (std::size_t e = 0; e < s.E; ++e) {
    const T weight = ExpOfNegative(static_cast<T>(scratch[e]) - top);
    scratch[e] = weight;
    total += weight;
  }
  const T share = T{1} / total;
  for (std::size_t i = 0; i < s.d; ++i) {
    T y = 0;
    for (std::size_t e = 0; e < s.E; ++e) {
      const T* expert = s.expert + e * (s.d * s.d + s.d);
      T led = expert[s.d * s.d + i];
      for (std::size_t j = 0; j < s.d; ++j) led += expert[i * s.d + j] * static_cast<T>(z[j]);
      y += static_cast<T>(scratch[e]) * share * led;
    }
    out[i] = y;
  }
}

// Draws row `row` of a stream at a level, and makes its target: both d numbers.
template <typename T>
MERGEPLAN_HOST_DEVICE void Row(const Training<T>& q, Size task, experts::Stream stream, Size row,
                               int level, Lane memory, double* z, double* target) {
  const auto d = static_cast<std::size_t>(q.d);
  Lane state = memory, next = memory.From(d);
  const Lane scratch = memory.From(2 * d);
  const TaskTable& of = q.task[task];
  mixture::RowNumbers numbers(of.seed, static_cast<std::uint32_t>(stream),
                              static_cast<std::uint64_t>(row));
  const mixture::DrawTables& law = q.law[level];
  if (q.data != nullptr) {
    const experts::DataTables data{q.data, static_cast<std::size_t>(q.data_rows), d, law.alpha,
                                   law.sigma};
    experts::DrawFromData(data, numbers, state);
  } else {
    const std::size_t k = mixture::DrawComponent(law, numbers);
    mixture::DrawState(law, k, numbers, scratch, state);
  }
  for (std::size_t j = 0; j < d; ++j) z[j] = state[j];
  const Chain chain = q.chains[of.target + level - of.first_level];
  for (int i = chain.begin; i < chain.end; ++i) {
    const Link<T>& link = q.links[i];
    if (link.is_student != 0) {
      RowStudent(link.student, state, next, scratch);
    } else {
      mixture::RowStep(link.step, state, next, scratch);
    }
    const Lane other = state;
    state = next;
    next = other;
  }
  for (std::size_t j = 0; j < d; ++j) target[j] = state[j];
}

template <typename T>
MERGEPLAN_HOST_DEVICE Lane MemoryOf(const Training<T>& q, Size at) {
  return {q.scratch + at, static_cast<std::size_t>(q.lanes)};
}

// kRows: thread `at` takes every lanes-th row.
template <typename T>
MERGEPLAN_HOST_DEVICE void RowsThread(const Training<T>& q, Size at) {
  const Size rows = q.row_end - q.row_begin;
  for (Size i = at; i < q.tasks * rows; i += q.lanes) {
    const Size task = i / rows, row = q.row_begin + i % rows;
    if (!Active(q, task) || Pooled(q, task)) continue;
    const Size slot = q.task[task].levels > 1 ? row / kSliceRows : 0;
    Row(q, task, experts::Stream::kTraining, q.made[task] * q.batch + row,
        q.level[task * q.slots + slot], MemoryOf(q, at), q.z + i * q.d, q.target + i * q.d);
  }
}

// kPool: the same for the rows of the pools.
template <typename T>
MERGEPLAN_HOST_DEVICE void PoolThread(const Training<T>& q, Size at) {
  for (Size i = at; i < q.tasks * q.pool_rows; i += q.lanes) {
    const Size task = i / q.pool_rows;
    if (!Pooled(q, task)) continue;
    Row(q, task, experts::Stream::kPool, i % q.pool_rows, q.task[task].first_level, MemoryOf(q, at),
        q.pool_z + i * q.d, q.pool_target + i * q.d);
  }
}

}  // namespace mergeplan::experts_device
