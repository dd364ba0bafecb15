#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "adapters/network/signature.h"

namespace mergeplan::denoising {

// The scheduler that a trained network is written with, as diffusers has it.
struct Scheduler {
  std::string text;        // of scheduler_config.json
  std::string class_name;  // "DDIMScheduler"
  std::string pipeline;    // of diffusers, that draws with such a scheduler; empty: there is none
  network::Prediction prediction = network::Prediction::kEpsilon;
  int steps = 0;                 // levels that are trained
  network::TrainingTable table;  // of them
};

// `spec` is a scheduler_config.json (or the folder that holds it, or the pipeline's), whose
// prediction_type is replaced by `prediction` where one is given; or a name: ddpm-linear,
// ddpm-scaled-linear, ddpm-cosine, sigmoid, with their parameters, or flow:shift=S. Of a name the
// table has 1000 levels, and DDIM's timesteps are "trailing", so that sampling begins at the
// noisiest level. "" for `prediction`: what the file says; v_prediction for a name (flow for flow).
//
// INVALID_ARGUMENT for names that no scheduler of diffusers has, for flow predicted on other
// schedules or something else on a flow, and for epsilon where the noisiest level has no signal;
// errors of the planner's schedules.
absl::StatusOr<Scheduler> FindScheduler(const std::string& spec, const std::string& prediction);

// Is there so little signal at the noisiest level that a network of this prediction is badly
// conditioned there? What one unit of its output does to x0.
double LargestFactor(const Scheduler& scheduler);

}  // namespace mergeplan::denoising
