#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"

namespace mergeplan {

// Runs `body` in a forked child and gives the status that it returns, so that foreign code which
// crashes, ends the process or never returns does none of that here. In those cases
// FAILED_PRECONDITION (DEADLINE_EXCEEDED for the last): "SUBJECT: crashed while it was being loaded
// (signal 11, ...)".
//
// What the child prints on stdout goes to stderr. It is killed once it has answered, after
// LoadSeconds(), and when this process dies. RESOURCE_EXHAUSTED where no child can be made.
absl::Status TryLoading(const std::string& subject, const std::function<absl::Status()>& body);

// How long a plugin may take to load: MERGEPLAN_PLUGIN_LOAD_SECONDS where that is a positive
// number, else 10.
double LoadSeconds();

}  // namespace mergeplan
