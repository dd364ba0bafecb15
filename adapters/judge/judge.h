#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/judge/features.h"
#include "adapters/judge/frechet.h"
#include "adapters/judge/judge_options.h"

namespace mergeplan::judge {

// What samples are like, beside those of the reference.
struct Verdict {
  bool compared = false;  // else the first three mean nothing
  double frechet = 0;     // squared Frechet distance of the features
  double precision = 0, recall = 0;
  std::int64_t samples = 0;
  // From the teacher's for the same noise: the mean over samples of the root mean square
  // difference, in pixels where black to white is 1, else in the data's units. NaN: the teacher's
  // were not looked at.
  double distance = std::numeric_limits<double>::quiet_NaN();
  std::string grid;    // name of the picture in the folder; empty: none
  double seconds = 0;  // of sampling and comparing
};

// Standard normal noise [B, shape], float32 on the CPU, to samples in the units of the data.
// `first`: number of the first of them among all that are drawn.
using Generate =
    std::function<absl::StatusOr<at::Tensor>(const at::Tensor& noise, std::uint64_t first)>;

// What turns samples that are latents into pictures before they are looked at.
struct Decoder {
  std::vector<std::int64_t> shape;  // of a picture
  std::string scaling;              // how pixels 0..255 become its numbers
  std::string name;                 // for About
  // [B, latent] to [B, shape], float32 on the CPU.
  std::function<absl::StatusOr<at::Tensor>(const at::Tensor& latents)> decode;
  // Pictures of a data set as the decoder would give them, at most `rows`: [N, shape].
  std::function<absl::StatusOr<at::Tensor>(const std::string& data, const std::string& array,
                                           std::int64_t rows)>
      reference;
};

// For latents of this shape.
using OpenDecoder =
    std::function<absl::StatusOr<Decoder>(const std::vector<std::int64_t>& latent_shape)>;

// Compares what generates samples, all from the same noise (sample_noise.h), with one reference.
class Judge {
 public:
  explicit Judge(JudgeOptions options, OpenDecoder open_decoder = nullptr)
      : options_(std::move(options)), open_decoder_(std::move(open_decoder)) {}

  // Opens the features and makes, or finds in the cache, the reference's statistics; once, later
  // calls do nothing. `scaling` is that of the data (signature). Errors say what is missing:
  // features for this shape, samples of the reference, more samples than neighbours. With a decoder
  // `shape` is that of the latents.
  absl::Status Prepare(const std::vector<std::int64_t>& shape, const std::string& scaling,
                       const Generate& teacher, const std::function<bool()>& stop);

  // Draws samples and compares them; `name` of the picture, without ending. FAILED_PRECONDITION
  // for samples that are not finite.
  absl::StatusOr<Verdict> Look(const Generate& generate, const std::string& name,
                               const std::function<bool()>& stop) const;

  // The same of the teacher, from whose samples the distances of later ones are then measured; a
  // part of them is kept, as many as 256 MB hold, at most 256.
  absl::StatusOr<Verdict> LookAtTeacher(const Generate& teacher, const std::string& name,
                                        const std::function<bool()>& stop);

  const JudgeOptions& options() const { return options_; }
  bool compares() const { return !options_.data.empty(); }
  // What is compared with what, by what; for people and files.
  std::string About() const;
  std::string features_name() const { return features_ == nullptr ? "" : features_->name(); }
  std::int64_t reference_rows() const { return reference_.rows; }
  bool from_cache() const { return from_cache_; }

 private:
  absl::StatusOr<at::Tensor> Draw(const Generate& generate, std::uint64_t seed, std::int64_t count,
                                  const std::function<bool()>& stop) const;
  absl::StatusOr<Verdict> Compare(const at::Tensor& samples, const std::string& name,
                                  const std::function<bool()>& stop) const;
  absl::StatusOr<double> Distance(const at::Tensor& samples) const;
  absl::Status MakeReference(const Generate& teacher, const std::function<bool()>& stop);
  bool ReadCache(const std::string& path);
  absl::Status WriteCache(const std::string& path) const;

  JudgeOptions options_;
  OpenDecoder open_decoder_;
  std::optional<Decoder> decoder_;
  at::Tensor teacher_;  // its first samples; undefined: not known
  bool prepared_ = false, from_cache_ = false;
  std::vector<std::int64_t> noise_shape_;
  std::vector<std::int64_t> shape_;  // of what is looked at, and how pixels became it
  std::string scaling_;
  std::unique_ptr<Features> features_;
  FeatureGaussian reference_;
  std::vector<double> manifold_;  // features of the reference's first samples
};

}  // namespace mergeplan::judge
