#pragma once

#include <cstddef>

#include "adapters/experts/trainer.h"

namespace mergeplan::experts {

// Training by kernels on a visible CUDA device, by its number from 0: everything of an update is
// done there, on the inputs that the processor would draw. Single teacher's steps in targets have
// the processor's digits, all other sums an order of their own, so results agree to rounding.
// Making a trainer is UNAVAILABLE where there is no such device, RESOURCE_EXHAUSTED where its
// memory does not suffice. A Save between two calls of Advance costs nothing: what is saved has
// been copied.
MakeTrainer TrainOnCuda(int device);
// The kernels' threads as loops, for tests, which may say how much memory the work is cut for:
// bytes of a block, and of each piece of scratch. Results depend on the second by rounding.
MakeTrainer TrainOnEmulation(std::size_t block_bytes = 48 << 10,
                             std::size_t scratch_bytes = 256U << 20);

}  // namespace mergeplan::experts
