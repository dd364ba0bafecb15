// All steps of a block in one merge: one training, with everything to learn in one jump.
#include <vector>

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

const mergeplan_plugin kPlugin = {
    sizeof(mergeplan_plugin),
    MERGEPLAN_ABI_MAJOR,
    MERGEPLAN_ABI_MINOR,
    /*abi_minor_needed=*/0,
    "vanilla",
    "1.0",
    "Merges all steps at once",
    /*teacher_needs=*/0,
    /*parameter_count=*/0,
    /*reserved=*/0,
    /*parameters=*/nullptr,
    MakePlan,
    mergeplan_plugin_cpp::ExecuteByRounds,
    /*get_extension=*/nullptr,
};

}  // namespace

const mergeplan_plugin* mergeplan_plugin_entry(void) { return &kPlugin; }
