#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mergeplan {

struct MarkupElement {
  std::string name;
  std::map<std::string, std::string> attributes;  // as written, references not resolved
  std::string text;                               // directly inside, references not resolved
};

// What a page consists of, in the order of the opening tags.
struct Markup {
  std::string error;  // empty where the page is well-formed
  std::vector<MarkupElement> elements;

  // How many elements carry this class.
  int CountClass(std::string_view css_class) const;
  int CountElements(std::string_view name) const;
};

// Reads HTML that is written as strictly as XML: every tag closed in order, attributes quoted and
// given once, & and < only as references, known references only. Anything else is an error that
// says where. Comments, CDATA and scripts are not known, so they are errors too.
Markup ParseMarkup(std::string_view page);

}  // namespace mergeplan
