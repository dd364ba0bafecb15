#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/archive.h"
#include "planner/data/image.h"
#include "planner/data/latents.h"
#include "planner/data/npy.h"
#include "planner/data/source.h"

namespace mergeplan {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostFileBytes = std::int64_t{1} << 30;  // of one picture

std::string BaseName(std::string_view name) {
  return std::string(name.substr(name.find_last_of('/') + 1));
}

// ".png" of "a/b.c.PNG"; empty where there is none.
std::string Extension(std::string_view name) {
  const std::string base = BaseName(name);
  const std::size_t dot = base.find_last_of('.');
  if (dot == std::string::npos || dot == 0) return "";
  return absl::AsciiStrToLower(base.substr(dot));
}

bool IsPictureName(std::string_view name) {
  const std::string extension = Extension(name);
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg";
}

bool IsLatentName(std::string_view name) {
  const std::string extension = Extension(name);
  return extension == ".npy" || extension == ".pth" || extension == ".pt";
}

bool IsTarName(std::string_view name) {
  const std::string extension = Extension(name);
  if (extension == ".tar" || extension == ".tgz") return true;
  return extension == ".gz" && Extension(name.substr(0, name.size() - 3)) == ".tar";
}

// How many files of each extension were met that are no pictures, for the error where nothing else
// was.
class Others {
 public:
  void Add(std::string_view name) {
    const std::string extension = Extension(name);
    if (counts_.size() < 10 || counts_.count(extension) > 0) ++counts_[extension];
  }
  std::string Text() const {
    if (counts_.empty()) return "nothing";
    return absl::StrJoin(counts_, ", ", [](std::string* out, const auto& item) {
      absl::StrAppend(out, item.second, item.first.empty() ? " without an extension" : " ",
                      Printable(item.first, 20));
    });
  }

 private:
  std::map<std::string, std::int64_t> counts_;
};

// A picture, or in a tar a latent.
struct Piece {
  bool is_latent = false;
  Image image;    // where not
  Latent latent;  // where so
  const std::vector<std::int64_t>& shape() const { return is_latent ? latent.shape : image.shape; }
};

// Pictures or latents one after another, all of the first one's kind and shape.
class PictureSource : public CheckedSource {
 public:
  using CheckedSource::CheckedSource;

  // Decodes the first picture, which tells the shape.
  absl::Status Start(std::optional<std::int64_t> size) {
    MP_ASSIGN_OR_RETURN(pending_, Next(piece_, first_));
    if (!pending_) return absl::InternalError(absl::StrCat(name(), ": has no picture"));
    are_latents_ = piece_.is_latent;
    return Describe(piece_.shape(), !are_latents_ || piece_.latent.is_pixels, size, are_latents_);
  }

 protected:
  // Forgets the first picture, which Start has decoded.
  void DropFirst() { pending_ = false; }
  // Decodes the next picture and says what errors call it; false at the end.
  virtual absl::StatusOr<bool> Next(Piece& piece, std::string& where) = 0;

  absl::StatusOr<int> Fill(double* rows, int most) override {
    std::string where;
    for (int filled = 0; filled < most; ++filled) {
      if (!pending_) {
        MP_ASSIGN_OR_RETURN(const bool more, Next(piece_, where));
        if (!more) return filled;
        if (piece_.is_latent != are_latents_) {
          return absl::InvalidArgumentError(absl::StrCat(
              where, ": is ", piece_.is_latent ? "an array" : "a picture", ", but ", first_,
              are_latents_ ? " is an array" : " is a picture",
              ": say which of them to read by the ending of their names, such as --array npy"));
        }
        if (are_latents_ && piece_.shape() != shape()) {
          return absl::InvalidArgumentError(
              absl::StrCat(where, ": has the shape ", ShapeText(piece_.shape()), ", expected ",
                           ShapeText(shape()), " as in ", first_,
                           ": where these are of two kinds, say which to read by the ending of "
                           "their names, such "
                           "as --array latent.npy"));
        }
        if (piece_.shape() != shape()) {
          return absl::InvalidArgumentError(
              absl::StrCat(where, ": is a picture of the shape ", ShapeText(piece_.shape()),
                           ", expected ", ShapeText(shape()), " as in ", first_,
                           ": bring all pictures to one size, and all to grey or all to colour"));
        }
      }
      pending_ = false;
      rows = are_latents_
                 ? std::copy(piece_.latent.values.begin(), piece_.latent.values.end(), rows)
                 : std::copy(piece_.image.values.begin(), piece_.image.values.end(), rows);
    }
    return most;
  }

