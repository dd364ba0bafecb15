// Tiles against a plain loop over numbers.
#include "adapters/vae_latent/tiling.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace mergeplan::vae {
namespace {

using ::testing::HasSubstr;

// An "autoencoder" whose latent is the mean of each 2x2 block plus what it knows of the whole
// picture, so that tiles differ from the whole and every seam shows.
class BlockMeans : public Vae {
 public:
  BlockMeans() {
    about_.image_channels = 1;
    about_.latent_channels = 1;
    about_.reduction = 2;
  }
  const VaeDescription& description() const override { return about_; }
  absl::StatusOr<Encoded> Encode(const at::Tensor& image) override {
    ++calls;
    most = std::max(most, image.size(2) * image.size(3));
    return Encoded{at::avg_pool2d(image, 2) + image.mean(), {}};
  }
  absl::StatusOr<at::Tensor> Decode(const at::Tensor& latent) override {
    ++calls;
    return at::repeat_interleave(at::repeat_interleave(latent, 2, 2), 2, 3) + latent.mean();
  }
  at::Tensor Scale(const at::Tensor& z) const override { return z; }
  at::Tensor Unscale(const at::Tensor& z) const override { return z; }

  int calls = 0;
  std::int64_t most = 0;

 private:
  VaeDescription about_;
};

// What diffusers does, number by number: every tile is blended with those above and before it,
// which are blended themselves, and its first `limit` rows and columns are taken.
at::Tensor Slowly(const at::Tensor& x, std::int64_t tile, std::int64_t stride, std::int64_t limit,
                  std::int64_t extent, const std::function<at::Tensor(const at::Tensor&)>& map,
                  std::int64_t height, std::int64_t width) {
  at::Tensor out = at::full({1, 1, height, width}, std::nan(""), at::kDouble);
  std::vector<std::vector<at::Tensor>> tiles;
  std::int64_t top = 0;
  for (std::int64_t i = 0; i < x.size(2); i += stride) {
    tiles.emplace_back();
    std::int64_t left = 0, rows = 0;
    for (std::int64_t j = 0; j < x.size(3); j += stride) {
      at::Tensor t = map(x.slice(2, i, i + tile).slice(3, j, j + tile)).clone();
      auto value = t.accessor<double, 4>();
      const std::size_t at_row = tiles.size() - 1, at_column = tiles.back().size();
      if (at_row > 0) {
        const at::Tensor& up = tiles[at_row - 1][at_column];
        const std::int64_t e = std::min({up.size(2), t.size(2), extent});
        for (std::int64_t y = 0; y < e; ++y) {
          for (std::int64_t k = 0; k < t.size(3); ++k) {
            const double w = static_cast<double>(y) / static_cast<double>(e);
            value[0][0][y][k] =
                up[0][0][up.size(2) - e + y][k].item<double>() * (1 - w) + value[0][0][y][k] * w;
          }
        }
      }
      if (at_column > 0) {
        const at::Tensor& before = tiles[at_row][at_column - 1];
        const std::int64_t e = std::min({before.size(3), t.size(3), extent});
        for (std::int64_t k = 0; k < e; ++k) {
          for (std::int64_t y = 0; y < t.size(2); ++y) {
            const double w = static_cast<double>(k) / static_cast<double>(e);
            value[0][0][y][k] = before[0][0][y][before.size(3) - e + k].item<double>() * (1 - w) +
                                value[0][0][y][k] * w;
          }
        }
      }
      tiles.back().push_back(t);
      const at::Tensor cut = t.slice(2, 0, limit).slice(3, 0, limit);
      out.slice(2, top, top + cut.size(2)).slice(3, left, left + cut.size(3)).copy_(cut);
      left += cut.size(3);
      rows = cut.size(2);
    }
    top += rows;
  }
  return out;
}

at::Tensor Picture(std::int64_t height, std::int64_t width) {
  return at::arange(height * width, at::kDouble).view({1, 1, height, width}).mul(0.37).sin() * 3;
}

TEST(Tiles, EqualThePlainLoop) {
  for (const auto& [height, width] : {std::pair{32, 32}, {40, 24}, {18, 50}, {16, 16}, {22, 16}}) {
    SCOPED_TRACE(::testing::Message() << height << " x " << width);
    const at::Tensor x = Picture(height, width);
    BlockMeans vae;
    const auto fast = EncodeInTiles(vae, x, {.pixels = 16});
    ASSERT_TRUE(fast.ok()) << fast.status();
    if (height == 16 && width == 16) {
      EXPECT_EQ(vae.calls, 1);
      continue;
    }
    EXPECT_LE(vae.most, 16 * 16);
    BlockMeans again;
    const at::Tensor slow = Slowly(
        x, 16, 12, 6, 2, [&](const at::Tensor& t) { return again.Encode(t)->mean; }, height / 2,
        width / 2);
    EXPECT_LT((fast->mean - slow).abs().max().item<double>(), 1e-12);

    const at::Tensor z = fast->mean;
    const auto back = DecodeInTiles(vae, z, {.pixels = 16});
    ASSERT_TRUE(back.ok()) << back.status();
    const at::Tensor slow_back = Slowly(
        z, 8, 6, 12, 4, [&](const at::Tensor& t) { return *again.Decode(t); }, height, width);
    EXPECT_LT((*back - slow_back).abs().max().item<double>(), 1e-12);
  }
}

TEST(Tiles, WithoutOverlapTheyStandSideBySide) {
  BlockMeans vae;
  const at::Tensor x = Picture(16, 16);
  const at::Tensor out = EncodeInTiles(vae, x, {.pixels = 8, .overlap = 0})->mean;
  EXPECT_EQ(vae.calls, 4);
  EXPECT_TRUE(
      at::allclose(out.slice(2, 4).slice(3, 4), vae.Encode(x.slice(2, 8).slice(3, 8))->mean));
}

TEST(Tiles, SayWhatTheyCannotBe) {
  BlockMeans vae;
  const at::Tensor x = Picture(16, 16);
  EXPECT_THAT(std::string(EncodeInTiles(vae, x, {.pixels = 7}).status().message()),
              HasSubstr("a tile of 7 pixels, expected a multiple of 2"));
  for (const double overlap : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(
        std::string(DecodeInTiles(vae, x, {.pixels = 8, .overlap = overlap}).status().message()),
        HasSubstr("expected 0 or more and less than 1"));
  }
}

}  // namespace
}  // namespace mergeplan::vae
