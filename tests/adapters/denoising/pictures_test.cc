// Samples side by side.
#include "adapters/denoising/pictures.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "planner/base/file.h"
#include "planner/data/samples.h"
#include "tests/adapters/support.h"

namespace mergeplan {
namespace {

using testing::TemporaryFolder;

TEST(Grid, ClipsAndRefuses) {
  const at::Tensor wild = at::full({1, 3, 2, 2}, 1e30, at::kFloat);
  EXPECT_TRUE(denoising::EncodeGrid(wild, "-1:1").ok());
  EXPECT_FALSE(denoising::EncodeGrid(at::zeros({1, 2, 2, 2}), "-1:1").ok());
  EXPECT_FALSE(denoising::EncodeGrid(at::zeros({4}), "-1:1").ok());
  EXPECT_FALSE(denoising::EncodeGrid(at::zeros({0, 1, 2, 2}), "-1:1").ok());
}

}  // namespace
}  // namespace mergeplan
