#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mergeplan {

struct CheckResult {
  enum class Outcome { kPassed, kFailed, kSkipped };
  std::string name;  // GROUP.NAME
  std::string rule;  // what is asked of the plugin
  Outcome outcome = Outcome::kPassed;
  std::string text;  // why it failed or was skipped, in one line
};
// "passed", "failed", "skipped".
std::string_view ToString(CheckResult::Outcome outcome);

struct CheckOptions {
  std::vector<std::string> folders;               // --plugin-dir
  std::map<std::string, std::string> parameters;  // in place of defaults
  double seconds = 60;                            // for each group of checks
};

struct CheckReport {
  std::string name;     // of the plugin, as far as known
  std::string library;  // its path
  std::vector<CheckResult> results;

  int Count(CheckResult::Outcome outcome) const;
};

// Checks a plugin by name, or by the path of its library or manifest: the manifest, whether this
// host can load the library, and the conformance suite (plugins/conformance), each group of it in a
// child process under a deadline. A plugin that crashes, ends the process or never returns fails
// the check that ran; after a crash the rest of the group goes on in another child, after the
// deadline it is skipped. `tell` gets each result as it comes.
//
// Errors are about the question, not the plugin: NOT_FOUND where there is none, INVALID_ARGUMENT
// for parameters that it has not, UNAVAILABLE where the program of the suite is not installed.
absl::StatusOr<CheckReport> CheckPlugin(const std::string& name_or_path,
                                        const CheckOptions& options,
                                        const std::function<void(const CheckResult&)>& tell);

}  // namespace mergeplan
