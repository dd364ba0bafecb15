#include "planner/report/charts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "planner/report/pictures.h"
#include "planner/report/svg.h"
#include "planner/report/text.h"

namespace mergeplan {
namespace {

// A polyline of thousands of points holds only those that can be told apart.
std::vector<Point> Thinned(const std::vector<Point>& points) {
  std::vector<Point> out;
  for (size_t k = 0; k < points.size(); ++k) {
    const bool end = k == 0 || k + 1 == points.size();
    if (end || std::hypot(points[k].first - out.back().first,
                          points[k].second - out.back().second) >= 0.6) {
      out.push_back(points[k]);
    }
  }
  return out;
}

// The ends of a set of numbers; unset where none counts.
struct Extent {
  double low = INFINITY, high = -INFINITY;
  void Add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void AddPositive(double value) {
    if (value > 0) Add(value);
  }
};

std::vector<int> LargestFirst(const Basis& basis) {
  std::vector<int> order;
  for (size_t k = 0; k < basis.variances.size(); ++k) {
    if (std::isfinite(basis.variances[k]) && basis.variances[k] > 0) {
      order.push_back(static_cast<int>(k));
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return basis.variances[a] > basis.variances[b]; });
  return order;
}

}  // namespace

int PositiveVariances(const Basis& basis) { return static_cast<int>(LargestFirst(basis).size()); }

std::vector<const Basis*> BasesOf(const Spectrum& spectrum) {
  if (spectrum.has_pca()) return {&spectrum.diagonal, &spectrum.pca};
  if (spectrum.has_dct()) return {&spectrum.diagonal, &spectrum.dct};
  return {&spectrum.diagonal};
}

std::string Along(const Basis& basis) {
  return basis.name == "pca"   ? "along the principal axes"
         : basis.name == "dct" ? "along the cosine transform’s axes"
                               : "as stored";
}

std::string SpectrumChart(const Spectrum& spectrum, double one) {
  const double left = 64, right = kPageWidth - 18, top = 30, bottom = 300;
  const int d = spectrum.dimensions();
  const bool log_rank = d >= 32;
  const std::vector<const Basis*> bases = BasesOf(spectrum);
  const char* colours[] = {"one", "two"};

  Extent extent;
  extent.AddPositive(one);
  for (const Basis* basis : bases) {
    for (double variance : basis->variances) extent.AddPositive(variance);
    for (double variance : basis->variances_high) extent.AddPositive(variance);
    // A lower bound may be tiny or 0 where samples are few; it must not squash the rest.
    for (size_t k = 0; k < std::min(basis->variances_low.size(), basis->variances.size()); ++k) {
      extent.AddPositive(std::max(basis->variances_low[k], basis->variances[k] / 10));
    }
  }
  // Directions that are rounding noise do not stretch the axis beyond twelve decades.
  extent.low = std::max(extent.low, extent.high * 1e-12);
  const Scale y = Scale::Log(extent.low * 0.8, extent.high * 1.3, bottom, top);
  const Scale x = log_rank ? Scale::Log(1, d, left, right)
                           : Scale::Linear(d == 1 ? 0 : 1, d == 1 ? 2 : d, left, right);

  SvgCanvas canvas(
      kPageWidth, bottom + 48,
      absl::StrCat("Variances of ", Count(d, "dimension"), " as stored",
                   bases.size() > 1 ? " and " + Along(*bases[1]) : "", ", largest first"),
      "wide");
  canvas.XAxis(x, top, bottom, "rank, largest variance first", log_rank ? 6 : std::min(d, 8));
  canvas.YAxis(y, left, right, 6, 14, "variance", 7);
  for (size_t b = 0; b < bases.size(); ++b) {
    const Basis& basis = *bases[b];
    const std::vector<int> order = LargestFirst(basis);
    const bool has_band = basis.variances_low.size() == basis.variances.size() &&
                          basis.variances_high.size() == basis.variances.size();
    std::vector<Point> line, upper, lower;
    for (size_t k = 0; k < order.size(); ++k) {
      const double at = x(static_cast<double>(k) + 1);
      const auto place = [&](double v) { return Point{at, y(std::max(v, y.low()))}; };
      line.push_back(place(basis.variances[order[k]]));
      if (!has_band) continue;
      upper.push_back(place(basis.variances_high[order[k]]));
      lower.push_back(place(basis.variances_low[order[k]]));
    }
    if (d <= 32) {
      for (size_t k = 0; k < upper.size(); ++k) {
        // The two bases side by side where they share a place.
        const double aside = b == 0 ? -3 : 3;
        canvas.Line({upper[k].first + aside, upper[k].second},
                    {lower[k].first + aside, lower[k].second}, colours[b]);
      }
      for (size_t k = 0; k < line.size(); ++k) {
        canvas.Circle({line[k].first + (b == 0 ? -3 : 3), line[k].second}, 3.4,
                      absl::StrCat("dot-", colours[b]),
                      absl::StrCat("variance ", ExactNumber(basis.variances[order[k]])));
      }
      continue;
    }
    std::vector<Point> band = Thinned(upper);
    const std::vector<Point> back = Thinned(lower);
    band.insert(band.end(), back.rbegin(), back.rend());
    canvas.Polygon(band, absl::StrCat("band-", colours[b]));
    canvas.Polyline(Thinned(line), colours[b]);
  }
  if (y.Contains(one)) {
    canvas.Line({left, y(one)}, {right, y(one)}, "rule", "λ = 1");
    canvas.Text({right - 4, y(one) - 6}, "λ = 1", "label halo", "end");
  }
  return canvas.Inline();
}

std::string ErrorChart(absl::Span<const StrategyResult> strategies) {
  const double left = 14, right = kPageWidth - 24, top = 8, row_height = 46;
  const double bottom = top + row_height * static_cast<double>(strategies.size()) + 8;
  Extent extent;
  for (const StrategyResult& s : strategies) {
    extent.AddPositive(s.predicted_objective);
    extent.AddPositive(s.predicted_with_noise);
    extent.AddPositive(s.achieved_objective);
    if (s.spread) {
      extent.AddPositive(s.predicted_with_noise + *s.spread);
      extent.AddPositive(s.predicted_with_noise - *s.spread);
    }
  }
  // A stray tiny figure (a bar that reaches towards 0) does not take the whole axis.
  extent.low = std::max(extent.low, extent.high * 1e-9);
  const Scale x = Scale::Log(extent.low / 1.3, extent.high * 1.3, left, right);
  SvgCanvas canvas(kPageWidth, bottom + 48, "Predicted and achieved error of every strategy",
                   "wide");
  canvas.XAxis(x, top, bottom, "error, Σ w (τ − V)²", 6);
  const auto place = [&](double value) { return x(std::clamp(value, x.low(), x.high())); };
  for (size_t k = 0; k < strategies.size(); ++k) {
    const StrategyResult& s = strategies[k];
    const double y = top + row_height * static_cast<double>(k) + 32;
    canvas.Line({left, y}, {right, y}, "row");
    canvas.Text({left, y - 14}, Shortened(s.name, 40), "label halo", "start", s.name);
    if (s.spread && std::isfinite(*s.spread) && std::isfinite(s.predicted_with_noise)) {
      canvas.Line({place(s.predicted_with_noise - *s.spread), y},
                  {place(s.predicted_with_noise + *s.spread), y}, "spread",
                  absl::StrCat(s.name, ": expected ", ExactNumber(s.predicted_with_noise), " ± ",
                               ExactNumber(*s.spread)));
    }
    if (std::isfinite(s.predicted_objective)) {
      canvas.Circle({place(s.predicted_objective), y}, 7, "ring",
                    absl::StrCat(s.name, ": predicted ", ExactNumber(s.predicted_objective)));
    }
    if (std::isfinite(s.achieved_objective)) {
      canvas.Diamond({place(s.achieved_objective), y}, 5, "achieved",
                     absl::StrCat(s.name, ": achieved ", ExactNumber(s.achieved_objective)));
    }
  }
  return canvas.Inline();
}

std::string ErrorScatter(const StrategyResult& strategy, absl::Span<const double> tau) {
  const double width = 300, left = 52, right = width - 12, top = 26, bottom = 214;
  struct Pair {
    double predicted, achieved;
    size_t dimension;
  };
  std::vector<Pair> pairs;
  for (size_t k = 0; k < tau.size(); ++k) {
    const Pair pair{strategy.expected_value[k] - tau[k], strategy.value[k] - tau[k], k};
    if (std::isfinite(pair.predicted) && std::isfinite(pair.achieved)) pairs.push_back(pair);
  }
  constexpr size_t kMost = 4000;
  const auto size = [](const Pair& p) {
    return std::max(std::abs(p.predicted), std::abs(p.achieved));
  };
  if (pairs.size() > kMost) {
    std::nth_element(pairs.begin(), pairs.begin() + kMost, pairs.end(),
                     [&](const Pair& a, const Pair& b) { return size(a) > size(b); });
    pairs.resize(kMost);
  }
  Extent extent;
  extent.Add(0);
  for (const Pair& p : pairs) {
    extent.Add(p.predicted);
    extent.Add(p.achieved);
  }
  const double pad = 0.06 * (extent.high - extent.low);
  const Scale x = Scale::Linear(extent.low - pad, extent.high + pad, left, right);
  const Scale y = Scale::Linear(x.low(), x.high(), bottom, top);
  SvgCanvas canvas(
      width, bottom + 44,
      absl::StrCat(strategy.name, ": signed error V − τ of ", tau.size(),
                   tau.size() == 1 ? " dimension" : " dimensions", ", predicted and achieved"),
      "small");
  canvas.XAxis(x, top, bottom, "predicted V − τ", 4);
  canvas.YAxis(y, left, right, 4, 13, "achieved V − τ", 5);
  canvas.Line({x(x.low()), y(x.low())}, {x(x.high()), y(x.high())}, "equal",
              "achieved = predicted");
  if (pairs.size() <= 64) {
    for (const Pair& p : pairs) {
      canvas.Circle({x(p.predicted), y(p.achieved)}, 3.2, "point",
                    absl::StrCat("dimension ", p.dimension, ": predicted ",
                                 ExactNumber(p.predicted), ", achieved ", ExactNumber(p.achieved)));
    }
  } else {
    std::vector<Point> dots;
    dots.reserve(pairs.size());
    for (const Pair& p : pairs) dots.emplace_back(x(p.predicted), y(p.achieved));
    canvas.Dots(dots, "cloud");
  }
  return canvas.Inline();
}

std::string SampleScatter(const std::string& title, absl::Span<const double> reference,
                          absl::Span<const double> shown, int d) {
  const double width = 300, left = 46, right = width - 12, top = 26, bottom = top + right - left;
  constexpr size_t kMost = 2000;
  const auto points = [&](absl::Span<const double> rows) {
    std::vector<Point> out;
    for (size_t i = 0; i + d <= rows.size() && out.size() < kMost; i += d) {
      const Point point{rows[i], rows[i + (d > 1 ? 1 : 0)]};
      if (std::isfinite(point.first) && std::isfinite(point.second)) out.push_back(point);
    }
    return out;
  };
  const std::vector<Point> below = points(reference), above = points(shown);
  Extent x_extent, y_extent;
  for (const Point& p : below) {
    x_extent.Add(p.first);
    y_extent.Add(p.second);
  }
  // The same units along both axes; a student that is far off does not squeeze the teacher.
  const double half =
      0.6 * std::max({x_extent.high - x_extent.low, y_extent.high - y_extent.low, 1e-300});
  const double x_middle = (x_extent.low + x_extent.high) / 2;
  const double y_middle = (y_extent.low + y_extent.high) / 2;
  const Scale x = Scale::Linear(x_middle - half, x_middle + half, left, right);
  const Scale y = Scale::Linear(y_middle - half, y_middle + half, bottom, top);
  SvgCanvas canvas(width, bottom + 44, title, "small");
  canvas.XAxis(x, top, bottom, "dimension 0", 4);
  canvas.YAxis(y, left, right, 4, 13, d > 1 ? "dimension 1" : "dimension 0", 5);
  for (const auto& [list, css_class] : {std::pair{&below, "cloud under"}, {&above, "cloud"}}) {
    std::vector<Point> dots;
    for (const Point& p : *list) {
      if (x.Contains(p.first) && y.Contains(p.second)) dots.emplace_back(x(p.first), y(p.second));
    }
    canvas.Dots(dots, css_class);
  }
  return canvas.Inline();
}

std::string VectorChart(const std::string& title, const std::vector<std::vector<double>>& lines,
                        double low, double high) {
  const double width = 300, left = 46, right = width - 10, top = 10, bottom = 130;
  const size_t d = lines.empty() ? 1 : lines.front().size();
  const Scale x = Scale::Linear(0, static_cast<double>(std::max<size_t>(d, 2) - 1), left, right);
  const Scale y = Scale::Linear(low, high, bottom, top);
  SvgCanvas canvas(width, bottom + 22, title, "small");
  canvas.XAxis(x, top, bottom, "", 5);
  canvas.YAxis(y, left, right, 0, 0, "", 4);
  const char* colours[] = {"one", "two", "three"};
  for (size_t k = 0; k < lines.size(); ++k) {
    std::vector<Point> points;
    for (size_t i = 0; i < lines[k].size(); ++i) {
      if (std::isfinite(lines[k][i]))
        points.emplace_back(x(static_cast<double>(i)), y(lines[k][i]));
    }
    canvas.Polyline(Thinned(points), colours[k % 3]);
  }
  return canvas.Inline();
}

std::string ColourBar(double limit) {
  const double width = 300, left = 1, right = width - 1;
  const Scale x = Scale::Linear(-limit, limit, left, right);
  SvgCanvas canvas(width, 36,
                   absl::StrCat("Colour scale from −", ShortNumber(x.high()),
                                " (blue) over 0 "
                                "(white) to ",
                                ShortNumber(x.high()), " (red)"),
                   "small bar");
  constexpr int kCells = 64;
  const double cell = (right - left) / kCells;
  for (int k = 0; k < kCells; ++k) {
    canvas.Rect(left + k * cell, 2, cell + 0.3, 12, "",
                ColourText(DivergingColour((2.0 * k + 1) / kCells - 1)));
  }
  const std::vector<double> ticks = x.Ticks(5);
  const std::vector<std::string> texts = TickTexts(ticks, false);
  for (size_t k = 0; k < ticks.size(); ++k) {
    canvas.Line({x(ticks[k]), 14}, {x(ticks[k]), 18}, "axis");
    canvas.Text({x(ticks[k]), 30}, texts[k], "tick", "middle");
  }
  return canvas.Inline();
}

std::string LegendKey(const std::string& mark) {
  SvgCanvas canvas(22, 12, mark, "key-mark");
  if (mark == "ring") {
    canvas.Circle({11, 6}, 5, mark);
  } else if (mark == "achieved") {
    canvas.Diamond({11, 6}, 6, mark);
  } else {
    canvas.Line({0, 6}, {22, 6}, mark);
  }
  return absl::StrCat("<span aria-hidden=\"true\">", canvas.Inline(), "</span>");
}

}  // namespace mergeplan