 private:
  Piece piece_;
  bool pending_ = false, are_latents_ = false;
  std::string first_;  // what errors call the first picture
};

class FolderSource : public PictureSource {
 public:
  FolderSource(std::string folder, std::vector<std::string> names, const SamplesOptions& options)
      : PictureSource(std::move(folder), options), names_(std::move(names)) {}

  // Files that are passed over are not opened.
  absl::Status Skip(std::int64_t count) override {
    const std::int64_t passed = std::min(count, static_cast<std::int64_t>(names_.size()));
    if (passed < 1) return absl::OkStatus();
    DropFirst();
    next_ = static_cast<std::size_t>(passed);
    PassOver(passed);
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<bool> Next(Piece& piece, std::string& where) override {
    if (next_ == names_.size()) return false;
    where = (fs::path(name()) / names_[next_++]).string();
    std::error_code ec;
    const std::uintmax_t bytes = fs::file_size(where, ec);
    if (!ec && bytes > static_cast<std::uintmax_t>(kMostFileBytes)) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": has ", bytes, " bytes, expected a picture of at most ", kMostFileBytes));
    }
    MP_ASSIGN_OR_RETURN(const std::string file, ReadFile(where));
    MP_RETURN_IF_ERROR(DecodeImage(file, where, piece.image));
    return true;
  }

 private:
  std::vector<std::string> names_;  // relative to the folder
  std::size_t next_ = 0;
};

class TarSource : public PictureSource {
 public:
  TarSource(std::vector<std::string> paths, const SamplesOptions& options)
      : PictureSource(paths.front(), options), paths_(std::move(paths)) {
    if (!options.array.empty()) {
      ending_ = options.array[0] == '.' ? options.array : "." + options.array;
    }
  }

 protected:
  absl::StatusOr<bool> Next(Piece& piece, std::string& where) override {
    for (;;) {
      if (tar_ == nullptr) {
        if (next_ == paths_.size()) return false;
        MP_ASSIGN_OR_RETURN(tar_, ArchiveReader::OpenTar(paths_[next_++]));
        found_ = 0;
        others_ = Others();
      }
      MP_ASSIGN_OR_RETURN(const bool more, tar_->Next());
      if (!more) {
        if (found_ == 0) {
          return absl::InvalidArgumentError(absl::StrCat(
              tar_->path(), ": holds no picture or array",
              ending_.empty() ? "" : absl::StrCat(" whose name ends in ", ending_), " (found ",
              others_.Text(), "), expected members in PNG or JPEG, or .npy or .pth"));
        }
        tar_ = nullptr;
        continue;
      }
      where = tar_->where();
      MP_ASSIGN_OR_RETURN(const bool taken, Member(piece, where));
      if (!taken) continue;
      ++found_;
      return true;
    }
  }

 private:
  // Decodes the current member; false where it is neither picture nor array.
  absl::StatusOr<bool> Member(Piece& piece, const std::string& where) {
    const std::string base = BaseName(tar_->member());
    if (base.empty() || base[0] == '.') return false;
    if (!ending_.empty() && !base.ends_with(ending_) && "." + base != ending_) {
      others_.Add(base);
      return false;
    }
    const bool latent = IsLatentName(base), named = IsPictureName(base) || latent;
    if (tar_->is_link()) {
      if (!named) return false;
      return absl::InvalidArgumentError(
          absl::StrCat(where,
                       ": is a link, expected the file itself: make the archive with tar "
                       "--dereference --hard-dereference"));
    }
    constexpr std::size_t kStep = std::size_t{1} << 16;
    file_.clear();
    for (;;) {
      const std::size_t old = file_.size();
      file_.resize(old + kStep);
      MP_ASSIGN_OR_RETURN(const std::size_t n, tar_->Read(file_.data() + old, kStep));
      file_.resize(old + n);
      if (n == 0) break;
      if (old == 0 && !named && FormatOfImage(file_) == ImageFormat::kNone) break;
      if (static_cast<std::int64_t>(file_.size()) > kMostFileBytes) {
        return absl::InvalidArgumentError(absl::StrCat(where, ": is larger than ", kMostFileBytes,
                                                       " bytes, expected a picture or an array"));
      }
    }
    piece.is_latent = latent;
    if (latent) {
      MP_RETURN_IF_ERROR(DecodeLatent(file_, where, piece.latent));
      return true;
    }
    if (!named && FormatOfImage(file_) == ImageFormat::kNone) {
      others_.Add(base);
      return false;
    }
    MP_RETURN_IF_ERROR(DecodeImage(file_, where, piece.image));
    return true;
  }

