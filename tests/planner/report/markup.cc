#include "tests/planner/report/markup.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace mergeplan {
namespace {

bool IsName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == ':' || c == '_';
}

class Parser {
 public:
  explicit Parser(std::string_view page) : page_(page) {}

  Markup Run() {
    SkipHead();
    while (out_.error.empty() && at_ < page_.size()) {
      page_[at_] == '<' ? Tag() : Text();
    }
    if (out_.error.empty() && !open_.empty()) {
      Fail(absl::StrCat("never closed: ", out_.elements[open_.back()].name));
    }
    if (out_.error.empty() && out_.elements.empty()) Fail("no element");
    return std::move(out_);
  }

 private:
  void Fail(const std::string& what) {
    const size_t start = at_ < 30 ? 0 : at_ - 30;
    out_.error =
        absl::StrCat("at byte ", at_, ": ", what, ", near: ", std::string(page_.substr(start, 60)));
  }

  void SkipHead() {
    for (const std::string_view end : {std::string_view("?>"), std::string_view(">")}) {
      const std::string_view start = end == "?>" ? "<?xml" : "<!DOCTYPE";
      while (at_ < page_.size() && std::isspace(static_cast<unsigned char>(page_[at_]))) ++at_;
      if (page_.substr(at_, start.size()) != start) continue;
      at_ = std::min(page_.size(), page_.find(end, at_) + end.size());
    }
    while (at_ < page_.size() && std::isspace(static_cast<unsigned char>(page_[at_]))) ++at_;
  }

  bool CheckReferences(std::string_view text) {
    for (size_t k = text.find('&'); k != std::string_view::npos; k = text.find('&', k + 1)) {
      bool known = false;
      for (const std::string_view name : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}) {
        known = known || text.substr(k, name.size()) == name;
      }
      if (!known) return Fail("bare &"), false;
    }
    return true;
  }

  void Text() {
    const size_t end = std::min(page_.find('<', at_), page_.size());
    const std::string_view text = page_.substr(at_, end - at_);
    const bool blank = std::all_of(text.begin(), text.end(), [](char c) {
      return std::isspace(static_cast<unsigned char>(c));
    });
    if (open_.empty() && !blank) return Fail("text outside of any element");
    const bool style = !open_.empty() && out_.elements[open_.back()].name == "style";
    if (!style && !CheckReferences(text)) return;
    if (!open_.empty()) out_.elements[open_.back()].text += std::string(text);
    at_ = end;
  }

  std::string Name() {
    const size_t start = at_;
    while (at_ < page_.size() && IsName(page_[at_])) ++at_;
    return std::string(page_.substr(start, at_ - start));
  }

  void Tag() {
    ++at_;
    if (at_ < page_.size() && page_[at_] == '/') {
      ++at_;
      const std::string name = Name();
      if (open_.empty() || out_.elements[open_.back()].name != name) {
        return Fail(absl::StrCat("closes what is not open: ", name));
      }
      if (at_ >= page_.size() || page_[at_] != '>') return Fail("closing tag without >");
      ++at_;
      open_.pop_back();
      return;
    }
    MarkupElement element;
    element.name = Name();
    if (element.name.empty()) return Fail("< without a name");
    if (element.name == "script") return Fail("a script");
    if (open_.empty() && !out_.elements.empty()) return Fail("a second root");
    for (;;) {
      const size_t before = at_;
      while (at_ < page_.size() && std::isspace(static_cast<unsigned char>(page_[at_]))) ++at_;
      if (at_ >= page_.size()) return Fail("tag without end");
      if (page_[at_] == '>') {
        ++at_;
        open_.push_back(out_.elements.size());
        out_.elements.push_back(std::move(element));
        return;
      }
      if (page_.substr(at_, 2) == "/>") {
        at_ += 2;
        out_.elements.push_back(std::move(element));
        return;
      }
      if (before == at_) return Fail("attributes run together");
      const std::string name = Name();
      if (name.empty() || page_.substr(at_, 2) != "=\"") return Fail("attribute without value");
      at_ += 2;
      const size_t end = page_.find('"', at_);
      if (end == std::string_view::npos) return Fail("value without end");
      const std::string_view value = page_.substr(at_, end - at_);
      if (value.find('<') != std::string_view::npos) return Fail("< in a value");
      if (!CheckReferences(value)) return;
      if (!element.attributes.emplace(name, std::string(value)).second) {
        return Fail(absl::StrCat("given twice: ", name));
      }
      at_ = end + 1;
    }
  }

  std::string_view page_;
  size_t at_ = 0;
  std::vector<size_t> open_;
  Markup out_;
};

}  // namespace

int Markup::CountClass(std::string_view css_class) const {
  int count = 0;
  for (const MarkupElement& element : elements) {
    const auto found = element.attributes.find("class");
    if (found == element.attributes.end()) continue;
    const std::vector<std::string> classes = absl::StrSplit(found->second, ' ');
    count += std::find(classes.begin(), classes.end(), css_class) != classes.end();
  }
  return count;
}

int Markup::CountElements(std::string_view name) const {
  return static_cast<int>(std::count_if(elements.begin(), elements.end(),
                                        [&](const MarkupElement& e) { return e.name == name; }));
}

Markup ParseMarkup(std::string_view page) { return Parser(page).Run(); }

}  // namespace mergeplan
