#include <ATen/core/Tensor.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/encoding/encode.h"
#include "adapters/encoding/encoder.h"
#include "adapters/encoding/half.h"
#include "adapters/encoding/share.h"
#include "adapters/runtime/signals.h"
#include "planner/base/status_macros.h"
#include "planner/base/write_all.h"
#include "planner/data/npy.h"
#include "planner/data/shard.h"

namespace mergeplan::encoding {
namespace {

constexpr char kName[] = "standard output";

class Sink {
 public:
  explicit Sink(int descriptor) : descriptor_(descriptor) {}

  absl::Status Write(std::string_view bytes) const {
    return WriteAll(descriptor_, bytes, absl::StrCat(kName, ": the latents cannot be written"));
  }

  // Blocks for `bytes` more, so that a full disk is found before hours of work. The size stays what
  // was written: a run that stops leaves a file that is too short for its header.
  absl::Status Reserve(std::int64_t bytes) const {
    struct stat about = {};
    if (::fstat(descriptor_, &about) != 0 || !S_ISREG(about.st_mode)) return absl::OkStatus();
    const off_t at = ::lseek(descriptor_, 0, SEEK_CUR);
    if (at < 0) return absl::OkStatus();
    struct rlimit most = {};
    const bool limited = ::getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY &&
                         static_cast<rlim_t>(at) + static_cast<rlim_t>(bytes) > most.rlim_cur;
    if (!limited && ::fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, at, bytes) == 0) {
      return absl::OkStatus();
    }
    const int error = limited ? EFBIG : errno;
    if (error != ENOSPC && error != EFBIG && error != EDQUOT) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("the latents take ", bytes, " bytes, for which there is no room (",
                     std::strerror(error), "): free some, or set TMPDIR to another folder"));
  }

 private:
  int descriptor_;
};

absl::Status WriteLatents(const at::Tensor& values, bool halves, const Sink& sink) {
  const float* from = values.const_data_ptr<float>();
  const auto count = static_cast<std::size_t>(values.numel());
  if (!halves) return sink.Write({reinterpret_cast<const char*>(from), count * sizeof(float)});
  std::string bytes;
  AppendHalves({from, count}, &bytes);
  return sink.Write(bytes);
}

}  // namespace

absl::StatusOr<EncodeResult> EncodeToDescriptor(
    const EncodeArguments& arguments, int descriptor,
    const std::function<void(const CodingProgress&)>& progress) {
  MP_ASSIGN_OR_RETURN(const Share share, ParseShare(arguments.shard));
  MP_ASSIGN_OR_RETURN(Encoder encoder, Encoder::Open(arguments));
  if (arguments.content == "mean,log_variance") {
    return absl::InvalidArgumentError(
        "--content mean,log_variance: is two arrays, and an .npy holds one; expected mean or "
        "sample, or a folder with -o");
  }
  EncodeResult result = encoder.Description();
  std::int64_t dimensions = 1;
  for (const std::int64_t side : result.latent_shape) dimensions *= side;
  if (dimensions > arguments.most_dimensions) {
    return absl::InvalidArgumentError(
        absl::StrCat(arguments.input, ": its latents have ", dimensions, " dimensions ([",
                     absl::StrJoin(result.latent_shape, ", "), "]), expected at most ",
                     arguments.most_dimensions,
                     " with a covariance; give a smaller --size, or --diagonal-only"));
  }
  MP_ASSIGN_OR_RETURN(const std::int64_t all, encoder.Count());
  const std::int64_t first = EndOfShard(all, share.index - 1, share.count);
  const std::int64_t last = EndOfShard(all, share.index, share.count);
  if (first == last) {
    return absl::InvalidArgumentError(
        absl::StrCat(arguments.input, ": ",
                     share.count > 1 ? absl::StrCat("part ", arguments.shard, " of ") : "", all,
                     " pictures, expected at least one"));
  }
  const bool halves = arguments.dtype == "float16";
  std::vector<std::int64_t> shape = result.latent_shape;
  shape.insert(shape.begin(), last - first);
  const std::string header = NpyHeaderBytes(halves ? "<f2" : "<f4", shape);
  const Sink sink(descriptor);
  MP_RETURN_IF_ERROR(sink.Reserve(static_cast<std::int64_t>(header.size()) +
                                  (last - first) * dimensions * (halves ? 2 : 4)));
  MP_RETURN_IF_ERROR(sink.Write(header));

  SampleSource& source = encoder.source();
  MP_RETURN_IF_ERROR(source.Skip(first));
  const std::int64_t d = source.dimensions();
  std::vector<double> rows(static_cast<std::size_t>(arguments.batch * d));
  for (std::int64_t seen = first; seen < last;) {
    if (StopRequested()) {
      result.stopped = true;
      return result;
    }
    // Batches are those that the cache has, so that the numbers are the same to the last digit.
    const std::int64_t in_part = seen % arguments.part_samples;
    const std::int64_t want =
        std::min({std::int64_t{arguments.batch}, arguments.part_samples - in_part, last - seen});
    const auto room = absl::MakeSpan(rows).first(static_cast<std::size_t>(want * d));
    MP_ASSIGN_OR_RETURN(const int got, source.Read(room));
    if (got == 0) {
      return absl::DataLossError(absl::StrCat(arguments.input, ": ended after ", seen,
                                              " pictures, expected ", all,
                                              " as counted before; run the command again"));
    }
    const auto begin = std::chrono::steady_clock::now();
    MP_ASSIGN_OR_RETURN(const Latents latents,
                        encoder.Encode(room.first(static_cast<std::size_t>(got * d)), got, seen));
    result.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    MP_RETURN_IF_ERROR(WriteLatents(latents.mean, halves, sink));
    seen += got;
    result.encoded += got;
    if (progress) progress({seen - first, last - first});
  }
  result.samples = result.encoded;
  result.finished = true;
  return result;
}

}  // namespace mergeplan::encoding
