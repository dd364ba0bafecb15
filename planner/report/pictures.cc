#include "planner/report/pictures.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"
#include "planner/report/png.h"
#include "planner/report/text.h"
#include "planner/spectrum/basis.h"

namespace mergeplan {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixMap = Eigen::Map<const Matrix>;
using VectorMap = Eigen::Map<const Eigen::VectorXd>;

constexpr int kSamples = 8;
constexpr int kLongestLine = 4096;

std::uint8_t Byte(double value) {
  return static_cast<std::uint8_t>(
      std::lround(std::clamp(std::isfinite(value) ? value : 0.0, 0.0, 255.0)));
}

// Standard normal numbers that are the same everywhere: the library's distribution is not fixed by
// the standard, this is (Box and Muller on a Mersenne twister).
class Normal {
 public:
  explicit Normal(std::uint64_t seed) : bits_(seed) {}
  double operator()() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    const double radius = std::sqrt(-2 * std::log(Uniform()));
    const double angle = 2 * M_PI * Uniform();
    spare_ = radius * std::sin(angle);
    has_spare_ = true;
    return radius * std::cos(angle);
  }

 private:
  // In (0, 1].
  double Uniform() { return (static_cast<double>(bits_() >> 11) + 1) * 0x1p-53; }
  std::mt19937_64 bits_;
  double spare_ = 0;
  bool has_spare_ = false;
};

struct Picture {
  int channels = 0;  // drawn: 1 or 3; 0 = no picture
  int height = 0, width = 0;
  bool first_of_many = false;
};

Picture PictureOf(const std::vector<std::int64_t>& shape) {
  constexpr std::int64_t kLargest = 2048;
  const auto side = [](std::int64_t n) { return n > 1 && n <= kLargest; };
  if (shape.size() == 2 && side(shape[0]) && side(shape[1])) {
    return {1, static_cast<int>(shape[0]), static_cast<int>(shape[1]), false};
  }
  if (shape.size() == 3 && shape[0] >= 1 && side(shape[1]) && side(shape[2])) {
    return {shape[0] == 3 ? 3 : 1, static_cast<int>(shape[1]), static_cast<int>(shape[2]),
            shape[0] != 1 && shape[0] != 3};
  }
  return {};
}

// Rounded down to 1, 2 or 5 times a power of ten; 1 where there is nothing to enlarge.
double RoundGain(double most) {
  if (!std::isfinite(most) || most <= 0) return 1;
  const double power = std::pow(10, std::floor(std::log10(most)));
  return power * (most >= 5 * power ? 5 : most >= 2 * power ? 2 : 1);
}

// The samples of one row side by side, each enlarged by a whole factor, with a white gap. Grey
// level = (x - black) * scale.
absl::StatusOr<std::string> Strip(const Picture& picture,
                                  const std::vector<std::vector<double>>& samples, double black,
                                  double scale) {
  const int factor = std::max(1, 112 / picture.width);
  const int gap = std::max(2, picture.width * factor / 16);
  const int width = static_cast<int>(samples.size()) * (picture.width * factor + gap) - gap;
  const int height = picture.height * factor;
  const int channels = picture.channels;
  const int plane = picture.height * picture.width;
  std::vector<std::uint8_t> pixels(static_cast<size_t>(width) * height * channels, 255);
  for (size_t s = 0; s < samples.size(); ++s) {
    const int offset = static_cast<int>(s) * (picture.width * factor + gap);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < picture.width * factor; ++x) {
        const int from = (y / factor) * picture.width + x / factor;
        std::uint8_t* to = &pixels[(static_cast<size_t>(y) * width + offset + x) * channels];
        for (int c = 0; c < channels; ++c) {
          to[c] = Byte((samples[s][c * plane + from] - black) * scale);
        }
      }
    }
  }
  return PngDataUri(width, height, channels, pixels);
}

}  // namespace

