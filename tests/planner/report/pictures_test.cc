#include "planner/report/pictures.h"

#include <gmock/gmock.h>
#include <png.h>

#include <cmath>
#include <random>

#include "absl/strings/escaping.h"
#include "planner/report/png.h"
#include "tests/planner/report/example.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

struct Decoded {
  int width = 0, height = 0, channels = 0;
  std::vector<std::uint8_t> pixels;
};

Decoded DecodePng(const std::string& bytes) {
  Decoded out;
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_memory(&image, bytes.data(), bytes.size())) return out;
  out.channels = (image.format & PNG_FORMAT_FLAG_COLOR) ? 3 : 1;
  image.format = out.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  out.width = static_cast<int>(image.width);
  out.height = static_cast<int>(image.height);
  out.pixels.resize(PNG_IMAGE_SIZE(image));
  if (!png_image_finish_read(&image, nullptr, out.pixels.data(), 0, nullptr)) out.pixels.clear();
  return out;
}

Decoded DecodeUri(const std::string& uri) {
  const std::string head = "data:image/png;base64,";
  EXPECT_EQ(uri.substr(0, head.size()), head);
  std::string bytes;
  EXPECT_TRUE(absl::Base64Unescape(uri.substr(head.size()), &bytes));
  return DecodePng(bytes);
}

TEST(PngTest, DecodesBackToTheSamePixels) {
  std::mt19937 bits(5);
  for (const int channels : {1, 3}) {
    for (const auto& [width, height] : {std::pair{1, 1}, {7, 3}, {64, 200}}) {
      std::vector<std::uint8_t> pixels(static_cast<size_t>(width) * height * channels);
      for (std::uint8_t& p : pixels) p = static_cast<std::uint8_t>(bits());
      const auto png = EncodePng(width, height, channels, pixels);
      ASSERT_TRUE(png.ok());
      const Decoded decoded = DecodePng(*png);
      EXPECT_EQ(decoded.width, width);
      EXPECT_EQ(decoded.height, height);
      EXPECT_EQ(decoded.channels, channels);
      EXPECT_EQ(decoded.pixels, pixels);
    }
  }
}

TEST(PngTest, WrongSizesAreErrors) {
  const std::vector<std::uint8_t> pixels(12);
  EXPECT_TRUE(EncodePng(4, 3, 1, pixels).ok());
  EXPECT_FALSE(EncodePng(4, 3, 3, pixels).ok());
  EXPECT_FALSE(EncodePng(6, 1, 2, pixels).ok());
  EXPECT_FALSE(EncodePng(0, 3, 1, {}).ok());
}

TEST(ColourTest, DivergesFromWhite) {
  EXPECT_EQ(ColourText(DivergingColour(0)), "#fafafa");
  EXPECT_EQ(DivergingColour(5), DivergingColour(1));
  EXPECT_EQ(DivergingColour(NAN), DivergingColour(0));
  EXPECT_GT(DivergingColour(1)[0], DivergingColour(1)[2]);    // red
  EXPECT_LT(DivergingColour(-1)[0], DivergingColour(-1)[2]);  // blue
}

TEST(HeatmapTest, SmallMatricesAreEnlarged) {
  const auto map = DrawHeatmap({2, -1, -1, 0.5}, 2);
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->limit, 2);
  EXPECT_EQ(map->cell, 1);
  EXPECT_EQ(map->side, 2);
  const Decoded picture = DecodeUri(map->data_uri);
  EXPECT_EQ(picture.width, 256);
  const auto pixel = [&](int x, int y) {
    const std::uint8_t* p = &picture.pixels[(static_cast<size_t>(y) * picture.width + x) * 3];
    return Colour{p[0], p[1], p[2]};
  };
  EXPECT_EQ(pixel(0, 0), DivergingColour(1));
  EXPECT_EQ(pixel(127, 127), DivergingColour(1));
  EXPECT_EQ(pixel(128, 0), DivergingColour(-0.5));
  EXPECT_EQ(pixel(255, 255), DivergingColour(0.25));
}

TEST(HeatmapTest, LargeMatricesAreAveraged) {
  const int d = 451;  // two entries a cell, and half a cell at the end
  std::vector<double> covariance(static_cast<size_t>(d) * d, 0.0);
  for (int k = 0; k < d; ++k) covariance[static_cast<size_t>(k) * d + k] = 3;
  const auto map = DrawHeatmap(covariance, d);
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->cell, 2);
  EXPECT_EQ(map->side, 226);
  EXPECT_EQ(map->limit, 3);  // the last cell is one entry
  const Decoded picture = DecodeUri(map->data_uri);
  EXPECT_EQ(picture.width, 226);
  EXPECT_EQ((Colour{picture.pixels[0], picture.pixels[1], picture.pixels[2]}),
            DivergingColour(0.5));
  EXPECT_FALSE(DrawHeatmap(covariance, d + 1).ok());
  EXPECT_TRUE(DrawHeatmap(std::vector<double>(9, 0.0), 3).ok());
}

std::vector<double> Ones(const Example& example) {
  return std::vector<double>(example.spectrum.mean.size(), 1.0);
}

