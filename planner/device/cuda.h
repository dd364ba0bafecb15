#pragma once

#include <cstddef>

// CUDA's calls as plain functions: raw pointers, C++17. Every function that can fail returns CUDA's
// error number, 0 for success. Work goes into one stream, in order; only Download waits for it, and
// errors of kernels show there.
namespace mergeplan::device::cuda {

// The text of an error number, owned by the library.
const char* ErrorText(int error);

// Opens a visible device by its number, from 0: its name and memory in GiB as text into `name`, and
// a stream. No driver, no device of that number: an error, after no more than a few milliseconds.
int Open(int device, char* name, std::size_t size, void** stream);
void Close(void* stream);
// Lets this thread's calls go to a device; Open has done so for the thread that called it.
int Use(int device);

int Allocate(std::size_t bytes, void** memory);
void Release(void* memory);
int Upload(void* stream, void* to, const void* from, std::size_t bytes);
int Download(void* stream, void* to, const void* from, std::size_t bytes);
int Copy(void* stream, void* to, const void* from, std::size_t bytes);
int Zero(void* stream, void* to, std::size_t bytes);

// Between the two calls launches into the stream are not carried out but taken down; EndRecord
// makes a graph of them that Replay launches as one. A kernel's first launch must come before.
int BeginRecord(void* stream);
int EndRecord(void* stream, void** graph);
int Replay(void* stream, void* graph);
void DropGraph(void* graph);

}  // namespace mergeplan::device::cuda
