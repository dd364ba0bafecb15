#include "adapters/experts/optimizer.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "adapters/experts/dense.h"

namespace mergeplan::experts {

std::string_view ToString(OptimizerKind kind) {
  return kind == OptimizerKind::kAdam ? "adam" : "sgd";
}

absl::StatusOr<OptimizerKind> ParseOptimizer(std::string_view word) {
  if (word == "adam") return OptimizerKind::kAdam;
  if (word == "sgd") return OptimizerKind::kSgd;
  return absl::InvalidArgumentError(
      absl::StrCat("optimizer '", std::string(word), "' is unknown, expected adam or sgd"));
}

absl::Status Validate(const OptimizerOptions& options) {
  const auto check = [](const char* what, double found, bool good, const char* expected) {
    if (good && std::isfinite(found)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("optimizer: ", what, " is ", found, ", expected ", expected));
  };
  absl::Status status = check("the learning rate", options.lr, options.lr > 0, "a number above 0");
  if (!status.ok() || options.kind == OptimizerKind::kSgd) return status;
  status.Update(
      check("beta1", options.beta1, options.beta1 >= 0 && options.beta1 < 1, "0 <= beta1 < 1"));
  status.Update(
      check("beta2", options.beta2, options.beta2 >= 0 && options.beta2 < 1, "0 <= beta2 < 1"));
  status.Update(check("epsilon", options.epsilon, options.epsilon > 0, "a number above 0"));
  return status;
}

template <typename T>
void OptimizerStep(const OptimizerOptions& options, std::int64_t step, const AlignedVector<T>& g,
                   AlignedVector<T>& m, AlignedVector<T>& v, AlignedVector<T>& p) {
  if (options.kind == OptimizerKind::kSgd) {
    SgdLoop(g.size(), static_cast<T>(options.lr), g.data(), p.data());
    return;
  }
  const double k = static_cast<double>(step);
  const double rate = options.lr / (1 - std::pow(options.beta1, k));
  const double root_scale = 1 / std::sqrt(1 - std::pow(options.beta2, k));
  AdamLoop(g.size(), static_cast<T>(options.beta1), static_cast<T>(options.beta2),
           static_cast<T>(root_scale), static_cast<T>(options.epsilon), static_cast<T>(rate),
           g.data(), m.data(), v.data(), p.data());
}

template void OptimizerStep(const OptimizerOptions&, std::int64_t, const AlignedVector<float>&,
                            AlignedVector<float>&, AlignedVector<float>&, AlignedVector<float>&);
template void OptimizerStep(const OptimizerOptions&, std::int64_t, const AlignedVector<double>&,
                            AlignedVector<double>&, AlignedVector<double>&, AlignedVector<double>&);

}  // namespace mergeplan::experts
