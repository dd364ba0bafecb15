// How execute() trains.
#include "plugins/conformance/execute_call.h"

#include <algorithm>
#include <set>

#include "plugins/conformance/checks.h"

namespace mergeplan_conformance {
namespace {

struct NamedTree {
  std::string name;
  Tree tree;
};

const std::vector<NamedTree>& Trees() {
  static const auto* const trees = new std::vector<NamedTree>{
      {"T = 1, nothing to train", Flat(1)},
      {"T = 3, N = 3, nothing to train", Random(3, 3, 1)},
      {"T = 2, one merge", Flat(2)},
      {"T = 5, one merge of all", Flat(5)},
      {"T = 6, a chain", Chain(6)},
      {"T = 8, halves of halves", Halves(8)},
      {"T = 17, N = 1, merges of many widths", Random(17, 1, 2)},
      {"T = 17, N = 5, merges of many widths", Random(17, 5, 3)},
      {"T = 64, N = 3, merges of many widths", Random(64, 3, 4)},
  };
  return *trees;
}

using Judge = void (*)(const ExecuteOutcome& outcome, const std::string& where, Findings* findings);

// Runs all trees with this host.
void ForEachTree(const Subject& subject, const mergeplan_plugin& plugin, const ExecuteHost& host,
                 Judge judge) {
  const auto parameters = Values(plugin, subject.parameters);
  Findings findings;
  for (const NamedTree& one : Trees()) {
    judge(CallExecute(plugin, one.tree, parameters, host), one.name, &findings);
  }
}

std::string Failure(const ExecuteOutcome& outcome) {
  return "returned " + std::to_string(outcome.code) + " (" + Quoted(outcome.text.c_str()) +
         ") although nothing was wrong";
}

void Trained(const ExecuteOutcome& outcome, const std::string& where, Findings* findings) {
  if (outcome.threw || !outcome.kept_rules()) return;  // for other checks to say
  if (!outcome.ok()) {
    findings->Add(where, Failure(outcome));
  } else if (outcome.trained < outcome.merges) {
    findings->Add(where, "returned OK, but trained " + std::to_string(outcome.trained) + " of " +
                             std::to_string(outcome.merges) + " merges; " + outcome.missing +
                             " is missing");
  }
}

void TrainsEveryMerge(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  ForEachTree(subject, plugin, {}, Trained);
  ExecuteHost restored;
  restored.restored = true;
  ForEachTree(subject, plugin, restored, Trained);
}

// The plans that the plugin makes itself.
void TrainsItsOwnPlans(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  const auto parameters = Values(plugin, subject.parameters);
  // What it does with plans of others is for Execute.TrainsEveryMerge to say.
  const ExecuteOutcome other = CallExecute(plugin, Halves(8), parameters);
  Findings findings;
  for (const std::int32_t steps : {1, 2, 17}) {
    for (const std::int32_t blocks : std::set<std::int32_t>{1, (steps + 1) / 2, steps}) {
      const PlanOutcome plan = CallPlan(plugin, Ask(subject, plugin, steps, blocks));
      if (!plan.ok() || !plan.invalid.empty()) continue;
      Tree tree = plan.tree;
      // Children before parents, as the host passes them.
      std::sort(tree.merges.begin(), tree.merges.end(), [](const Merge& a, const Merge& b) {
        return a.range.last - a.range.first < b.range.last - b.range.first;
      });
      const ExecuteOutcome outcome = CallExecute(plugin, tree, parameters);
      if (other.ok() && other.trained == other.merges) {
        Trained(outcome, plan.question, &findings);
      }
    }
  }
}

// One rule over all trees.
#define MERGEPLAN_CONFORMANCE_RULE(Name, field)                                                   \
  void Name(const Subject& subject) {                                                             \
    MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);                                                \
    ForEachTree(subject, plugin, {},                                                              \
                [](const ExecuteOutcome& outcome, const std::string& where, Findings* findings) { \
                  findings->Add(where, outcome.field);                                            \
                });                                                                               \
  }
MERGEPLAN_CONFORMANCE_RULE(EachMergeOnce, twice)
MERGEPLAN_CONFORMANCE_RULE(ChildrenFirst, order)
MERGEPLAN_CONFORMANCE_RULE(KeepsTheBorder, border)
MERGEPLAN_CONFORMANCE_RULE(Progress, progress)
MERGEPLAN_CONFORMANCE_RULE(LogsLines, log)
MERGEPLAN_CONFORMANCE_RULE(PlanUnchanged, changed)
MERGEPLAN_CONFORMANCE_RULE(NoExceptionLeaves, thrown)

void SnapshotsReleased(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  ForEachTree(subject, plugin, {},
              [](const ExecuteOutcome& outcome, const std::string& where, Findings* findings) {
                if (!outcome.ok() || outcome.held == 0) return;
                findings->Add(where, std::to_string(outcome.held) + " snapshots are still held");
              });
}

void ResultsThatAreNan(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  ExecuteHost host;
  host.results_nan = true;
  const auto parameters = Values(plugin, subject.parameters);
  Findings findings;
  for (const NamedTree& one : Trees()) {
    // What goes wrong with numbers too is for other checks to say.
    const ExecuteOutcome usual = CallExecute(plugin, one.tree, parameters);
    if (!usual.ok() || !usual.kept_rules() || usual.trained < usual.merges) continue;
    const ExecuteOutcome outcome = CallExecute(plugin, one.tree, parameters, host);
    findings.Add(one.name, outcome.thrown);
    findings.Add(one.name, outcome.told);
    if (usual.progress.empty()) findings.Add(one.name, outcome.progress);
    if (usual.log.empty()) findings.Add(one.name, outcome.log);
    if (outcome.ok()) Trained(outcome, one.name, &findings);
  }
}

// ---- failures

constexpr int kMostAfterStop = 8;

void TrainErrorsArePassedOn(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  const auto parameters = Values(plugin, subject.parameters);
  Findings findings;
  for (const NamedTree& one : Trees()) {
    const ExecuteOutcome usual = CallExecute(plugin, one.tree, parameters);
    if (usual.calls == 0 || usual.threw || !usual.kept_rules()) continue;
    for (const int call : std::set<int>{0, usual.calls / 2, usual.calls - 1}) {
      for (const std::int32_t code : {MERGEPLAN_RESOURCE_EXHAUSTED, MERGEPLAN_CANCELLED}) {
        ExecuteHost host;
        host.failing_call = call;
        host.failing_code = code;
        const ExecuteOutcome outcome = CallExecute(plugin, one.tree, parameters, host);
        const std::string where = one.name + ", training " + std::to_string(call + 1) + " fails";
        if (outcome.threw) {
          findings.Add(where, "threw an exception: " + outcome.thrown);
        } else if (outcome.code != code && outcome.kept_rules()) {
          findings.Add(where, "returned " + std::to_string(outcome.code) +
                                  ", expected the runtime's " + std::to_string(code));
        }
      }
    }
  }
}

void StopsWhenCancelled(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  const auto parameters = Values(plugin, subject.parameters);
  if (!CallExecute(plugin, Chain(64), parameters).ok()) GTEST_SKIP() << "fails anyway";
  Findings findings;
  for (const int after : {0, 1, 20}) {
    ExecuteHost host;
    host.stop_after = after;
    const ExecuteOutcome outcome = CallExecute(plugin, Chain(64), parameters, host);
    const std::string where =
        "a chain of 63 merges, the user wants to stop after " + std::to_string(after) + " of them";
    if (outcome.threw) continue;
    if (outcome.calls_after_stop > kMostAfterStop) {
      findings.Add(where, "trained " + std::to_string(outcome.calls_after_stop) +
                              " times more, expected at most " + std::to_string(kMostAfterStop));
    } else if (outcome.kept_rules() && outcome.trained < outcome.merges &&
               outcome.code != MERGEPLAN_CANCELLED && outcome.code != MERGEPLAN_OK) {
      findings.Add(where, "returned " + std::to_string(outcome.code) + ", expected CANCELLED");
    }
  }
}

void ErrorsSayWhy(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  const auto parameters = Values(plugin, subject.parameters);
  Findings findings;
  for (const NamedTree& one : Trees()) {
    for (const bool stop : {false, true}) {
      ExecuteHost host;
      host.failing_call = stop ? -1 : 0;
      host.stop_after = stop ? 0 : -1;
      findings.Add(one.name, CallExecute(plugin, one.tree, parameters, host).told);
    }
    findings.Add(one.name, CallExecute(plugin, one.tree, parameters).told);
  }
}

void ErrorCapacity(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  const auto parameters = Values(plugin, subject.parameters);
  Findings findings;
  for (const bool stop : {false, true}) {
    ExecuteHost host;
    host.failing_call = stop ? -1 : 0;
    host.stop_after = stop ? 0 : -1;
    const std::int32_t code = CallExecute(plugin, Halves(8), parameters, host).code;
    for (int k = 0; k < 7; ++k) {
      constexpr std::uint64_t kCapacities[] = {0, 1, 2, 7, 16, 0, 0};
      host.error = {};
      host.error.capacity = kCapacities[k];
      host.error.null_text = k >= 5;
      host.error.null_error = k == 6;
      const ExecuteOutcome outcome = CallExecute(plugin, Halves(8), parameters, host);
      const std::string where = k == 6   ? "error NULL"
                                : k == 5 ? "text NULL"
                                         : "capacity " + std::to_string(kCapacities[k]);
      findings.Add(where, outcome.trespass);
      if (outcome.code != code) {
        findings.Add(where, "returned " + std::to_string(outcome.code) + ", with more room " +
                                std::to_string(code));
      }
    }
  }
}

}  // namespace

