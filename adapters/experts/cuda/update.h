#pragma once

#include <cmath>

#include "adapters/experts/cuda/training.h"

// What one thread does of an update before and after the rows.
namespace mergeplan::experts_device {

// A task's slot of a kernel with `each` threads for every slot; what is left of `at` counts them.
struct SlotPlace {
  Size task, slot, rest;
  Size tables;  // number of the slot among all
};
template <typename T>
MERGEPLAN_HOST_DEVICE SlotPlace SlotOf(const Training<T>& q, Size at, Size each) {
  const Size tables = at / each;
  return {tables / q.slots, tables % q.slots, at % each, tables};
}
template <typename T>
MERGEPLAN_HOST_DEVICE bool HasWork(const Training<T>& q, const SlotPlace& place) {
  return place.slot < Slots(q, place.task) && Active(q, place.task);
}

// kBegin: a thread a slot.
template <typename T>
MERGEPLAN_HOST_DEVICE void BeginThread(const Training<T>& q, Size at) {
  const SlotPlace place = SlotOf(q, at, 1);
  if (!HasWork(q, place)) return;
  const TaskTable& task = q.task[place.task];
  const Size made = q.made[place.task];
  q.level[at] = task.first_level;
  if (task.levels > 1) {
    q.level[at] += experts::PickLevel(task.levels, task.seed, static_cast<std::uint64_t>(made),
                                      static_cast<int>(place.slot), static_cast<int>(q.slices)) -
                   1;
  }
  if (place.slot != 0 || q.adam == 0) return;
  const double k = static_cast<double>(made + 1);
  q.rate[2 * place.task] = q.lr / (1 - std::pow(q.beta1, k));
  q.rate[2 * place.task + 1] = 1 / std::sqrt(1 - std::pow(q.beta2, k));
}

// kPrepare: 2 H threads a slot, the first H for the gate and the others for the expert net.
template <typename T>
MERGEPLAN_HOST_DEVICE void PrepareThread(const Training<T>& q, Size at) {
  const SlotPlace place = SlotOf(q, at, 2 * q.H);
  if (!HasWork(q, place)) return;
  const T* p = q.p + place.task * q.parameters;
  const T* embedding = q.embedding + q.level[place.tables] * q.M;
  const bool gate = place.rest < q.H;
  const Size h = gate ? place.rest : place.rest - q.H;
  const T* w = gate ? p + h * (q.d + q.M) + q.d : p + q.expert_w1 + h * q.M;
  T sum = p[(gate ? q.gate_b1 : q.expert_b1) + h];
  for (Size i = 0; i < q.M; ++i) sum += w[i] * embedding[i];
  if (gate) {
    q.hidden[place.tables * q.H + h] = sum;
  } else {
    q.units[place.tables * q.H + h] = sum < 0 ? T{0} : sum;  // Not a maximum: a NaN has to pass.
  }
}

// kExperts: a thread for every number of the experts of a slot.
template <typename T>
MERGEPLAN_HOST_DEVICE void ExpertsThread(const Training<T>& q, Size at) {
  const SlotPlace place = SlotOf(q, at, q.outputs);
  if (!HasWork(q, place)) return;
  const T* p = q.p + place.task * q.parameters;
  const T* units = q.units + place.tables * q.H;
  const T* w = p + q.expert_w2 + place.rest * q.H;
  T sum = p[q.expert_b2 + place.rest];
  for (Size h = 0; h < q.H; ++h) sum += w[h] * units[h];
  const Size n = place.rest % (q.d * q.d + q.d);
  if (n < q.d * q.d && n / q.d == n % q.d) sum += 1;
  q.expert[at] = sum;
}

// kSums: a thread for every sum of a slot. Slots of other processes' rows are zero.
template <typename T>
MERGEPLAN_HOST_DEVICE void SumsThread(const Training<T>& q, Size at) {
  const SlotPlace place = SlotOf(q, at, q.sum.count);
  if (!HasWork(q, place)) return;
  Size begin = 0, end = q.parts;
  if (q.task[place.task].levels > 1) {
    const Size of_slice = kSliceTiles / q.part_tiles;
    begin = (place.slot - q.row_begin / kSliceRows) * of_slice;
    end = begin + of_slice;
    if (begin < 0) begin = end;
    if (end > q.parts) end = q.parts;
  }
  double sum = 0;
  for (Size part = begin; part < end; ++part) {
    sum += static_cast<double>(q.part[(place.task * q.parts + part) * q.sum.count + place.rest]);
  }
  q.sums[at] = static_cast<T>(sum);
}

// kPull: a thread for every hidden unit of the expert net of a slot.
template <typename T>
MERGEPLAN_HOST_DEVICE void PullThread(const Training<T>& q, Size at) {
  const SlotPlace place = SlotOf(q, at, q.H);
  if (!HasWork(q, place)) return;
  const T* w = q.p + place.task * q.parameters + q.expert_w2 + place.rest;
  const T* sums = q.sums + place.tables * q.sum.count + q.sum.expert;
  T pull = 0;
  for (Size o = 0; o < q.outputs; ++o) pull += w[o * q.H] * sums[o];
  q.pull[at] = q.units[at] > 0 ? pull : T{0};
}

// Half the derivative by parameter i, as far as it comes from one slot.
template <typename T>
MERGEPLAN_HOST_DEVICE T SlotGradient(const Training<T>& q, Size tables, Size i) {
  const T* sums = q.sums + tables * q.sum.count;
  const T* pull = q.pull + tables * q.H;
  const T* embedding = q.embedding + q.level[tables] * q.M;
  if (i < q.gate_b1) {
    const Size h = i / (q.d + q.M), c = i % (q.d + q.M);
    return c < q.d ? sums[q.sum.w1 + h * q.d + c] : sums[h] * embedding[c - q.d];
  }
  if (i < q.gate_w2) return sums[i - q.gate_b1];
  if (i < q.gate_b2) {
    const Size n = i - q.gate_w2;
    return sums[q.sum.w2 + n % q.H * q.E + n / q.H];
  }
  if (i < q.expert_w1) return sums[q.sum.b2 + i - q.gate_b2];
  if (i < q.expert_b1) {
    const Size n = i - q.expert_w1;
    return pull[n / q.M] * embedding[n % q.M];
  }
  if (i < q.expert_w2) return pull[i - q.expert_b1];
  if (i < q.expert_b2) {
    const Size n = i - q.expert_w2;
    return sums[q.sum.expert + n / q.H] * q.units[tables * q.H + n % q.H];
  }
  return sums[q.sum.expert + i - q.expert_b2];
}

// kGradient: a thread for every parameter; the first of a task adds up the loss too.
template <typename T>
MERGEPLAN_HOST_DEVICE void GradientThread(const Training<T>& q, Size at) {
  const Size task = at / q.parameters, i = at % q.parameters;
  if (!Active(q, task)) return;
  const Size first = task * q.slots, slots = Slots(q, task);
  double sum = 0;
  for (Size s = 0; s < slots; ++s) sum += static_cast<double>(SlotGradient(q, first + s, i));
  q.gradient[at] = static_cast<T>(2.0 / static_cast<double>(q.batch) * sum);
  if (i != 0) return;
  double loss = 0;
  for (Size s = 0; s < slots; ++s) {
    loss += static_cast<double>(q.sums[(first + s) * q.sum.count + q.sum.loss]);
  }
  q.loss[task] = loss;
}

// A finite number times 0 is 0, anything else is NaN.
MERGEPLAN_HOST_DEVICE bool IsFinite(double x) { return x * 0 == 0; }

// kCheck: a thread for every parameter. Several may write the same 1.
template <typename T>
MERGEPLAN_HOST_DEVICE void CheckThread(const Training<T>& q, Size at) {
  const Size task = at / q.parameters;
  if (!Active(q, task)) return;
  if (!IsFinite(static_cast<double>(q.gradient[at])) || !IsFinite(q.loss[task])) q.bad[task] = 1;
}

// kUpdate: a thread for every parameter, see optimizer.h.
template <typename T>
MERGEPLAN_HOST_DEVICE void UpdateThread(const Training<T>& q, Size at) {
  const Size task = at / q.parameters;
  if (!Active(q, task) || q.bad[task] != 0) return;
  const T g = q.gradient[at];
  if (q.adam == 0) {
    q.p[at] -= static_cast<T>(q.lr) * g;
    return;
  }
  const T beta1 = static_cast<T>(q.beta1), beta2 = static_cast<T>(q.beta2);
  const T m = q.m[at] + (1 - beta1) * (g - q.m[at]);
  const T v = beta2 * q.v[at] + (1 - beta2) * (g * g);
  q.m[at] = m;
  q.v[at] = v;
  const T root = std::sqrt(v) * static_cast<T>(q.rate[2 * task + 1]);
  q.p[at] -= static_cast<T>(q.rate[2 * task]) * (m / (root + static_cast<T>(q.epsilon)));
}

// kFinish: a thread a task.
template <typename T>
MERGEPLAN_HOST_DEVICE void FinishThread(const Training<T>& q, Size task) {
  if (!Active(q, task)) return;
  if (q.bad[task] != 0) {
    q.stopped[task] = 1;
    return;
  }
  const Size known = q.curve_size[task];
  if (known < q.curve_points && q.curve_at[known] == q.made[task]) {
    q.curve[task * q.curve_points + known] = q.loss[task] / static_cast<double>(q.batch);
    q.curve_size[task] = known + 1;
  }
  ++q.made[task];
}

// A thread of any kernel but kStep.
template <typename T>
MERGEPLAN_HOST_DEVICE void UpdateWork(Work work, const Training<T>& q, Size at) {
  switch (work) {
    case Work::kBegin:
      return BeginThread(q, at);
    case Work::kPrepare:
      return PrepareThread(q, at);
    case Work::kExperts:
      return ExpertsThread(q, at);
    case Work::kSums:
      return SumsThread(q, at);
    case Work::kPull:
      return PullThread(q, at);
    case Work::kGradient:
      return GradientThread(q, at);
    case Work::kCheck:
      return CheckThread(q, at);
    case Work::kUpdate:
      return UpdateThread(q, at);
    case Work::kFinish:
      return FinishThread(q, at);
    case Work::kRows:
    case Work::kStep:
    case Work::kPool:
      return;
  }
}

}  // namespace mergeplan::experts_device
