#pragma once

// Inside plugins/conformance only: how checks are written.

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "mergeplan_plugin.h"
#include "plugins/conformance/mergeplan_conformance.h"
#include "plugins/conformance/plan_call.h"

namespace mergeplan_conformance {

struct Check {
  CheckInfo info;
  void (*run)(const Subject& subject);
};

// The checks of one group each.
std::vector<Check> EntryChecks();
std::vector<Check> ParameterChecks();
std::vector<Check> PlanChecks();
std::vector<Check> PlanErrorChecks();
std::vector<Check> ExecuteChecks();
std::vector<Check> ExecuteErrorChecks();
std::vector<Check> VersionChecks();
std::vector<Check> ThreadChecks();

// The plugin when its entry can be used, else NULL: the checks of the group Entry say why not.
const mergeplan_plugin* Usable(const Subject& subject);

// Begins every check of plan() and execute(): skips it where there is nothing to call.
// NOLINTBEGIN(bugprone-macro-parentheses): `plugin` is a name.
#define MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject)                                    \
  const mergeplan_plugin* const usable_plugin = Usable(subject);                         \
  if (usable_plugin == nullptr) GTEST_SKIP() << "the entry cannot be used, see Entry.*"; \
  const mergeplan_plugin& plugin = *usable_plugin
// NOLINTEND(bugprone-macro-parentheses)

// The question of T steps and N blocks with the subject's parameters.
Question Ask(const Subject& subject, const mergeplan_plugin& plugin, std::int32_t teacher_steps,
             std::int32_t student_steps);

// Does plan() give the same answer to the same question? Then answers can be compared elsewhere;
// Plan.SameRequestSamePlan says so otherwise.
bool Repeats(const Subject& subject, const mergeplan_plugin& plugin);

// Collects what is wrong with many calls and fails once, with the first few.
class Findings {
 public:
  // A finding unless `problem` is empty.
  void Add(const std::string& where, const std::string& problem);
  ~Findings();
  Findings() = default;
  Findings(const Findings&) = delete;
  Findings& operator=(const Findings&) = delete;

 private:
  std::vector<std::string> lines_;
  std::size_t count_ = 0;
};

}  // namespace mergeplan_conformance
