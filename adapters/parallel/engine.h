#pragma once

#include <cstddef>
#include <cstdint>

// What a module that speaks to other processes gives: mergeplan-mpi.so, mergeplan-nccl.so. Program
// and modules are built together, so there are no versions; the functions return 0 or the engine's
// error code.

namespace mergeplan {

struct EngineFunctions {
  int rank = 0, ranks = 1;
  int (*sum_double)(double* numbers, std::int64_t n) = nullptr;
  int (*sum_float)(float* numbers, std::int64_t n) = nullptr;
  int (*broadcast)(void* bytes, std::int64_t n) = nullptr;
  int (*barrier)() = nullptr;
  // The engine's words for an error that it returned last, cut to `size` bytes.
  void (*describe)(int error, char* text, std::size_t size) = nullptr;
  // Ends the engine when all ranks have come here within `seconds`; else the whole job, as far as
  // the engine can.
  void (*finish)(double seconds) = nullptr;
};

// A module's one symbol: starts the engine. Null, with words in `error`, where that fails.
using EngineOpen = const EngineFunctions* (*)(char* error, std::size_t size);
inline constexpr char kEngineOpenSymbol[] = "mergeplan_engine_open";

}  // namespace mergeplan
