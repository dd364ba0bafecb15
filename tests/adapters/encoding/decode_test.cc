// `mergeplan decode`: against the network itself and against diffusers, from every kind of input.
#include "adapters/encoding/decode.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "adapters/encoding/decode_command.h"
#include "adapters/encoding/encode.h"
#include "adapters/vae_latent/autoencoder.h"
#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/data/samples.h"
#include "tests/adapters/encoding/support.h"
#include "tests/adapters/support.h"
#include "tests/adapters/unet/support.h"

namespace mergeplan::encoding {
namespace {

using mergeplan::testing::SharedDiffusers;
using mergeplan::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

class DecodeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SaveSmallVae(folder_.File("vae"), 5);
    for (int i = 0; i < 7 * 2 * 4 * 4; ++i) latents_.push_back(std::sin(0.37 * i));
    Write("latents.npz", "z", {7, 2, 4, 4}, latents_);
    arguments_.input = folder_.File("latents.npz");
    arguments_.vae = folder_.File("vae");
    arguments_.outputs = {folder_.File("pictures.npz")};
    arguments_.dtype = "float32";
    arguments_.batch = 3;
    arguments_.threads = 1;
  }
  void Write(const std::string& name, const std::string& array, std::vector<std::int64_t> shape,
             const std::vector<double>& values) {
    NpzWriter writer;
    writer.Add(array, shape, values, NpzWriter::Type::kFloat32);
    ASSERT_TRUE(writer.Write(folder_.File(name)).ok());
  }
  absl::StatusOr<DecodeResult> Run() { return Decode(arguments_, nullptr); }
  at::Tensor Pictures(const std::string& name = "pictures.npz") {
    const auto array = ReadNpzArray(folder_.File(name), "pictures");
    EXPECT_TRUE(array.ok()) << array.status();
    if (!array.ok()) return at::zeros({1});
    return at::tensor(array->values, at::kDouble).view(array->shape);
  }
  // What the network itself gives for all at once.
  at::Tensor DecodedByHand(bool raw = false) {
    const auto net = vae::Autoencoder::Load(folder_.File("vae")).value();
    const at::Tensor z = at::tensor(latents_, at::kDouble).view({-1, 2, 4, 4}).to(at::kFloat);
    return net->Decode(raw ? z : net->Unscale(z)).value().detach().to(at::kDouble);
  }
  static double Apart(const at::Tensor& a, const at::Tensor& b) {
    EXPECT_EQ(a.sizes(), b.sizes());
    return a.sizes() == b.sizes() ? (a - b).abs().max().item<double>() : 1e9;
  }

  TemporaryFolder folder_;
  std::vector<double> latents_;
  DecodeArguments arguments_;
};

TEST_F(DecodeTest, GivesWhatTheNetworkGives) {
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->samples, 7);
  EXPECT_EQ(result->picture_shape, (std::vector<std::int64_t>{3, 8, 8}));
  EXPECT_LT(Apart(Pictures(), DecodedByHand()), 1e-5);
  arguments_.raw = true;
  ASSERT_TRUE(Run().ok());
  EXPECT_LT(Apart(Pictures(), DecodedByHand(true)), 1e-5);
  EXPECT_GT(Apart(DecodedByHand(), DecodedByHand(true)), 1e-2);
}

TEST_F(DecodeTest, BytesAreWhatAFileOfPicturesHolds) {
  arguments_.dtype = "uint8";
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(ReadNpzArray(folder_.File("pictures.npz"), "pictures")->dtype, "|u1");
  const at::Tensor expected = ((DecodedByHand() + 1) * 127.5).clamp(0, 255).round();
  EXPECT_LE(Apart(Pictures(), expected), 1);  // where a half is rounded
  EXPECT_LT((Pictures() - expected).abs().mean().item<double>(), 0.01);
  // They come back as pixels.
  EXPECT_TRUE(OpenSamples(folder_.File("pictures.npz"), {}).value()->is_pixels());
}

TEST_F(DecodeTest, TakesAPartOfThem) {
  arguments_.first = 2;
  arguments_.count = 4;
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->samples, 4);
  EXPECT_LT(Apart(Pictures(), DecodedByHand().narrow(0, 2, 4)), 1e-5);
  arguments_.count = 100;
  EXPECT_EQ(Run()->samples, 5);
  arguments_.first = 7;
  EXPECT_THAT(std::string(Run().status().message()), HasSubstr("--first 7"));
}

