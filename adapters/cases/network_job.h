#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "adapters/cases/network_files.h"
#include "adapters/network/executor.h"
#include "adapters/network/inputs.h"
#include "adapters/network/steps.h"
#include "adapters/network/teachers.h"
#include "adapters/runtime/arguments.h"
#include "adapters/runtime/device.h"
#include "adapters/runtime/network_options.h"
#include "adapters/runtime/run_folder.h"
#include "planner/plan/io/document.h"
#include "planner/schedule/schedule.h"
#include "plugins/host/host.h"

namespace mergeplan {

// Everything that training a plan on networks needs, found and checked.
struct NetworkJob {
  std::shared_ptr<const Plugin> plugin;
  std::map<std::string, std::string> parameters;  // of the plugin, as given

  TeacherName teacher_name;
  std::string teacher_sha256;
  std::shared_ptr<network::Teacher> teacher;
  NetworkFile student;  // its weights are what the first merges start from
  bool copies_teacher = true;
  Schedule schedule;
  std::shared_ptr<const network::NetworkSteps> steps;  // of the student
  std::shared_ptr<network::Inputs> inputs;
  std::string data, data_sha256, array;  // empty without data
  std::int64_t data_rows = 0;
  // Classes of the data, where the network is told some: the file, which may be the data's own.
  std::string labels, labels_sha256, label_array;

  // The plan. Its question is about linear students of data with these variances; where none are
  // known (`has_spectrum` false), of variance 1.
  PlanDocument document;
  bool has_spectrum = false;
  NetworkOptions options;
  int batch = 0;
  std::uint64_t seed = 0;
  std::string dtype = "float32";
  Device device;
  double memory = 0;   // bytes; 0: any
  std::string probed;  // how layout and precision were chosen, where they were

  // What the executor is told, but for the functions and the folder.
  absl::StatusOr<network::ExecutorOptions> ExecutorOptions() const;
  // What run.toml says of the training: the options, the student's network, the data.
  std::map<std::string, std::string> Texts() const;
};

// A new run. Misuse for options that contradict each other or the plan.
absl::StatusOr<NetworkJob> NewNetworkJob(const DistillArguments& arguments,
                                         PlannerServices& services);
// The run in `folder` again. Options that are given must say what the run says; networks and data
// must still be what they were.
absl::StatusOr<NetworkJob> ResumedNetworkJob(const DistillArguments& arguments,
                                             const RunFolder& folder);

}  // namespace mergeplan
