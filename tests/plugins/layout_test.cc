// The layout of ABI 1.0 as C++ sees it (fixtures/c_plugin.c checks it as C), and what can only be
// checked at run time.
#include "tests/plugins/fixtures/layout_1_0.h"

#include <cstddef>

#include "gtest/gtest.h"

namespace mergeplan {
namespace {

TEST(Layout, HasLooksAtTheWholeField) {
  mergeplan_merge merge = {};
  merge.struct_size = offsetof(mergeplan_merge, children);
  EXPECT_TRUE(MERGEPLAN_HAS(mergeplan_merge, &merge, child_count));
  EXPECT_FALSE(MERGEPLAN_HAS(mergeplan_merge, &merge, children));
  merge.struct_size += sizeof(void*) - 1;
  EXPECT_FALSE(MERGEPLAN_HAS(mergeplan_merge, &merge, children));
  merge.struct_size += 1;
  EXPECT_TRUE(MERGEPLAN_HAS(mergeplan_merge, &merge, children));
}

TEST(Layout, EveryStructBeginsWithItsSize) {
  EXPECT_EQ(offsetof(mergeplan_plugin, struct_size), 0u);
  EXPECT_EQ(offsetof(mergeplan_plugin, abi_major), 4u);
  EXPECT_EQ(offsetof(mergeplan_plugin, abi_minor), 8u);
}

}  // namespace
}  // namespace mergeplan
