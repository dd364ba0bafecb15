#include "adapters/judge/grid.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/status_macros.h"
#include "planner/report/png.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::judge {
namespace {

constexpr std::int64_t kLargestSide = 4096;
constexpr int kGap = 2;

struct Picture {
  int channels = 0, height = 0, width = 0;
  std::int64_t size() const { return std::int64_t{channels} * height * width; }
};

Picture PictureOf(const std::vector<std::int64_t>& shape) {
  const auto side = [](std::int64_t n) { return n >= 2 && n <= kLargestSide; };
  const std::size_t n = shape.size();
  if (n < 2 || n > 3 || !side(shape[n - 1]) || !side(shape[n - 2])) return {};
  const std::int64_t channels = n == 3 ? shape[0] : 1;
  if (channels != 1 && channels != 3) return {};
  return {static_cast<int>(channels), static_cast<int>(shape[n - 2]),
          static_cast<int>(shape[n - 1])};
}

std::uint8_t Byte(double value) {
  return static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0, 255.0)));
}

// Grey level = (x - black) * scale.
struct Levels {
  double black = 0, scale = 1;
};

absl::StatusOr<Levels> LevelsOf(const std::string& scaling, absl::Span<const float> samples) {
  if (!scaling.empty() && scaling != "none") {
    MP_ASSIGN_OR_RETURN(const Scaling pixels, ParseScaling(scaling));
    return Levels{pixels.add, 1 / pixels.multiply};
  }
  const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
  const double range = static_cast<double>(*most) - *least;
  return Levels{*least, range > 0 ? 255 / range : 0.0};
}

}  // namespace

absl::Status CheckPicture(const std::vector<std::int64_t>& shape) {
  if (PictureOf(shape).channels > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("samples of the shape [", absl::StrJoin(shape, ", "),
                   "] are no pictures, expected [H, W], [1, H, W] or [3, H, W] with sides of 2 to ",
                   kLargestSide));
}

absl::StatusOr<std::string> GridPng(absl::Span<const float> samples,
                                    const std::vector<std::int64_t>& shape,
                                    const std::string& scaling, const GridOptions& options) {
  MP_RETURN_IF_ERROR(CheckPicture(shape));
  const Picture picture = PictureOf(shape);
  const auto size = static_cast<std::size_t>(picture.size());
  if (size == 0 || samples.empty() || samples.size() % size != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a grid of ", samples.size(),
                                                   " numbers, expected a multiple of ", size,
                                                   ", one sample or more"));
  }
  for (std::size_t k = 0; k < samples.size(); ++k) {
    if (std::isfinite(samples[k])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("sample ", k / size, " holds numbers that are not finite"));
  }
  MP_ASSIGN_OR_RETURN(const Levels levels, LevelsOf(scaling, samples));
  const auto count = static_cast<std::int64_t>(samples.size() / size);
  const std::int64_t columns =
      options.columns > 0
          ? std::min<std::int64_t>(options.columns, count)
          : static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const std::int64_t rows = (count + columns - 1) / columns;
  const int factor = std::max(1, options.least_width / picture.width);
  const std::int64_t width = columns * (picture.width * factor + kGap) - kGap;
  const std::int64_t height = rows * (picture.height * factor + kGap) - kGap;
  constexpr std::int64_t kMost = std::int64_t{1} << 28;
  if (width > 65535 || height > 65535 || width * height * picture.channels > kMost) {
    return absl::InvalidArgumentError(absl::StrCat("a grid of ", count,
                                                   " samples would be a picture of ", width, " x ",
                                                   height, " pixels; draw fewer samples"));
  }
  const int channels = picture.channels, plane = picture.height * picture.width;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width * height * channels), 255);
  for (std::int64_t s = 0; s < count; ++s) {
    const std::int64_t left = s % columns * (picture.width * factor + kGap);
    const std::int64_t top = s / columns * (picture.height * factor + kGap);
    const float* sample = samples.data() + static_cast<std::size_t>(s) * size;
    for (int y = 0; y < picture.height * factor; ++y) {
      for (int x = 0; x < picture.width * factor; ++x) {
        const int from = y / factor * picture.width + x / factor;
        std::uint8_t* to = &pixels[((top + y) * width + left + x) * channels];
        for (int c = 0; c < channels; ++c) {
          to[c] = Byte((sample[c * plane + from] - levels.black) * levels.scale);
        }
      }
    }
  }
  return EncodePng(static_cast<int>(width), static_cast<int>(height), channels, pixels);
}

}  // namespace mergeplan::judge