TEST_F(DecodeTest, FlatLatentsAndThoseOfSample) {
  // Three arrays, as `mergeplan sample` writes them.
  NpzWriter writer;
  writer.Add("samples", {7, 32}, latents_, NpzWriter::Type::kFloat32);
  writer.Add("seed", {1}, {{1.0}}, NpzWriter::Type::kInt64);
  writer.Add("first", {1}, {{0.0}}, NpzWriter::Type::kInt64);
  ASSERT_TRUE(writer.Write(folder_.File("samples.npz")).ok());
  arguments_.input = folder_.File("samples.npz");
  ASSERT_TRUE(Run().ok());
  EXPECT_LT(Apart(Pictures(), DecodedByHand()), 1e-5);
  arguments_.shape = "2x2x8";
  const auto wide = Run();
  ASSERT_TRUE(wide.ok()) << wide.status();
  EXPECT_EQ(wide->picture_shape, (std::vector<std::int64_t>{3, 4, 16}));
  for (const char* shape : {"2x4", "2x4x4x1", "ax4x4", "2x4x04", ""}) {
    arguments_.shape = shape;
    EXPECT_THAT(std::string(Run().status().message()), HasSubstr("--shape"));
  }
  arguments_.shape = "4x4x2";
  EXPECT_THAT(std::string(Run().status().message()), HasSubstr("expected [2, h, w]"));
  arguments_.shape.reset();
  Write("odd.npz", "z", {2, 30}, std::vector<double>(60, 1));
  arguments_.input = folder_.File("odd.npz");
  EXPECT_THAT(std::string(Run().status().message()),
              AllOf(HasSubstr("latents have the shape [30]"), HasSubstr("--shape CxHxW")));
  Write("many.npz", "z", {2, 3, 4, 4}, std::vector<double>(96, 1));
  arguments_.input = folder_.File("many.npz");
  EXPECT_THAT(std::string(Run().status().message()), HasSubstr("expected [2, h, w]"));
}

TEST_F(DecodeTest, UndoesWhatEncodeDid) {
  EncodeArguments encode;
  std::vector<double> pixels;
  for (int i = 0; i < 5 * 3 * 8 * 8; ++i) pixels.push_back((i * 7919) % 256);
  NpzWriter writer;
  writer.Add("images", {5, 3, 8, 8}, pixels, NpzWriter::Type::kUint8);
  ASSERT_TRUE(writer.Write(folder_.File("images.npz")).ok());
  encode.input = folder_.File("images.npz");
  encode.vae = arguments_.vae;
  encode.part_samples = 2;
  encode.threads = 1;
  const auto net = vae::Autoencoder::Load(folder_.File("vae")).value();
  const at::Tensor x = at::tensor(pixels, at::kDouble).view({5, 3, 8, 8}).div(127.5).sub(1);
  const at::Tensor expected =
      net->Decode(net->Encode(x.to(at::kFloat))->mean)->detach().to(at::kDouble);
  // The folder says whether its latents are scaled.
  for (const bool raw : {false, true}) {
    encode.raw = raw;
    encode.output = folder_.File(raw ? "raw latents" : "latents");
    ASSERT_TRUE(Encode(encode, nullptr).ok());
    arguments_.input = encode.output;
    const auto result = Run();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->raw, raw);
    EXPECT_FALSE(result->other_network);
    EXPECT_LT(Apart(Pictures(), expected), 1e-5);
  }
  std::ofstream(folder_.File("vae") + "/config.json", std::ios::app) << "\n";
  EXPECT_TRUE(Run()->other_network);
}

