#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

// jpeglib.h needs size_t and FILE to be known.
#include <jpeglib.h>

#include <jerror.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/data/image.h"
#include "planner/data/stream.h"

namespace mergeplan {
namespace {

// A progressive file may ask for any number of passes over the picture; real ones have about ten.
constexpr int kMostScans = 500;

// All that lives across libjpeg's error exit. The functions below that call setjmp hold nothing
// else, so that a jump skips no destructor.
struct JpegJob {
  JpegJob() = default;
  ~JpegJob() {
    if (created) jpeg_destroy_decompress(&info);
  }
  JpegJob(const JpegJob&) = delete;
  JpegJob& operator=(const JpegJob&) = delete;

  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  jpeg_progress_mgr progress = {};
  std::jmp_buf jump = {};
  bool created = false;
  bool ended_early = false;
  char error[JMSG_LENGTH_MAX] = "";
  std::vector<unsigned char> pixels;
};

void Note(j_common_ptr info) {
  auto* job = static_cast<JpegJob*>(info->client_data);
  if (job->error[0] == '\0') info->err->format_message(info, job->error);
}

[[noreturn]] void OnError(j_common_ptr info) {
  Note(info);
  std::longjmp(static_cast<JpegJob*>(info->client_data)->jump, 1);
}

// libjpeg only warns where it makes up the rest of a damaged picture. Those warnings are faults
// here; the others (unknown versions, bytes between markers) leave the pixels intact.
void OnMessage(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
      static_cast<JpegJob*>(info->client_data)->ended_early = true;
      Note(info);
      break;
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_BOGUS_PROGRESSION:
      Note(info);
      break;
    default:
      break;
  }
}

void OnOutput(j_common_ptr) {}

void OnProgress(j_common_ptr info) {
  auto* decoder = reinterpret_cast<j_decompress_ptr>(info);
  if (decoder->input_scan_number <= kMostScans) return;
  auto* job = static_cast<JpegJob*>(info->client_data);
  std::snprintf(job->error, sizeof job->error, "more than %d scans", kMostScans);
  std::longjmp(job->jump, 1);
}

bool Start(JpegJob& job, const unsigned char* bytes, std::size_t size) {
  job.info.err = jpeg_std_error(&job.errors);
  job.errors.error_exit = &OnError;
  job.errors.emit_message = &OnMessage;
  job.errors.output_message = &OnOutput;
  job.info.client_data = &job;
  if (setjmp(job.jump) != 0) return false;
  jpeg_create_decompress(&job.info);
  job.created = true;
  job.progress.progress_monitor = &OnProgress;
  job.info.progress = &job.progress;
  jpeg_mem_src(&job.info, bytes, size);
  jpeg_read_header(&job.info, TRUE);
  return job.error[0] == '\0';
}

bool ReadRows(JpegJob& job) {
  if (setjmp(job.jump) != 0) return false;
  jpeg_start_decompress(&job.info);
  while (job.info.output_scanline < job.info.output_height) {
    JSAMPROW row = job.pixels.data() + std::size_t{job.info.output_scanline} *
                                           job.info.output_width *
                                           static_cast<std::size_t>(job.info.output_components);
    jpeg_read_scanlines(&job.info, &row, 1);
  }
  jpeg_finish_decompress(&job.info);
  return job.error[0] == '\0';
}

absl::Status Fault(const JpegJob& job, const std::string& where) {
  return absl::DataLossError(
      absl::StrCat(where, ": the JPEG is ", job.ended_early ? "truncated or damaged" : "damaged",
                   " (", Printable(job.error, sizeof job.error), "), expected an intact picture"));
}

// Cyan, magenta, yellow and black to red, green and blue, in place at the front of `pixels`.
// Adobe's programs, whose marker the file then carries, store the inks inverted.
void CmykToRgb(std::vector<unsigned char>& pixels, bool inverted) {
  const std::size_t count = pixels.size() / 4;
  for (std::size_t i = 0; i < count; ++i) {
    int ink[4];
    for (std::size_t c = 0; c < 4; ++c) {
      ink[c] = inverted ? pixels[4 * i + c] : 255 - pixels[4 * i + c];
    }
    for (std::size_t c = 0; c < 3; ++c) {
      pixels[3 * i + c] = static_cast<unsigned char>((ink[c] * ink[3] + 127) / 255);
    }
  }
}

}  // namespace

absl::Status DecodeJpeg(std::string_view bytes, const std::string& where, Image& image) {
  JpegJob job;
  if (!Start(job, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size())) {
    return Fault(job, where);
  }
  int channels = 3;
  switch (job.info.jpeg_color_space) {
    case JCS_GRAYSCALE:
      job.info.out_color_space = JCS_GRAYSCALE;
      channels = 1;
      break;
    case JCS_RGB:
    case JCS_YCbCr:
      job.info.out_color_space = JCS_RGB;
      break;
    case JCS_CMYK:
    case JCS_YCCK:
      job.info.out_color_space = JCS_CMYK;
      channels = 4;
      break;
    default:
      return absl::InvalidArgumentError(absl::StrCat(where, ": is a JPEG of ",
                                                     job.info.num_components,
                                                     " components of an unknown colour space, "
                                                     "expected grey, RGB, YCbCr or CMYK"));
  }
  // A block of 8 x 8 pixels takes a bit at least; components may be stored at up to 16 times fewer
  // pixels, and 2^16 pixels are always let through.
  const std::int64_t width = job.info.image_width, height = job.info.image_height;
  const std::int64_t area = width * height;
  MP_RETURN_IF_ERROR(CheckImageSize(width, height, channels,
                                    area <= 65536 ? 0 : area / (64 * 8 * 16),
                                    static_cast<std::int64_t>(bytes.size()), where));
  job.pixels.resize(static_cast<std::size_t>(area) * static_cast<std::size_t>(channels));
  if (!ReadRows(job)) return Fault(job, where);
  if (channels == 4) {
    CmykToRgb(job.pixels, job.info.saw_Adobe_marker != FALSE);
    channels = 3;
  }
  SetPixels(job.pixels.data(), width, height, channels, false, image);
  return absl::OkStatus();
}

}  // namespace mergeplan
