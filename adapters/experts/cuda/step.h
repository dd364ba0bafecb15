#pragma once

#include "adapters/experts/cuda/training.h"
#include "planner/base/exponential.h"

// The mixture step of the student, forward and backward, by blocks of kThreads threads. A block
// takes kTileRows rows at a time, keeps everything about them in its memory, and leaves sums over
// them only. Its threads meet after every phase; thread t works on row t % kTileRows, but in the
// last phase, where it adds up numbers t, t + kThreads, ... over the rows.
namespace mergeplan::experts_device {

using device::kThreads;

constexpr int kStepPhases = 8;
constexpr Size kPitch = kTileRows + 1;  // so that threads at one row of several columns do not
                                        // meet in one bank of the shared memory
constexpr Size kTeam = kThreads / kTileRows;  // threads of a row

// Numbers of memory of a block.
MERGEPLAN_HOST_DEVICE Size StepNumbers(Size d, Size E, Size H) {
  return (3 * d + 2 * H + 2 * E + E * d) * kPitch;
}

// Columns of kPitch numbers.
template <typename T>
struct StepPieces {
  T* z;       // d
  T* y;       // d: the student
  T* error;   // d: the target, then the student less the target
  T* hidden;  // H: the activated hidden units of the gate
  T* pulled;  // H: the derivative by them
  T* weight;  // E: the softmax
  T* logit;   // E: the logits, then the derivative by them
  T* led;     // E x d: where each expert leads

