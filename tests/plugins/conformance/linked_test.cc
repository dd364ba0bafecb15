// A plugin that is linked into its tests, as third parties have it: this file and gtest_main.
#include "mergeplan_conformance.h"
#include "mergeplan_plugin.hpp"

namespace {

using mergeplan_plugin_cpp::Range;
using mergeplan_plugin_cpp::Writer;

void Block(Writer& writer, Range range) {
  std::vector<Range> steps;
  for (std::int32_t t = range.first; t <= range.last; ++t) steps.push_back({t, t});
  writer.Merge(steps);
}

std::int32_t MakePlan(const mergeplan_plan_request* request, const mergeplan_planner* /*planner*/,
                      const mergeplan_plan_sink* sink, mergeplan_error* error) {
  return mergeplan_plugin_cpp::PlanEqualBlocks(request, sink, error, Block);
}

const mergeplan_plugin* Entry() {
  static const mergeplan_plugin plugin = {sizeof(mergeplan_plugin),
                                          MERGEPLAN_ABI_MAJOR,
                                          MERGEPLAN_ABI_MINOR,
                                          0,
                                          "linked",
                                          "0.1",
                                          "Linked into its tests",
                                          0,
                                          0,
                                          0,
                                          nullptr,
                                          MakePlan,
                                          mergeplan_plugin_cpp::ExecuteByRounds,
                                          nullptr};
  return &plugin;
}

}  // namespace

MERGEPLAN_PLUGIN_CONFORMANCE(Linked, Entry)
