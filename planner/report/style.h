#pragma once

#include <string>

namespace mergeplan {

// Shades of the rounds of a plan, light (trained first) to dark (trained last).
inline constexpr int kRoundShades = 16;
// The class that draws shade `round` of `rounds`: "a0" .. "a15".
std::string RoundClass(int round, int rounds);
// "#rrggbb" of a shade on white ground.
std::string RoundColour(int shade);

// The style sheet of the report: page, tables and pictures, for screens light and dark, wide and
// narrow, and for paper.
std::string PageCss();
// What a picture needs that stands alone, on white ground.
std::string ArcCss();

}  // namespace mergeplan
