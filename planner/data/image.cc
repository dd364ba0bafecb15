#include "planner/data/image.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "planner/data/stream.h"

namespace mergeplan {

ImageFormat FormatOfImage(std::string_view bytes) {
  if (bytes.substr(0, 8) == "\x89PNG\r\n\x1a\n") return ImageFormat::kPng;
  if (bytes.substr(0, 3) == "\xff\xd8\xff") return ImageFormat::kJpeg;
  return ImageFormat::kNone;
}

absl::Status DecodeImage(std::string_view bytes, const std::string& where, Image& image) {
  switch (FormatOfImage(bytes)) {
    case ImageFormat::kPng:
      return DecodePng(bytes, where, image);
    case ImageFormat::kJpeg:
      return DecodeJpeg(bytes, where, image);
    case ImageFormat::kNone:
      break;
  }
  if (bytes.empty()) {
    return absl::DataLossError(absl::StrCat(where, ": is empty, expected a PNG or JPEG picture"));
  }
  return absl::InvalidArgumentError(absl::StrCat(where, ": starts with '",
                                                 Printable(bytes.substr(0, 8)),
                                                 "', expected a PNG or JPEG picture"));
}

absl::Status CheckImageSize(std::int64_t width, std::int64_t height, std::int64_t channels,
                            std::int64_t least_bytes, std::int64_t bytes,
                            const std::string& where) {
  constexpr std::int64_t kMostValues = std::int64_t{1} << 28;
  if (width < 1 || height < 1 || width > kMostValues / channels / height) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": is a picture of ", width, " x ",
                                                   height, " pixels, expected 1 to ", kMostValues,
                                                   " values"));
  }
  if (least_bytes > bytes) {
    return absl::DataLossError(absl::StrCat(where, ": declares ", width, " x ", height,
                                            " pixels but has only ", bytes, " bytes, expected ",
                                            least_bytes, " or more"));
  }
  return absl::OkStatus();
}

void SetPixels(const unsigned char* rows, std::int64_t width, std::int64_t height, int channels,
               bool sixteen_bit, Image& image) {
  const std::size_t pixels = static_cast<std::size_t>(width * height);
  const std::size_t step = static_cast<std::size_t>(channels);
  if (channels == 1) {
    image.shape = {height, width};
  } else {
    image.shape = {channels, height, width};
  }
  image.values.resize(pixels * step);
  for (std::size_t c = 0; c < step; ++c) {
    float* out = image.values.data() + c * pixels;
    if (sixteen_bit) {
      const unsigned char* in = rows + 2 * c;
      for (std::size_t i = 0; i < pixels; ++i, in += 2 * step) {
        out[i] = static_cast<float>(in[0] * 256 + in[1]) / 257.0F;
      }
    } else {
      const unsigned char* in = rows + c;
      for (std::size_t i = 0; i < pixels; ++i, in += step) out[i] = static_cast<float>(*in);
    }
  }
}

}  // namespace mergeplan
