#pragma once

#include <string_view>
#include <vector>

#include "planner/schedule/diffusers_options.h"

namespace mergeplan {

const std::vector<SamplerClass>& SamplerClasses();

// Is `word` one of the blank-separated `words`?
bool HasWord(std::string_view words, std::string_view word);

// Is it an option of some class that moves no noise level?
bool IsInertOption(std::string_view key);

// Puts in the defaults of o.sampler that differ from those of SamplerOptions.
void ApplyClassDefaults(SamplerOptions& o);

}  // namespace mergeplan
