#include "planner/spectrum/kernels.h"

namespace mergeplan {

namespace kernels_baseline {
const Kernels& Table();
}
#ifdef MERGEPLAN_HAVE_X86_64_V3
namespace kernels_x86_64_v3 {
const Kernels& Table();
}
#endif

const Kernels& BaselineKernels() { return kernels_baseline::Table(); }

const Kernels* X8664V3Kernels() {
#ifdef MERGEPLAN_HAVE_X86_64_V3
  // What GCC calls the level "x86-64-v3", by features, since Clang 14 does not know that name.
  static const bool usable = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                             __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  return usable ? &kernels_x86_64_v3::Table() : nullptr;
#else
  return nullptr;
#endif
}

const Kernels& BestKernels() {
  const Kernels* fast = X8664V3Kernels();
  return fast != nullptr ? *fast : BaselineKernels();
}

}  // namespace mergeplan