Colour DivergingColour(double value) {
  static constexpr double kStops[5][3] = {
      {27, 71, 133}, {113, 167, 212}, {250, 250, 250}, {232, 140, 108}, {146, 22, 36}};
  const double at = 2 + 2 * std::clamp(std::isfinite(value) ? value : 0.0, -1.0, 1.0);
  const int k = std::min(static_cast<int>(at), 3);
  Colour out;
  for (int c = 0; c < 3; ++c) {
    out[c] = Byte(kStops[k][c] + (at - k) * (kStops[k + 1][c] - kStops[k][c]));
  }
  return out;
}

std::string ColourText(const Colour& colour) {
  return absl::StrFormat("#%02x%02x%02x", colour[0], colour[1], colour[2]);
}

absl::StatusOr<Heatmap> DrawHeatmap(const std::vector<double>& covariance, int d) {
  constexpr int kLargest = 448;
  if (d < 1 || covariance.size() != static_cast<size_t>(d) * d) {
    return absl::InvalidArgumentError(
        absl::StrFormat("covariance has %d entries, expected %d x %d", covariance.size(), d, d));
  }
  Heatmap map;
  map.cell = (d + kLargest - 1) / kLargest;
  map.side = (d + map.cell - 1) / map.cell;
  std::vector<double> cells(static_cast<size_t>(map.side) * map.side, 0.0);
  for (int r = 0; r < map.side; ++r) {
    for (int c = 0; c < map.side; ++c) {
      // The cells of the last row and column may be smaller.
      const int row_end = std::min(d, (r + 1) * map.cell),
                col_end = std::min(d, (c + 1) * map.cell);
      double sum = 0;
      for (int i = r * map.cell; i < row_end; ++i) {
        for (int j = c * map.cell; j < col_end; ++j) {
          sum += covariance[static_cast<size_t>(i) * d + j];
        }
      }
      const double mean = sum / ((row_end - r * map.cell) * (col_end - c * map.cell));
      cells[static_cast<size_t>(r) * map.side + c] = std::isfinite(mean) ? mean : 0.0;
      map.limit = std::max(map.limit, std::isfinite(mean) ? std::abs(mean) : 0.0);
    }
  }
  const int factor = std::max(1, 256 / map.side);
  const int side = map.side * factor;
  std::vector<std::uint8_t> pixels(static_cast<size_t>(side) * side * 3);
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const double cell = cells[static_cast<size_t>(y / factor) * map.side + x / factor];
      const Colour colour = DivergingColour(map.limit > 0 ? cell / map.limit : 0.0);
      std::copy(colour.begin(), colour.end(), &pixels[(static_cast<size_t>(y) * side + x) * 3]);
    }
  }
  MP_ASSIGN_OR_RETURN(map.data_uri, PngDataUri(side, side, 3, pixels));
  return map;
}