  std::vector<std::string> paths_;
  std::string ending_;  // of the members that count; empty: all
  std::size_t next_ = 0;
  std::unique_ptr<ArchiveReader> tar_;
  std::int64_t found_ = 0;
  Others others_;
  std::string file_;
};

struct Listing {
  std::vector<std::string> pictures, tars;  // relative paths
  Others others;
};

// Adds what lies in root/inside and below. Hidden entries (.name) are left out; links to folders
// are followed unless they lead back to a folder that we are in.
absl::Status List(const fs::path& root, const fs::path& inside, std::set<std::string>& open,
                  Listing& out) {
  const fs::path folder = root / inside;
  std::error_code ec;
  const std::string real = fs::canonical(folder, ec).string();
  fs::directory_iterator it;
  if (!ec) it = fs::directory_iterator(folder, ec);
  if (ec) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder.string(), ": the folder cannot be read (", ec.message(), "), expected to list it"));
  }
  if (!open.insert(real).second) return absl::OkStatus();
  while (it != fs::directory_iterator()) {
    const std::string base = it->path().filename().string();
    if (base[0] != '.') {
      const fs::path relative = inside / base;
      const fs::file_status status = it->status(ec);
      if (ec) {
        return absl::FailedPreconditionError(absl::StrCat(it->path().string(), ": cannot be read (",
                                                          ec.message(), "), expected a file"));
      }
      if (fs::is_directory(status)) {
        MP_RETURN_IF_ERROR(List(root, relative, open, out));
      } else if (fs::is_regular_file(status) && IsPictureName(base)) {
        out.pictures.push_back(relative.string());
      } else if (fs::is_regular_file(status) && IsTarName(base)) {
        out.tars.push_back(relative.string());
      } else {
        out.others.Add(base);
      }
    }
    it.increment(ec);
    if (ec) {
      return absl::FailedPreconditionError(absl::StrCat(folder.string(),
                                                        ": the folder cannot be "
                                                        "listed to its end (",
                                                        ec.message(), ")"));
    }
  }
  open.erase(real);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SampleSource>> OpenTarSamples(std::vector<std::string> paths,
                                                             const SamplesOptions& options) {
  auto source = std::make_unique<TarSource>(std::move(paths), options);
  MP_RETURN_IF_ERROR(source->Start(std::nullopt));
  return source;
}

absl::StatusOr<std::unique_ptr<SampleSource>> OpenFolderSamples(const std::string& path,
                                                                const SamplesOptions& options) {
  Listing listing;
  std::set<std::string> open;
  MP_RETURN_IF_ERROR(List(path, "", open, listing));
  if (!listing.pictures.empty() && !listing.tars.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": holds ", listing.pictures.size(), " pictures (such as ",
                     listing.pictures.front(), ") and ", listing.tars.size(), " tars (such as ",
                     listing.tars.front(), "), expected a folder of one kind"));
  }
  if (!listing.tars.empty()) {
    std::sort(listing.tars.begin(), listing.tars.end());
    for (std::string& tar : listing.tars) tar = (fs::path(path) / tar).string();
    return OpenTarSamples(std::move(listing.tars), options);
  }
  if (!options.array.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is a folder of pictures, expected an .npz, or tars, with --array ",
                     Printable(options.array, 80), ": leave --array out"));
  }
  if (listing.pictures.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the folder holds no picture and no tar (found ",
                     listing.others.Text(), "), expected .png, .jpg, .jpeg or .tar files"));
  }
  std::sort(listing.pictures.begin(), listing.pictures.end());
  const auto count = static_cast<std::int64_t>(listing.pictures.size());
  auto source = std::make_unique<FolderSource>(path, std::move(listing.pictures), options);
  MP_RETURN_IF_ERROR(source->Start(count));
  return source;
}

bool LooksLikeTar(std::string_view start) {
  constexpr std::size_t kBlock = 512, kSum = 148, kSumEnd = 156;
  if (start.size() < kBlock) return false;
  // The checksum, in octal, is the sum of the header's bytes with its own field read as spaces.
  long sum = 0, stored = 0;
  bool digits = false;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const bool inside = i >= kSum && i < kSumEnd;
    sum += inside ? ' ' : static_cast<unsigned char>(start[i]);
    if (inside && start[i] >= '0' && start[i] <= '7') {
      stored = stored * 8 + (start[i] - '0');
      digits = true;
    }
  }
  return digits && sum == stored;
}

}  // namespace mergeplan
