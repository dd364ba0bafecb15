// Teachers over latents: --data of pictures is encoded first, and samples are decoded before they
// are judged. The oracle is the same by single commands: encode, sample, decode.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "planner/base/file.h"
#include "planner/data/npz.h"
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

constexpr char kProblem[] =
    " --teacher-steps 8 --schedule cosine --threads 1 --quiet --json --teacher "
    "analytic:spectrum.toml";

class LatentTeacher : public ::testing::Test {
 protected:
  void SetUp() override {
    SaveSmallVae(folder_.File("a vae"), 3);
    Pictures("pictures.npz", 8);
    Script("features.ts", "(self, x)", "torch.avg_pool2d(x, 4).flatten(1)");
    const Outcome run = Run("analyze pictures.npz --vae 'a vae' --basis pca -o spectrum.toml");
    ASSERT_EQ(run.code, 0) << run.err;
  }
  void Pictures(const std::string& name, std::int64_t side) {
    constexpr std::int64_t kCount = 60;
    std::vector<double> pixels;
    for (std::int64_t i = 0; i < kCount * 3 * side * side; ++i) {
      pixels.push_back(static_cast<double>((i * 7919 + i / 64 * 131) % 256));
    }
    NpzWriter writer;
    writer.Add("images", {kCount, 3, side, side}, pixels, NpzWriter::Type::kUint8);
    ASSERT_TRUE(writer.Write(folder_.File(name)).ok());
  }
  void Script(const std::string& name, const std::string& arguments, const std::string& value) {
    torch::jit::Module module("Net");
    module.register_parameter("w", at::full({1}, 0.5).set_requires_grad(true), false);
    module.define("def forward" + arguments + ":\n    return " + value + "\n");
    module.save(folder_.File(name));
  }
  Outcome Run(const std::string& arguments) {
    return RunMergeplan(arguments, "cd '" + folder_.File(".") + "'; export OMP_NUM_THREADS=1 " +
                                       "XDG_CACHE_HOME='" + folder_.File("cache") + "'");
  }
  json Json(const std::string& arguments) {
    const Outcome run = Run(arguments);
    EXPECT_EQ(run.code, 0) << arguments << ": " << run.err;
    return run.code == 0 ? json::parse(run.out) : json();
  }
  // Samples of a run, decoded, in the network's units.
  at::Tensor Decoded(const std::string& run, const std::string& how) {
    EXPECT_EQ(Run("sample " + run + how + " --count 40 -o s.npz").code, 0);
    const Outcome decoded = Run("decode s.npz --vae 'a vae' --dtype float32 -o p.npz --threads 1");
    EXPECT_EQ(decoded.code, 0) << decoded.err;
    const auto array = ReadNpzArray(folder_.File("p.npz"), "pictures").value();
    return at::tensor(array.values, at::kDouble).view(array.shape);
  }

  TemporaryFolder folder_;
};

TEST_F(LatentTeacher, WhatIsJudgedIsDecoded) {
  const std::string problem = std::string(kProblem) + " --lr 0.002 --iterations 40 ";
  const json bench = Json("bench" + problem +
                          "--strategies vanilla,boot --trials 1 --budget per-merge --judge "
                          "pictures.npz --vae 'a vae' --features features.ts --judge-samples 40 "
                          "--judge-cache none -o comparison");
  ASSERT_EQ(bench["rows"].size(), 2u);
  EXPECT_THAT(bench["judged"]["about"].get<std::string>(),
              AllOf(HasSubstr("60 of pictures.npz"), HasSubstr("decoded by a vae")));
  ASSERT_EQ(Run("distill --strategy boot" + problem + "-o run").code, 0);
  const at::Tensor student = Decoded("run", ""), teacher = Decoded("run", " --teacher");
  // Pixels of [-1, 1] are two wide.
  const double expected =
      (student - teacher).flatten(1).square().mean(1).sqrt().mean().item<double>() / 2;
  ASSERT_GT(expected, 1e-4);
  const json& boot = bench["rows"][1]["samples"];
  EXPECT_EQ(bench["rows"][1]["strategy"], "boot");
  EXPECT_NEAR(boot["distance_from_teacher"]["mean"], expected, 1e-5 * expected + 1e-9);
  EXPECT_FALSE(bench["teacher_samples"].contains("distance_from_teacher"));
  for (const json* samples : {&boot, &bench["teacher_samples"]}) {
    EXPECT_GT((*samples)["frechet_distance"]["mean"].get<double>(), 0);
    EXPECT_EQ((*samples)["samples"], 40);
    EXPECT_TRUE(fs::exists(folder_.File("comparison/" + (*samples)["grid"].get<std::string>())));
  }
  const std::string page = ReadFile(folder_.File("comparison/bench.html")).value();
  EXPECT_THAT(page, HasSubstr("from the teacher’s samples"));
  const std::string csv = ReadFile(folder_.File("comparison/bench.csv")).value();
  EXPECT_THAT(csv, HasSubstr(",recall,distance_from_teacher,trials,error\n"));
  // Judged against pictures of another size, which are brought to the decoder's; here they are the
  // teacher's own, so that what stands for the reference is not what is measured.
  Pictures("large.npz", 16);
  const json large = Json("bench" + problem +
                          "--strategies boot --trials 1 --budget per-merge --judge large.npz --vae "
                          "'a vae' --features features.ts --judge-samples 40 --judge-cache none");
  EXPECT_EQ(large["rows"][0]["samples"]["distance_from_teacher"], boot["distance_from_teacher"]);
}

