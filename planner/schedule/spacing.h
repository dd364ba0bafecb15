#pragma once

#include <string_view>
#include <vector>

namespace mergeplan {

// The timesteps of a sampler, noisiest first, as the three spacings of diffusers choose them out of
// `train` training timesteps (table 2 of Lin et al. 2023). All are whole numbers in float64, halves
// rounded to even, except where said. The arithmetic is numpy's, since a half may fall either way.

// Both ends: `steps` points from 0 to train - 1, rounded or not.
std::vector<double> LinspaceTimesteps(int train, int steps, bool rounded);
// Multiples of train / steps (rounded down) from 0, plus an offset.
std::vector<double> LeadingTimesteps(int train, int steps, int offset);
// From train - 1 down in steps of train / steps. For some `steps` (61 is the first) numpy's
// rounding gives one point more, -1.
std::vector<double> TrailingTimesteps(int train, int steps);

// The multistep samplers ask for steps + 1 points and leave out the cleanest; `last` is the number
// of training timesteps that clipping leaves.
std::vector<double> MultistepLinspaceTimesteps(int last, int steps);
std::vector<double> MultistepLeadingTimesteps(int last, int steps, int offset);
std::vector<double> MultistepTrailingTimesteps(int train, int last, int steps);

}  // namespace mergeplan
