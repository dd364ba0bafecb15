#pragma once

// Inside plugins/conformance only: one call of plan(), with a sink and a planner that write down
// what the plugin does wrong.

#include <cstdint>
#include <string>
#include <vector>

#include "mergeplan_plugin.h"
#include "plugins/conformance/question.h"
#include "plugins/conformance/text.h"
#include "plugins/conformance/tree.h"

namespace mergeplan_conformance {

// How the host behaves.
struct PlanHost {
  // The call of the sink that fails, counted from 0; -1: none.
  int failing_call = -1;
  bool planner_fails = false;    // solve, evaluate_tree and parse_plan fail
  bool predictions_nan = false;  // evaluate_tree and solve predict NaN
  bool cancelled = false;        // the user wants to stop
  ErrorFence::Shape error;
};

// What the sink and the planner say when they are made to fail.
inline constexpr std::int32_t kSinkCode = MERGEPLAN_RESOURCE_EXHAUSTED;
inline constexpr std::int32_t kPlannerCode = MERGEPLAN_UNAVAILABLE;

// What came of it.
struct PlanOutcome {
  std::string question;  // what was asked, for messages
  std::int32_t code = 0;
  bool threw = false;
  std::string thrown;
  Tree tree;
  int sink_calls = 0;
  int planner_calls = 0;  // of solve, evaluate_tree and parse_plan
  bool sink_failed = false;
  std::string text;      // of the plugin's error
  std::string invalid;   // why what was given is no valid plan (also when an error was returned)
  std::string told;      // what is wrong with how a failure was told
  std::string trespass;  // what was written where it may not be
  std::string border;    // the first rule of the sink or the planner that was broken
  std::string log;       // the first text for the user that is none
  std::string changed;   // whether the request was changed

  bool ok() const { return !threw && code == MERGEPLAN_OK; }
  // The same text for the same answer.
  std::string Answer() const;
};

PlanOutcome CallPlan(const mergeplan_plugin& plugin, const Question& question,
                     const PlanHost& host = {});

}  // namespace mergeplan_conformance
