#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/data/image.h"
#include "planner/data/stream.h"

namespace mergeplan {
namespace {

// All that lives across libpng's longjmp. The functions below that call setjmp hold nothing else,
// so that a jump skips no destructor.
struct PngJob {
  explicit PngJob(std::string_view file) : bytes(file) {}
  ~PngJob() { png_destroy_read_struct(&png, &info, nullptr); }
  PngJob(const PngJob&) = delete;
  PngJob& operator=(const PngJob&) = delete;

  std::string_view bytes;
  std::size_t position = 0;
  png_structp png = nullptr;
  png_infop info = nullptr;
  char error[160] = "";
  bool ended_early = false;

  png_uint_32 width = 0, height = 0;
  int depth = 0;         // as stored
  int stored_bits = 0;   // of one pixel
  int channels = 0;      // after conversion
  bool sixteen = false;  // after conversion
  std::vector<unsigned char> pixels;
  std::vector<png_bytep> rows;
};

[[noreturn]] void OnError(png_structp png, png_const_charp message) {
  auto* job = static_cast<PngJob*>(png_get_error_ptr(png));
  std::snprintf(job->error, sizeof job->error, "%s", message);
  png_longjmp(png, 1);
}

void OnWarning(png_structp, png_const_charp) {}

void OnRead(png_structp png, png_bytep out, std::size_t size) {
  auto* job = static_cast<PngJob*>(png_get_io_ptr(png));
  if (size > job->bytes.size() - job->position) {
    job->ended_early = true;
    png_error(png, "the data end early");
  }
  std::memcpy(out, job->bytes.data() + job->position, size);
  job->position += size;
}

bool Start(PngJob& job) {
  job.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &job, &OnError, &OnWarning);
  if (job.png == nullptr) return false;
  if (setjmp(png_jmpbuf(job.png)) != 0) return false;
  job.info = png_create_info_struct(job.png);
  if (job.info == nullptr) return false;
  png_set_read_fn(job.png, &job, &OnRead);
  png_read_info(job.png, job.info);
  job.width = png_get_image_width(job.png, job.info);
  job.height = png_get_image_height(job.png, job.info);
  job.depth = png_get_bit_depth(job.png, job.info);
  job.stored_bits = job.depth * png_get_channels(job.png, job.info);
  const int colour = png_get_color_type(job.png, job.info);
  if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(job.png);
  if (colour == PNG_COLOR_TYPE_GRAY && job.depth < 8) png_set_expand_gray_1_2_4_to_8(job.png);
  png_set_strip_alpha(job.png);
  png_set_interlace_handling(job.png);
  png_read_update_info(job.png, job.info);
  job.channels = png_get_channels(job.png, job.info);
  job.sixteen = png_get_bit_depth(job.png, job.info) == 16;
  return true;
}

bool ReadRows(PngJob& job) {
  if (setjmp(png_jmpbuf(job.png)) != 0) return false;
  png_read_image(job.png, job.rows.data());
  png_read_end(job.png, nullptr);
  return true;
}

absl::Status Fault(const PngJob& job, const std::string& where) {
  const char* reason = job.error[0] != '\0' ? job.error : "no memory";
  return absl::DataLossError(
      absl::StrCat(where, ": the PNG is ", job.ended_early ? "truncated" : "damaged", " (",
                   Printable(reason, sizeof job.error), "), expected an intact picture"));
}

}  // namespace

absl::Status DecodePng(std::string_view bytes, const std::string& where, Image& image) {
  PngJob job(bytes);
  if (!Start(job)) return Fault(job, where);
  // Deflate packs at most 1032 bytes into one.
  const std::int64_t raw =
      std::int64_t{job.height} * (std::int64_t{job.width} * job.stored_bits / 8);
  MP_RETURN_IF_ERROR(CheckImageSize(job.width, job.height, job.channels, raw / 1032,
                                    static_cast<std::int64_t>(bytes.size()), where));
  const std::size_t row = png_get_rowbytes(job.png, job.info);
  if ((job.channels != 1 && job.channels != 3) ||
      row !=
          std::size_t{job.width} * static_cast<std::size_t>(job.channels) * (job.sixteen ? 2 : 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": is a PNG of ", job.channels, " channels after dropping alpha, expected 1 or 3"));
  }
  job.pixels.resize(row * job.height);
  job.rows.resize(job.height);
  for (std::size_t y = 0; y < job.height; ++y) job.rows[y] = job.pixels.data() + y * row;
  if (!ReadRows(job)) return Fault(job, where);
  SetPixels(job.pixels.data(), job.width, job.height, job.channels, job.sixteen, image);
  return absl::OkStatus();
}

}  // namespace mergeplan
