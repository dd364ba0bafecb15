// The merges that the user lists, "1-4,5-8,1-8": the children of each are the largest listed ranges
// inside it and the single steps between them; what lies inside no other is a block.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mergeplan_plugin.hpp"

namespace {

using mergeplan_plugin_cpp::Fail;
using mergeplan_plugin_cpp::Range;
using mergeplan_plugin_cpp::Writer;

std::string Text(const Range& range) {
  std::string text = std::to_string(range.first);
  if (range.last != range.first) text.append("-").append(std::to_string(range.last));
  return text;
}

std::string Text(const std::vector<Range>& ranges) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t k = 0; k < std::min(ranges.size(), kMost); ++k) {
    text.append(k == 0 ? "" : ", ").append(Text(ranges[k]));
  }
  return ranges.size() > kMost ? text + ", ..." : text;
}

// One word, "FIRST-LAST". Empty, or what is wrong with it.
std::string ParseRange(std::string_view word, std::int32_t teacher_steps, Range* range) {
  const char* end = word.data() + word.size();
  const auto [dash, first_failure] = std::from_chars(word.data(), end, range->first);
  const std::string quoted = "merges: \"" + std::string(word.substr(0, 40)) + "\": ";
  if (first_failure != std::errc() || dash == end || *dash != '-') {
    return quoted + "expected a range FIRST-LAST such as 1-4";
  }
  const auto [stop, last_failure] = std::from_chars(dash + 1, end, range->last);
  if (last_failure != std::errc() || stop != end) {
    return quoted + "expected a range FIRST-LAST such as 1-4";
  }
  if (range->first < 1 || range->last > teacher_steps) {
    return quoted + "expected steps from 1 to " + std::to_string(teacher_steps);
  }
  if (range->first >= range->last) {
    return quoted + "expected two steps or more, the cleaner one first";
  }
  return "";
}

// Ranges between commas or white space. Empty, or what is wrong.
std::string Parse(std::string_view text, std::int32_t teacher_steps, std::vector<Range>* ranges) {
  constexpr std::string_view kBetween = ", \t\r\n";
  std::size_t at = text.find_first_not_of(kBetween);
  while (at != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    Range range = {};
    std::string wrong = ParseRange(text.substr(at, end - at), teacher_steps, &range);
    if (!wrong.empty()) return wrong;
    ranges->push_back(range);
    at = text.find_first_not_of(kBetween, end);
  }
  return "";
}

// A listed range, waiting for what stands inside it.
struct Open {
  Range range;
  std::vector<Range> children;
  std::int32_t next;  // the first step that no child has yet
};

void FillSteps(Open* open, std::int32_t until) {
  for (; open->next < until; ++open->next) open->children.push_back({open->next, open->next});
}

// Nests the ranges. Empty, or which two do not nest.
std::string Nest(std::vector<Range> ranges, std::int32_t teacher_steps, Writer* writer,
                 std::vector<Range>* blocks) {
  // Outer ones before what is inside them.
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return a.first != b.first ? a.first < b.first : a.last > b.last;
  });
  std::vector<std::vector<Range>> merges;
  std::vector<Open> open = {{{1, teacher_steps}, {}, 1}};  // at the bottom: the whole, no merge
  const auto close = [&] {
    Open done = std::move(open.back());
    open.pop_back();
    FillSteps(&done, done.range.last + 1);
    FillSteps(&open.back(), done.range.first);
    open.back().children.push_back(done.range);
    open.back().next = done.range.last + 1;
    merges.push_back(std::move(done.children));
  };
  for (std::size_t k = 0; k < ranges.size(); ++k) {
    const Range& range = ranges[k];
    if (k > 0 && ranges[k - 1].first == range.first && ranges[k - 1].last == range.last) {
      return "merges: " + Text(range) + " is listed twice";
    }
    while (open.size() > 1 && open.back().range.last < range.first) close();
    if (range.last > open.back().range.last) {
      return "merges: " + Text(open.back().range) + " and " + Text(range) +
             " overlap; expected ranges that lie apart or one inside the other";
    }
    open.push_back({range, {}, range.first});
  }
  while (open.size() > 1) close();
  FillSteps(&open.back(), teacher_steps + 1);
  *blocks = std::move(open.back().children);
  for (const std::vector<Range>& children : merges) writer->Merge(children);
  return "";
}

std::int32_t MakePlan(const mergeplan_plan_request* request, const mergeplan_planner* /*planner*/,
                      const mergeplan_plan_sink* sink, mergeplan_error* error) {
  return mergeplan_plugin_cpp::Guard(error, [&]() -> std::int32_t {
    const char* list = mergeplan_plugin_cpp::FindParameter(request->parameters,
                                                           request->parameter_count, "merges");
    std::vector<Range> ranges;
    std::string wrong = Parse(list == nullptr ? "" : list, request->teacher_steps, &ranges);
    if (!wrong.empty()) return Fail(error, MERGEPLAN_INVALID_ARGUMENT, wrong);
    Writer writer(sink, error);
    std::vector<Range> blocks;
    wrong = Nest(std::move(ranges), request->teacher_steps, &writer, &blocks);
    if (!wrong.empty()) return Fail(error, MERGEPLAN_INVALID_ARGUMENT, wrong);
    if (writer.code() != MERGEPLAN_OK) return writer.code();
    const auto wanted = static_cast<std::size_t>(request->student_steps);
    if (blocks.size() != wanted) {
      return Fail(error, MERGEPLAN_INVALID_ARGUMENT,
                  "merges: found a list that leaves " + std::to_string(blocks.size()) +
                      " blocks (" + Text(blocks) + "), expected " + std::to_string(wanted) +
                      ", the student's steps; list other ranges or ask for other student steps");
    }
    writer.Blocks(blocks);
    return writer.code();
  });
}

const mergeplan_parameter_spec kMerges = {
    sizeof(mergeplan_parameter_spec),
    MERGEPLAN_PARAMETER_TEXT,
    "merges",
    "",
    "the ranges of steps to merge, such as 1-4,5-8,1-8; the ranges inside one are its children",
    /*has_minimum=*/0,
    /*has_maximum=*/0,
    0,
    0,
};
const mergeplan_parameter_spec* const kParameters[] = {&kMerges};

const mergeplan_plugin kPlugin = {
    sizeof(mergeplan_plugin),
    MERGEPLAN_ABI_MAJOR,
    MERGEPLAN_ABI_MINOR,
    /*abi_minor_needed=*/0,
    "manual",
    "1.0",
    "Makes the merges that are listed",
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