TEST_F(LatentTeacher, FrechetDistanceIsThatOfTheDecodedPictures) {
  // The reference is the teacher's own decoded samples from the same seed, judged as pictures
  // themselves: no distance is left.
  const std::string problem = std::string(kProblem) + " --lr 0.002 --iterations 40 ";
  ASSERT_EQ(Run("distill --strategy vanilla" + problem + "-o run").code, 0);
  ASSERT_EQ(Run("sample run --teacher --count 40 -o t.npz").code, 0);
  ASSERT_EQ(Run("decode t.npz --vae 'a vae' --dtype float32 -o own.npz --threads 1").code, 0);
  const json bench =
      Json("bench" + problem +
           "--strategies vanilla --trials 1 --budget per-merge --judge own.npz --vae "
           "'a vae' --features features.ts --judge-samples 40 --judge-cache none");
  EXPECT_NEAR(bench["teacher_samples"]["frechet_distance"]["mean"], 0, 1e-6);
  EXPECT_EQ(bench["teacher_samples"]["precision"]["mean"], 1);
}

TEST_F(LatentTeacher, DataOfPicturesIsEncodedOnceAndKept) {
  Script("net.ts", "(self, z, time)", "z * self.w");
  ASSERT_TRUE(WriteFileAtomically(folder_.File("net.toml"),
                                  "format = 1\nprediction = \"sample\"\nshape = [2, 4, 4]\n"
                                  "[time]\nkind = \"level/T\"\n")
                  .ok());
  const auto distill = [&](const std::string& data, const std::string& out) {
    return Run(
        "distill --strategy vanilla --teacher-steps 4 --schedule cosine --threads 1 --json "
        "--teacher analytic:spectrum.toml --student-network script:net.toml --iterations 5 "
        "--fit-iterations 5 --batch 8 --inputs data --data " +
        data + " -o " + out);
  };
  ASSERT_EQ(Run("encode pictures.npz --vae 'a vae' -o latents --quiet").code, 0);
  const Outcome by_hand = distill("latents", "by_hand");
  ASSERT_EQ(by_hand.code, 0) << by_hand.err;
  const Outcome first = distill("pictures.npz --vae 'a vae' --latents kept", "first");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("60 latents of pictures.npz in kept, 60 of them encoded now"));
  const auto achieved = [](const Outcome& run) {
    return json::parse(run.out)["achieved_error"].get<double>();
  };
  EXPECT_EQ(achieved(first), achieved(by_hand));
  const Outcome again = distill("pictures.npz --vae 'a vae' --latents kept", "again");
  EXPECT_THAT(again.err, HasSubstr("in kept, 0 of them encoded now"));
  EXPECT_EQ(achieved(again), achieved(first));
  // Without a folder they lie in the user's cache, one folder for each way of encoding.
  ASSERT_EQ(distill("pictures.npz --vae 'a vae'", "cached").code, 0);
  const Outcome rows = distill("pictures.npz --vae 'a vae' --data-rows 20", "rows");
  EXPECT_THAT(rows.err, HasSubstr("20 latents of pictures.npz"));
  const Outcome cached = distill("pictures.npz --vae 'a vae'", "cached2");
  EXPECT_THAT(cached.err, AllOf(HasSubstr("cache/mergeplan/latents/"), HasSubstr(", 0 of them")));
  EXPECT_EQ(achieved(cached), achieved(first));
}

TEST_F(LatentTeacher, SaysWhatBelongsTogether) {
  const std::string problem = std::string(kProblem) + " --lr 0.002 --iterations 4 ";
  const auto error = [&](const std::string& arguments) {
    const Outcome run = Run(arguments);
    EXPECT_EQ(run.code, 2) << arguments << ": " << run.err;
    return run.err;
  };
  EXPECT_THAT(error("distill --strategy boot --vae 'a vae'" + problem + "-o x"),
              HasSubstr("--vae: has no effect without pictures to encode"));
  EXPECT_THAT(error("distill --strategy boot --latents y" + problem + "-o x"),
              HasSubstr("--latents: has no effect without --vae"));
  EXPECT_THAT(error("distill --strategy boot --vae v --encoder e" + problem + "-o x"),
              HasSubstr("expected one of the two"));
  EXPECT_THAT(error("bench --encoder e --judge pictures.npz" + problem),
              HasSubstr("--encoder: has no effect"));
  ASSERT_EQ(Run("encode pictures.npz --vae 'a vae' -o latents --quiet").code, 0);
  EXPECT_THAT(error("bench --data latents --vae 'a vae' --judge pictures.npz" + problem),
              HasSubstr("--data latents: holds latents already, which --vae would encode; expected "
                        "the pictures that they were made of, with --latents latents"));
  // Latents of another network.
  EXPECT_THAT(Run("bench --strategies vanilla --judge pictures.npz --features features.ts --vae "
                  "nowhere" +
                  problem)
                  .err,
              HasSubstr("nowhere: there is no such file or folder"));
  EXPECT_FALSE(fs::exists(folder_.File("x")));
}

}  // namespace
}  // namespace mergeplan::encoding
