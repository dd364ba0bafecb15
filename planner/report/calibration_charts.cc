#include "planner/report/calibration_charts.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "planner/report/svg.h"
#include "planner/report/text.h"

namespace mergeplan {
namespace {

constexpr double kChartWidth = 300, kChartLeft = 54, kChartRight = kChartWidth - 12, kChartTop = 28;

// The ends of positive numbers on a log axis, with some room.
class LogExtent {
 public:
  void Add(double value) {
    if (!(value > 0) || !std::isfinite(value)) return;
    low_ = std::min(low_, value), high_ = std::max(high_, value);
  }
  Scale To(double from, double to) const {
    // One far stray (an interval that reaches to 0) does not take the whole axis.
    return Scale::Log(std::max(low_, high_ * 1e-5) / 1.25, high_ * 1.25, from, to);
  }

 private:
  double low_ = INFINITY, high_ = -INFINITY;
};

std::string Interval(const std::string& name, double value, double low, double high) {
  return absl::StrCat(name, ": ", ShortNumber(value), " (", ShortNumber(low), " to ",
                      ShortNumber(high), ")");
}

}  // namespace

std::string StepsText(Range range) { return absl::StrCat("[", range.first, ", ", range.last, "]"); }

std::string MergeText(Range range, const std::vector<Range>& trained) {
  std::string out = StepsText(range);
  for (std::size_t k = 0; k < trained.size(); ++k) {
    absl::StrAppend(&out, k == 0 ? " over " : ", ", StepsText(trained[k]));
  }
  return out;
}

std::string PilotChart(const std::vector<const CalibrationPilot*>& seeds) {
  const double bottom = 178;
  const CalibrationPilot& one = *seeds.front();
  LogExtent errors, updates;
  for (const CalibrationPilot* pilot : seeds) {
    errors.Add(pilot->start);
    for (std::size_t k = 0; k < pilot->updates.size(); ++k) {
      updates.Add(static_cast<double>(pilot->updates[k]));
      errors.Add(pilot->error[k]);
      errors.Add(pilot->fitted[k].value);
      errors.Add(pilot->fitted[k].high);
    }
  }
  const Scale x = updates.To(kChartLeft, kChartRight), y = errors.To(bottom, kChartTop);
  const std::string name = MergeText(one.range, one.trained);
  SvgCanvas canvas(kChartWidth, bottom + 40,
                   absl::StrCat("Error of the merge ", name, " over the updates"), "small");
  canvas.XAxis(x, kChartTop, bottom, "updates", 4);
  canvas.YAxis(y, kChartLeft, kChartRight, 4, 13, "error, own target", 4);
  const auto place = [&](double value) { return y(std::clamp(value, y.low(), y.high())); };
  std::vector<Point> line, band;
  for (std::size_t k = 0; k < one.updates.size(); ++k) {
    line.emplace_back(x(static_cast<double>(one.updates[k])), place(one.fitted[k].value));
    band.emplace_back(line.back().first, place(one.fitted[k].high));
  }
  for (std::size_t k = one.updates.size(); k-- > 0;) {
    band.emplace_back(x(static_cast<double>(one.updates[k])), place(one.fitted[k].low));
  }
  canvas.Polygon(band, "band-one");
  canvas.Line({kChartLeft, place(one.start)}, {kChartRight, place(one.start)}, "equal",
              absl::StrCat("untrained: ", ShortNumber(one.start)));
  canvas.Polyline(line, "one");
  for (const CalibrationPilot* pilot : seeds) {
    for (std::size_t k = 0; k < pilot->updates.size(); ++k) {
      const double error = pilot->error[k], sampled = 1.96 * pilot->standard_error[k];
      if (!(error > 0) || !std::isfinite(error)) continue;
      const double at = x(static_cast<double>(pilot->updates[k]));
      canvas.Line({at, place(error - sampled)}, {at, place(error + sampled)}, "two");
      canvas.Diamond({at, place(error)}, 3.5, "achieved",
                     absl::StrCat("seed +", pilot->replicate, ", ", pilot->updates[k],
                                  " updates: ", ShortNumber(error)));
    }
  }
  return canvas.Inline();
}

std::vector<MeasuredEntry> ShownEntries(const std::vector<MeasuredEntry>& entries) {
  std::vector<MeasuredEntry> out;
  for (const MeasuredEntry& entry : entries) {
    const bool later = std::any_of(entries.begin(), entries.end(), [&](const MeasuredEntry& e) {
      return e.first == entry.first && e.last == entry.last && e.start == entry.start &&
             e.updates > entry.updates;
    });
    if (!later) out.push_back(entry);
  }
  return out;
}

std::string TableChart(const std::string& title, const std::string& axis,
                       const std::vector<MeasuredEntry>& entries) {
  const double bottom = 190;
  const std::vector<MeasuredEntry> shown = ShownEntries(entries);
  double least = INFINITY, most = 0, steps = 1;
  for (const MeasuredEntry& e : shown) {
    most = std::max(most, e.high);
    least = std::min(least, e.value);
    steps = std::max(steps, static_cast<double>(e.last - e.first + 1));
  }
  LogExtent extent;
  for (const MeasuredEntry& e : shown) {
    extent.Add(e.value);
    extent.Add(e.high);
  }
  // Numbers of one size from 0 on, others by their sizes.
  const bool log = least > 0 && most > 20 * least;
  const Scale x = Scale::Linear(0.4, steps + 0.6, kChartLeft, kChartRight);
  const Scale y =
      log ? extent.To(bottom, kChartTop) : Scale::Linear(0, most * 1.05, bottom, kChartTop);
  SvgCanvas canvas(kChartWidth, bottom + 40, title, "small");
  canvas.XAxis(x, kChartTop, bottom, "steps", static_cast<int>(std::min(steps, 8.0)) + 1);
  canvas.YAxis(y, kChartLeft, kChartRight, 4, 13, axis, 5);
  const auto place = [&](double value) { return y(std::clamp(value, y.low(), y.high())); };
  for (const MeasuredEntry& e : shown) {
    const int length = e.last - e.first + 1;
    // Those of one length side by side, from the clean end to the noisy one.
    double first = INFINITY, last = 0;
    for (const MeasuredEntry& other : shown) {
      if (other.last - other.first + 1 != length) continue;
      first = std::min(first, static_cast<double>(other.last));
      last = std::max(last, static_cast<double>(other.last));
    }
    const double share = last > first ? (e.last - first) / (last - first) - 0.5 : 0;
    const double at = x(length + 0.6 * share);
    const bool child = e.start != 0 && e.start < e.last;
    std::string name = StepsText({e.first, e.last});
    if (child) absl::StrAppend(&name, " from a child that begins at ", e.start);
    canvas.Line({at, place(e.low)}, {at, place(e.high)}, child ? "two" : "spread");
    canvas.Circle({at, place(e.value)}, child ? 1.8 : 2.6, child ? "dot-two" : "dot-one",
                  Interval(name, e.value, e.low, e.high));
  }
  return canvas.Inline();
}

std::string JudgedChart(const std::vector<CalibrationJudged>& judged) {
  const double left = 60, right = 420, top = kChartTop, bottom = top + right - left;
  LogExtent measured, extent;
  for (const CalibrationJudged& j : judged) {
    measured.Add(j.measured);
    for (const double value : {j.measured, j.predicted.value, j.predicted.high, j.linear}) {
      extent.Add(value);
    }
  }
  const Scale x = measured.To(left, right), y = extent.To(bottom, top);
  SvgCanvas canvas(right + 14, bottom + 44, "Predicted over measured error of trained merges",
                   "small");
  canvas.XAxis(x, top, bottom, "measured error, against the teacher", 5);
  canvas.YAxis(y, left, right, 4, 13, "predicted error", 6);
  // Where a prediction is right, as far as both axes go.
  const double low = std::max(x.low(), y.low()), high = std::min(x.high(), y.high());
  canvas.Line({x(low), y(low)}, {x(high), y(high)}, "equal", "predicted = measured");
  const auto place = [&](double value) { return y(std::clamp(value, y.low(), y.high())); };
  for (const CalibrationJudged& j : judged) {
    if (!x.Contains(j.measured)) continue;
    const double at = x(j.measured);
    const std::string name = MergeText(j.range, j.trained);
    canvas.Line({at, place(j.predicted.low)}, {at, place(j.predicted.high)}, "spread");
    canvas.Circle(
        {at, place(j.predicted.value)}, 5, j.held_out ? "ring" : "point",
        absl::StrCat(name, ", measured ", ShortNumber(j.measured), ", ",
                     Interval("predicted", j.predicted.value, j.predicted.low, j.predicted.high)));
    canvas.Diamond({at, place(j.linear)}, 4.5, "achieved",
                   absl::StrCat(name, ", measured ", ShortNumber(j.measured), ", linear model ",
                                ShortNumber(j.linear)));
  }
  return canvas.Inline();
}

}  // namespace mergeplan
