// What plan() answers.
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "plugins/conformance/checks.h"

namespace mergeplan_conformance {
namespace {

// Answers to many questions, each asked once: several checks look at them.
struct Survey {
  std::vector<PlanOutcome> steps;      // every T, and N = 1..T
  std::vector<PlanOutcome> spectrums;  // d = 0, 1, 5, with and without weights
  std::vector<PlanOutcome> questions;  // every budget, start, reference and space
};

const Survey& Ask(const Subject& subject, const mergeplan_plugin& plugin) {
  static std::mutex mutex;
  static std::map<const mergeplan_plugin*, std::unique_ptr<Survey>> surveys;
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Survey>& survey = surveys[&plugin];
  if (survey != nullptr) return *survey;
  survey = std::make_unique<Survey>();
  const auto ask = [&](std::vector<PlanOutcome>* out, const Question& question) {
    PlanOutcome outcome = CallPlan(plugin, question);
    outcome.tree = {};  // judged already
    out->push_back(std::move(outcome));
  };
  for (const std::int32_t steps : {1, 2, 3, 17, 64}) {
    for (std::int32_t blocks = 1; blocks <= steps; ++blocks) {
      ask(&survey->steps, Ask(subject, plugin, steps, blocks));
    }
  }
  for (const std::int32_t blocks : {1, 500, 999, 1000}) {
    ask(&survey->steps, Ask(subject, plugin, 1000, blocks));
  }
  for (const std::int32_t steps : {1, 2, 3, 17}) {
    for (const std::int32_t blocks : std::set<std::int32_t>{1, (steps + 1) / 2, steps}) {
      for (const std::int32_t dimensions : {0, 1, 5}) {
        for (const bool weights : {false, true}) {
          if (dimensions == 0 && weights) continue;
          Question question = Ask(subject, plugin, steps, blocks);
          question.dimensions = dimensions;
          question.weights = weights;
          ask(&survey->spectrums, question);
        }
      }
    }
  }
  for (std::int32_t k = 0; k < 2 * 4 * 3 * 2; ++k) {
    for (const std::int32_t blocks : {1, 4}) {
      Question question = Ask(subject, plugin, 17, blocks);
      question.budget_kind = k % 2;
      question.init = k / 2 % 4;
      question.reference = k / 8 % 3;
      question.space = k / 24;
      ask(&survey->questions, question);
    }
  }
  return *survey;
}

void Report(const std::vector<PlanOutcome>& outcomes, const std::string PlanOutcome::*rule) {
  Findings findings;
  for (const PlanOutcome& outcome : outcomes) findings.Add(outcome.question, outcome.*rule);
}

void ReportAll(const Survey& survey, const std::string PlanOutcome::*rule) {
  for (const auto* outcomes : {&survey.steps, &survey.spectrums, &survey.questions}) {
    Report(*outcomes, rule);
  }
}

void EveryStepsAndBlocks(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  Report(Ask(subject, plugin).steps, &PlanOutcome::invalid);
}

void EverySpectrum(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  Report(Ask(subject, plugin).spectrums, &PlanOutcome::invalid);
}

void EveryQuestion(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  Report(Ask(subject, plugin).questions, &PlanOutcome::invalid);
}

void PlansSomething(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  std::string text;
  for (const PlanOutcome& outcome : Ask(subject, plugin).steps) {
    if (outcome.ok() || outcome.threw) return;
    text = outcome.text;
  }
  FAIL() << "plan() refused every question; the last time: " << Quoted(text.c_str())
         << "; give it the parameters that it needs";
}

void ErrorsSayWhy(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  ReportAll(Ask(subject, plugin), &PlanOutcome::told);
}

void NoExceptionLeaves(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  ReportAll(Ask(subject, plugin), &PlanOutcome::thrown);
}

void KeepsTheBorder(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  ReportAll(Ask(subject, plugin), &PlanOutcome::border);
}

void LogsLines(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  ReportAll(Ask(subject, plugin), &PlanOutcome::log);
}

void RequestUnchanged(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  ReportAll(Ask(subject, plugin), &PlanOutcome::changed);
}

void SameRequestSamePlan(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  for (const std::int32_t steps : {3, 17, 64}) {
    for (const std::int32_t blocks : {1, 3}) {
      const Question question = Ask(subject, plugin, steps, blocks);
      const std::string answer = CallPlan(plugin, question).Answer();
      for (int again = 0; again < 3; ++again) {
        EXPECT_EQ(CallPlan(plugin, question).Answer(), answer) << question.ToString();
      }
    }
  }
}

void StopsWhenCancelled(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  constexpr int kMost = 8;
  PlanHost host;
  host.cancelled = true;
  const PlanOutcome outcome = CallPlan(plugin, Ask(subject, plugin, 64, 1), host);
  EXPECT_LE(outcome.planner_calls, kMost)
      << "asked the planner so often although the user wants to stop";
  if (outcome.threw || outcome.code == MERGEPLAN_OK) return;  // it was done anyway
  const PlanOutcome usual = CallPlan(plugin, Ask(subject, plugin, 64, 1));
  if (usual.code == outcome.code) return;  // it fails for another reason
  EXPECT_EQ(outcome.code, MERGEPLAN_CANCELLED)
      << "failed when the user wanted to stop, but not with CANCELLED: "
      << Quoted(outcome.text.c_str());
}

// ---- failures

struct ErrorCase {
  std::string what;
  Question question;
  PlanHost host;
};

// Calls that end in an error: a sink that fails at its first, middle and last call, and whatever
// the plugin itself refuses.
std::vector<ErrorCase> Failing(const Subject& subject, const mergeplan_plugin& plugin) {
  std::vector<ErrorCase> out;
  for (const std::int32_t steps : {1, 2, 17}) {
    for (const std::int32_t blocks : std::set<std::int32_t>{1, (steps + 1) / 2, steps}) {
      const Question question = Ask(subject, plugin, steps, blocks);
      const PlanOutcome usual = CallPlan(plugin, question);
      if (!usual.ok()) {
        if (!usual.threw) out.push_back({question.ToString(), question, {}});
        continue;
      }
      for (const int call : std::set<int>{0, usual.sink_calls / 2, usual.sink_calls - 1}) {
        PlanHost host;
        host.failing_call = call;
        out.push_back(
            {question.ToString() + ", call " + std::to_string(call + 1) + " of the sink fails",
             question, host});
      }
    }
  }
  return out;
}

void SinkErrorsArePassedOn(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  Findings findings;
  for (const ErrorCase& one : Failing(subject, plugin)) {
    const PlanOutcome outcome = CallPlan(plugin, one.question, one.host);
    if (!outcome.sink_failed) continue;
    if (outcome.threw) {
      findings.Add(one.what, "threw an exception: " + outcome.thrown);
    } else if (outcome.code != kSinkCode) {
      findings.Add(one.what, "returned " + std::to_string(outcome.code) + ", expected the sink's " +
                                 std::to_string(kSinkCode));
    } else {
      findings.Add(one.what, outcome.told);
    }
  }
}

void ErrorCapacity(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  std::vector<std::pair<std::string, ErrorFence::Shape>> shapes;
  for (const std::uint64_t capacity : {0, 1, 2, 7, 16}) {
    ErrorFence::Shape shape;
    shape.capacity = capacity;
    shapes.emplace_back("capacity " + std::to_string(capacity), shape);
  }
  ErrorFence::Shape shape;
  shape.capacity = 0;
  shape.null_text = true;
  shapes.emplace_back("text NULL", shape);
  shape.null_error = true;
  shapes.emplace_back("error NULL", shape);
  Findings findings;
  for (ErrorCase one : Failing(subject, plugin)) {
    const PlanOutcome usual = CallPlan(plugin, one.question, one.host);
    for (const auto& [name, small] : shapes) {
      one.host.error = small;
      const PlanOutcome outcome = CallPlan(plugin, one.question, one.host);
      findings.Add(one.what + ", " + name, outcome.trespass);
      if (usual.told.empty() && outcome.trespass.empty()) {
        findings.Add(one.what + ", " + name, outcome.told);
      }
      if (outcome.code != usual.code) {
        findings.Add(one.what + ", " + name, "returned " + std::to_string(outcome.code) +
                                                 ", with more room " + std::to_string(usual.code));
      }
    }
  }
}

// A planner that fails, or predicts no number: a plan or an error, as everywhere.
void JudgeWith(const Subject& subject, const PlanHost& host) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  Findings findings;
  for (const std::int32_t steps : {1, 2, 17}) {
    for (const std::int32_t blocks : std::set<std::int32_t>{1, steps}) {
      const Question question = Ask(subject, plugin, steps, blocks);
      const PlanOutcome usual = CallPlan(plugin, question);
      const PlanOutcome outcome = CallPlan(plugin, question, host);
      if (usual.planner_calls == 0) continue;
      findings.Add(outcome.question, outcome.invalid);
      findings.Add(outcome.question, outcome.told);
      findings.Add(outcome.question, outcome.thrown);
      // Solving for the best and a handful of tries more, but not for ever.
      if (outcome.planner_calls > 10 * usual.planner_calls + 100) {
        findings.Add(outcome.question,
                     "asked the planner " + std::to_string(outcome.planner_calls) + " times");
      }
    }
  }
}

void PlannerErrors(const Subject& subject) {
  PlanHost host;
  host.planner_fails = true;
  JudgeWith(subject, host);
}

void PredictionsThatAreNan(const Subject& subject) {
  PlanHost host;
  host.predictions_nan = true;
  JudgeWith(subject, host);
}

}  // namespace

