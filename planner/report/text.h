#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mergeplan {

// Text for HTML and XML, in element content and in quoted attributes: & < > " ' become references;
// bytes that are no UTF-8, and control characters, become U+FFFD. O(length).
std::string Escape(std::string_view text);

// The number to `digits` significant digits as people read it: 0.3512, 12.5, 3.287×10⁻⁵, −0.02 (a
// real minus sign). "not finite" for NaN and the infinities.
std::string ShortNumber(double value, int digits = 4);
// The shortest decimal that reads back as the same double; "not finite" likewise.
std::string ExactNumber(double value);
// An HTML span with the short number as text and the exact one as tooltip.
std::string NumberHtml(double value, int digits = 4);
// 12,345
std::string Grouped(long long value);
// 0.0312 -> "3.1 %"; sizes below 10⁻⁶ are "less than 0.0001 %".
std::string Percent(double fraction);
// "1 merge", "3 merges": the plural is the noun with an s.
std::string Count(long long number, std::string_view noun);
// "a", "a and b", "a, b and c".
std::string Listed(const std::vector<std::string>& items);
// 10 to the power, with superscript digits: "10⁻⁴".
std::string PowerOfTen(int exponent);
// At most `characters` code points, the last an ellipsis where something was cut.
std::string Shortened(std::string_view text, int characters);
// Code points in valid UTF-8.
int CodePoints(std::string_view text);

}  // namespace mergeplan
