#include "tests/planner/report/markup.h"

#include <gmock/gmock.h>

namespace mergeplan {
namespace {

// The other tests lean on the checker, so it has to see faults.
TEST(MarkupTest, AcceptsWhatIsWellFormed) {
  const Markup page = ParseMarkup(
      "<!DOCTYPE html>\n<html lang=\"en\"><p class=\"a b\">x &amp; y<br/></p><p class=\"b\"></p>"
      "</html>\n");
  EXPECT_EQ(page.error, "");
  ASSERT_EQ(page.elements.size(), 4u);
  EXPECT_EQ(page.elements[1].text, "x &amp; y");
  EXPECT_EQ(page.CountClass("a"), 1);
  EXPECT_EQ(page.CountClass("b"), 2);
  EXPECT_EQ(page.CountElements("p"), 2);
  EXPECT_EQ(ParseMarkup("<?xml version=\"1.0\"?>\n<svg></svg>").error, "");
}

TEST(MarkupTest, FindsFaults) {
  for (const char* fault : {"", "text", "<p>", "<p></q>", "<p><b></p></b>", "<p>a & b</p>",
                            "<p>&nbsp;</p>", "<p a=b></p>", "<p a></p>", "<p a=\"1\" a=\"2\"></p>",
                            "<p a=\"<\"></p>", "<p a=\"1\"b=\"2\"/>", "<p/><p/>", "<p a=\"&\"/>",
                            "<p", "<p a=\"", "<script></script>", "</p>", "<p>a < b</p>"}) {
    EXPECT_NE(ParseMarkup(fault).error, "") << fault;
  }
}

}  // namespace
}  // namespace mergeplan
