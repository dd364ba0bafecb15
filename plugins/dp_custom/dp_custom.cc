// Runs any plan: the one in the file that the parameter `plan` names, or, without it, the best one
// that the host's search finds for the request. The planner's work is the host's.
#include "mergeplan_plugin.hpp"

namespace {

std::int32_t MakePlan(const mergeplan_plan_request* request, const mergeplan_planner* planner,
                      const mergeplan_plan_sink* sink, mergeplan_error* error) {
  const char* path =
      mergeplan_plugin_cpp::FindParameter(request->parameters, request->parameter_count, "plan");
  if (path != nullptr && path[0] != '\0') {
    return planner->parse_plan(planner->context, path, sink, error);
  }
  return planner->solve(planner->context, /*options=*/nullptr, sink, /*solution=*/nullptr, error);
}

const mergeplan_parameter_spec kPlan = {
    sizeof(mergeplan_parameter_spec),
    MERGEPLAN_PARAMETER_TEXT,
    "plan",
    "",
    "path of a plan file (TOML or JSON); empty: plan by search",
    /*has_minimum=*/0,
    /*has_maximum=*/0,
    0,
    0,
};
const mergeplan_parameter_spec* const kParameters[] = {&kPlan};

const mergeplan_plugin kPlugin = {
    sizeof(mergeplan_plugin),
    MERGEPLAN_ABI_MAJOR,
    MERGEPLAN_ABI_MINOR,
    /*abi_minor_needed=*/0,
    "dp_custom",
    "1.0",
    "Runs any plan file, or the plan that the planner finds",
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
