#include "adapters/judge/peak_memory.h"

#include <fstream>
#include <string>

namespace mergeplan::judge {

bool ResetPeakMemory() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5";
  file.close();
  return !file.fail();
}

std::int64_t PeakMemorySinceReset() {
  std::ifstream file("/proc/self/status");
  std::string key;
  while (file >> key) {
    std::int64_t kilobytes = 0;
    if (key == "VmHWM:" && file >> kilobytes) return kilobytes * 1024;
    std::getline(file, key);
  }
  return 0;
}

}  // namespace mergeplan::judge
