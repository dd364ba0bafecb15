// `mergeplan encode -o -`, and `mergeplan analyze --vae`, which starts it: the same numbers as by
// way of a folder, in parts and whole, and nothing kept.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/spectrum/spectrum.h"
#include "tests/adapters/encoding/support.h"
#include "tests/adapters/support.h"
#include "tests/planner/cli/command_line.h"

namespace mergeplan::encoding {
namespace {

namespace fs = std::filesystem;
using mergeplan::testing::TemporaryFolder;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class OnTheFly : public ::testing::Test {
 protected:
  static constexpr std::int64_t kPictures = 75, kSide = 8;
  void SetUp() override {
    SaveSmallVae(folder_.File("a vae"), 3);
    std::vector<double> pixels;
    for (std::int64_t i = 0; i < kPictures * 3 * kSide * kSide; ++i) {
      pixels.push_back(static_cast<double>((i * 7919 + i / 64 * 131) % 256));
    }
    NpzWriter writer;
    writer.Add("images", {kPictures, 3, kSide, kSide}, pixels, NpzWriter::Type::kUint8);
    ASSERT_TRUE(writer.Write(folder_.File("pictures.npz")).ok());
    fs::create_directory(folder_.File("tmp"));
  }
  Outcome Run(const std::string& arguments) {
    return RunMergeplan(arguments, "cd '" + folder_.File(".") + "'; export TMPDIR='" +
                                       folder_.File("tmp") + "' OMP_NUM_THREADS=1");
  }
  // What analyze says, without what names the data and the time.
  json Said(const std::string& arguments) {
    const Outcome run = Run("analyze " + arguments + " --json --threads 1");
    EXPECT_EQ(run.code, 0) << arguments << run.err;
    if (run.code != 0) return {};
    json out = json::parse(run.out);
    for (const char* key : {"source", "source_sha256", "seconds", "data"}) out.erase(key);
    return out;
  }

  TemporaryFolder folder_;
};

TEST_F(OnTheFly, AnalyzeSaysWhatItSaysOfTheFolder) {
  ASSERT_EQ(Run("encode pictures.npz --vae 'a vae' -o latents --threads 1 --quiet").code, 0);
  ASSERT_EQ(Run("encode pictures.npz --vae 'a vae' -o drawn --content sample --raw --limit 50 "
                "--threads 1 --quiet")
                .code,
            0);
  for (const char* how :
       {"--per-channel", "--basis dct --no-gaussianity", "--bootstrap 10 --shrink ledoit-wolf"}) {
    const json folder = Said(std::string("latents ") + how);
    ASSERT_GT(folder.size(), 5u);
    EXPECT_EQ(Said(std::string("pictures.npz --vae 'a vae' ") + how), folder) << how;
  }
  EXPECT_EQ(Said("pictures.npz --vae 'a vae' --content sample --raw --limit 50"), Said("drawn"));
  EXPECT_NE(Said("pictures.npz --vae 'a vae' --raw"), Said("latents"));
  EXPECT_TRUE(fs::is_empty(folder_.File("tmp")));
}

TEST_F(OnTheFly, PartsMergeIntoTheWhole) {
  ASSERT_EQ(Run("analyze pictures.npz --vae 'a vae' --threads 1 -o whole.toml").code, 0);
  std::string parts;
  for (const char* part : {"1", "2", "3"}) {
    const std::string name = std::string("part") + part + ".toml";
    const Outcome run = Run(std::string("analyze pictures.npz --vae 'a vae' --threads 1 --shard ") +
                            part + "/3 -o " + name);
    ASSERT_EQ(run.code, 0) << run.err;
    parts += name + " ";
  }
  const Outcome merged = Run("spectrum merge " + parts + "-o merged.toml");
  ASSERT_EQ(merged.code, 0) << merged.err;
  const auto whole = ReadSpectrum(folder_.File("whole.toml"));
  const auto sum = ReadSpectrum(folder_.File("merged.toml"));
  ASSERT_TRUE(whole.ok() && sum.ok()) << whole.status() << sum.status();
  EXPECT_EQ(sum->samples, kPictures);
  for (std::size_t i = 0; i < whole->diagonal.variances.size(); ++i) {
    EXPECT_NEAR(sum->diagonal.variances[i], whole->diagonal.variances[i],
                1e-6 * whole->diagonal.variances[i]);
  }
  // A part twice, or a part beside the whole, is noticed.
  EXPECT_THAT(Run("spectrum merge part1.toml part2.toml part1.toml").err, HasSubstr("part"));
  EXPECT_NE(Run("spectrum merge part1.toml part2.toml part1.toml").code, 0);
}

TEST_F(OnTheFly, AnEncoderAlone) {
  torch::jit::Module module("Net");
  module.define("def forward(self, x):\n    return torch.avg_pool2d(x, 2)\n");
  module.save(folder_.File("encoder.ts"));
  ASSERT_EQ(Run("encode pictures.npz --encoder encoder.ts -o - > /dev/null").code, 0);
  const Outcome plain = Run("encode pictures.npz --encoder encoder.ts --scale 0:1 --quiet -o -");
  ASSERT_EQ(plain.code, 0) << plain.err;
  ASSERT_TRUE(WriteFileAtomically(folder_.File("latents.npy"), plain.out).ok());
  const auto found = ReadNpy(folder_.File("latents.npy"));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->shape, (std::vector<std::int64_t>{kPictures, 3, 4, 4}));
  const auto pictures = ReadNpzArray(folder_.File("pictures.npz"), "images").value();
  const at::Tensor expected =
      at::avg_pool2d(at::tensor(pictures.values, at::kDouble).view({kPictures, 3, 8, 8}), 2) / 255;
  EXPECT_LT(
      (at::tensor(found->values, at::kDouble) - expected.reshape({-1})).abs().max().item<double>(),
      1e-6);
  const json said = Said("pictures.npz --encoder encoder.ts --scale 0:1 --per-channel");
  EXPECT_NEAR(said["latents_mean"][0].get<double>(), expected.select(1, 0).mean().item<double>(),
              1e-6);
  // Neither factor nor shift: --raw changes nothing.
  EXPECT_EQ(Said("pictures.npz --encoder encoder.ts --scale 0:1 --per-channel --raw"), said);
}

TEST_F(OnTheFly, NoEncoderIsSaid) {
  const auto save = [&](const std::string& name, const std::string& body) {
    torch::jit::Module module("Net");
    module.define("def forward(self, x):\n    " + body + "\n");
    module.save(folder_.File(name));
  };
  save("flat.ts", "return x.flatten(1)");
  save("none.ts", "return torch.conv2d(x, torch.ones(4, 7, 1, 1))");
  ASSERT_TRUE(WriteFileAtomically(folder_.File("text.ts"), "x").ok());
  const auto error = [&](const std::string& name) {
    return Run("encode pictures.npz --encoder " + name + " -o latents").err;
  };
  EXPECT_THAT(error("flat.ts"), HasSubstr("gave [1, 12288] for an image [1, 3, 64, 64], expected"));
  EXPECT_THAT(error("none.ts"), HasSubstr("takes no image of three channels or one"));
  EXPECT_THAT(error("text.ts"), HasSubstr("is no TorchScript"));
  EXPECT_THAT(error("missing.ts"), HasSubstr("missing.ts"));
  EXPECT_FALSE(fs::exists(folder_.File("latents")));
}

TEST_F(OnTheFly, HalvesAndParts) {
  const auto stream = [&](const std::string& how) {
    const Outcome run = Run("encode pictures.npz --vae 'a vae' --threads 1 --quiet -o - " + how);
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(run.err, "");
    EXPECT_TRUE(WriteFileAtomically(folder_.File("x.npy"), run.out).ok());
    return ReadNpy(folder_.File("x.npy")).value();
  };
  const NpyArray whole = stream(""), half = stream("--dtype float16");
  ASSERT_EQ(whole.shape, (std::vector<std::int64_t>{kPictures, 2, 4, 4}));
  ASSERT_EQ(half.shape, whole.shape);
  double apart = 0;
  for (std::size_t i = 0; i < whole.values.size(); ++i) {
    apart = std::max(apart, std::abs(whole.values[i] - half.values[i]));
  }
  EXPECT_LT(apart, 2e-3);
  EXPECT_GT(apart, 0);
  // 75 in 4: 18, 19, 19, 19.
  const NpyArray part = stream("--shard 2/4");
  ASSERT_EQ(part.shape[0], 19);
  for (std::size_t i = 0; i < part.values.size(); ++i) {
    EXPECT_NEAR(part.values[i], whole.values[18 * 32 + i], 1e-6);
  }
}

TEST_F(OnTheFly, ErrorsAreOneLineOfTheCommandThatWasGiven) {
  const auto error = [&](const std::string& arguments, int code) {
    const Outcome run = Run("analyze pictures.npz " + arguments);
    EXPECT_EQ(run.code, code) << arguments << ": " << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, AllOf(StartsWith("mergeplan analyze: "), Not(HasSubstr("/proc/self"))));
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    return run.err;
  };
  EXPECT_THAT(error("--vae nowhere", 1), HasSubstr("nowhere: there is no such file or folder"));
  EXPECT_THAT(error("--vae 'a vae' --size 7", 1), HasSubstr("--size 8x8 makes them so"));
  EXPECT_THAT(error("--vae 'a vae' --size x", 2), HasSubstr("--size x: expected"));
  EXPECT_THAT(error("--vae 'a vae' --array no", 1), HasSubstr("no"));
  EXPECT_THAT(error("--vae 'a vae' --encoder e.ts", 2), HasSubstr("expected one of the two"));
  EXPECT_THAT(error("--vae 'a vae' --content both", 2), HasSubstr("expected mean or sample"));
  EXPECT_THAT(error("--vae 'a vae' --device moon", 2), HasSubstr("--device"));
  EXPECT_THAT(error("--vae 'a vae' --shards 2 --checkpoint c", 2), HasSubstr("mergeplan encode"));
  EXPECT_THAT(error("--vae 'a vae' --skip-nonfinite", 2), HasSubstr("--skip-nonfinite"));
  EXPECT_THAT(error("--size 8", 2), HasSubstr("without --vae"));
  EXPECT_THAT(error("--vae 'a vae' --size 256", 1),
              AllOf(HasSubstr("its latents have 32768 dimensions ([2, 128, 128])"),
                    HasSubstr("--diagonal-only")));
  EXPECT_THAT(error("--vae 'a vae' --limit 1", 1), HasSubstr("pictures.npz encoded by a vae"));
  EXPECT_THAT(Run("encode pictures.npz --vae 'a vae' -o - --content mean,log_variance").err,
              HasSubstr("is two arrays"));
  EXPECT_THAT(Run("encode pictures.npz --vae 'a vae' -o - --json").err, HasSubstr("--json"));
  EXPECT_THAT(Run("encode pictures.npz -o latents").err, HasSubstr("expected --vae or --encoder"));
  EXPECT_THAT(Run("encode pictures.npz --vae 'a vae' -o - --shard 80/90 --limit 2").err,
              HasSubstr("part 80/90 of 2 pictures"));
  // A file that may not grow, before anything is encoded.
  const Outcome full = RunMergeplan(
      "analyze '" + folder_.File("pictures.npz") + "' --vae '" + folder_.File("a vae") + "'",
      "ulimit -f 4");
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.err, AllOf(HasSubstr("the latents take"), HasSubstr("set TMPDIR")));
}

}  // namespace
}  // namespace mergeplan::encoding
