// The program that libFuzzer drives: MERGEPLAN_FUZZ_TARGET is one of target.h.
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mergeplan::fuzz::MERGEPLAN_FUZZ_TARGET.attack({reinterpret_cast<const char*>(data), size});
  return 0;
}