TEST_F(DecodeTest, IsThatOfDiffusers) {
  const std::string root = SharedDiffusers("vaes");
  SKIP_WITHOUT_DIFFUSERS(root, "vaes");
  for (const std::string name : {"kl", "kl-nomid-shift", "tiny"}) {
    SCOPED_TRACE(name);
    const std::string io = root + "/" + name + "/io.npz";
    const bool scaled = name != "tiny";
    const NpyArray z = ReadNpzArray(io, scaled ? "scaled" : "latents").value();
    Write("z.npz", "z", z.shape, z.values);
    arguments_.input = folder_.File("z.npz");
    arguments_.vae = root + "/" + name;
    const auto result = Run();
    ASSERT_TRUE(result.ok()) << result.status();
    const NpyArray decoded = ReadNpzArray(io, "decoded_f64").value();
    const at::Tensor expected = at::tensor(decoded.values, at::kDouble).view(decoded.shape);
    EXPECT_LT(Apart(Pictures(), expected) / expected.abs().max().item<double>(), 1e-5);
  }
}

TEST_F(DecodeTest, AGridIsAPicture) {
  arguments_.outputs.push_back(folder_.File("grid.png"));
  arguments_.grid = 4;
  ASSERT_TRUE(Run().ok());
  const std::string png = ReadFile(folder_.File("grid.png")).value();
  EXPECT_EQ(png.substr(1, 3), "PNG");
  // Two by two of 64 pixels each with a gap of two.
  EXPECT_EQ(static_cast<unsigned char>(png[19]), 130);
  EXPECT_EQ(static_cast<unsigned char>(png[23]), 130);
}

TEST_F(DecodeTest, SaysWhatIsWrongAndLeavesNothing) {
  const auto message = [&] { return std::string(Run().status().message()); };
  arguments_.outputs = {};
  EXPECT_THAT(message(), HasSubstr("-o: missing"));
  arguments_.outputs = {folder_.File("a.jpg")};
  EXPECT_THAT(message(), HasSubstr("ends in .png or .npz or .npy"));
  arguments_.outputs = {folder_.File("none/a.npz")};
  EXPECT_THAT(message(), HasSubstr("cannot be written"));
  arguments_.outputs = {folder_.File("pictures.npz")};
  arguments_.dtype = "int8";
  EXPECT_THAT(message(), HasSubstr("--dtype int8"));
  arguments_.dtype = "uint8";
  arguments_.device = "gpu";
  EXPECT_THAT(message(), HasSubstr("--device"));
  arguments_.device = "cpu";
  arguments_.vae = folder_.File("none");
  EXPECT_THAT(message(), HasSubstr("there is no such file or folder"));
  arguments_.vae = folder_.File("vae");
  latents_[2 * 32 + 1] = 3e38;
  Write("large.npz", "z", {7, 2, 4, 4}, latents_);
  arguments_.input = folder_.File("large.npz");
  EXPECT_THAT(message(), HasSubstr("sample 2 becomes a picture with numbers that are not finite"));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("pictures.npz")));
}

TEST_F(DecodeTest, TheCommandSaysWhatItDid) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(RunDecodeCommand(arguments_, {.quiet = true}), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              HasSubstr("7 latents [2, 4, 4] become pictures [3, 8, 8] by AutoencoderKL"));
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(RunDecodeCommand(arguments_, {.quiet = true, .json = true}), 0);
  EXPECT_EQ(nlohmann::json::parse(::testing::internal::GetCapturedStdout())["samples"], 7);
  arguments_.dtype = "x";
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunDecodeCommand(arguments_, {.quiet = true}), 2);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("mergeplan decode: --dtype x"));
}

TEST_F(DecodeTest, NeverWritesOverItsInput) {
  const std::string before = ReadFile(arguments_.input).value();
  for (const std::string& output : {arguments_.input, folder_.File("./latents.npz")}) {
    arguments_.outputs = {output};
    EXPECT_THAT(Run().status().message(), HasSubstr("is the input, which would be overwritten"));
  }
  EXPECT_EQ(ReadFile(arguments_.input).value(), before);
  arguments_.outputs = {folder_.File("a.npz"), folder_.File("./a.npz")};
  EXPECT_THAT(Run().status().message(), HasSubstr("stands there twice"));
}

TEST_F(DecodeTest, AShapeIsForFlatLatentsOnly) {
  arguments_.shape = "2x2x8";
  EXPECT_THAT(Run().status().message(), HasSubstr("latents have the shape [2, 4, 4]"));
  arguments_.shape = "2x4x4";
  EXPECT_TRUE(Run().ok());
}

}  // namespace
}  // namespace mergeplan::encoding
