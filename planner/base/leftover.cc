#include "planner/base/leftover.h"

namespace mergeplan {

bool IsHalfWritten(std::string_view name) { return name.find(".tmp-") != std::string_view::npos; }

bool IsLeftover(std::string_view name) {
  return name == "lock" || name.substr(0, 1) == "." || IsHalfWritten(name);
}

}  // namespace mergeplan
