#include "adapters/cases/choose.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "adapters/cases/network_data.h"
#include "adapters/cases/network_files.h"
#include "adapters/network/probe.h"
#include "adapters/runtime/device.h"
#include "adapters/runtime/network_options.h"
#include "adapters/runtime/signals.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

// As one network is trained without being told more (network_job.cc).
constexpr int kDefaultBatch = 64;
constexpr const char* kOptions[] = {"layout", "precision"};

bool IsOpen(const DistillArguments& arguments, const std::string& option) {
  const auto found = arguments.training.find(option);
  return found != arguments.training.end() && found->second == kAuto;
}

absl::StatusOr<network::Probed> Try(const DistillArguments& arguments, const TeacherName& teacher,
                                    const NetworkOptions& options) {
  TeacherName name = teacher;
  if (arguments.network.student) {
    MP_ASSIGN_OR_RETURN(name, ParseTeacher(*arguments.network.student));
  }
  MP_ASSIGN_OR_RETURN(const NetworkFile file, LoadNetwork(name));
  network::Signature signature = file.signature;
  if (arguments.dtype) signature.dtype = *arguments.dtype;
  const absl::StatusOr<Device> device = OpenDevice(arguments.device.value_or("cpu"));
  if (!device.ok()) {
    const absl::Status status(device.status().code(),
                              absl::StrCat("--", device.status().message()));
    return absl::IsInvalidArgument(status) ? AsMisuse(status) : status;
  }
  if (options.checkpointing) {
    // What has none says so later.
    file.module->SetGradientCheckpointing(true).IgnoreError();
  }
  MP_RETURN_IF_ERROR(MoveNetwork(*file.module, *device, signature));
  file.module->SetTraining(false);
  MP_ASSIGN_OR_RETURN(
      const std::vector<network::Arithmetic> choices,
      network::Choices(*file.module, signature.dtype, options.layout, options.precision));
  return network::Probe(*file.module, signature, DeviceOf(*device),
                        arguments.batch.value_or(kDefaultBatch), choices, StopRequested);
}

}  // namespace

absl::Status ChooseArithmetic(const Communicator& ranks, bool quiet, DistillArguments* arguments) {
  if (!IsOpen(*arguments, "layout") && !IsOpen(*arguments, "precision")) return absl::OkStatus();
  if (arguments->resume) {
    for (const char* option : kOptions) {
      if (IsOpen(*arguments, option)) arguments->training.erase(option);
    }
    return absl::OkStatus();
  }
  if (!arguments->teacher) return absl::OkStatus();  // which is said elsewhere
  MP_ASSIGN_OR_RETURN(const TeacherName teacher, ParseTeacher(*arguments->teacher));
  if (!HasNetworkStudents(*arguments, teacher)) return absl::OkStatus();
  MP_ASSIGN_OR_RETURN(const auto texts, NetworkTexts(*arguments));
  MP_ASSIGN_OR_RETURN(const NetworkOptions options, NetworkOptions::Parse(texts));
  // Of the choice; -1: there is none.
  std::array<std::int32_t, 2> chosen = {-1, -1};
  absl::Status status;
  if (ranks.first()) {
    const absl::StatusOr<network::Probed> probed = Try(*arguments, teacher, options);
    status = probed.status();
    if (probed.ok()) {
      chosen = {static_cast<std::int32_t>(probed->chosen.layout),
                static_cast<std::int32_t>(probed->chosen.precision)};
      arguments->network.probed = probed->text;
      if (!quiet) {
        std::fprintf(stderr, "layout and precision: %s; probed: %s\n",
                     ToString(probed->chosen).c_str(), probed->text.c_str());
      }
    }
  }
  MP_RETURN_IF_ERROR(ranks.Broadcast(chosen.data(), sizeof chosen));
  MP_RETURN_IF_ERROR(status);
  if (chosen[0] < 0) return absl::OkStatus();  // the first rank says why
  const network::Arithmetic way{static_cast<network::Layout>(chosen[0]),
                                static_cast<network::Precision>(chosen[1])};
  arguments->training["layout"] = std::string(ToString(way.layout));
  arguments->training["precision"] = std::string(ToString(way.precision));
  return absl::OkStatus();
}

}  // namespace mergeplan
