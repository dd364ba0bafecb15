#include "planner/data/latents.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/data/archive.h"
#include "planner/data/npy.h"
#include "planner/data/source.h"
#include "planner/data/stream.h"
#include "planner/data/tensors.h"

namespace mergeplan {
namespace {

// Bytes that somebody else keeps.
class MemoryStream : public ByteStream {
 public:
  MemoryStream(std::string name, std::string_view bytes)
      : ByteStream(std::move(name)), bytes_(bytes) {}
  std::optional<std::int64_t> size() const override {
    return static_cast<std::int64_t>(bytes_.size());
  }
  std::int64_t size_limit() const override { return static_cast<std::int64_t>(bytes_.size()); }

 protected:
  absl::StatusOr<std::size_t> ReadSome(char* out, std::size_t size) override {
    const std::size_t n = std::min(size, bytes_.size() - at_);
    std::memcpy(out, bytes_.data() + at_, n);
    at_ += n;
    return n;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

// Everything that `source`, which has one row, holds.
absl::Status TakeRow(SampleSource& source, std::size_t bytes, const std::string& where,
                     Latent& latent) {
  constexpr std::size_t kDeflateRatio = 1032;  // see stream.cc
  const std::size_t wanted = static_cast<std::size_t>(source.dimensions());
  if (wanted / kDeflateRatio > bytes) {
    return absl::DataLossError(absl::StrCat(where, ": declares ", wanted, " values in ", bytes,
                                            " bytes, which cannot hold them; the file is damaged"));
  }
  latent.shape = source.shape();
  latent.is_pixels = source.is_pixels() && latent.shape.size() > 1;
  latent.values.resize(wanted);
  MP_RETURN_IF_ERROR(source.Read(absl::MakeSpan(latent.values)).status());
  // Once more, which looks at what lies behind.
  std::vector<double> none(wanted);
  return source.Read(absl::MakeSpan(none)).status();
}

}  // namespace

bool LooksLikeLatent(std::string_view start) {
  return start.substr(0, kNpyMagic.size()) == kNpyMagic || start.substr(0, 4) == "PK\x03\x04";
}

absl::Status DecodeLatent(std::string_view bytes, const std::string& where, Latent& latent) {
  if (bytes.substr(0, kNpyMagic.size()) != kNpyMagic && bytes.substr(0, 2) != "PK") {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": starts with '", Printable(bytes, 8),
                     "', expected an .npy or what torch.save writes since PyTorch 1.6"));
  }
  // NaN and infinity are for the source that these samples become part of.
  SamplesOptions options;
  options.keep_nonfinite = true;
  std::unique_ptr<SampleSource> source;
  if (bytes.substr(0, 2) == "PK") {
    const TorchOpener open = [&] { return ArchiveReader::OpenZipBytes(bytes, where); };
    MP_ASSIGN_OR_RETURN(source, OpenTorch(open, where, /*one_sample=*/true, options));
  } else {
    auto in = std::make_unique<MemoryStream>(where, bytes);
    MP_ASSIGN_OR_RETURN(source, OpenNpySamples(std::move(in), options, /*one_sample=*/true));
  }
  return TakeRow(*source, bytes.size(), where, latent);
}

}  // namespace mergeplan
