// `mergeplan encode`: the cache against the network itself, parts, shards, stops, wrong inputs.
#include "adapters/encoding/encode.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "adapters/encoding/cache.h"
#include "adapters/encoding/encode_command.h"
#include "adapters/vae_latent/autoencoder.h"
#include "adapters/vae_latent/pictures.h"
#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/data/samples.h"
#include "tests/adapters/encoding/support.h"
#include "tests/adapters/support.h"

namespace mergeplan::encoding {
namespace {

namespace fs = std::filesystem;
using mergeplan::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kSamples = 11, kSide = 8;

class EncodeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MakeVae("vae", 1);
    std::vector<double> pixels;
    for (std::int64_t i = 0; i < kSamples * 3 * kSide * kSide; ++i) {
      pixels.push_back(static_cast<double>((i * 7919) % 256));
    }
    WritePixels("pictures.npz", {kSamples, 3, kSide, kSide}, pixels);
    arguments_.input = folder_.File("pictures.npz");
    arguments_.vae = folder_.File("vae");
    arguments_.output = folder_.File("latents of it");
    arguments_.batch = 3;
    arguments_.part_samples = 4;
    arguments_.threads = 1;
  }
  void MakeVae(const std::string& name, std::uint64_t seed) {
    SaveSmallVae(folder_.File(name), seed);
  }
  void WritePixels(const std::string& name, std::vector<std::int64_t> shape,
                   const std::vector<double>& values) {
    NpzWriter writer;
    writer.Add("images", shape, values, NpzWriter::Type::kUint8);
    ASSERT_TRUE(writer.Write(folder_.File(name)).ok());
  }
  absl::StatusOr<EncodeResult> Run() { return Encode(arguments_, nullptr); }
  // All samples of the cache.
  std::vector<double> Read(const std::string& array = "latents", std::string folder = "") {
    if (folder.empty()) folder = arguments_.output;
    const auto source = OpenSamples(folder + "/part-*.safetensors", {.array = array});
    EXPECT_TRUE(source.ok()) << source.status();
    if (!source.ok()) return {};
    std::vector<double> all(1000);
    std::vector<double> rows;
    for (;;) {
      const int got = (*source)->Read(absl::MakeSpan(all)).value();
      if (got == 0) return rows;
      rows.insert(rows.end(), all.begin(), all.begin() + got * (*source)->dimensions());
    }
  }
  // What the network itself says of all pictures at once, float64 pixels to float32.
  at::Tensor Direct(bool variance = false) {
    const auto net = vae::Autoencoder::Load(arguments_.vae).value();
    const auto source = OpenSamples(arguments_.input, {}).value();
    std::vector<double> rows(kSamples * 3 * kSide * kSide);
    EXPECT_EQ(source->Read(absl::MakeSpan(rows)).value(), kSamples);
    const at::Tensor x =
        at::tensor(rows, at::kDouble).view({kSamples, 3, kSide, kSide}).div(127.5).sub(1);
    const vae::Encoded out = net->Encode(x.to(at::kFloat)).value();
    return (variance ? out.log_variance : net->Scale(out.mean)).detach().to(at::kDouble);
  }
  static double Distance(const std::vector<double>& found, const at::Tensor& expected) {
    EXPECT_EQ(static_cast<std::int64_t>(found.size()), expected.numel());
    if (static_cast<std::int64_t>(found.size()) != expected.numel()) return 1e9;
    return (at::tensor(found, at::kDouble) - expected.reshape({-1})).abs().max().item<double>();
  }

  TemporaryFolder folder_;
  EncodeArguments arguments_;
};

TEST_F(EncodeTest, GivesWhatTheNetworkGives) {
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->finished);
  EXPECT_EQ(result->samples, kSamples);
  EXPECT_EQ(result->encoded, kSamples);
  EXPECT_EQ(result->latent_shape, (std::vector<std::int64_t>{2, 4, 4}));
  EXPECT_LT(Distance(Read(), Direct()), 1e-6);
  const std::string about = ReadFile(arguments_.output + "/latents.toml").value();
  EXPECT_THAT(about, AllOf(HasSubstr("samples = 11"), HasSubstr("AutoencoderKL")));
}

