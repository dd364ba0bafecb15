#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace mergeplan {

// A decoded picture: {H, W} where it is grey, {3, H, W} (red, green, blue) otherwise; 0..255.
struct Image {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

enum class ImageFormat { kNone, kPng, kJpeg };
// By the first eight bytes.
ImageFormat FormatOfImage(std::string_view bytes);

// Decodes a whole PNG or JPEG into `image`, whose memory is used again. Errors begin with `where`:
// INVALID_ARGUMENT where this is no picture that can be read, DATA_LOSS where it is damaged or ends
// early. Nothing is printed, and no memory is taken that the file's length does not justify.
//
// What the folder's README says about conversions: palettes become RGB; 16-bit values are divided
// by 257; alpha and transparency are dropped, not blended; CMYK becomes RGB; gamma, colour profiles
// and EXIF orientation are left alone.
absl::Status DecodeImage(std::string_view bytes, const std::string& where, Image& image);

// The two decoders behind it.
absl::Status DecodePng(std::string_view bytes, const std::string& where, Image& image);
absl::Status DecodeJpeg(std::string_view bytes, const std::string& where, Image& image);

// Refuses pictures beyond 2^28 values, and those whose declared size the file cannot hold:
// `least_bytes` are needed for the picture, `bytes` are there.
absl::Status CheckImageSize(std::int64_t width, std::int64_t height, std::int64_t channels,
                            std::int64_t least_bytes, std::int64_t bytes, const std::string& where);

// Sets shape and values from rows of interleaved 8-bit pixels, or 16-bit ones (big-endian).
void SetPixels(const unsigned char* rows, std::int64_t width, std::int64_t height, int channels,
               bool sixteen_bit, Image& image);

}  // namespace mergeplan
