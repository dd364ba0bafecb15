#pragma once

#include "absl/status/status.h"
#include "adapters/parallel/communicator.h"
#include "adapters/runtime/arguments.h"

namespace mergeplan {

// Where the options say --layout auto or --precision auto: tries what there is on this machine with
// the students' network and batch, puts the words that were found into `arguments` and says so on
// stderr. The first rank chooses for all; collective. With `resume` there is nothing to ask: the
// run has what was found when it began. Misuse for options that cannot be; errors of LoadNetwork.
absl::Status ChooseArithmetic(const Communicator& ranks, bool quiet, DistillArguments* arguments);

}  // namespace mergeplan
