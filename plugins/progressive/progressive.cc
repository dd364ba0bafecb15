// Groups of `factor` neighbours become one, level by level, from the clean end; what is left over
// at the noisy end becomes a smaller group, a single one is carried to the next level as it is.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "mergeplan_plugin.hpp"

namespace {

using mergeplan_plugin_cpp::Range;
using mergeplan_plugin_cpp::Writer;

void Block(Writer& writer, Range range, std::size_t factor) {
  std::vector<Range> level;
  for (std::int32_t t = range.first; t <= range.last; ++t) level.push_back({t, t});
  while (level.size() > 1) {
    std::vector<Range> next;
    for (std::size_t k = 0; k < level.size(); k += factor) {
      const std::size_t end = std::min(level.size(), k + factor);
      const std::vector<Range> group(level.begin() + static_cast<std::ptrdiff_t>(k),
                                     level.begin() + static_cast<std::ptrdiff_t>(end));
      next.push_back(group.size() == 1 ? group.front() : writer.Merge(group));
    }
    level = std::move(next);
  }
}

std::int32_t MakePlan(const mergeplan_plan_request* request, const mergeplan_planner* /*planner*/,
                      const mergeplan_plan_sink* sink, mergeplan_error* error) {
  std::int64_t factor = 0;
  if (!mergeplan_plugin_cpp::FindInteger(request->parameters, request->parameter_count, "factor",
                                         &factor) ||
      factor < 2) {
    return mergeplan_plugin_cpp::Fail(error, MERGEPLAN_INVALID_ARGUMENT,
                                      "factor: expected an integer of 2 or more");
  }
  return mergeplan_plugin_cpp::PlanEqualBlocks(
      request, sink, error, [factor](Writer& writer, Range range) {
        Block(writer, range, static_cast<std::size_t>(factor));
      });
}

const mergeplan_parameter_spec kFactor = {
    sizeof(mergeplan_parameter_spec),
    MERGEPLAN_PARAMETER_INTEGER,
    "factor",
    "2",
    "how many neighbours become one at each level",
    /*has_minimum=*/1,
    /*has_maximum=*/1,
    2,
    1000000,
};
const mergeplan_parameter_spec* const kParameters[] = {&kFactor};

const mergeplan_plugin kPlugin = {
    sizeof(mergeplan_plugin),
    MERGEPLAN_ABI_MAJOR,
    MERGEPLAN_ABI_MINOR,
    /*abi_minor_needed=*/0,
    "progressive",
    "1.0",
    "Merges neighbours in groups, level by level, from the clean end",
    /*teacher_needs=*/0,
    /*parameter_count=*/1,
    /*reserved=*/0,
    kParameters,
    MakePlan,
    mergeplan_plugin_cpp::ExecuteByRounds,
    /*get_extension=*/nullptr,
};

}  // namespace

const mergeplan_plugin* mergeplan_plugin_entry(void) { return &kPlugin; }
