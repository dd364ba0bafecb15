#include "planner/report/png.h"

#include <png.h>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/status_macros.h"

namespace mergeplan {

absl::StatusOr<std::string> EncodePng(int width, int height, int channels,
                                      absl::Span<const std::uint8_t> pixels) {
  if (width < 1 || height < 1 || (channels != 1 && channels != 3) ||
      pixels.size() != static_cast<size_t>(width) * height * channels) {
    return absl::InvalidArgumentError(
        absl::StrFormat("picture of %d x %d pixels with %d channels holds %d bytes, expected "
                        "width x height x channels of them and 1 or 3 channels",
                        width, height, channels, pixels.size()));
  }
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  // One encoding into a buffer of the largest possible size.
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string out(bytes, '\0');
  if (!png_image_write_to_memory(&image, out.data(), &bytes, /*convert_to_8_bit=*/0, pixels.data(),
                                 /*row_stride=*/0, /*colormap=*/nullptr)) {
    return absl::InternalError(absl::StrCat("libpng cannot encode a picture: ", image.message));
  }
  out.resize(bytes);
  return out;
}

absl::StatusOr<std::string> PngDataUri(int width, int height, int channels,
                                       absl::Span<const std::uint8_t> pixels) {
  MP_ASSIGN_OR_RETURN(const std::string png, EncodePng(width, height, channels, pixels));
  return absl::StrCat("data:image/png;base64,", absl::Base64Escape(png));
}

}  // namespace mergeplan
