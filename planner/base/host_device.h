#pragma once

// MERGEPLAN_HOST_DEVICE stands before small functions that loops on the processor and kernels on a
// device are both made of. What is so marked must be C++17 and use no library that device code
// lacks.
#if defined(__CUDACC__)
#define MERGEPLAN_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define MERGEPLAN_HOST_DEVICE inline __attribute__((always_inline))
#endif
