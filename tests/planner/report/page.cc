#include "tests/planner/report/page.h"

#include <gmock/gmock.h>

#include <cctype>
#include <utility>

namespace mergeplan {

using ::testing::HasSubstr;
using ::testing::Not;

bool HoldsNonNumber(std::string words) {
  std::string word;
  words += ' ';
  for (const char c : words) {
    if (std::isalpha(static_cast<unsigned char>(c))) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    if (word == "nan" || word == "inf") return true;
    word.clear();
  }
  return false;
}

std::string CheckedPage(const absl::StatusOr<std::string>& html, Markup* markup) {
  EXPECT_TRUE(html.ok()) << html.status();
  if (!html.ok()) return "";
  Markup parsed = ParseMarkup(*html);
  EXPECT_EQ(parsed.error, "");
  for (const MarkupElement& element : parsed.elements) {
    for (const auto& [name, value] : element.attributes) {
      if (name == "src") {
        EXPECT_EQ(value.substr(0, 22), "data:image/png;base64,");
      }
      EXPECT_NE(name, "href");
      EXPECT_NE(name.substr(0, 2), "on");
    }
    // Everything but pictures in base64 is free of non-numbers.
    std::string words = element.text;
    for (const auto& [name, value] : element.attributes) {
      if (name != "src") words += " " + value;
    }
    if (element.name != "style") {
      EXPECT_FALSE(HoldsNonNumber(words)) << words;
    }
    if (element.name == "img") {
      EXPECT_EQ(element.attributes.count("alt"), 1u);
    }
    if (element.name == "svg") {
      EXPECT_EQ(element.attributes.count("aria-label"), 1u);
    }
  }
  EXPECT_THAT(*html, Not(HasSubstr("url(")));
  EXPECT_THAT(*html, Not(HasSubstr("@import")));
  EXPECT_THAT(*html, Not(HasSubstr("http:")));
  EXPECT_THAT(*html, Not(HasSubstr("https:")));
  if (markup != nullptr) *markup = std::move(parsed);
  return *html;
}

std::string Plain(const std::string& html) {
  std::string text;
  bool inside = false;
  for (const char c : html) {
    if (c == '<') inside = true;
    if (!inside) text += c;
    if (c == '>') inside = false;
  }
  return text;
}

}  // namespace mergeplan
