// A thin C++ layer over mergeplan_plugin.h for plugins written in C++17 or later: errors, ranges
// and the usual way to execute a plan. Header only; it knows nothing but the C header and the
// standard library, and nothing of it crosses the border.
#ifndef MERGEPLAN_PLUGIN_HPP_
#define MERGEPLAN_PLUGIN_HPP_

#if __cplusplus < 201703L
#error "mergeplan_plugin.hpp needs C++17 or later; the C header mergeplan_plugin.h needs C11 only"
#endif

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "mergeplan_plugin.h"

namespace mergeplan_plugin_cpp {

// Describes a failure in the caller's error struct and returns its code.
inline std::int32_t Fail(mergeplan_error* error, mergeplan_code code, std::string_view text) {
  if (error != nullptr) {
    error->code = code;
    if (error->text != nullptr && error->capacity > 0) {
      const std::size_t room = static_cast<std::size_t>(error->capacity) - 1;
      const std::size_t length = text.size() < room ? text.size() : room;
      std::memcpy(error->text, text.data(), length);
      error->text[length] = '\0';
    }
  }
  return code;
}

// Runs `body` (which returns a code) so that no exception leaves the plugin.
template <typename Body>
std::int32_t Guard(mergeplan_error* error, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Fail(error, MERGEPLAN_RESOURCE_EXHAUSTED, "out of memory");
  } catch (const std::exception& e) {
    return Fail(error, MERGEPLAN_INTERNAL, e.what());
  } catch (...) {
    return Fail(error, MERGEPLAN_INTERNAL, "an exception that is no std::exception");
  }
}

// The value of a parameter, or NULL where it is absent.
inline const char* FindParameter(const mergeplan_parameter* const* parameters, std::int32_t count,
                                 std::string_view name) {
  for (std::int32_t k = 0; k < count; ++k) {
    if (name == parameters[k]->name) return parameters[k]->value;
  }
  return nullptr;
}

// The same as an integer; false where it is absent or no integer.
inline bool FindInteger(const mergeplan_parameter* const* parameters, std::int32_t count,
                        std::string_view name, std::int64_t* value) {
  const char* text = FindParameter(parameters, count, name);
  if (text == nullptr) return false;
  const char* end = text + std::strlen(text);
  const auto [stop, failure] = std::from_chars(text, end, *value);
  return failure == std::errc() && stop == end;
}

// Steps first..last; laid out as the border wants it, so that an array of them is an array of
// pairs.
struct Range {
  std::int32_t first;
  std::int32_t last;
};
static_assert(sizeof(Range) == 2 * sizeof(std::int32_t), "ranges are passed as pairs");
inline const std::int32_t* Pairs(const std::vector<Range>& ranges) { return &ranges.data()->first; }

// The N ranges that cut 1..T as evenly as they can, with borders at floor(k T / N + 0.5).
inline std::vector<Range> EqualBlocks(std::int32_t teacher_steps, std::int32_t blocks) {
  std::vector<Range> out;
  std::int32_t first = 1;
  for (std::int32_t k = 1; k <= blocks; ++k) {
    const auto last = static_cast<std::int32_t>(
        std::floor(static_cast<double>(k) * teacher_steps / blocks + 0.5));
    out.push_back({first, last});
    first = last + 1;
  }
  return out;
}

// Adds one merge over `children` to the sink and gives its range; `code` keeps the first failure.
class Writer {
 public:
  Writer(const mergeplan_plan_sink* sink, mergeplan_error* error) : sink_(sink), error_(error) {}

  Range Merge(const std::vector<Range>& children) {
    const Range range{children.front().first, children.back().last};
    if (code_ == MERGEPLAN_OK) {
      code_ = sink_->add_merge(sink_->context, range.first, range.last, Pairs(children),
                               static_cast<std::int32_t>(children.size()), error_);
    }
    return range;
  }
  void Blocks(const std::vector<Range>& blocks) {
    if (code_ != MERGEPLAN_OK) return;
    code_ = sink_->set_blocks(sink_->context, Pairs(blocks),
                              static_cast<std::int32_t>(blocks.size()), error_);
  }
  std::int32_t code() const { return code_; }

 private:
  const mergeplan_plan_sink* sink_;
  mergeplan_error* error_;
  std::int32_t code_ = MERGEPLAN_OK;
};

