#include "planner/measured/model.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

std::string Text(int first, int last) { return absl::StrCat("[", first, ", ", last, "]"); }

absl::Status Bad(const std::string& message) { return absl::InvalidArgumentError(message); }

// Where `x` lies among sorted positions: the index of the last one at or before it (the first where
// none is) and the share of the way to the next one, 0 where there is none.
template <typename PositionOf>
std::pair<size_t, double> Locate(size_t size, double x, const PositionOf& position_of) {
  size_t low = 0, high = size;  // the answer is in [low, high)
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    (static_cast<double>(position_of(middle)) <= x ? low : high) = middle;
  }
  const auto here = static_cast<double>(position_of(low));
  if (x <= here || low + 1 == size) return {low, 0.0};
  return {low, (x - here) / (static_cast<double>(position_of(low + 1)) - here)};
}

void Add(Form& form, int entry, double weight) {
  if (weight > 0) form.terms.emplace_back(entry, weight);
}

double MoveTo(double quantile, const MeasuredEntry& e) {
  return quantile < 0.5 ? std::min(e.value, e.low + (e.value - e.low) * (2 * quantile))
                        : std::min(e.high, e.value + (e.high - e.value) * (2 * quantile - 1));
}

}  // namespace

double Curve::At(std::int64_t updates) const {
  const auto [k, share] = Locate(knots.size(), static_cast<double>(updates),
                                 [this](size_t n) { return knots[n].updates; });
  if (share <= 0) return knots[k].left;
  return (1 - share) * knots[k].left + share * knots[k + 1].left;
}