absl::StatusOr<SampleGrid> DrawSamples(const ReportInput& input, const PlanDocument& plan,
                                       const std::vector<double>& tau_surrogate,
                                       const std::vector<double>& tau_teacher) {
  SampleGrid grid;
  const Spectrum* spectrum = input.spectrum;
  if (spectrum == nullptr) {
    grid.explanation = "No spectrum was given, so samples cannot be turned back into data.";
    return grid;
  }
  const int d = plan.dimensions();
  const bool rotate = plan.basis == "pca" || plan.basis == "dct";
  if (!rotate && plan.basis != "diagonal") {
    grid.explanation =
        absl::StrCat("The plan was made for variances that were given without a basis (“",
                     plan.basis, "”), so samples cannot be turned back into data.");
    return grid;
  }
  const std::vector<double> axes =
      rotate ? BasisVectors(*spectrum, plan.basis) : std::vector<double>();
  if (rotate && axes.empty()) {
    grid.explanation =
        absl::StrCat("The plan was made along ", plan.basis == "pca" ? "principal" : "DCT",
                     " axes that the spectrum does not hold, so samples cannot be turned back into "
                     "data.");
    return grid;
  }
  const Picture picture = PictureOf(spectrum->shape);
  if (picture.channels == 0 && (d < 2 || d > kLongestLine)) {
    grid.explanation = d < 2 ? "The data has one dimension: there is no picture to draw."
                             : absl::StrCat("The data is no picture, and its ", Grouped(d),
                                            " numbers are too many for a line.");
    return grid;
  }
  grid.kind = picture.channels > 0 ? SampleKind::kPictures : SampleKind::kLines;
  grid.samples = grid.kind == SampleKind::kPictures ? kSamples : 3;

  Matrix noise(grid.samples, d);
  Normal normal(input.seed);
  for (int s = 0; s < grid.samples; ++s) {
    for (int k = 0; k < d; ++k) noise(s, k) = normal();
  }
  // x = mean + data_scale · (z V) rotated; back to the values as stored: (x - add) / multiply.
  const auto row = [&](const std::string& label, const std::vector<double>& value) {
    SampleRow out;
    out.label = label;
    Matrix x = noise * VectorMap(value.data(), d).asDiagonal();
    x *= plan.data_scale;
    if (rotate) x = (x * MatrixMap(axes.data(), d, d)).eval();
    x.rowwise() += VectorMap(spectrum->mean.data(), d).transpose();
    const Scaling& scaling = spectrum->scaling;
    if (scaling.multiply != 0) x = (x.array() - scaling.add) / scaling.multiply;
    for (int s = 0; s < grid.samples; ++s) out.x.emplace_back(x.row(s).begin(), x.row(s).end());
    return out;
  };
  grid.rows.push_back(row("teacher", tau_teacher));
  grid.rows.push_back(row("surrogate", tau_surrogate));
  for (const StrategyResult& strategy : input.strategies) {
    if (!strategy.value.empty()) grid.rows.push_back(row(strategy.name, strategy.value));
  }

  // Pixels that were scaled come back as 0..255; other numbers are shown between the ends of the
  // teacher's samples.
  const bool pixels = spectrum->scaling.text != "none";
  double black = 0, white = 255;
  if (!pixels) {
    black = INFINITY;
    white = -INFINITY;
    for (const auto& sample : grid.rows.front().x) {
      for (double v : sample) {
        if (!std::isfinite(v)) continue;
        black = std::min(black, v);
        white = std::max(white, v);
      }
    }
    if (!(white > black)) black -= 1, white = black + 2;
  }
  grid.unit = pixels ? "grey levels" : "data units";

  // Distances from the surrogate's samples.
  const SampleRow& surrogate = grid.rows[1];
  const double scale = 255 / (white - black);
  for (SampleRow& r : grid.rows) {
    if (&r == &surrogate) continue;
    double sum = 0, most = 0;
    for (int s = 0; s < grid.samples; ++s) {
      for (int k = 0; k < d; ++k) {
        const double difference = r.x[s][k] - surrogate.x[s][k];
        sum += difference * difference;
        most = std::max(most, std::abs(difference));
      }
    }
    r.detail =
        absl::StrCat(ShortNumber(std::sqrt(sum / (static_cast<double>(grid.samples) * d)), 3), " ",
                     grid.unit, " from the surrogate");
    r.gain = RoundGain(127 / (most * scale));
  }
  if (grid.kind == SampleKind::kLines) {
    grid.explanation = absl::StrCat(Count(grid.samples, "sample"), ", each number over its index.");
    return grid;
  }

  for (SampleRow& r : grid.rows) {
    MP_ASSIGN_OR_RETURN(r.data_uri, Strip(picture, r.x, black, scale));
    if (&r == &surrogate) continue;
    std::vector<std::vector<double>> difference = r.x;
    for (int s = 0; s < grid.samples; ++s) {
      for (int k = 0; k < d; ++k) {
        difference[s][k] = 127.5 + r.gain * scale * (r.x[s][k] - surrogate.x[s][k]);
      }
    }
    MP_ASSIGN_OR_RETURN(r.difference_uri, Strip(picture, difference, 0, 1));
  }
  grid.explanation = absl::StrCat(
      picture.first_of_many ? "Only the first channel is drawn. " : "",
      pixels ? "The scaling is undone; grey levels beyond 0..255 are cut."
             : absl::StrCat("Black is ", ShortNumber(black), " and white ", ShortNumber(white),
                            ", the ends of the teacher's samples."));
  return grid;
}

}  // namespace mergeplan