TEST_F(EncodeTest, RawLatentsAndVariancesAndHalves) {
  arguments_.content = "mean,log_variance";
  arguments_.raw = true;
  ASSERT_TRUE(Run().ok());
  EXPECT_LT(Distance(Read("latents"), Direct() / 0.25 + 0.5), 1e-5);
  EXPECT_LT(Distance(Read("log_variance"), Direct(true)), 1e-5);
  // In the denoiser's units the deviation is scaled as the latents are.
  arguments_.raw = false;
  arguments_.output = folder_.File("scaled");
  ASSERT_TRUE(Run().ok());
  EXPECT_LT(Distance(Read("log_variance"), Direct(true) + 2 * std::log(0.25)), 1e-5);
  arguments_.dtype = "float16";
  arguments_.content = "mean";
  arguments_.output = folder_.File("halves");
  ASSERT_TRUE(Run().ok());
  EXPECT_LT(Distance(Read(), Direct()), 2e-3);
  EXPECT_GT(Distance(Read(), Direct()), 0);
}

TEST_F(EncodeTest, SamplesDependOnSeedAndNumberOnly) {
  arguments_.content = "sample";
  ASSERT_TRUE(Run().ok());
  const std::vector<double> first = Read();
  arguments_.batch = 5;
  arguments_.part_samples = 7;
  arguments_.output = folder_.File("other cuts");
  ASSERT_TRUE(Run().ok());
  const std::vector<double> cut = Read();
  ASSERT_EQ(cut.size(), first.size());
  double apart = 0;
  for (std::size_t i = 0; i < cut.size(); ++i) apart = std::max(apart, std::abs(cut[i] - first[i]));
  EXPECT_LT(apart, 1e-6);
  // They scatter about the mean as the variance says.
  const at::Tensor deviation = (Direct(true) / 2).exp() * 0.25;
  const at::Tensor noise =
      (at::tensor(first, at::kDouble) - Direct().reshape({-1})) / deviation.reshape({-1});
  EXPECT_NEAR(noise.mean().item<double>(), 0, 0.25);
  EXPECT_NEAR(noise.std().item<double>(), 1, 0.2);
  arguments_.seed = 1;
  arguments_.output = folder_.File("other seed");
  ASSERT_TRUE(Run().ok());
  EXPECT_NE(Read(), cut);
}

TEST_F(EncodeTest, GoesOnFromThePartsThatAreThere) {
  ASSERT_TRUE(Run().ok());
  const std::vector<double> whole = Read();
  // As a kill leaves it: a part is missing, one is damaged, the end was never said.
  fs::remove(arguments_.output + "/latents.toml");
  fs::remove(arguments_.output + "/part-000001.safetensors");
  fs::resize_file(arguments_.output + "/part-000002.safetensors", 90);
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->encoded, 4 + 3);
  EXPECT_TRUE(result->finished);
  EXPECT_EQ(Read(), whole);
  const auto nothing = Run();
  ASSERT_TRUE(nothing.ok()) << nothing.status();
  EXPECT_EQ(nothing->encoded, 0);
  EXPECT_TRUE(nothing->finished);
  // A part under the name of another is made anew.
  fs::copy_file(arguments_.output + "/part-000000.safetensors",
                arguments_.output + "/part-000001.safetensors",
                fs::copy_options::overwrite_existing);
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(Read(), whole);
}

TEST_F(EncodeTest, ShardsMakeTheSameParts) {
  ASSERT_TRUE(Run().ok());
  const std::vector<double> whole = Read();
  arguments_.output = folder_.File("shards");
  for (const char* shard : {"2/2", "1/2"}) {
    arguments_.shard = shard;
    const auto result = Run();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->finished, std::string(shard) == "1/2");
    EXPECT_EQ(result->encoded, std::string(shard) == "1/2" ? 4 + 3 : 4);
  }
  EXPECT_EQ(Read(), whole);
}

TEST_F(EncodeTest, ALimitIsAsIfTheInputEndedThere) {
  ASSERT_TRUE(Run().ok());
  const std::vector<double> whole = Read();
  const std::size_t each = whole.size() / kSamples;
  for (const std::int64_t limit : {1, 4, 6, 11, 50}) {
    arguments_.limit = limit;
    arguments_.output = folder_.File(std::to_string(limit));
    const auto result = Run();
    ASSERT_TRUE(result.ok()) << result.status();
    const std::int64_t expected = std::min(limit, kSamples);
    EXPECT_EQ(result->samples, expected);
    EXPECT_TRUE(result->finished);
    const std::vector<double> read = Read();
    ASSERT_EQ(read.size(), each * static_cast<std::size_t>(expected));
    for (std::size_t i = 0; i < read.size(); ++i) EXPECT_NEAR(read[i], whole[i], 1e-6);
    EXPECT_EQ(Run()->encoded, 0);
  }
}

