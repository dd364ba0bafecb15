#include "planner/data/parts.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/npy.h"
#include "planner/data/safetensors.h"

namespace mergeplan {
namespace {

constexpr char kFinished[] = "latents.toml";
constexpr char kBegun[] = "encode.toml";

struct Part {
  std::string path;
  std::int64_t samples = 0;
};

class PartsSource : public SampleSource {
 public:
  PartsSource(std::vector<Part> parts, std::int64_t samples, std::unique_ptr<SampleSource> first,
              SamplesOptions options)
      : parts_(std::move(parts)),
        samples_(samples),
        options_(std::move(options)),
        shape_(first->shape()),
        now_(std::move(first)) {}

  const std::vector<std::int64_t>& shape() const override { return shape_; }
  bool is_pixels() const override { return false; }
  std::optional<std::int64_t> size() const override { return samples_; }
  std::int64_t skipped() const override {
    return skipped_ + (now_ == nullptr ? 0 : now_->skipped());
  }

  absl::StatusOr<int> Read(absl::Span<double> rows) override {
    while (at_ < parts_.size()) {
      MP_RETURN_IF_ERROR(Open());
      MP_ASSIGN_OR_RETURN(const int got, now_->Read(rows));
      if (got > 0) return got;
      Next();
    }
    return 0;
  }

  absl::Status Skip(std::int64_t count) override {
    while (count > 0 && at_ < parts_.size()) {
      if (count < parts_[at_].samples) {
        MP_RETURN_IF_ERROR(Open());
        return now_->Skip(count);
      }
      count -= parts_[at_].samples;
      Next();
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Open() {
    if (now_ != nullptr) return absl::OkStatus();
    MP_ASSIGN_OR_RETURN(now_, OpenSamples(parts_[at_].path, options_));
    if (now_->shape() == shape_) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(
        parts_[at_].path, ": has samples of the shape ", ShapeText(now_->shape()), ", expected ",
        ShapeText(shape_), " as in ", parts_.front().path, "; encode again"));
  }
  void Next() {
    skipped_ += now_ == nullptr ? 0 : now_->skipped();
    now_ = nullptr;
    ++at_;
  }

  std::vector<Part> parts_;
  std::int64_t samples_;
  SamplesOptions options_;
  std::vector<std::int64_t> shape_;
  std::unique_ptr<SampleSource> now_;  // of parts_[at_]; null: not yet opened
  std::size_t at_ = 0;
  std::int64_t skipped_ = 0;
};

bool IsFileIn(const std::string& folder, const char* name) {
  std::error_code ec;
  return std::filesystem::is_regular_file(std::filesystem::path(folder) / name, ec);
}

// What latents.toml says.
absl::StatusOr<std::int64_t> SamplesOf(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  try {
    const toml::table table = toml::parse(text);
    const std::int64_t samples = table["samples"].value_or(std::int64_t{0});
    if (samples > 0) return samples;
  } catch (const toml::parse_error&) {
  }
  return absl::DataLossError(absl::StrCat(
      path, ": does not say how many samples there are, expected samples = N; encode again"));
}

}  // namespace

bool IsPartsFolder(const std::string& path) {
  return IsFileIn(path, kFinished) || IsFileIn(path, kBegun);
}

absl::StatusOr<std::unique_ptr<SampleSource>> OpenPartsFolder(const std::string& path,
                                                              const SamplesOptions& asked) {
  if (!IsFileIn(path, kFinished)) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": holds latents that are not all encoded yet (", kBegun, " without ", kFinished,
        "); run the same mergeplan encode once more, which goes on where it was"));
  }
  SamplesOptions options = asked;
  if (options.array.empty()) options.array = "latents";
  const std::string about = absl::StrCat(path, "/", kFinished);
  MP_ASSIGN_OR_RETURN(const std::int64_t samples, SamplesOf(about));
  std::vector<Part> parts;
  std::int64_t found = 0;
  while (found < samples) {
    Part part;
    part.path = absl::StrFormat("%s/part-%06d.safetensors", path, parts.size());
    MP_ASSIGN_OR_RETURN(const auto file, SafetensorsFile::Open(part.path));
    const auto& entries = file->entries();
    const auto entry = std::find_if(entries.begin(), entries.end(), [&](const SafetensorsEntry& e) {
      return e.name == options.array;
    });
    // One that is not there is what OpenSamples says below, with the names of the others.
    if (entry != entries.end() && !entry->shape.empty()) part.samples = entry->shape.front();
    if (part.samples == 0) {
      MP_RETURN_IF_ERROR(OpenSamples(part.path, options).status());
      return absl::DataLossError(
          absl::StrCat(part.path, ": holds no samples, expected some; encode again"));
    }
    found += part.samples;
    parts.push_back(std::move(part));
  }
  if (found != samples) {
    return absl::DataLossError(absl::StrCat(path, ": its parts hold ", found, " samples, ", about,
                                            " says ", samples, "; encode again"));
  }
  MP_ASSIGN_OR_RETURN(std::unique_ptr<SampleSource> first,
                      OpenSamples(parts.front().path, options));
  return std::make_unique<PartsSource>(std::move(parts), samples, std::move(first), options);
}

}  // namespace mergeplan