absl::StatusOr<MeasuredModel::Grid> MeasuredModel::MakeGrid(
    const std::string& name, const std::vector<MeasuredEntry>& entries, int least_span, int last,
    int offset) {
  Grid grid;
  grid.least_span = least_span;
  grid.last = last;
  std::vector<int> order(entries.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = static_cast<int>(k);
  const auto at = [](const MeasuredEntry& e) -> std::int64_t {
    return e.start != 0 ? e.last - e.start : e.updates;
  };
  const auto key = [&](int k) {
    const MeasuredEntry& e = entries[k];
    return std::tuple(e.last - e.first, e.first, at(e), e.start != 0);
  };
  std::sort(order.begin(), order.end(), [&](int x, int y) { return key(x) < key(y); });
  for (size_t n = 0; n < order.size(); ++n) {
    const MeasuredEntry& e = entries[order[n]];
    if (n > 0 && key(order[n - 1]) == key(order[n])) {
      return Bad(absl::StrCat(name, "[", order[n], "]: ", Text(e.first, e.last),
                              e.start != 0     ? absl::StrCat(" with start ", e.start)
                              : e.updates != 0 ? absl::StrCat(" after ", e.updates, " updates")
                                               : "",
                              " is given twice, also as ", name, "[", order[n - 1], "]"));
    }
    const int span = e.last - e.first;
    if (grid.spans.empty() ||
        grid.spans.back().front().last - grid.spans.back().front().first != span) {
      grid.spans.emplace_back();
    }
    std::vector<Group>& row = grid.spans.back();
    if (row.empty() || row.back().first != e.first) row.push_back({e.first, e.last, {}});
    row.back().members.push_back({at(e), offset + order[n]});
  }

  // The corners of the triangle of all ranges, and the ends of every measured span.
  const auto missing = [&](int first, int end, const std::string& why) {
    return Bad(absl::StrCat(name, ": nothing is measured for ", Text(first, end), "; ", why,
                            ", since numbers are interpolated, never extrapolated"));
  };
  const auto has_row = [&](int span) {
    return std::any_of(grid.spans.begin(), grid.spans.end(), [&](const auto& row) {
      return row.front().last - row.front().first + 1 == span;
    });
  };
  const std::string corners =
      absl::StrCat("the corners ", Text(1, least_span), ", ", Text(last - least_span + 1, last),
                   " and ", Text(1, last), " are needed");
  if (!has_row(least_span)) return missing(1, least_span, corners);
  if (!has_row(last)) return missing(1, last, corners);
  for (const std::vector<Group>& row : grid.spans) {
    const int span = row.front().last - row.front().first + 1;
    const std::string ends = absl::StrCat("with ranges of ", span, " step", span > 1 ? "s" : "",
                                          " measured, both ends are needed");
    if (row.front().first != 1) return missing(1, span, ends);
    if (row.back().last != last) return missing(last - span + 1, last, ends);
  }
  return grid;
}

absl::Status MeasuredModel::CheckStarts(State& state) {
  for (const std::vector<Group>& row : state.distance.spans) {
    for (const Group& group : row) {
      const std::string name = absl::StrCat("distance: ", Text(group.first, group.last));
      const int offset = static_cast<int>(state.tables.gain.size());
      bool any = false, all = true;
      for (const Group::Member& member : group.members) {
        const bool given = state.tables.distance[member.entry - offset].start != 0;
        any = any || given;
        all = all && given;
      }
      if (!any) continue;
      if (!all) return Bad(name + " stands there with a start and without; give every one a start");
      const int most = group.last - group.first - 1;
      if (group.members.front().at != 0 || group.members.back().at != most) {
        const int lacks = group.members.front().at != 0 ? group.last : group.first + 1;
        return Bad(absl::StrCat(name, ": start ", lacks, " is missing; the starts ",
                                group.first + 1, " and ", group.last,
                                " are needed, since numbers are interpolated, never extrapolated"));
      }
      state.start_matters = state.start_matters || group.members.size() > 1;
    }
  }
  return absl::OkStatus();
}

absl::Status MeasuredModel::CheckResiduals(State& state) {
  const int offset = static_cast<int>(state.tables.gain.size() + state.tables.distance.size());
  for (const std::vector<Group>& row : state.residual.spans) {
    for (const Group& group : row) {
      MeasuredEntry before;
      before.value = before.low = before.high = 1;
      bool has_slope = false;
      double slope_before = 0;
      for (const Group::Member& member : group.members) {
        const MeasuredEntry& e = state.tables.residual[member.entry - offset];
        for (const auto& [key, left, was] : {std::tuple{"value", e.value, before.value},
                                             {"low", e.low, before.low},
                                             {"high", e.high, before.high}}) {
          if (left > was) {
            return Bad(absl::StrCat("residual: ", Text(group.first, group.last), ": ", key, " is ",
                                    left, " after ", e.updates, " updates and ", was, " after ",
                                    before.updates,
                                    "; expected numbers that do not rise (keep the "
                                    "best so far, as training can)"));
          }
        }
        // The first piece is 0..updates; where that is 1 update, no whole number lies within it.
        if (e.updates > 1) {
          const double slope =
              (e.value - before.value) / static_cast<double>(e.updates - before.updates);
          // Rounding of numbers on a line must not count as a bend.
          if (has_slope && slope < slope_before * (1 + 1e-12) - 1e-18) state.convex = false;
          slope_before = slope;
          has_slope = true;
        }
        before = e;
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<MeasuredModel> MeasuredModel::Create(MeasuredTables tables) {
  MP_RETURN_IF_ERROR(CheckEntries(tables));
  auto state = std::make_shared<State>();
  state->tables = std::move(tables);
  const MeasuredTables& t = state->tables;
  const int steps = t.teacher_steps;
  for (const auto* entries : {&t.gain, &t.distance, &t.residual, &t.floor}) {
    for (const MeasuredEntry& e : *entries) {
      state->values.push_back(e.value);
      state->lows.push_back(e.low);
      state->highs.push_back(e.high);
    }
  }
  int offset = 0;
  MP_ASSIGN_OR_RETURN(state->gain, MakeGrid("gain", t.gain, 1, steps - 1, offset));
  offset += static_cast<int>(t.gain.size());
  MP_ASSIGN_OR_RETURN(state->distance, MakeGrid("distance", t.distance, 2, steps, offset));
  offset += static_cast<int>(t.distance.size());
  MP_ASSIGN_OR_RETURN(state->residual, MakeGrid("residual", t.residual, 2, steps, offset));
  offset += static_cast<int>(t.residual.size());
  MP_ASSIGN_OR_RETURN(state->floor, MakeGrid("floor", t.floor, 2, steps, offset));
  MP_RETURN_IF_ERROR(CheckStarts(*state));
  MP_RETURN_IF_ERROR(CheckResiduals(*state));
  MeasuredModel model;
  model.state_ = std::move(state);
  return model;
}

void MeasuredModel::Draw(std::mt19937_64& random, std::vector<double>& scenario) const {
  // The standard's distributions differ between libraries; this does not.
  const auto quantile = [&random] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  const MeasuredTables& t = tables();
  scenario.resize(values().size());
  size_t at = 0;
  for (const auto* entries : {&t.gain, &t.distance}) {
    for (const MeasuredEntry& e : *entries) scenario[at++] = MoveTo(quantile(), e);
  }
  for (const std::vector<Group>& row : state_->residual.spans) {
    for (const Group& group : row) {
      const double together = quantile();
      for (const Group::Member& member : group.members) {
        scenario[member.entry] = MoveTo(together, t.residual[member.entry - at]);
      }
    }
  }
  at += t.residual.size();
  for (const MeasuredEntry& e : t.floor) scenario[at++] = MoveTo(quantile(), e);
}

// Bilinear over (number of steps, place): within the measured spans next to the range's, at the
// same relative place. A measured range gets the weight 1 and no neighbour.
MeasuredModel::Near MeasuredModel::Around(const Grid& grid, int first, int last) {
  Near near;
  const auto span_of = [&](size_t k) {
    return grid.spans[k].front().last - grid.spans[k].front().first + 1;
  };
  const int span = last - first + 1;
  const auto [row, share] = Locate(grid.spans.size(), span, span_of);
  const int places = grid.last - span;  // first lies in 1..places+1
  const auto add_row = [&](size_t k, double weight) {
    if (weight <= 0) return;
    const std::vector<Group>& groups = grid.spans[k];
    // The product is exact, so that places == its own keeps `first` exactly.
    const double place =
        places > 0 ? 1 + static_cast<double>(first - 1) * (grid.last - span_of(k)) / places : 1;
    const auto [group, on] =
        Locate(groups.size(), place, [&](size_t n) { return groups[n].first; });
    near.emplace_back(&groups[group], weight * (1 - on));
    if (on > 0) near.emplace_back(&groups[group + 1], weight * on);
  };
  add_row(row, 1 - share);
  if (share > 0) add_row(row + 1, share);
  return near;
}

Form MeasuredModel::Gain(int i, int m) const {
  Form form;
  if (m < i) {
    form.constant = 1;
    return form;
  }
  for (const auto& [group, weight] : Around(state_->gain, i, m)) {
    Add(form, group->members.front().entry, weight);
  }
  return form;
}

Form MeasuredModel::Floor(int i, int j) const {
  Form form;
  for (const auto& [group, weight] : Around(state_->floor, i, j)) {
    Add(form, group->members.front().entry, weight);
  }
  return form;
}

Form MeasuredModel::Distance(int i, int a, int j) const {
  Form form;
  for (const auto& [group, weight] : Around(state_->distance, i, j)) {
    // The noisiest child covers the same share of what it can cover: (j-a) of 0..(j-i-1).
    const int most = j - i - 1;
    const double depth =
        most > 0 ? static_cast<double>(j - a) * (group->last - group->first - 1) / most : 0;
    const std::vector<Group::Member>& members = group->members;
    const auto [k, on] = Locate(members.size(), depth, [&](size_t n) { return members[n].at; });
    Add(form, members[k].entry, weight * (1 - on));
    if (on > 0) Add(form, members[k + 1].entry, weight * on);
  }
  return form;
}

void MeasuredModel::Distances(int i, int j, absl::Span<const double> scenario,
                              absl::Span<double> out) const {
  std::fill(out.begin(), out.end(), 0.0);
  const int most = j - i - 1;
  for (const auto& [group, weight] : Around(state_->distance, i, j)) {
    const std::vector<Group::Member>& members = group->members;
    size_t k = 0;
    for (int a = j; a > i; --a) {  // depths rise
      const double depth =
          most > 0 ? static_cast<double>(j - a) * (group->last - group->first - 1) / most : 0;
      while (k + 1 < members.size() && static_cast<double>(members[k + 1].at) <= depth) ++k;
      const auto here = static_cast<double>(members[k].at);
      double value = scenario[members[k].entry];
      if (depth > here && k + 1 < members.size()) {
        const double on = (depth - here) / (static_cast<double>(members[k + 1].at) - here);
        value = (1 - on) * value + on * scenario[members[k + 1].entry];
      }
      out[a - i - 1] += weight * value;
    }
  }
}

Form MeasuredModel::Residual(int i, int j, std::int64_t updates) const {
  Form form;
  for (const auto& [group, weight] : Around(state_->residual, i, j)) {
    const std::vector<Group::Member>& members = group->members;
    const auto u = static_cast<double>(updates);
    const auto first = static_cast<double>(members.front().at);
    if (u < first) {
      form.constant += weight * (1 - u / first);
      Add(form, members.front().entry, weight * (u / first));
      continue;
    }
    const auto [k, on] = Locate(members.size(), u, [&](size_t n) { return members[n].at; });
    Add(form, members[k].entry, weight * (1 - on));
    if (on > 0) Add(form, members[k + 1].entry, weight * on);
  }
  return form;
}

Curve MeasuredModel::ResidualCurve(int i, int j, absl::Span<const double> scenario) const {
  const Near near = Around(state_->residual, i, j);
  std::vector<std::int64_t> at{0};
  for (const auto& [group, weight] : near) {
    for (const Group::Member& member : group->members) at.push_back(member.at);
  }
  std::sort(at.begin(), at.end());
  at.erase(std::unique(at.begin(), at.end()), at.end());
  Curve curve;
  curve.knots.reserve(at.size());
  for (const std::int64_t u : at) {
    curve.knots.push_back({u, u == 0 ? 1.0 : Residual(i, j, u).At(scenario)});
    // What falls exactly must not rise by rounding.
    if (curve.knots.size() > 1) {
      Curve::Knot& knot = curve.knots.back();
      knot.left = std::min(knot.left, curve.knots[curve.knots.size() - 2].left);
    }
  }
  return curve;
}

}  // namespace mergeplan
