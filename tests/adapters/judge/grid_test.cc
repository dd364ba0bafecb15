#include "adapters/judge/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace mergeplan::judge {
namespace {

using ::testing::HasSubstr;

struct Decoded {
  int width = 0, height = 0;
  std::vector<std::uint8_t> grey;
  int At(int x, int y) const { return grey[static_cast<std::size_t>(y) * width + x]; }
};

// By libpng alone.
Decoded Decode(const std::string& png) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  EXPECT_NE(png_image_begin_read_from_memory(&image, png.data(), png.size()), 0);
  image.format = PNG_FORMAT_GRAY;
  Decoded out{static_cast<int>(image.width), static_cast<int>(image.height), {}};
  out.grey.resize(PNG_IMAGE_SIZE(image));
  EXPECT_NE(png_image_finish_read(&image, nullptr, out.grey.data(), 0, nullptr), 0);
  return out;
}

TEST(Grid, SamplesStandInReadingOrder) {
  std::vector<float> samples;
  for (int s = 0; s < 5; ++s) samples.insert(samples.end(), 4, -1 + 0.4F * static_cast<float>(s));
  GridOptions options;
  options.columns = 3;
  options.least_width = 4;  // each pixel becomes 2 x 2
  const auto png = GridPng(samples, {1, 2, 2}, "-1:1", options);
  ASSERT_TRUE(png.ok()) << png.status();
  const Decoded found = Decode(*png);
  EXPECT_EQ(found.width, 3 * 4 + 2 * 2);
  EXPECT_EQ(found.height, 2 * 4 + 2);
  for (int s = 0; s < 5; ++s) {
    EXPECT_EQ(found.At(s % 3 * 6 + 1, s / 3 * 6 + 3), 51 * s) << s;
  }
  EXPECT_EQ(found.At(4, 0), 255);   // a gap
  EXPECT_EQ(found.At(12, 6), 255);  // no sixth sample
}

TEST(Grid, ValuesBeyondThePixelsAreCutAndOthersAreStretched) {
  const std::vector<float> samples = {-7, 0, 0, 9};
  const Decoded cut = Decode(*GridPng(samples, {2, 2}, "-1:1"));
  EXPECT_EQ(cut.At(0, 0), 0);
  EXPECT_EQ(cut.At(cut.width - 1, 0), 128);
  EXPECT_EQ(cut.At(cut.width - 1, cut.height - 1), 255);
  const Decoded stretched = Decode(*GridPng(samples, {2, 2}, "none"));
  EXPECT_EQ(stretched.At(stretched.width - 1, 0), 112);  // 7 of 16
  const Decoded constant = Decode(*GridPng({3, 3, 3, 3}, {2, 2}, ""));
  EXPECT_EQ(constant.At(0, 0), 0);
}

TEST(Grid, SaysWhatIsWrong) {
  EXPECT_THAT(GridPng({1, 2}, {2}, "none").status().message(), HasSubstr("no pictures"));
  EXPECT_THAT(GridPng({}, {2, 2}, "none").status().message(), HasSubstr("one sample or more"));
  EXPECT_THAT(GridPng({1, 2, 3}, {2, 2}, "none").status().message(), HasSubstr("multiple of 4"));
  EXPECT_THAT(CheckPicture({4, 8, 8}).message(), HasSubstr("[4, 8, 8]"));
  EXPECT_TRUE(CheckPicture({3, 8, 8}).ok());
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_THAT(GridPng({1, 2, 3, 4, 1, inf, 3, 4}, {2, 2}, "none").status().message(),
              HasSubstr("sample 1 holds"));
  EXPECT_FALSE(GridPng({1, 2, 3, 4}, {2, 2}, "high:low").ok());
}

}  // namespace
}  // namespace mergeplan::judge
