#include "planner/data/samples.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/data/image.h"
#include "planner/data/many.h"
#include "planner/data/npy.h"
#include "planner/data/npz.h"
#include "planner/data/npz_member.h"
#include "planner/data/parts.h"
#include "planner/data/source.h"
#include "planner/data/stream.h"
#include "planner/data/tensors.h"

namespace mergeplan {
namespace {

constexpr std::string_view kExpected =
    ", expected .npy, .npz, .safetensors, .pt, IDX (.npy, IDX and tar also gzipped), a .tar of "
    "PNG, "
    "JPEG, .npy or .pth, or a folder of PNG, JPEG or .tar files, or of latents by mergeplan encode";

absl::StatusOr<std::unique_ptr<SampleSource>> OpenNpzSamples(const std::string& path,
                                                             const SamplesOptions& options) {
  std::string name = options.array;
  if (name.empty()) {
    MP_ASSIGN_OR_RETURN(const std::vector<std::string> names, NpzNames(path));
    if (names.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": is a zip archive without .npy members, expected an .npz of arrays"));
    }
    if (names.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": holds ", names.size(), " arrays (",
                                                     ListNames(names),
                                                     "), expected to be told which: give --array"));
    }
    name = names.front();
  }
  MP_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> member, OpenNpzMember(path, name));
  return OpenNpySamples(std::move(member), options);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SampleSource>> OpenSamples(const std::string& path,
                                                          const SamplesOptions& options) {
  const auto no_array = [&](std::string_view what) -> absl::Status {
    if (options.array.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is ", std::string(what), ", expected an .npz with --array ",
                     Printable(options.array, 80), ": leave --array out"));
  };
  std::error_code ec;
  if (path.find_first_of("*?[") != std::string::npos && !std::filesystem::exists(path, ec)) {
    return OpenGlob(path, options);
  }
  if (std::filesystem::is_directory(path, ec)) {
    if (IsPartsFolder(path)) return OpenPartsFolder(path, options);
    return OpenFolderSamples(path, options);
  }
  MP_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> in, OpenFile(path));
  MP_ASSIGN_OR_RETURN(std::string_view start, in->Peek(512));
  if (start.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is empty", std::string(kExpected)));
  }
  if (start.substr(0, 4) == "PK\x03\x04" || start.substr(0, 4) == "PK\x05\x06") {
    MP_ASSIGN_OR_RETURN(const bool torch, IsTorchFile(path));
    return torch ? OpenTorchFile(path, options) : OpenNpzSamples(path, options);
  }
  const bool gzipped = start.substr(0, 2) == "\x1f\x8b";
  if (gzipped) {
    MP_ASSIGN_OR_RETURN(in, OpenGzip(path));
    MP_ASSIGN_OR_RETURN(start, in->Peek(512));
  }
  if (start.substr(0, kNpyMagic.size()) == kNpyMagic) {
    MP_RETURN_IF_ERROR(no_array("an .npy, one array without a name"));
    return OpenNpySamples(std::move(in), options);
  }
  if (!gzipped && LooksLikeSafetensors(start)) return OpenSafetensors(std::move(in), options);
  if (LooksLikeIdx(start)) {
    MP_RETURN_IF_ERROR(no_array("an IDX file"));
    return OpenIdxSamples(std::move(in), options);
  }
  if (LooksLikeTar(start)) {
    return OpenTarSamples({path}, options);
  }
  // A pickle, by its first instruction; that of PyTorch before 1.6 begins with a certain number.
  if (start.substr(0, 1) == "\x80" && start.size() > 2 && start[1] >= 2 && start[1] <= 5) {
    constexpr std::string_view kOldTorch("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12);
    if (start.substr(2, kOldTorch.size()) == kOldTorch) {
      return absl::InvalidArgumentError(absl::StrCat(
          path,
          ": is in the format of torch.save before PyTorch 1.6, which is no zip archive; expected "
          "the present one: torch.save(torch.load(OLD), NEW) writes it"));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": is a Python pickle, which would have to be run to be read; expected an array: "
        "write it with numpy.save or torch.save"));
  }
  if (FormatOfImage(start) != ImageFormat::kNone) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is one picture, expected many: give the folder that holds them"));
  }
  // What tar writes where it is given nothing: blocks of zeros.
  if (start.size() == 512 && start.find_first_not_of('\0') == start.npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": begins with 512 zeros, as a .tar without members does, expected members in PNG or "
        "JPEG, or .npy or .pth"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", gzipped ? "holds gzipped data that start" : "starts", " with '",
                   Printable(start, 8), "'", std::string(kExpected)));
}

}  // namespace mergeplan