TEST_F(EncodeTest, OtherLatentsAreNotMixed) {
  ASSERT_TRUE(Run().ok());
  MakeVae("other", 2);
  arguments_.vae = folder_.File("other");
  auto other = Run();
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(std::string(other.status().message()),
              AllOf(HasSubstr("latents of it"), HasSubstr("vae_sha256 was"), HasSubstr("-o")));
  arguments_.vae = folder_.File("vae");
  arguments_.raw = true;
  EXPECT_THAT(std::string(Run().status().message()),
              HasSubstr("units was 'of the denoiser' (now 'of the encoder')"));
}

TEST_F(EncodeTest, PicturesOfOtherKinds) {
  std::vector<double> pixels(5 * 7 * 7);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<double>(i % 251);
  WritePixels("grey.npz", {5, 7, 7}, pixels);
  arguments_.input = folder_.File("grey.npz");
  auto result = Run();
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(std::string(result.status().message()),
              AllOf(HasSubstr("pictures of 7 x 7"), HasSubstr("--size 8x8")));
  arguments_.size = "8";
  result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->grey_repeated);
  EXPECT_EQ(result->image_shape, (std::vector<std::int64_t>{3, 8, 8}));
  WritePixels("two.npz", {5, 2, 8, 8}, std::vector<double>(5 * 2 * 8 * 8, 3));
  arguments_.input = folder_.File("two.npz");
  arguments_.output = folder_.File("two");
  EXPECT_THAT(std::string(Run().status().message()), HasSubstr("pictures have 2 channels"));
  WritePixels("rows.npz", {5, 8}, std::vector<double>(5 * 8, 3));
  arguments_.input = folder_.File("rows.npz");
  EXPECT_THAT(std::string(Run().status().message()), HasSubstr("expected pictures"));
}

TEST_F(EncodeTest, ResizingKeepsAConstantAndTheRange) {
  std::vector<double> pixels(4 * 4, 200);
  WritePixels("flat.npz", {1, 4, 4}, pixels);
  const auto source = OpenSamples(folder_.File("flat.npz"), {}).value();
  vae::VaeDescription about;
  about.image_channels = 1;
  about.reduction = 2;
  const auto flat = vae::Pictures::Plan(*source, "flat.npz", about, {10, 6}, "none");
  ASSERT_TRUE(flat.ok()) << flat.status();
  const at::Tensor out = flat->Make(pixels, 1);
  EXPECT_EQ(out.sizes(), at::IntArrayRef({1, 1, 10, 6}));
  EXPECT_LT((out - 200).abs().max().item<double>(), 1e-3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = i % 2 == 0 ? 0 : 255;
  const at::Tensor sharp = flat->Make(pixels, 1);
  EXPECT_GE(sharp.min().item<double>(), 0);
  EXPECT_LE(sharp.max().item<double>(), 255);
}

TEST_F(EncodeTest, SaysWhatIsWrong) {
  const auto message = [&] { return std::string(Run().status().message()); };
  arguments_.content = "both";
  EXPECT_THAT(message(), HasSubstr("--content both: expected"));
  arguments_.content = "mean";
  arguments_.dtype = "int8";
  EXPECT_THAT(message(), HasSubstr("--dtype int8"));
  arguments_.dtype = "float32";
  for (const char* shard : {"0/2", "3/2", "x", "1/0", "1/2/3"}) {
    arguments_.shard = shard;
    EXPECT_THAT(message(), HasSubstr(std::string("--shard ") + shard));
  }
  arguments_.shard.clear();
  for (const char* size : {"0", "8x", "x8", "8x8x8", "-8", "99999999"}) {
    arguments_.size = size;
    EXPECT_THAT(message(), HasSubstr(std::string("--size ") + size));
  }
  arguments_.size.reset();
  for (const std::vector<std::int64_t>& wanted :
       {std::vector<std::int64_t>{3, 4, 4}, {2, 8, 2}, {31}, {2, 4, 4, 1}}) {
    arguments_.wanted_shape = wanted;
    EXPECT_THAT(message(),
                HasSubstr("become latents of the shape [2, 4, 4], expected the network's, ["));
  }
  arguments_.wanted_shape.clear();
  arguments_.vae = folder_.File("none");
  EXPECT_THAT(message(), HasSubstr("there is no such file or folder"));
  arguments_.vae = arguments_.input;
  EXPECT_THAT(message(), HasSubstr("is neither a folder nor a .toml"));
  EXPECT_FALSE(fs::exists(arguments_.output));
}

TEST_F(EncodeTest, LatentsOfTheWantedShape) {
  arguments_.wanted_shape = {2, 4, 4};
  ASSERT_TRUE(Run().ok());
  arguments_.wanted_shape = {32};
  EXPECT_TRUE(Run().ok());
}

TEST_F(EncodeTest, LatentsThatAreNotFiniteStopIt) {
  arguments_.scale = "-1e38:1e38";
  const auto result = Run();
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(std::string(result.status().message()),
              AllOf(HasSubstr("sample 0 becomes a latent with"), HasSubstr("--scale")));
}

TEST_F(EncodeTest, AForeignFolderIsLeftAlone) {
  fs::create_directories(arguments_.output);
  std::ofstream(arguments_.output + "/part-000000.safetensors") << "mine";
  const auto result = Run();
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("but no encode.toml"));
  EXPECT_EQ(ReadFile(arguments_.output + "/part-000000.safetensors").value(), "mine");
}

