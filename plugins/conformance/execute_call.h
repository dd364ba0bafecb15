#pragma once

// Inside plugins/conformance only: one call of execute(), with a runtime that trains nothing and
// writes down what the plugin does wrong.

#include <cstdint>
#include <map>
#include <string>

#include "mergeplan_plugin.h"
#include "plugins/conformance/text.h"
#include "plugins/conformance/tree.h"

namespace mergeplan_conformance {

// How the host behaves.
struct ExecuteHost {
  // The call of train_merge or train_round that fails, counted from 0; -1: none.
  int failing_call = -1;
  std::int32_t failing_code = MERGEPLAN_RESOURCE_EXHAUSTED;
  // The user wants to stop once so many merges are trained; -1: never.
  int stop_after = -1;
  bool results_nan = false;  // losses, times and the evaluation are NaN
  bool restored = false;     // every merge comes from a checkpoint
  Size size = Size::kOurs;
  ErrorFence::Shape error;
};

// What came of it.
struct ExecuteOutcome {
  std::int32_t code = 0;
  bool threw = false;
  std::string thrown;
  int merges = 0;            // of the plan
  int trained = 0;           // of them
  int calls = 0;             // of train_merge and train_round
  int calls_after_stop = 0;  // of them, after the user wanted to stop
  int held = 0;              // snapshots that were not released
  std::string missing;       // a merge that was not trained
  std::string text;          // of the plugin's error
  // The first broken rule of each kind, empty where it was kept.
  std::string order;     // a child that is a merge is trained before its parent
  std::string twice;     // each merge once
  std::string border;    // merges of the plan, structs with sizes, the caller's thread
  std::string progress;  // within 0..1 and not falling
  std::string log;       // texts for the user
  std::string told;      // how a failure was told
  std::string trespass;  // what was written where it may not be
  std::string changed;   // whether the plan or the parameters were changed

  bool ok() const { return !threw && code == MERGEPLAN_OK; }
  // Did the plugin keep the runtime's rules? Else errors are to be expected.
  bool kept_rules() const { return order.empty() && twice.empty() && border.empty(); }
};

ExecuteOutcome CallExecute(const mergeplan_plugin& plugin, const Tree& tree,
                           const std::map<std::string, std::string>& parameters,
                           const ExecuteHost& host = {});

}  // namespace mergeplan_conformance
