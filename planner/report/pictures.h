#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/report/report.h"

namespace mergeplan {

using Colour = std::array<std::uint8_t, 3>;
// Blue (-1) over white (0) to red (+1); values beyond are cut.
Colour DivergingColour(double value);
// "#rrggbb".
std::string ColourText(const Colour& colour);

// A covariance as a picture.
struct Heatmap {
  std::string data_uri;
  double limit = 0;  // the colours end at ±limit, the largest cell
  int cell = 1;      // each cell is the mean of cell x cell entries
  int side = 0;      // cells per side
};
// At most 448 cells a side; small matrices are enlarged. `covariance` is d x d, row-major. O(d^2).
absl::StatusOr<Heatmap> DrawHeatmap(const std::vector<double>& covariance, int d);

// What a student makes of the same noise.
struct SampleRow {
  std::string label;
  std::string detail;                  // distance from the surrogate, in words
  std::vector<std::vector<double>> x;  // one vector of d numbers per sample, in native data
  std::string data_uri;                // the strip of pictures; empty where the shape is none
  std::string difference_uri;          // from the surrogate's, times `gain`; empty for its own
  double gain = 1;
};

enum class SampleKind { kPictures, kLines, kNone };

struct SampleGrid {
  SampleKind kind = SampleKind::kNone;
  std::string explanation;  // what is shown, or why nothing is
  std::string unit;         // of the distances: "grey levels" or "data units"
  int samples = 0;
  std::vector<SampleRow> rows;
};

// Draws z ~ N(0, I) in the plan's basis from `input.seed`, lets the teacher (`tau_teacher`), the
// surrogate (`tau_surrogate`) and every strategy's achieved V scale the same z, rotates back with
// the principal directions, adds the mean and undoes the scaling. `plan` is the document whose
// basis and data_scale count. Shapes {H, W}, {1, H, W}, {3, H, W} are pictures, {C, H, W} shows its
// first channel; others are lines, or nothing where they are too long. O(rows samples d^2).
absl::StatusOr<SampleGrid> DrawSamples(const ReportInput& input, const PlanDocument& plan,
                                       const std::vector<double>& tau_surrogate,
                                       const std::vector<double>& tau_teacher);

}  // namespace mergeplan
