#pragma once

#include <cstddef>
#include <cstdint>

// What the module mergeplan-mpi.so gives. Program and module are built together, so there are no
// versions; the functions return 0 or an MPI error code.

namespace mergeplan {

struct MpiFunctions {
  int rank = 0, ranks = 1;
  int (*sum_double)(double* numbers, std::int64_t n) = nullptr;
  int (*sum_float)(float* numbers, std::int64_t n) = nullptr;
  int (*broadcast)(void* bytes, std::int64_t n) = nullptr;
  int (*barrier)() = nullptr;
  // MPI's words for an error, cut to `size` bytes.
  void (*describe)(int error, char* text, std::size_t size) = nullptr;
  // Ends MPI when all ranks have come here within `seconds`; else the whole job.
  void (*finish)(double seconds) = nullptr;
};

// The module's one symbol: starts MPI. Null, with words in `error`, where that fails.
using MpiOpen = const MpiFunctions* (*)(char* error, std::size_t size);
inline constexpr char kMpiOpenSymbol[] = "mergeplan_mpi_open";

}  // namespace mergeplan
