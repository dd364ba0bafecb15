#pragma once

#include "planner/search/cuda/bodies.h"

// The border to the translation unit that nvcc compiles (launch.cu): plain functions, raw pointers,
// C++17. They return CUDA's error number, 0 for success; planner/device/cuda.h says how work is
// ordered.
namespace mergeplan::search::device::cuda {

int Run(void* stream, const TileArgs& args);
int Run(void* stream, const UntileArgs& args);
int Run(void* stream, const PairArgs& args);
int Run(void* stream, const ValueArgs& args);
int Run(void* stream, const CoveredArgs& args);
int Run(void* stream, const AmongArgs& args);
int Run(void* stream, const AppendArgs& args);
int Run(void* stream, const SlackArgs& args);

}  // namespace mergeplan::search::device::cuda