TEST_F(EncodeTest, TheCommandSaysWhatItDid) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(RunEncodeCommand(arguments_, {.quiet = true}), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("[3, 8, 8] becomes [2, 4, 4] by AutoencoderKL"),
                    HasSubstr("11 samples, 11 of them encoded now"), HasSubstr("is complete")));
  arguments_.content = "x";
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunEncodeCommand(arguments_, {.quiet = true}), 2);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("mergeplan encode: --content x"));
}

TEST_F(EncodeTest, NeverWritesIntoAFolderOfSomethingElse) {
  const std::string folder = folder_.File("mine");
  fs::create_directories(folder);
  std::ofstream(folder + "/picture.png") << "mine";
  arguments_.output = folder;
  EXPECT_THAT(Run().status().message(),
              AllOf(HasSubstr("holds 'picture.png'"), HasSubstr("nothing was changed")));
  EXPECT_FALSE(fs::exists(folder + "/encode.toml"));
}

TEST_F(EncodeTest, AFailedRunDoesNotStandInTheWayOfTheNextOne) {
  NpzWriter writer;
  writer.Add("images", {1, 3, kSide, kSide}, std::vector<double>(3 * kSide * kSide, std::nan("")),
             NpzWriter::Type::kFloat32);
  ASSERT_TRUE(writer.Write(folder_.File("broken.npz")).ok());
  const std::string good = arguments_.input;
  arguments_.input = folder_.File("broken.npz");
  EXPECT_FALSE(Run().ok());
  arguments_.input = good;
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->finished);
  EXPECT_LT(Distance(Read(), Direct()), 1e-6);
}

TEST_F(EncodeTest, NumbersOutsideOfTheRangeOfTheNetworkAskForAScale) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < 3 * kSide * kSide; ++i) values.push_back(static_cast<double>(i));
  NpzWriter writer;
  writer.Add("images", {1, 3, kSide, kSide}, values, NpzWriter::Type::kFloat32);
  ASSERT_TRUE(writer.Write(folder_.File("wide.npz")).ok());
  arguments_.input = folder_.File("wide.npz");
  EXPECT_THAT(
      Run().status().message(),
      AllOf(HasSubstr("hold values from 0 to 191, expected -1 to 1"), HasSubstr("--scale -1:1")));
  arguments_.scale = "-1:1";
  EXPECT_TRUE(Run().ok());
}

TEST_F(EncodeTest, ALimitThatIsLeftOutIsNamed) {
  arguments_.limit = 4;
  ASSERT_TRUE(Run().ok());
  arguments_.limit.reset();
  EXPECT_THAT(Run().status().message(), HasSubstr("limit was '4' (now none)"));
}

}  // namespace
}  // namespace mergeplan::encoding
