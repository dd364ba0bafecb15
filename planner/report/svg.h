#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace mergeplan {

// Width of a chart that fills a page, in drawing units.
inline constexpr double kPageWidth = 640;

// Maps data to drawing units along one axis, on a linear or a logarithmic scale.
class Scale {
 public:
  // low..high onto from..to. Equal or unordered ends are widened; ends that are not finite, and for
  // Log ends that are not positive, are replaced (0..1, or 0.1..1), so that a scale can always be
  // drawn.
  static Scale Linear(double low, double high, double from, double to);
  static Scale Log(double low, double high, double from, double to);

  double operator()(double value) const;
  // False for what has no place: NaN, infinite, on a log scale <= 0, or outside low..high.
  bool Contains(double value) const;
  bool log() const { return log_; }
  double low() const { return low_; }
  double high() const { return high_; }
  double from() const { return from_; }
  double to() const { return to_; }

  // At most `at_most` (>= 2) round numbers inside low..high: multiples of 1, 2 or 5 times a power
  // of ten; on a log scale powers of ten, with 2 and 5 between them where there is room.
  std::vector<double> Ticks(int at_most) const;
  // On a log scale of up to four decades 2..9 times each power of ten; else nothing.
  std::vector<double> MinorTicks() const;

 private:
  Scale(bool log, double low, double high, double from, double to)
      : log_(log), low_(low), high_(high), from_(from), to_(to) {}
  bool log_;
  double low_, high_, from_, to_;
};

// Labels of one axis, all in one form: 0.5, 1, 1.5 or 10⁻⁴, 10⁻³, ….
std::vector<std::string> TickTexts(absl::Span<const double> ticks, bool log);

using Point = std::pair<double, double>;

// Collects shapes and writes one <svg>. Shapes carry CSS classes (see planner/report/style.h), so
// that a page draws them in light, dark and print colours. Texts and titles are escaped here;
// anything with a coordinate that is not finite is left out.
class SvgCanvas {
 public:
  // `title` is what a screen reader says; `css_class` goes on the <svg>.
  SvgCanvas(double width, double height, std::string title, std::string css_class);

  void Line(Point a, Point b, const std::string& css_class, const std::string& title = "");
  void Polyline(absl::Span<const Point> points, const std::string& css_class);
  void Polygon(absl::Span<const Point> points, const std::string& css_class);
  void Circle(Point centre, double radius, const std::string& css_class,
              const std::string& title = "");
  // A square on its corner.
  void Diamond(Point centre, double radius, const std::string& css_class,
               const std::string& title = "");
  // `fill` overrides the class's colour where it is not empty.
  void Rect(double x, double y, double width, double height, const std::string& css_class,
            const std::string& fill = "");
  // Many dots as one path.
  void Dots(absl::Span<const Point> points, const std::string& css_class);
  // Half an ellipse from (x1, y) to (x2, y), `height` above y.
  void Arc(double x1, double x2, double y, double height, const std::string& css_class,
           const std::string& title = "");
  // Anchor: "start", "middle" or "end".
  void Text(Point at, const std::string& text, const std::string& css_class,
            const std::string& anchor = "start", const std::string& title = "");
  void OpenGroup(const std::string& css_class, const std::string& attributes = "");
  void CloseGroup();

  // Grid lines, tick labels and the axis's name. XAxis: labels below `bottom`, the name below them
  // at the right end. YAxis: labels left of `left`, the name above `top`, starting at `name_x`.
  void XAxis(const Scale& scale, double top, double bottom, const std::string& name, int ticks);
  void YAxis(const Scale& scale, double left, double right, double name_x, double name_y,
             const std::string& name, int ticks);

  // For a page that has the classes.
  std::string Inline() const;
  // A file of its own: with XML head, size, white ground and `css`.
  std::string Standalone(const std::string& css) const;

 private:
  void Element(const std::string& tag, const std::string& attributes, const std::string& css_class,
               const std::string& title);
  std::string Body() const;

  double width_, height_;
  std::string title_, css_class_, shapes_;
};

}  // namespace mergeplan
