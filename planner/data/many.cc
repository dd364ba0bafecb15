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

class ManySource : public SampleSource {
 public:
  ManySource(std::vector<std::string> paths, std::unique_ptr<SampleSource> first,
             SamplesOptions options)
      : paths_(std::move(paths)),
        options_(std::move(options)),
        shape_(first->shape()),
        pixels_(first->is_pixels()),
        now_(std::move(first)) {}

  const std::vector<std::int64_t>& shape() const override { return shape_; }
  bool is_pixels() const override { return pixels_; }
  std::optional<std::int64_t> size() const override { return std::nullopt; }
  std::int64_t skipped() const override { return skipped_ + (now_ ? now_->skipped() : 0); }
  absl::StatusOr<int> Read(absl::Span<double> rows) override {
    while (now_ != nullptr) {
      MP_ASSIGN_OR_RETURN(const int got, now_->Read(rows));
      if (got > 0) return got;
      skipped_ += now_->skipped();
      now_ = nullptr;
      if (next_ == paths_.size()) break;
      MP_ASSIGN_OR_RETURN(now_, OpenSamples(paths_[next_], options_));
      if (now_->shape() != shape_ || now_->is_pixels() != pixels_) {
        return absl::InvalidArgumentError(
            absl::StrCat(paths_[next_], ": has samples of the shape ", ShapeText(now_->shape()),
                         now_->is_pixels() ? " of pixels" : "", ", expected ", ShapeText(shape_),
                         pixels_ ? " of pixels" : "", " as in ", paths_.front()));
      }
      ++next_;
    }
    return 0;
  }

 private:
  std::vector<std::string> paths_;
  SamplesOptions options_;
  std::vector<std::int64_t> shape_;
  bool pixels_;
  std::unique_ptr<SampleSource> now_;
  std::size_t next_ = 1;
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

absl::StatusOr<std::unique_ptr<SampleSource>> OpenGlob(const std::string& pattern,
                                                       const SamplesOptions& options) {
  MP_ASSIGN_OR_RETURN(std::vector<std::string> paths, FilesLike(pattern));
  MP_ASSIGN_OR_RETURN(std::unique_ptr<SampleSource> first, OpenSamples(paths.front(), options));
  return std::make_unique<ManySource>(std::move(paths), std::move(first), options);
}

}  // namespace mergeplan
