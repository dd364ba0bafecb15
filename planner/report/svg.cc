#include "planner/report/svg.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "planner/report/text.h"

namespace mergeplan {
namespace {

// Drawing units with two decimals, without trailing zeros.
std::string Units(double value) {
  std::string text = absl::StrFormat("%.2f", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

bool Drawable(std::initializer_list<double> coordinates) {
  return std::all_of(coordinates.begin(), coordinates.end(),
                     [](double c) { return std::isfinite(c) && std::abs(c) < 1e6; });
}

bool Drawable(Point p) { return Drawable({p.first, p.second}); }

std::string Points(absl::Span<const Point> points) {
  std::string out;
  for (const Point& p : points) {
    if (!Drawable(p)) continue;
    absl::StrAppend(&out, out.empty() ? "" : " ", Units(p.first), ",", Units(p.second));
  }
  return out;
}

std::vector<double> Multiples(double step, double low, double high) {
  std::vector<double> out;
  const double first = std::ceil(low / step - 1e-9), last = std::floor(high / step + 1e-9);
  for (double k = first; k <= last && out.size() < 100; ++k) out.push_back(k == 0 ? 0.0 : k * step);
  return out;
}

// The multiples of the smallest step out of 1, 2, 5 (times a power of ten) that are at most
// `at_most`; of 2.5 where that leaves fewer than three.
std::vector<double> LinearTicks(double low, double high, int at_most) {
  if (!(high > low)) return {};
  double power = std::pow(10, std::floor(std::log10((high - low) / at_most)) - 1);
  for (;; power *= 10) {
    for (double factor : {1.0, 2.0, 5.0}) {
      std::vector<double> ticks = Multiples(factor * power, low, high);
      if (static_cast<int>(ticks.size()) > at_most) continue;
      if (ticks.size() < 3 && factor == 5) {
        std::vector<double> finer = Multiples(2.5 * power, low, high);
        if (static_cast<int>(finer.size()) <= at_most) return finer;
      }
      return ticks;
    }
  }
}

}  // namespace

Scale Scale::Linear(double low, double high, double from, double to) {
  if (!std::isfinite(low) || !std::isfinite(high)) low = 0, high = 1;
  if (low > high) std::swap(low, high);
  // Closer than a tick label can tell apart.
  if (high - low <= 1e-9 * std::max(std::abs(low), std::abs(high))) {
    const double pad = high == 0 ? 1.0 : 0.5 * std::max(std::abs(high), std::abs(low));
    low -= pad;
    high += pad;
  }
  return Scale(false, low, high, from, to);
}

Scale Scale::Log(double low, double high, double from, double to) {
  if (!std::isfinite(low) || !std::isfinite(high) || low <= 0 || high <= 0) low = 0.1, high = 1;
  if (low > high) std::swap(low, high);
  if (high / low < 1.2) low /= 2, high *= 2;
  return Scale(true, low, high, from, to);
}

double Scale::operator()(double value) const {
  const double share =
      log_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
  return from_ + share * (to_ - from_);
}

bool Scale::Contains(double value) const {
  return std::isfinite(value) && value >= low_ && value <= high_;
}

std::vector<double> Scale::Ticks(int at_most) const {
  at_most = std::max(at_most, 2);
  if (!log_) return LinearTicks(low_, high_, at_most);
  const int first = static_cast<int>(std::ceil(std::log10(low_) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log10(high_) + 1e-9));
  const int decades = last - first + 1;
  const auto inside = [this](double value) {
    return value >= low_ * (1 - 1e-9) && value <= high_ * (1 + 1e-9);
  };
  // The finest of three series that has room.
  for (const std::vector<double>& factors : {std::vector<double>{1, 2, 5}, {1, 3}, {1}}) {
    std::vector<double> ticks;
    if (decades > at_most + 1) break;
    for (int e = first - 1; e <= last; ++e) {
      for (double factor : factors) {
        if (const double value = factor * std::pow(10, e); inside(value)) ticks.push_back(value);
      }
    }
    if (ticks.size() >= 2 && static_cast<int>(ticks.size()) <= at_most) return ticks;
  }
  if (decades < 2) return LinearTicks(low_, high_, at_most);
  std::vector<double> ticks;
  const int stride = (decades + at_most - 1) / at_most;
  for (int e = first; e <= last; ++e) {
    if ((e % stride + stride) % stride == 0) ticks.push_back(std::pow(10, e));
  }
  return ticks;
}

std::vector<double> Scale::MinorTicks() const {
  std::vector<double> ticks;
  if (!log_ || std::log10(high_ / low_) > 4) return ticks;
  for (int e = static_cast<int>(std::floor(std::log10(low_))); std::pow(10, e) < high_; ++e) {
    for (int factor = 2; factor <= 9; ++factor) {
      if (const double value = factor * std::pow(10, e); Contains(value)) ticks.push_back(value);
    }
  }
  return ticks;
}

std::vector<std::string> TickTexts(absl::Span<const double> ticks, bool log) {
  bool powers = false;  // is any label too long to be written out?
  for (double tick : ticks) {
    const double size = std::abs(tick);
    if (size != 0 && (size < 0.9e-3 || size > 1.1e4)) powers = true;
  }
  std::vector<std::string> texts;
  // A linear axis with small or large numbers shares one power of ten, written on every label.
  double largest = 0;
  for (double tick : ticks) largest = std::max(largest, std::abs(tick));
  for (double tick : ticks) {
    if (!powers || tick == 0) {
      texts.push_back(absl::StrFormat("%g", tick));
    } else {
      const int exponent =
          static_cast<int>(std::floor(std::log10(log ? std::abs(tick) : largest) + 1e-9));
      const std::string mantissa = absl::StrFormat("%.4g", tick / std::pow(10, exponent));
      if (log && exponent >= 0 && exponent <= 2) {
        texts.push_back(absl::StrFormat("%g", tick));
      } else {
        texts.push_back(mantissa == "1" ? PowerOfTen(exponent)
                                        : absl::StrCat(mantissa, "·", PowerOfTen(exponent)));
      }
    }
    absl::StrReplaceAll({{"-", "−"}}, &texts.back());
  }
  return texts;
}

SvgCanvas::SvgCanvas(double width, double height, std::string title, std::string css_class)
    : width_(width), height_(height), title_(std::move(title)), css_class_(std::move(css_class)) {}

void SvgCanvas::Element(const std::string& tag, const std::string& attributes,
                        const std::string& css_class, const std::string& title) {
  absl::StrAppend(&shapes_, "<", tag, " ", attributes);
  if (!css_class.empty()) absl::StrAppend(&shapes_, " class=\"", css_class, "\"");
  if (title.empty()) {
    shapes_ += "/>\n";
  } else {
    absl::StrAppend(&shapes_, "><title>", Escape(title), "</title></", tag, ">\n");
  }
}

void SvgCanvas::Line(Point a, Point b, const std::string& css_class, const std::string& title) {
  if (!Drawable(a) || !Drawable(b)) return;
  Element("line",
          absl::StrCat("x1=\"", Units(a.first), "\" y1=\"", Units(a.second), "\" x2=\"",
                       Units(b.first), "\" y2=\"", Units(b.second), "\""),
          css_class, title);
}

void SvgCanvas::Polyline(absl::Span<const Point> points, const std::string& css_class) {
  if (points.empty()) return;
  Element("polyline", absl::StrCat("points=\"", Points(points), "\""), css_class, "");
}

void SvgCanvas::Polygon(absl::Span<const Point> points, const std::string& css_class) {
  if (points.empty()) return;
  Element("polygon", absl::StrCat("points=\"", Points(points), "\""), css_class, "");
}

void SvgCanvas::Circle(Point centre, double radius, const std::string& css_class,
                       const std::string& title) {
  if (!Drawable(centre)) return;
  Element("circle",
          absl::StrCat("cx=\"", Units(centre.first), "\" cy=\"", Units(centre.second), "\" r=\"",
                       Units(radius), "\""),
          css_class, title);
}

void SvgCanvas::Diamond(Point centre, double radius, const std::string& css_class,
                        const std::string& title) {
  if (!Drawable(centre)) return;
  const auto [x, y] = centre;
  const Point corners[] = {{x - radius, y}, {x, y - radius}, {x + radius, y}, {x, y + radius}};
  Element("polygon", absl::StrCat("points=\"", Points(corners), "\""), css_class, title);
}

void SvgCanvas::Rect(double x, double y, double width, double height, const std::string& css_class,
                     const std::string& fill) {
  if (!Drawable({x, y, width, height})) return;
  Element("rect",
          absl::StrCat("x=\"", Units(x), "\" y=\"", Units(y), "\" width=\"", Units(width),
                       "\" height=\"", Units(height), "\"",
                       fill.empty() ? "" : absl::StrCat(" fill=\"", fill, "\"")),
          css_class, "");
}

void SvgCanvas::Dots(absl::Span<const Point> points, const std::string& css_class) {
  std::string path;
  for (const Point& p : points) {
    if (Drawable(p)) absl::StrAppend(&path, "M", Units(p.first), " ", Units(p.second), "h0");
  }
  if (!path.empty()) Element("path", absl::StrCat("d=\"", path, "\""), css_class, "");
}

void SvgCanvas::Arc(double x1, double x2, double y, double height, const std::string& css_class,
                    const std::string& title) {
  if (!Drawable({x1, x2, y, height})) return;
  Element("path",
          absl::StrCat("d=\"M", Units(x1), " ", Units(y), "A", Units((x2 - x1) / 2), " ",
                       Units(height), " 0 0 1 ", Units(x2), " ", Units(y), "\""),
          css_class, title);
}

void SvgCanvas::Text(Point at, const std::string& text, const std::string& css_class,
                     const std::string& anchor, const std::string& title) {
  if (!Drawable(at)) return;
  absl::StrAppend(&shapes_, "<text x=\"", Units(at.first), "\" y=\"", Units(at.second), "\"");
  if (anchor != "start") absl::StrAppend(&shapes_, " text-anchor=\"", anchor, "\"");
  if (!css_class.empty()) absl::StrAppend(&shapes_, " class=\"", css_class, "\"");
  absl::StrAppend(&shapes_, ">", Escape(text));
  if (!title.empty()) absl::StrAppend(&shapes_, "<title>", Escape(title), "</title>");
  shapes_ += "</text>\n";
}

void SvgCanvas::OpenGroup(const std::string& css_class, const std::string& attributes) {
  absl::StrAppend(&shapes_, "<g class=\"", css_class, "\"", attributes.empty() ? "" : " ",
                  attributes, ">\n");
}

void SvgCanvas::CloseGroup() { shapes_ += "</g>\n"; }

void SvgCanvas::XAxis(const Scale& scale, double top, double bottom, const std::string& name,
                      int ticks) {
  for (double tick : scale.MinorTicks()) {
    Line({scale(tick), bottom - 3}, {scale(tick), bottom}, "axis");
  }
  const std::vector<double> values = scale.Ticks(ticks);
  const std::vector<std::string> texts = TickTexts(values, scale.log());
  for (size_t k = 0; k < values.size(); ++k) {
    Line({scale(values[k]), top}, {scale(values[k]), bottom}, "gridline");
    Text({scale(values[k]), bottom + 17}, texts[k], "tick", "middle");
  }
  Line({scale.from(), bottom}, {scale.to(), bottom}, "axis");
  if (!name.empty()) Text({scale.to(), bottom + 37}, name, "name", "end");
}

void SvgCanvas::YAxis(const Scale& scale, double left, double right, double name_x, double name_y,
                      const std::string& name, int ticks) {
  const std::vector<double> values = scale.Ticks(ticks);
  const std::vector<std::string> texts = TickTexts(values, scale.log());
  for (size_t k = 0; k < values.size(); ++k) {
    Line({left, scale(values[k])}, {right, scale(values[k])}, "gridline");
    Text({left - 6, scale(values[k]) + 4}, texts[k], "tick", "end");
  }
  Line({left, scale.from()}, {left, scale.to()}, "axis");
  if (!name.empty()) Text({name_x, name_y}, name, "name");
}

std::string SvgCanvas::Body() const {
  return absl::StrCat("<title>", Escape(title_), "</title>\n", shapes_, "</svg>");
}

std::string SvgCanvas::Inline() const {
  return absl::StrCat("<svg class=\"", css_class_, "\" viewBox=\"0 0 ", Units(width_), " ",
                      Units(height_), "\" role=\"img\" aria-label=\"", Escape(title_), "\">",
                      Body());
}

std::string SvgCanvas::Standalone(const std::string& css) const {
  return absl::StrCat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
      "class=\"",
      css_class_, "\" width=\"", Units(width_), "\" height=\"", Units(height_), "\" viewBox=\"0 0 ",
      Units(width_), " ", Units(height_), "\" role=\"img\">\n<style>\n", css,
      "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n", Body(), "\n");
}

}  // namespace mergeplan
