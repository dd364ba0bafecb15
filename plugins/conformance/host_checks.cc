// Hosts of other versions, and several threads.
#include <set>
#include <thread>

#include "plugins/conformance/checks.h"
#include "plugins/conformance/execute_call.h"

namespace mergeplan_conformance {
namespace {

// plan() and execute() from a host of another minor version answer as they do for ours.
void OfSize(const Subject& subject, const mergeplan_plugin& plugin, Size size) {
  const auto parameters = Values(plugin, subject.parameters);
  const bool repeats = Repeats(subject, plugin);
  std::int32_t calls_behind = 0;
  Findings findings;
  for (const std::int32_t steps : {1, 2, 17}) {
    for (const std::int32_t blocks : std::set<std::int32_t>{1, (steps + 1) / 2, steps}) {
      Question question = Ask(subject, plugin, steps, blocks);
      const std::string usual = CallPlan(plugin, question).Answer();
      question.size = size;
      PlanHost host;
      host.error.size = size;
      const std::int32_t before = CallsBehindTables();
      const PlanOutcome outcome = CallPlan(plugin, question, host);
      calls_behind += CallsBehindTables() - before;
      if (repeats && outcome.Answer() != usual) {
        findings.Add(outcome.question, "another answer than to this host: code " +
                                           std::to_string(outcome.code) + " " +
                                           Quoted(outcome.text.c_str()));
      }
      findings.Add(outcome.question, outcome.trespass);
    }
  }
  for (const bool fails : {false, true}) {
    ExecuteHost host;
    host.failing_call = fails ? 0 : -1;
    const ExecuteOutcome usual = CallExecute(plugin, Random(17, 2, 5), parameters, host);
    host.size = size;
    host.error.size = size;
    const std::int32_t before = CallsBehindTables();
    const ExecuteOutcome outcome = CallExecute(plugin, Random(17, 2, 5), parameters, host);
    calls_behind += CallsBehindTables() - before;
    if (outcome.code != usual.code || outcome.threw != usual.threw ||
        outcome.trained != usual.trained) {
      findings.Add("execute()", "another outcome than with this host: code " +
                                    std::to_string(outcome.code) + " " +
                                    Quoted(outcome.text.c_str()));
    }
    findings.Add("execute()", outcome.trespass);
  }
  if (calls_behind > 0) {
    findings.Add("",
                 "called functions behind the end of the planner's, the sink's or the "
                 "runtime's table; ask MERGEPLAN_HAS first");
  }
}

void OldestHost(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  if (plugin.abi_minor_needed > 0) GTEST_SKIP() << "needs ABI minor " << plugin.abi_minor_needed;
  OfSize(subject, plugin, Size::kOldest);
}

void LaterHost(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  // It may know fields that this suite cannot fill.
  if (plugin.abi_minor > MERGEPLAN_ABI_MINOR) GTEST_SKIP() << "of a later minor than this suite";
  OfSize(subject, plugin, Size::kLarger);
}

// ---- threads

constexpr int kThreads = 4;
constexpr int kRounds = 3;

void PlansAtTheSameTime(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  if (!Repeats(subject, plugin)) GTEST_SKIP() << "answers differ, see Plan.SameRequestSamePlan";
  std::vector<Question> questions;
  std::vector<std::string> answers;
  for (const std::int32_t steps : {5, 9, 17, 33}) {
    questions.push_back(Ask(subject, plugin, steps, steps % 4 + 1));
    answers.push_back(CallPlan(plugin, questions.back()).Answer());
  }
  std::vector<std::string> wrong(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int k = 0; k < kThreads; ++k) {
    threads.emplace_back([&, k] {
      for (int round = 0; round < kRounds * 4; ++round) {
        const std::size_t q = static_cast<std::size_t>(round + k) % questions.size();
        if (CallPlan(plugin, questions[q]).Answer() != answers[q]) {
          wrong[static_cast<std::size_t>(k)] = questions[q].ToString();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Findings findings;
  for (const std::string& where : wrong) {
    if (!where.empty()) findings.Add(where, "another answer while other threads asked too");
  }
}

void ExecutesAtTheSameTime(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  const auto parameters = Values(plugin, subject.parameters);
  const auto tree = [](int k) { return Random(9 + 4 * k, k + 1, static_cast<std::uint32_t>(k)); };
  for (int k = 0; k < kThreads; ++k) {
    const ExecuteOutcome usual = CallExecute(plugin, tree(k), parameters);
    if (!usual.ok() || !usual.kept_rules() || usual.trained < usual.merges) {
      GTEST_SKIP() << "fails alone already, see Execute.*";
    }
  }
  std::vector<std::string> wrong(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int k = 0; k < kThreads; ++k) {
    threads.emplace_back([&, k] {
      for (int round = 0; round < kRounds; ++round) {
        const ExecuteOutcome outcome = CallExecute(plugin, tree(k), parameters);
        if (outcome.ok() && outcome.kept_rules() && outcome.trained == outcome.merges) continue;
        wrong[static_cast<std::size_t>(k)] = "returned " + std::to_string(outcome.code) +
                                             " and trained " + std::to_string(outcome.trained) +
                                             " of " + std::to_string(outcome.merges) +
                                             " merges while other threads trained too";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Findings findings;
  for (const std::string& problem : wrong) findings.Add("", problem);
}

}  // namespace

std::vector<Check> VersionChecks() {
  const char* const group = "Versions";
  return {
      {{group, "OldestHost", "a host of ABI 1.0, with the tables of 1.0, is served all the same"},
       OldestHost},
      {{group, "LaterHost", "a host of a later minor, with larger structs, is served all the same"},
       LaterHost},
  };
}

std::vector<Check> ThreadChecks() {
  const char* const group = "Threads";
  return {
      {{group, "PlansAtTheSameTime", "several plan() at once do not disturb each other"},
       PlansAtTheSameTime},
      {{group, "ExecutesAtTheSameTime", "several execute() at once do not disturb each other"},
       ExecutesAtTheSameTime},
  };
}

}  // namespace mergeplan_conformance
