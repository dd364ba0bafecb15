#include "planner/data/many.h"

#include <glob.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/data/npy.h"

namespace mergeplan {
namespace {

absl::Status CheckAlike(const SampleSource& source, const std::string& path,
                        const SampleSource& first, const std::string& first_path,
                        const std::string& advice) {
  if (source.shape() == first.shape() && source.is_pixels() == first.is_pixels()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": has samples of the shape ", ShapeText(source.shape()),
                   source.is_pixels() ? " of pixels" : "", ", expected ", ShapeText(first.shape()),
                   first.is_pixels() ? " of pixels" : "", " as in ", first_path, advice));
}

class ManySource : public SampleSource {
 public:
  ManySource(std::vector<FileOfSamples> files, std::unique_ptr<SampleSource> first,
             SamplesOptions options, std::string advice)
      : files_(std::move(files)),
        options_(std::move(options)),
        advice_(std::move(advice)),
        shape_(first->shape()),
        pixels_(first->is_pixels()),
        size_(0),
        now_(std::move(first)) {
    for (const FileOfSamples& file : files_) {
      size_ = size_ && file.samples ? std::optional(*size_ + *file.samples) : std::nullopt;
    }
  }

  const std::vector<std::int64_t>& shape() const override { return shape_; }
  bool is_pixels() const override { return pixels_; }
  std::optional<std::int64_t> size() const override { return size_; }
  std::int64_t skipped() const override { return skipped_ + (now_ ? now_->skipped() : 0); }

  absl::StatusOr<int> Read(absl::Span<double> rows) override {
    while (at_ < files_.size()) {
      MP_RETURN_IF_ERROR(Open());
      MP_ASSIGN_OR_RETURN(const int got, now_->Read(rows));
      if (got > 0) return got;
      Next();
    }
    return 0;
  }

  absl::Status Skip(std::int64_t count) override {
    if (!size_) return SampleSource::Skip(count);
    while (count > 0 && at_ < files_.size()) {
      if (count < *files_[at_].samples) {
        MP_RETURN_IF_ERROR(Open());
        return now_->Skip(count);
      }
      count -= *files_[at_].samples;
      Next();
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Open() {
    if (now_ != nullptr) return absl::OkStatus();
    const std::string& path = files_[at_].path;
    MP_ASSIGN_OR_RETURN(now_, OpenSamples(path, options_));
    return CheckAlike(*now_, path, *this, files_.front().path, advice_);
  }
  void Next() {
    skipped_ += now_ == nullptr ? 0 : now_->skipped();
    now_ = nullptr;
    ++at_;
  }

  std::vector<FileOfSamples> files_;
  SamplesOptions options_;
  std::string advice_;
  std::vector<std::int64_t> shape_;
  bool pixels_;
  std::optional<std::int64_t> size_;
  std::unique_ptr<SampleSource> now_;  // of files_[at_]; null: not yet opened
  std::size_t at_ = 0;
  std::int64_t skipped_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> FilesLike(const std::string& pattern) {
  glob_t found = {};
  const int code = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> out;
  for (std::size_t k = 0; code == 0 && k < found.gl_pathc; ++k) out.emplace_back(found.gl_pathv[k]);
  ::globfree(&found);
  if (out.empty()) {
    return absl::NotFoundError(
        absl::StrCat(pattern, ": no file matches this pattern, expected at least one"));
  }
  return out;
}

absl::StatusOr<std::unique_ptr<SampleSource>> OpenFiles(std::vector<FileOfSamples> files,
                                                        const SamplesOptions& options,
                                                        const std::string& advice) {
  MP_ASSIGN_OR_RETURN(std::unique_ptr<SampleSource> first,
                      OpenSamples(files.front().path, options));
  // How many samples each file holds, by its header, until one does not say: then the whole is
  // unknown anyway.
  for (FileOfSamples& file : files) {
    if (file.samples) continue;
    if (&file == &files.front()) {
      file.samples = first->size();
    } else {
      MP_ASSIGN_OR_RETURN(const std::unique_ptr<SampleSource> other,
                          OpenSamples(file.path, options));
      MP_RETURN_IF_ERROR(CheckAlike(*other, file.path, *first, files.front().path, advice));
      file.samples = other->size();
    }
    if (!file.samples) break;
  }
  return std::make_unique<ManySource>(std::move(files), std::move(first), options, advice);
}

absl::StatusOr<std::unique_ptr<SampleSource>> OpenGlob(const std::string& pattern,
                                                       const SamplesOptions& options) {
  MP_ASSIGN_OR_RETURN(std::vector<std::string> paths, FilesLike(pattern));
  std::vector<FileOfSamples> files;
  for (std::string& path : paths) files.push_back({std::move(path), std::nullopt});
  return OpenFiles(std::move(files), options);
}

}  // namespace mergeplan
