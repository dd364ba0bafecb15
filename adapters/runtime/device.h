#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mergeplan {

// Where training runs.
struct Device {
  bool cuda = false;
  int index = 0;

  std::string ToString() const;  // "cpu", "cuda:0"
};

// Reads "cpu", "cuda" or "cuda:1"; "cuda" is the device of this process's number among those that
// mpirun or torchrun started on this machine, else the first. For CUDA it opens LibTorch's CUDA
// library, which the program itself does not link (so that it starts quickly and without a
// toolkit), and checks that the device is there. INVALID_ARGUMENT for an unknown word; UNAVAILABLE
// says what is missing.
absl::StatusOr<Device> OpenDevice(const std::string& word);

// How many threads LibTorch uses inside one operation; 0: as many as the machine has. Returns the
// number in force.
int SetThreads(int threads);

// "2.11.0": the LibTorch the program was built with.
std::string TorchVersion();

}  // namespace mergeplan