std::vector<Check> ExecuteChecks() {
  const char* const group = "Execute";
  return {
      {{group, "TrainsEveryMerge", "execute() returns OK once every merge of any plan is trained"},
       TrainsEveryMerge},
      {{group, "TrainsItsOwnPlans", "execute() trains every merge of the plans that plan() makes"},
       TrainsItsOwnPlans},
      {{group, "EachMergeOnce", "no merge is trained twice"}, EachMergeOnce},
      {{group, "ChildrenFirst", "a merge is trained after its children"}, ChildrenFirst},
      {{group, "KeepsTheBorder",
        "the runtime is called as the header says: merges of the plan, structs with sizes, the "
        "caller's thread"},
       KeepsTheBorder},
      {{group, "Progress", "progress is within 0..1 and does not fall"}, Progress},
      {{group, "LogsLines", "texts for the user are UTF-8 in one line"}, LogsLines},
      {{group, "SnapshotsReleased", "snapshots are released before execute() returns OK"},
       SnapshotsReleased},
      {{group, "PlanUnchanged", "plan and parameters are as they were when execute() returns"},
       PlanUnchanged},
      {{group, "NoExceptionLeaves", "no exception leaves execute()"}, NoExceptionLeaves},
      {{group, "ResultsThatAreNan", "losses, times and an evaluation that are NaN do no harm"},
       ResultsThatAreNan},
  };
}

std::vector<Check> ExecuteErrorChecks() {
  const char* const group = "ExecuteErrors";
  return {
      {{group, "TrainErrorsArePassedOn",
        "execute() returns the code with which a training failed, CANCELLED too"},
       TrainErrorsArePassedOn},
      {{group, "StopsWhenCancelled",
        "execute() trains at most 8 times more once the user wants to stop, and returns CANCELLED"},
       StopsWhenCancelled},
      {{group, "ErrorsSayWhy", "a failure has a canonical code, in error.code too, and a text"},
       ErrorsSayWhy},
      {{group, "ErrorCapacity",
        "nothing is written beyond error.capacity; text and error may be NULL"},
       ErrorCapacity},
  };
}

}  // namespace mergeplan_conformance
