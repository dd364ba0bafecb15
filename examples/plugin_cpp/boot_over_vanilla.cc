// A strategy in C++ on top of the header-only layer: in every block the noisiest steps become one
// merge (vanilla), onto which the others are merged one by one (BOOT). Between the two strategies
// lies one number, the length of that merge, and the host's planner says which length is best for
// the data at hand: spectra with variances on both sides of 1 often have a best plan of this shape.
#include <algorithm>
#include <cmath>

#include "mergeplan_plugin.hpp"

namespace {

using mergeplan_plugin_cpp::Fail;
using mergeplan_plugin_cpp::Range;
using mergeplan_plugin_cpp::Tree;

constexpr char kParameter[] = "vanilla-steps";

// N equal blocks with `vanilla` of the noisiest steps in one merge; 1 is BOOT, a whole block's
// length vanilla.
Tree MakeTree(const mergeplan_plan_request& request, std::int32_t vanilla) {
  Tree tree;
  std::vector<Range> blocks =
      mergeplan_plugin_cpp::EqualBlocks(request.teacher_steps, request.student_steps);
  for (const Range& block : blocks) {
    std::int32_t next = std::max(block.first, block.last - vanilla + 1);
    Range done = {next, block.last};
    if (done.first < done.last) {
      std::vector<Range> steps;
      for (std::int32_t t = done.first; t <= done.last; ++t) steps.push_back({t, t});
      done = tree.Merge(std::move(steps));
    }
    while (next > block.first) {
      --next;
      done = tree.Merge({{next, next}, done});
    }
  }
  tree.SetBlocks(std::move(blocks));
  return tree;
}

std::int32_t MakePlan(const mergeplan_plan_request* request, const mergeplan_planner* planner,
                      const mergeplan_plan_sink* sink, mergeplan_error* error) {
  return mergeplan_plugin_cpp::Guard(error, [&]() -> std::int32_t {
    std::int64_t vanilla = 0;
    if (!mergeplan_plugin_cpp::FindInteger(request->parameters, request->parameter_count,
                                           kParameter, &vanilla) ||
        vanilla < 0) {
      return Fail(error, MERGEPLAN_INVALID_ARGUMENT,
                  "vanilla-steps: expected an integer of 0 or more");
    }
    const std::int64_t longest = (request->teacher_steps + request->student_steps - 1) /
                                 static_cast<std::int64_t>(request->student_steps);
    if (vanilla > 0) {
      vanilla = std::min<std::int64_t>(vanilla, request->teacher_steps);
      return MakeTree(*request, static_cast<std::int32_t>(vanilla)).Send(sink, error);
    }
    if (request->dimensions == 0) {
      return Fail(error, MERGEPLAN_FAILED_PRECONDITION,
                  "the variances of the data are not known, so no length can be preferred; give "
                  "vanilla-steps");
    }
    Tree best;
    double least = HUGE_VAL;
    for (std::int32_t length = 1; length <= longest; ++length) {
      if (planner->cancelled(planner->context) != 0) {
        return Fail(error, MERGEPLAN_CANCELLED, "stopped while lengths were compared");
      }
      Tree tree = MakeTree(*request, length);
      double objective = 0;
      const std::int32_t code = tree.Evaluate(planner, &objective, error);
      if (code != MERGEPLAN_OK) return code;
      if (!std::isfinite(objective)) {
        return Fail(error, MERGEPLAN_INTERNAL, "the host's prediction is no finite number");
      }
      if (objective < least) {
        least = objective;
        best = std::move(tree);
      }
    }
    return best.Send(sink, error);
  });
}

const mergeplan_parameter_spec kVanillaSteps = {
    sizeof(mergeplan_parameter_spec),
    MERGEPLAN_PARAMETER_INTEGER,
    kParameter,
    "0",
    "how many of the noisiest steps of a block become one merge; 0: as many as predict the least "
    "error",
    /*has_minimum=*/1,
    /*has_maximum=*/1,
    0,
    1000000,
};
const mergeplan_parameter_spec* const kParameters[] = {&kVanillaSteps};

const mergeplan_plugin kPlugin = {
    sizeof(mergeplan_plugin),
    MERGEPLAN_ABI_MAJOR,
    MERGEPLAN_ABI_MINOR,
    /*abi_minor_needed=*/0,
    "boot_over_vanilla",
    "1.0",
    "BOOT on top of one vanilla merge over the noisy end, whose length the planner's prediction "
    "decides",
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