// A plan as a plugin holds it while it compares plans: merges, children before parents, and blocks.
class Tree {
 public:
  // Adds one merge over `children`, from the cleanest to the noisiest, and gives its range.
  Range Merge(std::vector<Range> children) {
    children_.push_back(std::move(children));
    return {children_.back().front().first, children_.back().back().last};
  }
  // Takes the last merge away.
  void Pop() { children_.pop_back(); }
  void SetBlocks(std::vector<Range> blocks) { blocks_ = std::move(blocks); }
  const std::vector<std::vector<Range>>& merges() const { return children_; }
  const std::vector<Range>& blocks() const { return blocks_; }

  // Gives the plan to the host.
  std::int32_t Send(const mergeplan_plan_sink* sink, mergeplan_error* error) const {
    Writer writer(sink, error);
    for (const std::vector<Range>& children : children_) writer.Merge(children);
    writer.Blocks(blocks_);
    return writer.code();
  }

  // The host's prediction of its error.
  std::int32_t Evaluate(const mergeplan_planner* planner, double* objective,
                        mergeplan_error* error) const {
    std::vector<mergeplan_merge> merges(children_.size());
    std::vector<const mergeplan_merge*> pointers(children_.size());
    for (std::size_t k = 0; k < merges.size(); ++k) {
      const std::vector<Range>& children = children_[k];
      merges[k].struct_size = sizeof(mergeplan_merge);
      merges[k].first = children.front().first;
      merges[k].last = children.back().last;
      merges[k].child_count = static_cast<std::int32_t>(children.size());
      merges[k].children = Pairs(children);
      pointers[k] = &merges[k];
    }
    return planner->evaluate_tree(planner->context, pointers.data(),
                                  static_cast<std::int32_t>(pointers.size()), Pairs(blocks_),
                                  static_cast<std::int32_t>(blocks_.size()), objective, error);
  }

 private:
  std::vector<std::vector<Range>> children_;
  std::vector<Range> blocks_;
};

// Plans with N equal blocks: `block(writer, range)` merges the steps of one block of two or more.
template <typename Block>
std::int32_t PlanEqualBlocks(const mergeplan_plan_request* request, const mergeplan_plan_sink* sink,
                             mergeplan_error* error, Block&& block) noexcept {
  return Guard(error, [&] {
    Writer writer(sink, error);
    const std::vector<Range> blocks = EqualBlocks(request->teacher_steps, request->student_steps);
    for (const Range& range : blocks) {
      if (range.first < range.last) block(writer, range);
    }
    writer.Blocks(blocks);
    return writer.code();
  });
}

// Executes any plan: round by round, the merges of a round together, a checkpoint after each round
// and an evaluation at the end. Between rounds it stops when the user wants to.
inline std::int32_t ExecuteByRounds(const mergeplan_execute_request* request,
                                    const mergeplan_runtime* runtime,
                                    mergeplan_error* error) noexcept {
  return Guard(error, [&]() -> std::int32_t {
    void* context = runtime->context;
    const mergeplan_plan& plan = *request->plan;
    std::vector<std::vector<Range>> rounds;
    for (std::int32_t k = 0; k < plan.merge_count; ++k) {
      const mergeplan_merge& merge = *plan.merges[k];
      const auto round = static_cast<std::size_t>(merge.round);
      if (rounds.size() < round) rounds.resize(round);
      rounds[round - 1].push_back({merge.first, merge.last});
    }
    std::int32_t done = 0;
    for (std::size_t r = 0; r < rounds.size(); ++r) {
      if (runtime->cancelled(context) != 0) {
        char text[80];
        std::snprintf(text, sizeof(text), "stopped after %d of %d merges", static_cast<int>(done),
                      static_cast<int>(plan.merge_count));
        return Fail(error, MERGEPLAN_CANCELLED, text);
      }
      const auto count = static_cast<std::int32_t>(rounds[r].size());
      std::int32_t code =
          runtime->train_round(context, Pairs(rounds[r]), count, /*results=*/nullptr, error);
      if (code != MERGEPLAN_OK) return code;
      code = runtime->checkpoint(context, error);
      if (code != MERGEPLAN_OK) return code;
      done += count;
      char what[64];
      std::snprintf(what, sizeof(what), "round %zu of %zu", r + 1, rounds.size());
      runtime->progress(context, static_cast<double>(done) / plan.merge_count, what);
    }
    mergeplan_evaluation evaluation = {};
    evaluation.struct_size = sizeof(evaluation);
    return runtime->evaluate(context, &evaluation, error);
  });
}

}  // namespace mergeplan_plugin_cpp

#endif  // MERGEPLAN_PLUGIN_HPP_
