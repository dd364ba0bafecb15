#include "planner/spectrum/kernels.h"

#include <initializer_list>

namespace mergeplan {

namespace kernels_baseline {
const Kernels& Table();
}
#ifdef MERGEPLAN_HAVE_X86_64_COPIES
namespace kernels_x86_64_v3 {
const Kernels& Table();
}
namespace kernels_x86_64_v4 {
const Kernels& Table();
}
#endif

const Kernels& BaselineKernels() { return kernels_baseline::Table(); }

const Kernels* X8664V3Kernels() {
#ifdef MERGEPLAN_HAVE_X86_64_COPIES
  // What GCC calls the level "x86-64-v3", by features, since Clang 14 does not know that name.
  static const bool usable = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                             __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  return usable ? &kernels_x86_64_v3::Table() : nullptr;
#else
  return nullptr;
#endif
}

const Kernels* X8664V4Kernels() {
#ifdef MERGEPLAN_HAVE_X86_64_COPIES
  static const bool usable =
      X8664V3Kernels() != nullptr && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return usable ? &kernels_x86_64_v4::Table() : nullptr;
#else
  return nullptr;
#endif
}

const Kernels& BestKernels() {
  for (const Kernels* fast : {X8664V4Kernels(), X8664V3Kernels()}) {
    if (fast != nullptr) return *fast;
  }
  return BaselineKernels();
}

}  // namespace mergeplan
