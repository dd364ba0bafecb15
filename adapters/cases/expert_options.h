#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "adapters/experts/executor.h"
#include "adapters/runtime/arguments.h"

namespace mergeplan {

// How the students of a mixture are trained, as texts: iterations, lr, optimizer (adam or sgd),
// beta1, beta2, eps, draws (samples: afresh for every update; pool: 65,536 rows, drawn once for
// each merge), fit-iterations, experts, hidden.

// What the arguments say of it. Misuse names an option that these students do not have.
absl::StatusOr<std::map<std::string, std::string>> ExpertTexts(const DistillArguments& arguments);
// All of it, so that Parse(ToTexts(x)) is x.
std::map<std::string, std::string> ToTexts(const experts::ExecutorOptions& options);
// What is absent has the paper's value; seeds, batch, precision, start and threads are left alone.
// INVALID_ARGUMENT names the option, what it says and what was expected.
absl::StatusOr<experts::ExecutorOptions> ParseExpertOptions(
    const std::map<std::string, std::string>& texts, int dimensions);

}  // namespace mergeplan
