// The best next merge, again and again: of all runs of 2 to `width` neighbours, the one after which
// the predicted error of the whole is least becomes one merge, until N blocks are left. The host
// predicts (evaluate_tree); this only compares.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "mergeplan_plugin.hpp"

namespace {

using mergeplan_plugin_cpp::Fail;
using mergeplan_plugin_cpp::Pairs;
using mergeplan_plugin_cpp::Range;
using mergeplan_plugin_cpp::Writer;

// The blocks as they stand, and the merges that made them, children before parents.
class Greedy {
 public:
  Greedy(const mergeplan_plan_request* request, const mergeplan_planner* planner,
         mergeplan_error* error)
      : planner_(planner), error_(error), wanted_(request->student_steps) {
    for (std::int32_t t = 1; t <= request->teacher_steps; ++t) blocks_.push_back({t, t});
    // A plan over T steps has at most T-1 merges and 2T-2 children: nothing moves once it is there.
    const auto steps = static_cast<std::size_t>(request->teacher_steps);
    children_.reserve(steps);
    merges_.reserve(steps);
    pointers_.reserve(steps);
  }

  std::int32_t Run(std::size_t width) {
    while (blocks_.size() > wanted_) {
      Candidate best = {};
      const std::int32_t code = FindBest(width, &best);
      if (code != MERGEPLAN_OK) return code;
      Push(best.first, best.count);
      blocks_ = Replaced(best.first, best.count);
    }
    return MERGEPLAN_OK;
  }

  std::int32_t Write(const mergeplan_plan_sink* sink) const {
    Writer writer(sink, error_);
    for (const std::vector<Range>& children : children_) writer.Merge(children);
    writer.Blocks(blocks_);
    return writer.code();
  }

 private:
  // Blocks first .. first+count-1 become one.
  struct Candidate {
    std::size_t first;
    std::size_t count;
    double objective;
  };

  // Of equal ones the narrowest counts, and of those the cleanest: they are looked at in that
  // order.
  std::int32_t FindBest(std::size_t width, Candidate* best) {
    const std::size_t widest = std::min(width, blocks_.size() - wanted_ + 1);
    for (std::size_t count = 2; count <= widest; ++count) {
      for (std::size_t first = 0; first + count <= blocks_.size(); ++first) {
        if (planner_->cancelled(planner_->context) != 0) return Stopped();
        Candidate candidate = {first, count, 0};
        const std::int32_t code = Evaluate(&candidate);
        if (code != MERGEPLAN_OK) return code;
        if (best->count == 0 || candidate.objective < best->objective) *best = candidate;
      }
    }
    return MERGEPLAN_OK;
  }

  std::int32_t Evaluate(Candidate* candidate) {
    Push(candidate->first, candidate->count);
    const std::vector<Range> blocks = Replaced(candidate->first, candidate->count);
    const std::int32_t code = planner_->evaluate_tree(
        planner_->context, pointers_.data(), static_cast<std::int32_t>(pointers_.size()),
        Pairs(blocks), static_cast<std::int32_t>(blocks.size()), &candidate->objective, error_);
    const Range merged = {merges_.back().first, merges_.back().last};
    children_.pop_back();
    merges_.pop_back();
    pointers_.pop_back();
    if (code != MERGEPLAN_OK || std::isfinite(candidate->objective)) return code;
    char text[120];
    std::snprintf(text, sizeof(text),
                  "the predicted error with a merge of %d-%d is %g, expected a finite number",
                  static_cast<int>(merged.first), static_cast<int>(merged.last),
                  candidate->objective);
    return Fail(error_, MERGEPLAN_INTERNAL, text);
  }

  std::int32_t Stopped() const {
    const std::string text = "stopped with " + std::to_string(blocks_.size()) +
                             " blocks left, of which " + std::to_string(wanted_) + " were wanted";
    return Fail(error_, MERGEPLAN_CANCELLED, text);
  }

  void Push(std::size_t first, std::size_t count) {
    const auto begin = blocks_.begin() + static_cast<std::ptrdiff_t>(first);
    children_.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(count));
    mergeplan_merge merge = {};
    merge.struct_size = sizeof(merge);
    merge.first = children_.back().front().first;
    merge.last = children_.back().back().last;
    merge.child_count = static_cast<std::int32_t>(count);
    merge.children = Pairs(children_.back());
    merges_.push_back(merge);
    pointers_.push_back(&merges_.back());
  }

  std::vector<Range> Replaced(std::size_t first, std::size_t count) const {
    const auto at = [this](std::size_t k) {
      return blocks_.begin() + static_cast<std::ptrdiff_t>(k);
    };
    std::vector<Range> out(at(0), at(first + 1));
    out.back().last = blocks_[first + count - 1].last;
    out.insert(out.end(), at(first + count), blocks_.end());
    return out;
  }

  const mergeplan_planner* planner_;
  mergeplan_error* error_;
  std::size_t wanted_;
  std::vector<Range> blocks_;
  std::vector<std::vector<Range>> children_;
  std::vector<mergeplan_merge> merges_;
  std::vector<const mergeplan_merge*> pointers_;
};

std::int32_t MakePlan(const mergeplan_plan_request* request, const mergeplan_planner* planner,
                      const mergeplan_plan_sink* sink, mergeplan_error* error) {
  return mergeplan_plugin_cpp::Guard(error, [&]() -> std::int32_t {
    std::int64_t width = 0;
    if (!mergeplan_plugin_cpp::FindInteger(request->parameters, request->parameter_count, "width",
                                           &width) ||
        width < 2) {
      return Fail(error, MERGEPLAN_INVALID_ARGUMENT, "width: expected an integer of 2 or more");
    }
    Greedy greedy(request, planner, error);
    const std::int32_t code = greedy.Run(static_cast<std::size_t>(width));
    return code == MERGEPLAN_OK ? greedy.Write(sink) : code;
  });
}

const mergeplan_parameter_spec kWidth = {
    sizeof(mergeplan_parameter_spec),
    MERGEPLAN_PARAMETER_INTEGER,
    "width",
    "2",
    "the most neighbours that one merge may take; 2: pairs",
    /*has_minimum=*/1,
    /*has_maximum=*/1,
    2,
    1000000,
};
const mergeplan_parameter_spec* const kParameters[] = {&kWidth};

const mergeplan_plugin kPlugin = {
    sizeof(mergeplan_plugin),
    MERGEPLAN_ABI_MAJOR,
    MERGEPLAN_ABI_MINOR,
    /*abi_minor_needed=*/0,
    "greedy",
    "1.0",
    "Makes the merge after which the predicted error is least, again and again",
    /*teacher_needs=*/MERGEPLAN_TEACHER_HAS_SPECTRUM,
    /*parameter_count=*/1,
    /*reserved=*/0,
    kParameters,
    MakePlan,
    mergeplan_plugin_cpp::ExecuteByRounds,
    /*get_extension=*/nullptr,
};

}  // namespace

const mergeplan_plugin* mergeplan_plugin_entry(void) { return &kPlugin; }
