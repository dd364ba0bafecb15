#pragma once

#include <cstddef>

#include "planner/search/cuda/bodies.h"

// The border to the translation unit that nvcc compiles (launch.cu): plain functions, raw pointers,
// C++17. Every function that can fail returns CUDA's error number, 0 for success. Work goes into
// one stream, in order; only Download waits for it, and errors of kernels show there.
namespace mergeplan::search::device::cuda {

// The text of an error number, owned by the library.
const char* ErrorText(int error);

// Opens the first visible device: its name and memory in GiB as text into `name`, and a stream. No
// driver, no device: an error, after no more than a few milliseconds.
int Open(char* name, std::size_t size, void** stream);
void Close(void* stream);

int Allocate(std::size_t bytes, void** memory);
void Release(void* memory);
int Upload(void* stream, void* to, const void* from, std::size_t bytes);
int Download(void* stream, void* to, const void* from, std::size_t bytes);
int Copy(void* stream, void* to, const void* from, std::size_t bytes);
int Zero(void* stream, void* to, std::size_t bytes);

int Run(void* stream, const TileArgs& args);
int Run(void* stream, const UntileArgs& args);
int Run(void* stream, const PairArgs& args);
int Run(void* stream, const ValueArgs& args);
int Run(void* stream, const CoveredArgs& args);
int Run(void* stream, const AmongArgs& args);
int Run(void* stream, const AppendArgs& args);
int Run(void* stream, const SlackArgs& args);

}  // namespace mergeplan::search::device::cuda
