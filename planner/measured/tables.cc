#include "planner/measured/tables.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"

namespace mergeplan {
namespace {

// Far beyond any error and far from overflowing when multiplied once.
constexpr double kMostValue = 1e100;

struct Rules {
  const char* name;
  int least_span;
  int last;  // the largest step a range may end at
  bool start, updates;
  double most;
};

absl::Status CheckEntry(const MeasuredEntry& e, const Rules& rules, const std::string& name) {
  const auto bad = [&](const auto&... message) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", message...));
  };
  if (e.first < 1 || e.last > rules.last || e.last - e.first + 1 < rules.least_span) {
    return bad("first = ", e.first, ", last = ", e.last,
               "; expected 1 <= first, last <= ", rules.last, " and at least ", rules.least_span,
               " step", rules.least_span > 1 ? "s" : "");
  }
  if (!rules.start && e.start != 0) return bad("start is for distance only; leave it out");
  if (e.start != 0 && (e.start <= e.first || e.start > e.last)) {
    return bad("start is ", e.start, "; expected the first step of the noisiest child, ",
               e.first + 1, "..", e.last);
  }
  if (!rules.updates && e.updates != 0) return bad("updates is for residual only; leave it out");
  if (rules.updates && (e.updates < 1 || e.updates > kMostUpdates)) {
    return bad("updates is ", e.updates, "; expected 1..", kMostUpdates);
  }
  for (const auto& [key, number] :
       {std::pair{"value", e.value}, {"low", e.low}, {"high", e.high}}) {
    // Written so that NaN is refused too.
    if (!(number >= 0 && number <= rules.most)) {
      return bad(key, " is ", number, "; expected a number from 0 to ", rules.most,
                 rules.updates ? " (the share of the starting distance that is left)" : "");
    }
  }
  if (!(e.low <= e.value && e.value <= e.high)) {
    return bad("low, value, high are ", e.low, ", ", e.value, ", ", e.high,
               "; expected low <= value <= high");
  }
  return absl::OkStatus();
}

absl::Status CheckTable(const std::vector<MeasuredEntry>& entries, const Rules& rules) {
  for (size_t k = 0; k < entries.size(); ++k) {
    MP_RETURN_IF_ERROR(CheckEntry(entries[k], rules, absl::StrCat(rules.name, "[", k, "]")));
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view ToString(Combine combine) { return combine == Combine::kSum ? "sum" : "rms"; }

absl::StatusOr<Combine> ParseCombine(std::string_view word) {
  for (const Combine combine : {Combine::kSum, Combine::kRms}) {
    if (word == ToString(combine)) return combine;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("combine: unknown word \"", std::string(word), "\", expected sum or rms"));
}

absl::Status CheckEntries(const MeasuredTables& tables) {
  const int steps = tables.teacher_steps;
  if (steps < 2 || steps > kMostMeasuredSteps) {
    return absl::InvalidArgumentError(
        absl::StrCat("teacher_steps is ", steps, "; expected 2..", kMostMeasuredSteps));
  }
  if (!IsUtf8(tables.source)) {
    return absl::InvalidArgumentError("source is no UTF-8 text, which files hold only");
  }
  MP_RETURN_IF_ERROR(CheckTable(tables.gain, {"gain", 1, steps - 1, false, false, kMostValue}));
  MP_RETURN_IF_ERROR(CheckTable(tables.distance, {"distance", 2, steps, true, false, kMostValue}));
  MP_RETURN_IF_ERROR(CheckTable(tables.residual, {"residual", 2, steps, false, true, 1}));
  return CheckTable(tables.floor, {"floor", 2, steps, false, false, kMostValue});
}

absl::StatusOr<MeasuredTables> TablesOfFunctions(int teacher_steps,
                                                 const MeasuredFunctions& functions,
                                                 absl::Span<const std::int64_t> updates,
                                                 bool start_matters) {
  MeasuredTables out;
  out.teacher_steps = teacher_steps;
  if (teacher_steps < 2 || teacher_steps > kMostMeasuredSteps) return CheckEntries(out);
  const auto entry = [](int i, int j, int start, std::int64_t u, const MeasuredValue& v) {
    return MeasuredEntry{i, j, start, u, v.value, v.low, v.high};
  };
  for (int i = 1; i <= teacher_steps; ++i) {
    for (int m = i; m < teacher_steps; ++m) {
      out.gain.push_back(entry(i, m, 0, 0, functions.gain(i, m)));
    }
    for (int j = i + 1; j <= teacher_steps; ++j) {
      if (start_matters) {
        for (int a = i + 1; a <= j; ++a) {
          out.distance.push_back(entry(i, j, a, 0, functions.distance(i, a, j)));
        }
      } else {
        out.distance.push_back(entry(i, j, 0, 0, functions.distance(i, j, j)));
      }
      for (const std::int64_t u : updates) {
        out.residual.push_back(entry(i, j, 0, u, functions.residual(i, j, u)));
      }
      out.floor.push_back(entry(i, j, 0, 0, functions.floor(i, j)));
    }
  }
  MP_RETURN_IF_ERROR(CheckEntries(out));
  return out;
}

}  // namespace mergeplan
