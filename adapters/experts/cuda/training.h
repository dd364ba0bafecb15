#pragma once

#include <cstddef>
#include <cstdint>

#include "adapters/experts/draws.h"
#include "adapters/experts/kernel.h"
#include "planner/device/blocks.h"
#include "planner/mixture/row_draw.h"

// A training as the kernels see it: sizes, and raw pointers into the backend's memory. C++17. Every
// kernel takes all of it, by value, and nothing else, so that the launches of an update are the
// same for every update and can be recorded once: which update it is stands in the memory.
namespace mergeplan::experts_device {

using Size = std::int64_t;

constexpr Size kSliceRows = 256;  // of trainer.h
constexpr Size kTileRows = 32;    // that a block takes at a time: a warp's width
constexpr Size kSliceTiles = kSliceRows / kTileRows;

// One student in training.
struct TaskTable {
  std::uint64_t seed;
  int first_level;
  int levels;  // 1: every row is at first_level; more: a level for every slice
  int target;  // number of the chain of first_level, the next levels' follow
};

// Frozen operators one after the other: links begin .. end - 1.
struct Chain {
  int begin, end;
};
template <typename T>
struct Link {
  int is_student = 0;
  mixture::StepTables step;         // of the teacher
  experts::LevelTables<T> student;  // padded as LevelNetwork has it
};

// Where the sums over rows stand, `count` of them: half the derivative of the squared error.
struct SumPlaces {
  Size w1;      // H x d, after H of the derivative by the hidden units' constant part
  Size w2;      // H x E
  Size b2;      // E
  Size expert;  // E x (d^2 + d)
  Size loss;    // 1
  Size count;
};

// T is float or double, the numbers inside the students.
template <typename T>
struct Training {
  // Sizes. Rows, slices and parts are this process's, of those that share every batch.
  Size tasks, d, E, H, M;
  Size steps;       // levels 0..steps
  Size parameters;  // of one student, in the order of NetworkShape, that begin at:
  Size gate_b1, gate_w2, gate_b2, expert_w1, expert_b1, expert_w2, expert_b2;
  Size outputs;  // E (d^2 + d)
  SumPlaces sum;
  Size updates, batch;
  Size row_begin, row_end;  // of a batch; row_begin is a multiple of kSliceRows
  Size slices;              // of a whole batch
  Size slots;               // sets of level tables of a task: slices where one has several levels
  Size part_tiles;          // tiles whose sums a block adds up: a divisor of kSliceTiles
  Size parts;               // of row_end - row_begin
  Size lanes;               // threads that draw rows
  Size blocks;              // that take the mixture step
  Size curve_points;
  // Options.
  int adam, pooled;
  double lr, beta1, beta2, epsilon;
  Size pool_rows, data_rows;

  // Read only.
  const TaskTable* task;           // [tasks]
  const T* embedding;              // [steps + 1][M]
  const mixture::DrawTables* law;  // [steps + 1]
  const double* data;              // [data_rows][d], null: the law
  const Chain* chains;
  const Link<T>* links;
  const Size* curve_at;  // [curve_points]

  // What a training is made of.
  Size* made;                    // [tasks] updates
  int* stopped;                  // [tasks] the loss or a derivative was not finite
  T *p, *m, *v;                  // [tasks][parameters]; m and v of Adam
  double* curve;                 // [tasks][curve_points]
  Size* curve_size;              // [tasks]
  double *pool_z, *pool_target;  // [tasks][pool_rows][d]

  // Of the update that is being made.
  int* level;          // [tasks][slots]
  double* rate;        // [tasks][2]: Adam's corrected rate, and what its root is multiplied by
  T* hidden;           // [tasks][slots][H]: what the embedding gives to the gate's hidden units
  T* units;            // [tasks][slots][H]: the activated hidden units of the expert net
  T* expert;           // [tasks][slots][outputs]
  double *z, *target;  // [tasks][row_end - row_begin][d]
  double* scratch;     // [RowScratch][lanes]
  T* block_memory;     // [blocks][StepNumbers], null: the blocks' shared memory
  T* part;             // [tasks][parts][sum.count]
  T* sums;             // [tasks][slots][sum.count]
  T* pull;             // [tasks][slots][H]: the derivative by the expert net's hidden units
  T* gradient;         // [tasks][parameters]
  double* loss;        // [tasks]: squared error, summed over the batch
  int* bad;            // [tasks]
};

template <typename T>
MERGEPLAN_HOST_DEVICE bool Active(const Training<T>& q, Size task) {
  return q.stopped[task] == 0 && q.made[task] < q.updates;
}
template <typename T>
MERGEPLAN_HOST_DEVICE Size Slots(const Training<T>& q, Size task) {
  return q.task[task].levels > 1 ? q.slices : 1;
}
template <typename T>
MERGEPLAN_HOST_DEVICE bool Pooled(const Training<T>& q, Size task) {
  return q.pooled != 0 && q.task[task].levels == 1;
}

// The kernels of an update, in their order; kPool comes once, before the first.
enum class Work {
  kBegin,     // levels, Adam's corrections
  kPrepare,   // hidden units that depend on the level only
  kExperts,   // the experts at the levels
  kRows,      // draws the rows and their targets
  kStep,      // the student's gate, experts and sum, forward and backward, and sums over rows
  kSums,      // sums of the parts
  kPull,      // back through the experts' last layer
  kGradient,  // of all parameters
  kCheck,     // is it finite?
  kUpdate,    // Adam or SGD
  kFinish,    // curve, counter
  kPool,      // fills the pools
};

// How many threads a kernel has (all but kStep).
template <typename T>
MERGEPLAN_HOST_DEVICE Size Threads(Work work, const Training<T>& q) {
  switch (work) {
    case Work::kBegin:
      return q.tasks * q.slots;
    case Work::kPrepare:
      return q.tasks * q.slots * 2 * q.H;
    case Work::kExperts:
      return q.tasks * q.slots * q.outputs;
    case Work::kSums:
      return q.tasks * q.slots * q.sum.count;
    case Work::kPull:
      return q.tasks * q.slots * q.H;
    case Work::kGradient:
    case Work::kCheck:
    case Work::kUpdate:
      return q.tasks * q.parameters;
    case Work::kFinish:
      return q.tasks;
    case Work::kRows:
    case Work::kPool:
    case Work::kStep:
      break;
  }
  return q.lanes;
}

}  // namespace mergeplan::experts_device