std::vector<Check> PlanChecks() {
  const char* const group = "Plan";
  return {
      {{group, "EveryStepsAndBlocks",
        "plan() gives a valid plan of N blocks, or an error, for every T and N"},
       EveryStepsAndBlocks},
      {{group, "EverySpectrum",
        "plan() gives a valid plan, or an error, without a spectrum, with one, and with weights"},
       EverySpectrum},
      {{group, "EveryQuestion",
        "plan() gives a valid plan, or an error, for every budget, start, reference and space"},
       EveryQuestion},
      {{group, "PlansSomething", "plan() does not refuse every question"}, PlansSomething},
      {{group, "ErrorsSayWhy", "a failure has a canonical code, in error.code too, and a text"},
       ErrorsSayWhy},
      {{group, "NoExceptionLeaves", "no exception leaves plan()"}, NoExceptionLeaves},
      {{group, "KeepsTheBorder",
        "sink and planner are called as the header says: structs with sizes, the caller's thread"},
       KeepsTheBorder},
      {{group, "LogsLines", "texts for the user are UTF-8 in one line"}, LogsLines},
      {{group, "RequestUnchanged", "the request is as it was when plan() returns"},
       RequestUnchanged},
      {{group, "SameRequestSamePlan", "the same request gives the same plan"}, SameRequestSamePlan},
      {{group, "StopsWhenCancelled",
        "plan() asks the planner no more than 8 times once the user wants to stop"},
       StopsWhenCancelled},
  };
}

std::vector<Check> PlanErrorChecks() {
  const char* const group = "PlanErrors";
  return {
      {{group, "SinkErrorsArePassedOn", "plan() returns the code with which the sink failed"},
       SinkErrorsArePassedOn},
      {{group, "ErrorCapacity",
        "nothing is written beyond error.capacity; text and error may be NULL"},
       ErrorCapacity},
      {{group, "PlannerErrors", "a planner that fails leads to a plan or to an error"},
       PlannerErrors},
      {{group, "PredictionsThatAreNan",
        "a planner that predicts NaN leads to a plan or to an error"},
       PredictionsThatAreNan},
  };
}

}  // namespace mergeplan_conformance
