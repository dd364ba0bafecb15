#include "planner/base/shortest.h"

#include <charconv>

namespace mergeplan {

std::string ShortestText(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof(digits), value).ptr};
}

}  // namespace mergeplan
