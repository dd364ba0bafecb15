#include "adapters/network/fingerprint.h"

#include <ATen/core/Tensor.h>

#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/network/try.h"
#include "planner/base/file.h"
#include "planner/base/shortest.h"

namespace mergeplan::network {
namespace {

std::string Text(const std::vector<double>& values) {
  return absl::StrJoin(values, ",", [](std::string* out, double value) {
    absl::StrAppend(out, ShortestText(value));
  });
}

std::string Text(const LossOptions& loss) {
  return absl::StrCat(std::string(ToString(loss.space)), " ", std::string(ToString(loss.weighting)),
                      " ", ShortestText(loss.gamma));
}

}  // namespace

absl::StatusOr<std::string> FingerprintOf(const Module& student, const NetworkSteps& steps,
                                          const Plan& plan, const ExecutorOptions& options) {
  const Schedule& schedule = steps.schedule();
  const Signature& signature = steps.signature();
  std::vector<std::string> parts = {
      plan.ToString(),
      Text(schedule.alpha),
      Text(schedule.sigma),
      Text(schedule.level_scale),
      ShortestText(schedule.data_scale),
      std::string(ToString(signature.prediction)),
      absl::StrJoin(signature.shape, ","),
      signature.dtype,
      absl::StrJoin(signature.arguments, ","),
      absl::StrJoin(options.recipe.Options(), ",", absl::PairFormatter("=")),
      std::string(ToString(options.init)),
      options.shared ? "shared" : "separate",
      ShortestText(options.lr),
      absl::StrCat(options.iterations, " ", options.total_updates, " ", options.batch, " ",
                   options.seed, " ", options.fit_updates, " ", options.held_out_rows, " ",
                   options.held_out_seed, " ", options.block, " ", options.deterministic ? 1 : 0),
      ShortestText(options.gain_bound),
      std::string(ToString(options.precision)),
      Text(options.loss),
      Text(options.fit_loss)};
  if (signature.classes > 0) parts.push_back(absl::StrCat("classes ", signature.classes));
  for (int t = 1; t <= schedule.steps(); ++t) {
    parts.push_back(
        absl::StrCat(ShortestText(steps.input(t).time), " ", ShortestText(steps.input(t).scale)));
  }
  return Try("fingerprint", [&]() -> absl::StatusOr<std::string> {
    for (const auto& list : {student.Parameters(), student.Buffers()}) {
      for (const auto& [name, tensor] : list) {
        const at::Tensor flat = tensor.detach().to(at::kCPU).contiguous();
        parts.push_back(
            absl::StrCat(name, " ", c10::toString(flat.scalar_type()), " ",
                         Sha256(std::string_view(static_cast<const char*>(flat.const_data_ptr()),
                                                 flat.nbytes()))));
      }
    }
    return Sha256(absl::StrJoin(parts, "\n"));
  });
}

}  // namespace mergeplan::network
