#include "planner/report/html.h"

#include "absl/strings/str_cat.h"
#include "planner/report/charts.h"
#include "planner/report/text.h"

namespace mergeplan {

std::string Key(const std::string& mark, const std::string& html) {
  return absl::StrCat("<span class=\"key\">", LegendKey(mark), html, "</span>\n");
}

std::string OpenTable(const std::string& label) {
  return absl::StrCat("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"",
                      Escape(label), "\">\n<table>\n");
}

std::string Head(const std::vector<std::string>& html_columns) {
  std::string out = "<thead><tr>";
  for (const std::string& column : html_columns) {
    absl::StrAppend(&out, "<th scope=\"col\">", column, "</th>");
  }
  return absl::StrCat(out, "</tr></thead>\n<tbody>\n");
}

std::string Row(const std::string& name, const std::vector<std::string>& html_cells,
                const std::string& css_class) {
  std::string out =
      absl::StrCat(css_class.empty() ? "<tr>" : absl::StrCat("<tr class=\"", css_class, "\">"),
                   "<th scope=\"row\">", Escape(name), "</th>");
  for (const std::string& cell : html_cells) absl::StrAppend(&out, "<td>", cell, "</td>");
  return absl::StrCat(out, "</tr>\n");
}

std::string NumberOrDash(const std::optional<double>& value, int digits) {
  return value ? NumberHtml(*value, digits) : "–";
}

std::string Definition(const std::string& term, const std::string& html) {
  if (html.empty()) return "";
  return absl::StrCat("<dt>", Escape(term), "</dt><dd>", html, "</dd>\n");
}

}  // namespace mergeplan