  MERGEPLAN_HOST_DEVICE StepPieces(const Training<T>& q, T* memory)
      : z(memory),
        y(z + q.d * kPitch),
        error(y + q.d * kPitch),
        hidden(error + q.d * kPitch),
        pulled(hidden + q.H * kPitch),
        weight(pulled + q.H * kPitch),
        logit(weight + q.E * kPitch),
        led(logit + q.E * kPitch) {}
};

// Which rows of a task the tile has.
struct TileRows {
  Size first;  // of the batch
  Size count;  // 0: there is no such tile
  Size slot;
};
template <typename T>
MERGEPLAN_HOST_DEVICE TileRows RowsOfTile(const Training<T>& q, Size task, Size part, Size tile) {
  const Size first = q.row_begin + (part * q.part_tiles + tile) * kTileRows;
  const Size left = q.row_end - first;
  return {first, left < 0 ? 0 : (left < kTileRows ? left : kTileRows),
          q.task[task].levels > 1 ? first / kSliceRows : 0};
}

// Phase 0: rows to columns; the last row stands for those that are missing.
template <typename T>
MERGEPLAN_HOST_DEVICE void LoadPhase(const Training<T>& q, Size task, const TileRows& rows, Size r,
                                     Size me, const StepPieces<T>& s) {
  const Size row = rows.first + (r < rows.count ? r : rows.count - 1);
  const double *z, *target;
  if (Pooled(q, task)) {
    const Size at = task * q.pool_rows + (q.made[task] * q.batch + row) % q.pool_rows;
    z = q.pool_z + at * q.d;
    target = q.pool_target + at * q.d;
  } else {
    const Size at = task * (q.row_end - q.row_begin) + row - q.row_begin;
    z = q.z + at * q.d;
    target = q.target + at * q.d;
  }
  for (Size j = me; j < q.d; j += kTeam) {
    s.z[j * kPitch + r] = static_cast<T>(z[j]);
    s.error[j * kPitch + r] = static_cast<T>(target[j]);
  }
}

// Phase 1: hidden units, and where the experts lead.
template <typename T>
MERGEPLAN_HOST_DEVICE void UnitsPhase(const Training<T>& q, Size task, Size tables, Size r, Size me,
                                      const StepPieces<T>& s) {
  const T* p = q.p + task * q.parameters;
  for (Size h = me; h < q.H; h += kTeam) {
    T unit = q.hidden[tables * q.H + h];
    const T* w = p + h * (q.d + q.M);
    for (Size j = 0; j < q.d; ++j) unit += w[j] * s.z[j * kPitch + r];
    s.hidden[h * kPitch + r] = unit < 0 ? T{0} : unit;  // Not a maximum: a NaN has to pass.
  }
  for (Size i = me; i < q.E * q.d; i += kTeam) {
    const Size row = i % q.d;
    const T* expert = q.expert + tables * q.outputs + i / q.d * (q.d * q.d + q.d);
    T led = expert[q.d * q.d + row];
    for (Size j = 0; j < q.d; ++j) led += expert[row * q.d + j] * s.z[j * kPitch + r];
    s.led[i * kPitch + r] = led;
  }
}

// Phase 2: logits.
template <typename T>
MERGEPLAN_HOST_DEVICE void LogitsPhase(const Training<T>& q, Size task, Size r, Size me,
                                       const StepPieces<T>& s) {
  const T* p = q.p + task * q.parameters;
  for (Size e = me; e < q.E; e += kTeam) {
    T logit = p[q.gate_b2 + e];
    const T* w = p + q.gate_w2 + e * q.H;
    for (Size h = 0; h < q.H; ++h) logit += w[h] * s.hidden[h * kPitch + r];
    s.logit[e * kPitch + r] = logit;
  }
}

// Phase 3: weights. All threads of a row find the largest logit and the sum for themselves.
template <typename T>
MERGEPLAN_HOST_DEVICE void WeightsPhase(const Training<T>& q, Size r, Size me,
                                        const StepPieces<T>& s) {
  if (me >= q.E) return;
  T top = s.logit[r], total = 0;
  for (Size e = 1; e < q.E; ++e) {
    const T logit = s.logit[e * kPitch + r];
    top = logit > top ? logit : top;
  }
  for (Size e = 0; e < q.E; ++e) total += ExpOfNegative(s.logit[e * kPitch + r] - top);
  const T share = T{1} / total;
  for (Size e = me; e < q.E; e += kTeam) {
    s.weight[e * kPitch + r] = ExpOfNegative(s.logit[e * kPitch + r] - top) * share;
  }
}

// Phase 4: the student and its error.
template <typename T>
MERGEPLAN_HOST_DEVICE void ErrorPhase(const Training<T>& q, bool there, Size r, Size me,
                                      const StepPieces<T>& s) {
  for (Size i = me; i < q.d; i += kTeam) {
    T y = 0;
    for (Size e = 0; e < q.E; ++e) {
      y += s.weight[e * kPitch + r] * s.led[(e * q.d + i) * kPitch + r];
    }
    s.y[i * kPitch + r] = y;
    s.error[i * kPitch + r] = there ? y - s.error[i * kPitch + r] : T{0};
  }
}

// Phase 5: the derivative by a logit, w_e (error . led_e - error . y).
template <typename T>
MERGEPLAN_HOST_DEVICE void BackPhase(const Training<T>& q, Size r, Size me,
                                     const StepPieces<T>& s) {
  if (me >= q.E) return;
  T mean = 0;
  for (Size i = 0; i < q.d; ++i) mean += s.error[i * kPitch + r] * s.y[i * kPitch + r];
  for (Size e = me; e < q.E; e += kTeam) {
    T along = 0;
    for (Size i = 0; i < q.d; ++i) {
      along += s.error[i * kPitch + r] * s.led[(e * q.d + i) * kPitch + r];
    }
    s.logit[e * kPitch + r] = s.weight[e * kPitch + r] * (along - mean);
  }
}

// A product of up to three columns, summed over the rows of the tile; null columns are left out.
template <typename T>
MERGEPLAN_HOST_DEVICE T SumOfProducts(const T* a, const T* b, const T* c) {
  T sum = 0;
  for (Size r = 0; r < kTileRows; ++r) {
    T x = a[r];
    if (b != nullptr) x *= b[r];
    if (c != nullptr) x *= c[r];
    sum += x;
  }
  return sum;
}

// What number `i` of the sums is over the rows of the tile, see SumPlaces.
template <typename T>
MERGEPLAN_HOST_DEVICE T SumOfTile(const Training<T>& q, Size i, const StepPieces<T>& s) {
  const T* none = nullptr;
  const SumPlaces& at = q.sum;
  if (i < at.w1) return SumOfProducts(s.pulled + i * kPitch, none, none);
  if (i < at.w2) {
    const Size n = i - at.w1;
    return SumOfProducts(s.pulled + n / q.d * kPitch, s.z + n % q.d * kPitch, none);
  }
  if (i < at.b2) {
    const Size n = i - at.w2;
    return SumOfProducts(s.hidden + n / q.E * kPitch, s.logit + n % q.E * kPitch, none);
  }
  if (i < at.expert) return SumOfProducts(s.logit + (i - at.b2) * kPitch, none, none);
  if (i < at.loss) {
    const Size numbers = q.d * q.d + q.d;
    const Size e = (i - at.expert) / numbers, n = (i - at.expert) % numbers;
    const T* weight = s.weight + e * kPitch;
    if (n >= q.d * q.d) return SumOfProducts(weight, s.error + (n - q.d * q.d) * kPitch, none);
    return SumOfProducts(weight, s.error + n / q.d * kPitch, s.z + n % q.d * kPitch);
  }
  T sum = 0;
  for (Size j = 0; j < q.d; ++j) {
    sum += SumOfProducts(s.error + j * kPitch, s.error + j * kPitch, none);
  }
  return sum;
}

// What thread `thread` does in a phase, for tile `tile` of part `at` (of task at / parts). In one
// phase no thread reads what another one writes.
template <typename T>
MERGEPLAN_HOST_DEVICE void StepPhase(const Training<T>& q, Size at, Size tile, int phase,
                                     Size thread, T* memory) {
  const Size task = at / q.parts, part = at % q.parts;
  if (!Active(q, task)) return;
  const TileRows rows = RowsOfTile(q, task, part, tile);
  if (rows.count <= 0) return;
  const StepPieces<T> s(q, memory);
  const Size r = thread % kTileRows, me = thread / kTileRows;
  const Size tables = task * q.slots + rows.slot;
  switch (phase) {
    case 0:
      return LoadPhase(q, task, rows, r, me, s);
    case 1:
      return UnitsPhase(q, task, tables, r, me, s);
    case 2:
      return LogitsPhase(q, task, r, me, s);
    case 3:
      return WeightsPhase(q, r, me, s);
    case 4:
      return ErrorPhase(q, r < rows.count, r, me, s);
    case 5:
      return BackPhase(q, r, me, s);
    case 6: {
      const T* w = q.p + task * q.parameters + q.gate_w2;
      for (Size h = me; h < q.H; h += kTeam) {
        T pull = 0;
        for (Size e = 0; e < q.E; ++e) pull += w[e * q.H + h] * s.logit[e * kPitch + r];
        s.pulled[h * kPitch + r] = s.hidden[h * kPitch + r] > 0 ? pull : T{0};
      }
      return;
    }
    default:
      break;
  }
  T* sums = q.part + at * q.sum.count;
  for (Size i = thread; i < q.sum.count; i += kThreads) {
    const T sum = SumOfTile(q, i, s);
    sums[i] = tile == 0 ? sum : sums[i] + sum;
  }
}

}  // namespace mergeplan::experts_device
