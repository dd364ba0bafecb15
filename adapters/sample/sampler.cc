#include "adapters/sample/sampler.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "adapters/judge/sample_noise.h"
#include "adapters/network/try.h"
#include "adapters/runtime/arguments.h"
#include "planner/base/memory.h"
#include "planner/base/status_macros.h"

namespace mergeplan::sample {

at::Tensor ClassOrder::Labels(std::uint64_t first, std::int64_t rows) const {
  if (classes.empty()) return {};
  std::vector<std::int64_t> out;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::uint64_t turn =
        (first + static_cast<std::uint64_t>(r)) / static_cast<std::uint64_t>(each);
    out.push_back(classes[turn % classes.size()]);
  }
  return at::tensor(out, at::kLong);
}

absl::StatusOr<ClassOrder> ParseClasses(const std::string& text, std::int64_t each,
                                        std::int64_t classes) {
  ClassOrder out;
  out.each = each;
  if (classes == 0) {
    if (text.empty() && each == 1) return out;
    return Misuse(absl::StrCat(text.empty() ? "--per-class" : "--class",
                               ": what is sampled is told no classes; leave the option out"));
  }
  if (text.empty() || text == "all") {
    for (std::int64_t k = 0; k < classes; ++k) out.classes.push_back(k);
    return out;
  }
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    std::int64_t label = 0;
    if (!absl::SimpleAtoi(word, &label) || label < 0 || label >= classes) {
      return Misuse(absl::StrCat("--class ", text, ": expected all, or numbers from 0 to ",
                                 classes - 1, " with commas between them"));
    }
    out.classes.push_back(label);
  }
  return out;
}

absl::StatusOr<at::Tensor> DrawSamples(const Sampler& sampler, const ClassOrder& order,
                                       std::uint64_t seed, std::uint64_t first, std::int64_t count,
                                       std::int64_t batch, const std::function<bool()>& stop) {
  std::vector<std::int64_t> sizes = {count};
  sizes.insert(sizes.end(), sampler.shape.begin(), sampler.shape.end());
  double numbers = 1;
  for (const std::int64_t extent : sizes) numbers *= static_cast<double>(extent);
  MP_RETURN_IF_ERROR(CheckMemory(absl::StrCat(count, " samples"), 4 * numbers));
  const c10::NoGradGuard no_gradients;
  at::Tensor all;
  MP_RETURN_IF_ERROR(network::Try("samples", [&] {
    all = at::empty(sizes, at::kFloat);
    return absl::OkStatus();
  }));
  for (std::int64_t begin = 0; begin < count; begin += batch) {
    if (stop()) return absl::CancelledError("stopped by a signal");
    const std::int64_t rows = std::min(batch, count - begin);
    MP_ASSIGN_OR_RETURN(
        const at::Tensor noise,
        judge::SampleNoise(seed, first + static_cast<std::uint64_t>(begin), rows, sampler.shape));
    absl::StatusOr<at::Tensor> x = sampler.run(
        noise.to(sampler.states, /*non_blocking=*/false, /*copy=*/true) * sampler.noise_size,
        order.Labels(first + static_cast<std::uint64_t>(begin), rows));
    if (!x.ok()) return x.status();
    MP_RETURN_IF_ERROR(network::Try("samples", [&] {
      const at::Tensor found = x->to(at::kCPU, at::kFloat);
      const at::Tensor finite = at::isfinite(found).flatten(1).all(1);
      if (!finite.all().item<bool>()) {
        return absl::FailedPreconditionError(absl::StrCat(
            sampler.what, ": sample ", first + begin + finite.to(at::kInt).argmin().item<int>(),
            " of seed ", seed, " is not finite; check the network, its weights and the schedule"));
      }
      all.narrow(0, begin, rows).copy_(found);
      return absl::OkStatus();
    }));
  }
  return all;
}

}  // namespace mergeplan::sample
