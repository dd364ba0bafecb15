// From the noisy end: (1 (2 (3 ... (T-1 T)))).
#include <vector>

#include "mergeplan_plugin.hpp"

namespace {

using mergeplan_plugin_cpp::Range;
using mergeplan_plugin_cpp::Writer;

void Block(Writer& writer, Range range) {
  Range rest{range.last, range.last};
  for (std::int32_t t = range.last - 1; t >= range.first; --t) {
    rest = writer.Merge({Range{t, t}, rest});
  }
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
    "boot",
    "1.0",
    "Merges one step after the other onto the noisy end",
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
