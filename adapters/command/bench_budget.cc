#include "adapters/command/bench_budget.h"

#include <cmath>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "adapters/runtime/arguments.h"

namespace mergeplan {

absl::StatusOr<BenchBudget> ParseBenchBudget(const std::string& text) {
  BenchBudget out;
  std::set<std::string> seen;
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  for (const std::string& part : parts) {
    const std::vector<std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const bool word = part == "per-merge" || part == "total" || part == "both";
    if (!seen.insert(word ? "budget" : pair[0]).second) {
      return Misuse(absl::StrCat("--budget ", text, ": ", word ? "two budgets" : pair[0] + " twice",
                                 ", expected each once (both stands for per-merge and total)"));
    }
    if (word) {
      out.per_merge = part != "total";
      out.total = part != "per-merge";
      continue;
    }
    double number = 0;
    const bool good = pair.size() == 2 && absl::SimpleAtod(pair[1], &number) && number > 0 &&
                      std::isfinite(number);
    if (good && pair[0] == "calls") {
      out.calls = number;
    } else if (good && pair[0] == "minutes") {
      out.minutes = number;
    } else if (good && pair[0] == "updates" && number == std::floor(number) && number <= 0x1p53) {
      out.updates = static_cast<std::int64_t>(number);
    } else {
      return Misuse(absl::StrCat("--budget ", text, ": '", part,
                                 "', expected per-merge, total or both, and updates=N, calls=X or "
                                 "minutes=X with positive numbers, separated by commas"));
    }
  }
  return out;
}

std::vector<std::string> AboveLimits(const BenchBudget& budget, const BenchForecast& forecast) {
  std::vector<std::string> out;
  const auto calls = static_cast<double>(forecast.teacher_calls);
  if (budget.calls && calls > *budget.calls) {
    out.push_back(absl::StrFormat("calls=%g: %.4g calls of the teacher are to be made",
                                  *budget.calls, calls));
  }
  const double minutes = forecast.seconds / 60;
  if (budget.minutes && std::isnan(minutes)) {
    out.push_back(absl::StrFormat(
        "minutes=%g: nobody knows how long these students take, so that it cannot be compared",
        *budget.minutes));
  } else if (budget.minutes && minutes > *budget.minutes) {
    out.push_back(
        absl::StrFormat("minutes=%g: about %.3g are to be taken", *budget.minutes, minutes));
  }
  return out;
}

}  // namespace mergeplan
