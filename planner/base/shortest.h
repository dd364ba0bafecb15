#pragma once

#include <string>

namespace mergeplan {

// A number as a person would write it: the fewest digits that read back as the same.
std::string ShortestText(double value);

}  // namespace mergeplan
