#include "adapters/cases/expert_options.h"

#include <cmath>
#include <functional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "planner/base/shortest.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

absl::Status Wrong(const std::string& option, const std::string& text,
                   const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat("--", option, " ", text, ": expected ", expected));
}

template <typename Int>
absl::Status ParseInt(const std::string& option, const std::string& text, std::int64_t least,
                      std::int64_t most, Int* out) {
  std::int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < least || value > most) {
    return Wrong(option, text, absl::StrCat("an integer from ", least, " to ", most));
  }
  *out = static_cast<Int>(value);
  return absl::OkStatus();
}

absl::Status ParseNumber(const std::string& option, const std::string& text, double* out) {
  if (absl::SimpleAtod(text, out) && std::isfinite(*out)) return absl::OkStatus();
  return Wrong(option, text, "a finite number");
}

constexpr std::int64_t kMostUpdates = std::int64_t{1} << 53;
constexpr char kFresh[] = "samples", kPool[] = "pool";

absl::Status Set(const std::string& option, const std::string& text,
                 experts::ExecutorOptions* out) {
  if (option == "iterations") return ParseInt(option, text, 1, kMostUpdates, &out->iterations);
  if (option == "fit-iterations") return ParseInt(option, text, 0, kMostUpdates, &out->fit_updates);
  if (option == "experts")
    return ParseInt(option, text, 1, experts::kMaxExperts, &out->shape.experts);
  if (option == "hidden") return ParseInt(option, text, 1, experts::kMaxHidden, &out->shape.hidden);
  if (option == "lr") return ParseNumber(option, text, &out->optimizer.lr);
  if (option == "beta1") return ParseNumber(option, text, &out->optimizer.beta1);
  if (option == "beta2") return ParseNumber(option, text, &out->optimizer.beta2);
  if (option == "eps") return ParseNumber(option, text, &out->optimizer.epsilon);
  if (option == "optimizer") {
    const auto kind = experts::ParseOptimizer(text);
    if (!kind.ok()) return Wrong(option, text, "adam or sgd");
    out->optimizer.kind = *kind;
    return absl::OkStatus();
  }
  if (option == "draws") {
    if (text != kFresh && text != kPool) return Wrong(option, text, "samples or pool");
    out->inputs = text == kPool ? experts::InputKind::kPool : experts::InputKind::kFresh;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--", option,
                   ": the students of a mixture have no such option (they have optimizer, beta1, "
                   "beta2, eps and draws); leave it out"));
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ExpertTexts(const DistillArguments& arguments) {
  std::map<std::string, std::string> texts = arguments.training;
  const ExpertArguments& experts = arguments.experts;
  if (arguments.iterations) texts["iterations"] = absl::StrCat(*arguments.iterations);
  if (arguments.lr) texts["lr"] = ShortestText(*arguments.lr);
  if (experts.fit_iterations) texts["fit-iterations"] = absl::StrCat(*experts.fit_iterations);
  if (experts.experts) texts["experts"] = absl::StrCat(*experts.experts);
  if (experts.hidden) texts["hidden"] = absl::StrCat(*experts.hidden);
  MP_RETURN_IF_ERROR(AsMisuse(ParseExpertOptions(texts, 1).status()));
  return texts;
}

std::map<std::string, std::string> ToTexts(const experts::ExecutorOptions& options) {
  return {{"iterations", absl::StrCat(options.iterations)},
          {"fit-iterations", absl::StrCat(options.fit_updates)},
          {"experts", absl::StrCat(options.shape.experts)},
          {"hidden", absl::StrCat(options.shape.hidden)},
          {"lr", ShortestText(options.optimizer.lr)},
          {"beta1", ShortestText(options.optimizer.beta1)},
          {"beta2", ShortestText(options.optimizer.beta2)},
          {"eps", ShortestText(options.optimizer.epsilon)},
          {"optimizer", std::string(ToString(options.optimizer.kind))},
          {"draws", options.inputs == experts::InputKind::kPool ? kPool : kFresh}};
}

absl::StatusOr<experts::ExecutorOptions> ParseExpertOptions(
    const std::map<std::string, std::string>& texts, int dimensions) {
  experts::ExecutorOptions options;
  options.shape.dimensions = dimensions;
  for (const auto& [option, text] : texts) MP_RETURN_IF_ERROR(Set(option, text, &options));
  const absl::Status optimizer = Validate(options.optimizer);
  if (!optimizer.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--optimizer: ", std::string(optimizer.message())));
  }
  return options;
}

}  // namespace mergeplan
