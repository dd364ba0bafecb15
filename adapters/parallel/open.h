#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "adapters/parallel/communicator.h"

namespace mergeplan {

// The communicator that this process was started with, where there is more than one rank, else
// Alone(): that of mpirun (OpenMPI, or one with PMI_SIZE) by mergeplan-mpi.so, that of torchrun
// (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT) by mergeplan-nccl.so, one CUDA device a
// rank; both beside the running program. FAILED_PRECONDITION where there are several ranks but no
// such module, or the engine does not start: training alone on each of them is not what was asked
// for.
absl::StatusOr<std::shared_ptr<const Communicator>> OpenCommunicator();

// How many ranks share this machine, as the launcher says, and which of them this is, from 0; 1 and
// 0 where it says nothing.
int RanksOnThisMachine();
int RankOnThisMachine();

}  // namespace mergeplan
