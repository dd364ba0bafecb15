#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mergeplan {

// How a batch of inputs comes about.
//   kSamples  z is drawn afresh for every sample of every update
//   kChi2     of a fresh batch only sum z^2 is drawn, from its law sigma^2 chi^2_B: all that a
//   linear
//             student sees of its batch. The same law of results, other numbers
//   kFixed    one batch a merge, drawn like the first of kSamples and used for all updates
enum class Draws { kSamples, kChi2, kFixed };
enum class OptimizerKind { kSgd, kAdam, kAdamW };
enum class RateSchedule { kConstant, kLinear, kCosine };
// What a merge's operator a is made of, dimension by dimension.
//   kStep       one parameter w of its own, a = sqrt(F) w, F the budget's feature norm
//   kEmbedding  a = <w, phi>, w 64 parameters, phi the sinusoidal embedding of the level
//   (embedding.h)
enum class StudentKind { kStep, kEmbedding };

// How linear students are trained, apart from rate, updates and batch. Every optimizer does what
// PyTorch's of the same name does.
struct Recipe {
  Draws draws = Draws::kSamples;
  StudentKind student = StudentKind::kStep;
  OptimizerKind optimizer = OptimizerKind::kSgd;
  double momentum = 0;                            // SGD
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;  // Adam, AdamW
  double weight_decay = 0;                        // of the parameters w; AdamW: decoupled
  RateSchedule rate_schedule = RateSchedule::kConstant;
  std::int64_t warmup = 0;  // updates over which the rate grows linearly to the whole
  double clip_norm = 0;     // largest norm of a merge's whole gradient; 0: no limit
  double ema = 0;           // what an average keeps at every update; 0: none, the end counts
  int accumulate = 1;       // batches per update

  // Of the options by their names without dashes ("lr-schedule": "cosine"), those left out having
  // their defaults. INVALID_ARGUMENT names the option, what was found and what is expected.
  static absl::StatusOr<Recipe> Parse(const std::map<std::string, std::string>& options);
  // All options that matter, such that Parse gives the same recipe.
  std::map<std::string, std::string> Options() const;

  // What depends on the number of updates and on the feature. INVALID_ARGUMENT.
  absl::Status Validate(std::int64_t updates, double feature_norm) const;

  // What the rate is multiplied with at an update, 0-based: (u + 1) / warmup while u < warmup; then
  // 1, or a way from 1 that would reach 0 after the last update.
  double RateFactor(std::int64_t update, std::int64_t updates) const;

  // Is the end linear in start and target? Then the mean over the noise is known (mean.h).
  bool has_prediction() const { return optimizer == OptimizerKind::kSgd && clip_norm == 0; }
  // SGD at a constant rate and nothing else: what Budget::Gamma is about.
  bool is_plain() const {
    return has_prediction() && momentum == 0 && weight_decay == 0 && ema == 0 && warmup == 0 &&
           rate_schedule == RateSchedule::kConstant;
  }

  friend bool operator==(const Recipe&, const Recipe&) = default;
};

// The names of all options.
bool IsRecipeOption(const std::string& name);

}  // namespace mergeplan