TEST(SamplesTest, AStudentThatForgetsTheNoiseDrawsTheMean) {
  Example example({.shape = {6, 4}, .teacher_steps = 4, .strategies = {"boot"}});
  example.input.strategies[0].value.assign(24, 0.0);
  const auto grid = DrawSamples(example.input, example.plan, Ones(example), Ones(example));
  ASSERT_TRUE(grid.ok());
  EXPECT_EQ(grid->kind, SampleKind::kPictures);
  ASSERT_THAT(grid->rows, SizeIs(3));
  EXPECT_EQ(grid->rows[2].label, "boot");
  const Decoded strip = DecodeUri(grid->rows[2].data_uri);
  EXPECT_EQ(strip.channels, 1);
  EXPECT_EQ(strip.height % 6, 0);
  const int factor = strip.height / 6;
  const int step = (strip.width + 7) / 8;  // one picture and one gap, roughly
  EXPECT_GE(step, 4 * factor);
  for (int y = 0; y < 6; ++y) {
    for (int x = 0; x < 4; ++x) {
      const double grey = std::clamp((example.spectrum.mean[y * 4 + x] + 1) * 127.5, 0.0, 255.0);
      EXPECT_NEAR(strip.pixels[static_cast<size_t>(y * factor) * strip.width + x * factor], grey,
                  0.51);
    }
  }
}

TEST(SamplesTest, NoiseIsSharedRotatedScaledAndSeeded) {
  Example example({.shape = {5, 5}, .teacher_steps = 4, .strategies = {"boot"}, .data_scale = 0.5});
  const std::vector<double> ones = Ones(example);
  std::vector<double> one_axis(25, 0.0);
  one_axis[1] = 2;
  example.input.strategies[0].value = one_axis;
  const auto grid = DrawSamples(example.input, example.plan, ones, ones);
  ASSERT_TRUE(grid.ok());
  const auto data = [&](int row, int sample, int k) {
    return grid->rows[row].x[sample][k] * 2 / 255 - 1 - example.spectrum.mean[k];
  };
  double sum = 0;
  for (int s = 0; s < grid->samples; ++s) {
    // The student keeps twice the second principal coordinate of what V = 1 draws.
    double coordinate = 0;
    for (int k = 0; k < 25; ++k) coordinate += data(1, s, k) * example.spectrum.vectors[25 + k];
    for (int k = 0; k < 25; ++k) {
      EXPECT_NEAR(data(2, s, k), 2 * coordinate * example.spectrum.vectors[25 + k], 1e-9);
      sum += data(1, s, k) * data(1, s, k);
    }
  }
  // 200 squares of normal numbers times data_scale^2 = 1/4.
  EXPECT_NEAR(sum / 200, 0.25, 0.08);

  const auto again = DrawSamples(example.input, example.plan, ones, ones);
  EXPECT_EQ(again->rows[2].data_uri, grid->rows[2].data_uri);
  example.input.seed += 1;
  const auto other = DrawSamples(example.input, example.plan, ones, ones);
  EXPECT_NE(other->rows[2].data_uri, grid->rows[2].data_uri);
  EXPECT_THAT(grid->rows[2].difference_uri, Not(IsEmpty()));
  EXPECT_THAT(grid->rows[1].difference_uri, IsEmpty());
}

TEST(SamplesTest, ShapesDecideHowTheyAreShown) {
  const auto grid_of = [](const std::vector<std::int64_t>& shape) {
    const Example example({.shape = shape, .teacher_steps = 3, .strategies = {"vanilla"}});
    auto grid = DrawSamples(example.input, example.plan, Ones(example), Ones(example));
    EXPECT_TRUE(grid.ok());
    return *grid;
  };
  EXPECT_EQ(DecodeUri(grid_of({3, 4, 4}).rows[0].data_uri).channels, 3);
  EXPECT_EQ(DecodeUri(grid_of({1, 4, 4}).rows[0].data_uri).channels, 1);
  const SampleGrid latents = grid_of({4, 4, 4});
  EXPECT_EQ(DecodeUri(latents.rows[0].data_uri).channels, 1);
  EXPECT_THAT(latents.explanation, HasSubstr("first channel"));
  EXPECT_EQ(grid_of({12}).kind, SampleKind::kLines);
  EXPECT_EQ(grid_of({1, 12}).kind, SampleKind::kLines);
  EXPECT_EQ(grid_of({1}).kind, SampleKind::kNone);
}

TEST(SamplesTest, WhatCannotBeTurnedBackIsSaid) {
  Example example({.shape = {4, 4}, .teacher_steps = 3});
  example.plan.basis = "given";
  auto grid = DrawSamples(example.input, example.plan, Ones(example), Ones(example));
  ASSERT_TRUE(grid.ok());
  EXPECT_EQ(grid->kind, SampleKind::kNone);
  EXPECT_THAT(grid->explanation, HasSubstr("without a basis"));
  example.input.spectrum = nullptr;
  grid = DrawSamples(example.input, example.plan, Ones(example), Ones(example));
  EXPECT_THAT(grid->explanation, HasSubstr("No spectrum"));
}

TEST(SamplesTest, UnscaledDataIsShownBetweenItsEnds) {
  const Example example({.shape = {4, 4}, .teacher_steps = 3, .scaling = "none"});
  const auto grid = DrawSamples(example.input, example.plan, Ones(example), Ones(example));
  ASSERT_TRUE(grid.ok());
  EXPECT_THAT(grid->explanation, HasSubstr("Black is"));
  EXPECT_EQ(grid->unit, "data units");
  const Decoded strip = DecodeUri(grid->rows[0].data_uri);
  EXPECT_THAT(strip.pixels, ::testing::Contains(0));
  EXPECT_THAT(strip.pixels, ::testing::Contains(255));
}

}  // namespace
}  // namespace mergeplan
