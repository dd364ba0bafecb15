#include "adapters/cases/make_trainer.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

bool IsTensorStep(const Device& device, StepKind step) {
  return step == StepKind::kTensor || (step == StepKind::kAuto && device.cuda);
}

}  // namespace

std::int64_t MergesTogether(const TrainerOptions& options, std::int64_t d) {
  constexpr std::int64_t kNumbers = std::int64_t{1} << 25;  // x 4 arrays x 8 bytes
  return std::max<std::int64_t>(1, kNumbers / std::max<std::int64_t>(1, options.batch * d));
}

absl::Status CheckRecipe(const Recipe& recipe, const Device& device, StepKind step) {
  if (!IsTensorStep(device, step)) return absl::OkStatus();
  // The schedule of the rate is all that this step follows, besides plain SGD on samples.
  Recipe plain;
  plain.student = recipe.student;
  plain.rate_schedule = recipe.rate_schedule;
  plain.warmup = recipe.warmup;
  if (recipe == plain) return absl::OkStatus();
  const std::map<std::string, std::string> wanted = recipe.Options(), can = plain.Options();
  for (const auto& [option, value] : wanted) {
    const auto known = can.find(option);
    if (known != can.end() && known->second == value) continue;
    return absl::UnimplementedError(absl::StrCat(
        "--", option, " ", value, ": not with --device ", device.cuda ? "cuda" : "cpu, tensor step",
        known == can.end() ? "" : absl::StrCat(", which has ", known->second),
        "; use --device cpu"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Trainer>> MakeTrainer(std::vector<MergeTask> tasks,
                                                     const TrainerOptions& options,
                                                     const Device& device, StepKind step) {
  if (step == StepKind::kFused && device.cuda) {
    return absl::UnimplementedError("the fused step runs on the CPU only");
  }
  MP_RETURN_IF_ERROR(CheckRecipe(options.recipe, device, step));
  if (!IsTensorStep(device, step)) return MakeLinearTrainer(std::move(tasks), options);
  if (options.communicator != nullptr && options.communicator->ranks() > 1) {
    return absl::UnimplementedError(
        absl::StrCat("--device ", device.ToString(), ": linear students train in ",
                     options.communicator->ranks(),
                     " processes on the CPU only; leave out mpirun, or use --device cpu"));
  }
  MP_RETURN_IF_ERROR(CheckTasks(tasks, options));
  return MakeTensorTrainer(std::move(tasks), options, device);
}

}  // namespace mergeplan
