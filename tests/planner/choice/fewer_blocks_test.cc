#include "planner/choice/fewer_blocks.h"

#include <gmock/gmock.h>

#include "tests/planner/choice/models.h"

namespace mergeplan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

SearchOptions Options(int blocks) {
  SearchOptions options;
  options.student_steps = blocks;
  options.gap = 0;
  options.threads = 1;
  return options;
}

FewerBlocksAnswer Answer(const Model& model, const SearchOptions& options) {
  const absl::StatusOr<SearchResult> asked = Solve(model, options);
  EXPECT_TRUE(asked.ok()) << asked.status();
  absl::StatusOr<FewerBlocksAnswer> answer = TryFewerBlocks(model, *asked, options);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return *std::move(answer);
}

TEST(FewerBlocks, AllUpToEightHalvesAbove) {
  EXPECT_THAT(FewerBlocks(1), IsEmpty());
  EXPECT_THAT(FewerBlocks(4), ElementsAre(3, 2, 1));
  EXPECT_THAT(FewerBlocks(8), ElementsAre(7, 6, 5, 4, 3, 2, 1));
  EXPECT_THAT(FewerBlocks(9), ElementsAre(4, 2, 1));
  EXPECT_THAT(FewerBlocks(16), ElementsAre(8, 4, 2, 1));
}

// Between 1 and min lambda_0 merging the first two blocks never lowers the value (THEOREMS.md, "how
// many blocks"), so that one block is best of all.
TEST(FewerBlocks, OneIsBestWhereConsistencyIs) {
  const Model model = ModelFor("cosine", 16, {1.02, 1.03});
  const FewerBlocksAnswer answer = Answer(model, Options(4));
  ASSERT_EQ(answer.tries.size(), 3U);
  EXPECT_EQ(answer.left_out, 0);
  double before = Solve(model, Options(4))->objective;
  for (const FewerBlocksAnswer::Try& one : answer.tries) {
    EXPECT_TRUE(one.better && one.certain) << one.student_steps;
    EXPECT_LT(one.result.objective, before);
    before = one.result.objective;
  }
  ASSERT_NE(answer.Best(), nullptr);
  EXPECT_EQ(answer.Best()->student_steps, 1);
  EXPECT_EQ(answer.Best()->result.plan.student_steps(), 1);
}

// Where no step amplifies and BOOT is best, more blocks never are worse.
TEST(FewerBlocks, NoneIsBetterUpToOne) {
  const FewerBlocksAnswer answer = Answer(ModelFor("cosine", 16, {0.1, 0.6}), Options(4));
  EXPECT_EQ(answer.tries.size(), 3U);
  EXPECT_EQ(answer.Best(), nullptr);
}

TEST(FewerBlocks, WithoutTimeNothingIsTried) {
  const Model model = ModelFor("cosine", 16, {0.1, 0.6});
  SearchOptions options = Options(4);
  const SearchResult asked = *Solve(model, options);
  options.time_limit_seconds = -1;  // used up
  const absl::StatusOr<FewerBlocksAnswer> late = TryFewerBlocks(model, asked, options);
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_THAT(late->tries, IsEmpty());
  EXPECT_EQ(late->left_out, 3);
  options.time_limit_seconds = 10;
  options.interrupted = [] { return true; };
  EXPECT_EQ(TryFewerBlocks(model, asked, options)->left_out, 3);
}

}  // namespace
}  // namespace mergeplan
