#include "planner/report/text.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace mergeplan {
namespace {

TEST(EscapeTest, MarkupCharactersBecomeReferences) {
  EXPECT_EQ(Escape("a<b>&\"c\" 'd'"), "a&lt;b&gt;&amp;&quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(Escape("größe λ 画像 🎨\n\t"), "größe λ 画像 🎨\n\t");
  EXPECT_EQ(Escape(""), "");
}

TEST(EscapeTest, WhatIsNoUtf8OrNoCharacterIsReplaced) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(Escape("a\xFFz"), "a" + bad + "z");
  EXPECT_EQ(Escape("\xC3"), bad);                                // cut off
  EXPECT_EQ(Escape("\xC0\x80"), bad + bad);                      // overlong
  EXPECT_EQ(Escape("\xED\xA0\x80"), bad + bad + bad);            // surrogate
  EXPECT_EQ(Escape("\xF5\x80\x80\x80"), bad + bad + bad + bad);  // beyond Unicode
  EXPECT_EQ(Escape("\xEF\xBF\xBF"), bad + bad + bad);            // no character
  EXPECT_EQ(Escape(std::string_view("a\0b\x1B\x7F", 5)), "a" + bad + "b" + bad + bad);
}

TEST(NumberTest, ShortNumbersKeepTheirDigits) {
  EXPECT_EQ(ShortNumber(0), "0");
  EXPECT_EQ(ShortNumber(-0.0), "0");
  EXPECT_EQ(ShortNumber(0.35123456), "0.3512");
  EXPECT_EQ(ShortNumber(-0.0200049), "−0.02000");
  EXPECT_EQ(ShortNumber(0.99996), "1.000");
  EXPECT_EQ(ShortNumber(12.5), "12.50");
  EXPECT_EQ(ShortNumber(98765.4), "98765");
  EXPECT_EQ(ShortNumber(1.983715408656e-4), "1.984×10⁻⁴");
  EXPECT_EQ(ShortNumber(-3.286923e-5, 3), "−3.29×10⁻⁵");
  EXPECT_EQ(ShortNumber(9.9999e99), "1.000×10¹⁰⁰");
  EXPECT_EQ(ShortNumber(NAN), "not finite");
  EXPECT_EQ(ShortNumber(-INFINITY), "not finite");
}

TEST(NumberTest, ExactNumbersReadBack) {
  EXPECT_EQ(ExactNumber(0.1), "0.1");
  EXPECT_EQ(ExactNumber(-1.5), "−1.5");
  for (double value : {1.0 / 3, 1.983715408656e-4, 5e-324, 1.7976931348623157e308}) {
    EXPECT_EQ(std::strtod(ExactNumber(value).c_str(), nullptr), value);
  }
  EXPECT_EQ(ExactNumber(std::numeric_limits<double>::infinity()), "not finite");
  EXPECT_EQ(NumberHtml(0.25), "<span class=\"n\" title=\"0.25\">0.2500</span>");
}

TEST(NumberTest, PercentGroupedCountListed) {
  EXPECT_EQ(Percent(0), "0 %");
  EXPECT_EQ(Percent(0.01), "1 %");
  EXPECT_EQ(Percent(0.0312), "3.1 %");
  EXPECT_EQ(Percent(0.4458), "44.6 %");
  EXPECT_EQ(Percent(1), "100 %");
  EXPECT_EQ(Percent(12.34), "1234 %");
  EXPECT_EQ(Percent(3e-31), "less than 0.0001 %");
  EXPECT_EQ(Percent(NAN), "not finite");
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1000), "1,000");
  EXPECT_EQ(Grouped(-1234567), "−1,234,567");
  EXPECT_EQ(Count(1, "merge"), "1 merge");
  EXPECT_EQ(Count(0, "merge"), "0 merges");
  EXPECT_EQ(Listed({}), "");
  EXPECT_EQ(Listed({"a"}), "a");
  EXPECT_EQ(Listed({"a", "b", "c"}), "a, b and c");
}

TEST(TextTest, ShortenedCutsBetweenCharacters) {
  EXPECT_EQ(Shortened("größer", 6), "größer");
  EXPECT_EQ(Shortened("größer", 4), "grö…");
  EXPECT_EQ(CodePoints("λ = 1"), 5);
  EXPECT_EQ(PowerOfTen(-12), "10⁻¹²");
}

}  // namespace
}  // namespace mergeplan
