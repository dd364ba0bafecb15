// vae.toml
#include "adapters/vae_latent/sidecar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/base/file.h"
#include "tests/adapters/support.h"

namespace mergeplan::vae {
namespace {

using mergeplan::testing::TemporaryFolder;
using ::testing::HasSubstr;

class VaeSidecar : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WriteFileAtomically(folder_.File("e.ts"), "x").ok());
    ASSERT_TRUE(WriteFileAtomically(folder_.File("d.ts"), "x").ok());
  }
  absl::StatusOr<Sidecar> Read(const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(folder_.File("vae.toml"), text).ok());
    return ReadVaeSidecar(folder_.File("vae.toml"));
  }
  TemporaryFolder folder_;
};

TEST_F(VaeSidecar, SaysAllThatIsNeeded) {
  const auto read = Read(
      "format = 1\nencoder = \"e.ts\"\ndecoder = \"d.ts\"\npixels = \"0:1\"\nimage_channels = 1\n"
      "latent_channels = 32\nreduction = 8\noutput = \"mean,log_variance\"\nscaling_factor = 0.5\n"
      "shift_factor = -1.5\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->encoder, folder_.File("e.ts"));
  EXPECT_EQ(read->decoder, folder_.File("d.ts"));
  EXPECT_EQ(read->pixels, "0:1");
  EXPECT_EQ(read->image_channels, 1);
  EXPECT_EQ(read->latent_channels, 32);
  EXPECT_EQ(read->reduction, 8);
  EXPECT_EQ(read->output, "mean,log_variance");
  EXPECT_EQ(read->scaling_factor, 0.5);
  EXPECT_EQ(read->shift_factor, -1.5);
}

TEST_F(VaeSidecar, NamesWhatIsWrong) {
  const std::string good = "format = 1\nencoder = \"e.ts\"\nlatent_channels = 4\nreduction = 8\n";
  ASSERT_TRUE(Read(good).ok());
  const std::pair<std::string, std::string> bad[] = {
      {"format = 2\nencoder = \"e.ts\"\nlatent_channels = 4\nreduction = 8\n", "format"},
      {"format = 1\nlatent_channels = 4\nreduction = 8\n", "'encoder': is missing"},
      {"format = 1\nencoder = \"no.ts\"\nlatent_channels = 4\nreduction = 8\n", "there is no file"},
      {"format = 1\nencoder = \"e.ts\"\nreduction = 8\n", "latent_channels"},
      {"format = 1\nencoder = \"e.ts\"\nlatent_channels = 0\nreduction = 8\n", "latent_channels"},
      {good + "pixels = \"none\"\n", "LOW:HIGH"},
      {good + "pixels = \"1:0\"\n", "LOW:HIGH"},
      {good + "output = \"both\"\n", "\"mean\" or \"mean,log_variance\""},
      {good + "scaling_factor = 0\n", "expected a positive number"},
      {good + "scaling_factor = nan\n", "scaling_factor"},
      {good + "shift = 1\n", "shift"},
      {good + "encoder = 3\n", "vae.toml"}};
  for (const auto& [text, expected] : bad) {
    const auto read = Read(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(expected)) << text;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr("vae.toml")) << text;
  }
}

}  // namespace
}  // namespace mergeplan::vae
