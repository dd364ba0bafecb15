#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "adapters/parallel/communicator.h"

namespace mergeplan {

// The communicator that this process was started with: that of mpirun (OpenMPI, or one with
// PMI_SIZE), where there is more than one rank, else Alone(). Opens
// mergeplan-mpi.so beside the running program. FAILED_PRECONDITION where there are several ranks
// but no such module, or MPI does not start: training alone on each of them is not what was asked
// for.
absl::StatusOr<std::shared_ptr<const Communicator>> OpenCommunicator();

// How many ranks share this machine, as mpirun says; 1 where it says nothing.
int RanksOnThisMachine();

}  // namespace mergeplan
