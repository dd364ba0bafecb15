#pragma once

#include <string>

#include "planner/runs/run_info.h"

namespace mergeplan {

// What a run may be, with all fields set, and some of them at their ends.
inline RunInfo SomeInfo() {
  RunInfo info;
  info.status = RunStatus::kStopped;
  info.strategy = "boot";
  info.plugin = "/plugins/caf\xC3\xA9/boot.toml";
  info.plugin_version = "1.0";
  info.parameters = {{"plan", "a \"quoted\" path\n"}};
  info.teacher = kAnalyticTeacher;
  info.teacher_file = "/data/spectrum.toml";
  info.teacher_sha256 = std::string(64, '1');
  info.student = kLinearStudent;
  info.variances_sha256 = std::string(64, '2');
  info.basis = "pca";
  info.seed = 9223372036854775807;
  info.dtype = "float64";
  info.device = "cpu";
  info.batch = 2147483647;
  info.training = {{"draws", "samples"}, {"optimizer", "sgd"}};
  info.prediction = "mean";
  info.plan_sha256 = std::string(64, '3');
  info.fingerprint = std::string(64, '4');
  info.mergeplan_version = "0.1.0";
  info.torch_version = "2.11.0";
  return info;
}

}  // namespace mergeplan
