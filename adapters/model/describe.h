#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/model/compare.h"
#include "nlohmann/json.hpp"

namespace mergeplan::unet {
class UNet2d;
}

namespace mergeplan::model {

// What a scheduler's config says about the network that it belongs to.
struct SchedulerFacts {
  std::string file;
  std::string class_name;
  std::string clips;  // "clip_sample" or "thresholding", which nothing here does; empty: none
  std::string prediction_type;
  int num_train_timesteps = 0;
  std::string fault;  // why it could not be understood; then the others are empty
};

// Looks for scheduler_config.json in the model's folder, in ../scheduler and in scheduler.
std::optional<SchedulerFacts> FindScheduler(const std::string& folder);

// The object that --json prints, without the comparison. `folder` is where config.json lies.
nlohmann::json DescribeUNet(const unet::UNet2d& net, const std::string& folder);
nlohmann::json DescribeComparison(const std::vector<Difference>& differences,
                                  const std::string& file, double tolerance);
// The same for people.
std::string Describe(const nlohmann::json& model);

}  // namespace mergeplan::model
