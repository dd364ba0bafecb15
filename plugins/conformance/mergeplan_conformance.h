// The conformance suite of mergeplan's strategy plugins: GoogleTest cases that check, from the
// host's side, every rule that mergeplan_plugin.h states for a plugin.
//
// With a plugin linked in, one file is enough (link mergeplan_plugin_conformance and gtest_main):
//
//   #include "mergeplan_conformance.h"
//   MERGEPLAN_PLUGIN_CONFORMANCE(Mine, mergeplan_plugin_entry)
//
// A library is checked by the program mergeplan-plugin-conformance, or, with its manifest and under
// a deadline, by `mergeplan plugins check`.
//
// The suite brings its own planner and runtime, which train nothing and know no model: they answer
// as the header says and write down what a plugin does wrong. It needs plugins/abi, GoogleTest and
// the standard library of C++17.
#ifndef MERGEPLAN_CONFORMANCE_H_
#define MERGEPLAN_CONFORMANCE_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "mergeplan_plugin.h"

namespace mergeplan_conformance {

// What is checked.
struct Subject {
  // As mergeplan_plugin_entry: called many times, from several threads.
  std::function<const mergeplan_plugin*()> entry;
  // Values of its parameters, in place of their defaults. They are passed as they are.
  std::map<std::string, std::string> parameters;
};

// One check; its GoogleTest name is GROUP.NAME.
struct CheckInfo {
  const char* group;
  const char* name;
  const char* rule;  // what is asked of the plugin, in one sentence
};

// All checks, in the order in which they run. Those of a group stand together.
const std::vector<CheckInfo>& Checks();

// Registers all checks with GoogleTest, as PREFIX + GROUP.NAME, before RUN_ALL_TESTS.
void Register(const Subject& subject, const std::string& prefix = "");

// For the macro below.
struct Registrar {
  Registrar(const char* prefix, const mergeplan_plugin* (*entry)());
};

}  // namespace mergeplan_conformance

// Registers the checks of a plugin that is linked in, as `prefix`Plan.EveryStepsAndBlocks and so
// on.
#define MERGEPLAN_PLUGIN_CONFORMANCE(prefix, entry) \
  static const ::mergeplan_conformance::Registrar mergeplan_conformance_of_##prefix(#prefix, entry);

#endif  // MERGEPLAN_CONFORMANCE_H_
