#pragma once

#include <optional>
#include <string>
#include <vector>

namespace mergeplan {

// Pieces of the page's HTML. Texts named html are put in as they are, others are escaped.

// A legend entry: a sample of the mark (see LegendKey) and a text.
std::string Key(const std::string& mark, const std::string& html);

// A table that scrolls on narrow screens: OpenTable, Head, rows of cells, kCloseTable.
std::string OpenTable(const std::string& label);
std::string Head(const std::vector<std::string>& html_columns);
std::string Row(const std::string& name, const std::vector<std::string>& html_cells,
                const std::string& css_class = "");
inline constexpr char kCloseTable[] = "</tbody>\n</table>\n</div>\n";

// NumberHtml, or a dash where there is none.
std::string NumberOrDash(const std::optional<double>& value, int digits = 4);

// <dt> and <dd>; nothing where `html` is empty.
std::string Definition(const std::string& term, const std::string& html);

}  // namespace mergeplan
