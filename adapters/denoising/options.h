#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "adapters/linear/recipe.h"
#include "adapters/network/loss.h"

namespace mergeplan::denoising {

// How a network is trained to denoise, apart from the network, its schedule and the data.
struct Options {
  Recipe recipe;  // its `ema` is 0: the average here is `ema` below
  double lr = 2e-4;
  std::int64_t iterations = 10000;  // updates
  std::int64_t batch = 64;          // rows of one pass; accumulate passes make an update
  // What the average keeps of itself at an update, at most: it begins with less, since it has
  // nothing worth keeping yet (KeptByAverage). 0: no average, the parameters themselves count.
  double ema = 0.999;
  // In what the squared error is measured. `own_loss`: in what the network gives.
  bool own_loss = true;
  network::LossOptions loss;
  bool flip = false;                  // every row mirrored left to right with probability 1/2
  std::string precision = "full";     // full, bf16, fp16; kAuto
  std::string layout = "contiguous";  // contiguous, channels_last; kAuto
  std::int64_t seed = 0;
  std::string scaling;  // how values become data, "-1:1" or "none"; empty: that for pixels
  // What is told on the way; decides no numbers.
  std::int64_t log_every = 50;
  std::int64_t samples = 64;  // pictures of the grid at the end; 0: none
  std::int64_t sample_steps = 50;
  std::int64_t sample_every = 0;  // updates between grids; 0: at the end only

  // Of the options by their names without dashes; those left out have their defaults.
  // INVALID_ARGUMENT names the option, what was found and what is expected.
  static absl::StatusOr<Options> Parse(const std::map<std::string, std::string>& texts);
  // All of them, such that Parse gives the same.
  std::map<std::string, std::string> Texts() const;
  // Those that decide numbers.
  std::map<std::string, std::string> DecidingTexts() const;
};

// What the average keeps of itself at update `update` (0-based): min(ema, (1 + u) / (10 + u)), as
// is usual for averages of weights.
double KeptByAverage(double ema, std::int64_t update);

}  // namespace mergeplan::denoising
