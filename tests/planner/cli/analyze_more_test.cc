// What analyze says of channels, bases, errors, normality and scaling; parts and mixtures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/mixture/mixture_io.h"
#include "planner/spectrum/spectrum.h"
#include "tests/planner/cli/command_line.h"

namespace mergeplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Pictures of 2 channels of 4 x 4: channel c is 3 c + 2 common + own. Or two modes.
std::string MakePictures(const std::string& folder, double apart = 0) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  std::vector<double> values;
  for (int k = 0; k < 1500; ++k) {
    const double side = apart * (normal(random) > 0 ? 1 : -1) / 2;
    for (int c = 0; c < 2; ++c) {
      const double common = normal(random);
      for (int p = 0; p < 16; ++p) values.push_back(3 * c + 2 * common + normal(random) + side);
    }
  }
  NpzWriter npz;
  npz.Add("z", {1500, 2, 4, 4}, values);
  const std::string path = folder + "/pictures.npz";
  EXPECT_TRUE(npz.Write(path).ok());
  return path;
}

TEST(AnalyzeMore, ChannelsBasesAndErrors) {
  const std::string folder = TestFolder(), data = MakePictures(folder);
  const Outcome run = RunMergeplan("analyze '" + data +
                                   "' --per-channel --bootstrap 50 --shrink oas "
                                   "--scaling-curve -T 8 --schedule cosine -s 1.6 --json");
  ASSERT_EQ(run.code, 0) << run.err;
  const json result = json::parse(run.out);
  ASSERT_EQ(result["latents_std"].size(), 2u);
  EXPECT_NEAR(result["latents_mean"][1], 3, 0.25);
  EXPECT_NEAR(result["latents_std"][0], std::sqrt(5.0), 0.1);
  EXPECT_NEAR(result["scaling"]["scaling_factor"], 1 / std::sqrt(5 + 2.25), 0.01);
  EXPECT_NEAR(result["scaling"]["shift_factor"], 1.5, 0.15);
  EXPECT_EQ(result["scaling"]["errors"], "fourth-moment");
  EXPECT_EQ(result["basis"], "dct");
  EXPECT_EQ(result["bases"]["dct"]["interval"], "bootstrap");
  EXPECT_EQ(result["bases"]["dct"]["standard_errors_from_one"].size(), 32u);
  EXPECT_EQ(result["shrinkage"]["rule"], "oas");
  EXPECT_EQ(result["gaussianity"]["verdict"], "gaussian");
  EXPECT_EQ(result["multimodal"], false);
  const json& curve = result["scaling_curve"];
  EXPECT_EQ(curve.size(), 26u);
  EXPECT_EQ(curve.front()["factor"], 0.125);
  EXPECT_EQ(curve.back()["regime"], "high");
  int marked = 0;
  for (const json& point : curve) {
    marked += point.contains("mark");
    EXPECT_LE(point["plan_lower_bound"], point["objective"]);
    if (point["factor"] == 1.0) {
      EXPECT_EQ(point["recommended_strategy"], result["recommended_strategy"]);
    }
  }
  EXPECT_EQ(marked, 2);
  // A plan along the DCT's axes, and its file.
  const Outcome plan =
      RunMergeplan("plan '" + data + "' --basis dct -T 8 --schedule cosine -s 1 --json");
  ASSERT_EQ(plan.code, 0) << plan.err;
  EXPECT_EQ(RunMergeplan("analyze '" + data + "' --no-gaussianity").code, 0);
}

TEST(AnalyzeMore, LeadingDirectionsInThePlaceOfAll) {
  const std::string folder = TestFolder(), data = MakePictures(folder);
  const auto found = [&](const std::string& flags) {
    const Outcome run = RunMergeplan("analyze '" + data + "' --json " + flags);
    EXPECT_EQ(run.code, 0) << run.err;
    return json::parse(run.out);
  };
  const json all = found("--no-gaussianity")["bases"]["pca"];
  const json kept = found("--no-gaussianity --directions 3 -o '" + folder + "/s.toml' --report '" +
                          folder + "/r.html'"),
             streamed = found("--diagonal-only --directions 3");
  EXPECT_FALSE(kept["bases"].contains("pca"));
  double total = 0, carried = 0;
  for (const json& v : all["variances"]) total += v.get<double>();
  for (int k = 0; k < 3; ++k) {
    const double exact = all["variances"][k];
    carried += exact;
    EXPECT_NEAR(kept["leading"]["variances"][k].get<double>() / exact, 1, 1e-5);
    EXPECT_NEAR(streamed["leading"]["variances"][k].get<double>() / exact, 1, 1e-5);
    EXPECT_LE(kept["leading"]["errors"][k].get<double>(), 1.001e-3 * exact);
    EXPECT_NEAR(
        kept["leading"]["variances_low"][k].get<double>() / all["variances_low"][k].get<double>(),
        1, 1e-2);
  }
  EXPECT_NEAR(kept["leading"]["share"].get<double>(), carried / total, 1e-5);
  EXPECT_EQ(ReadSpectrum(folder + "/s.toml")->leading.variances.size(), 3u);
  EXPECT_THAT(*ReadFile(folder + "/r.html"), HasSubstr("3 of 32 directions were computed"));
  EXPECT_THAT(RunMergeplan("analyze '" + data + "' --diagonal-only --directions 3").out,
              HasSubstr("3 leading principal directions carry"));
  for (const char* wrong : {"--directions 3 --basis pca", "--directions 0",
                            "--directions 3 --diagonal-only --shards 2 --checkpoint parts"}) {
    const Outcome run = RunMergeplan("analyze '" + data + "' " + wrong);
    EXPECT_EQ(run.code, 2) << wrong;
    EXPECT_THAT(run.err, HasSubstr("--directions"));
  }
}

TEST(AnalyzeMore, SeveralModesAreSaidAndFitted) {
  const std::string folder = TestFolder(), data = MakePictures(folder, 12);
  const Outcome run = RunMergeplan("analyze '" + data + "' --json");
  ASSERT_EQ(run.code, 0) << run.err;
  const json result = json::parse(run.out);
  EXPECT_EQ(result["multimodal"], true);
  EXPECT_THAT(result["gaussianity"]["words"].get<std::string>(),
              HasSubstr("mergeplan mixture fit"));
  const std::string mixture = folder + "/mixture.toml";
  const Outcome fit = RunMergeplan("mixture fit '" + data +
                                   "' --covariance low-rank --rank 2 "
                                   "--components 1..3 -o '" +
                                   mixture + "' --json");
  ASSERT_EQ(fit.code, 0) << fit.err;
  EXPECT_EQ(json::parse(fit.out)["components"], 2);
  const auto read = ReadMixture(mixture);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->components(), 2);
  EXPECT_NEAR(read->weights()[0], 0.5, 0.05);
  EXPECT_EQ(RunMergeplan("plan '" + mixture + "' -T 4 --schedule cosine -s 1").code, 0);
}

TEST(AnalyzeMore, PartsAreMergedAndFinishedOnesNotReadAgain) {
  const std::string folder = TestFolder(), data = MakePictures(folder);
  const std::string all = "'" + folder + "/all.toml'";
  ASSERT_EQ(RunMergeplan("analyze '" + data + "' -o " + all).code, 0);
  std::string parts;
  for (int k = 1; k <= 3; ++k) {
    const std::string part = "'" + folder + "/part " + std::to_string(k) + ".toml'";
    ASSERT_EQ(RunMergeplan("analyze '" + data + "' --no-gaussianity --shard " + std::to_string(k) +
                           "/3 -o " + part)
                  .code,
              0);
    parts += " " + part;
  }
  const Outcome merged =
      RunMergeplan("spectrum merge" + parts + " -o '" + folder + "/merged.toml'");
  ASSERT_EQ(merged.code, 0) << merged.err;
  const auto whole = ReadSpectrum(folder + "/all.toml"),
             joined = ReadSpectrum(folder + "/merged.toml");
  ASSERT_TRUE(whole.ok() && joined.ok());
  EXPECT_EQ(joined->samples, 1500);
  for (std::size_t e = 0; e < whole->covariance.size(); ++e) {
    EXPECT_NEAR(joined->covariance[e], whole->covariance[e], 1e-12);
  }
  // Parts that are there are not read: one of them, changed by hand, shows in the result. One that
  // is missing is.
  const std::string points = " --shards 3 --checkpoint '" + folder + "/parts' --json";
  ASSERT_EQ(RunMergeplan("analyze '" + data + "'" + points).code, 0);
  const std::string second = folder + "/parts/part-2-of-3.toml";
  const auto part = ReadSpectrum(second);
  ASSERT_TRUE(part.ok());
  Spectrum changed = *part;
  changed.skipped = 1000;
  ASSERT_TRUE(WriteSpectrum(changed, second).ok());
  std::filesystem::remove(folder + "/parts/part-3-of-3.npz");
  const Outcome again = RunMergeplan("analyze '" + data + "'" + points);
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(json::parse(again.out)["samples"], 1500);
  EXPECT_EQ(json::parse(again.out)["skipped"], 1000);
  EXPECT_THAT(again.err, HasSubstr("part-3-of-3.toml is of other data, another part or damaged"));
}

TEST(AnalyzeMore, AReportIsOnePageOfValidXml) {
  const std::string folder = TestFolder(), data = MakePictures(folder);
  const std::string page = folder + "/a & b.html";
  const Outcome run = RunMergeplan("analyze '" + data +
                                   "' --scaling-curve -T 8 --schedule cosine "
                                   "-s 1.6 --report '" +
                                   page + "'");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("report in "));
  const std::string html = *ReadFile(page);
  for (const std::string part :
       {"Is the data normal?", "Mardia’s kurtosis", "To mean 0 and variance 1",
        "What another scaling factor would change", "Recommended strategy", "Covariance",
        "mergeplan analyze", "a &amp; b.html"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
  EXPECT_THAT(html, testing::Not(HasSubstr("nan")));
  EXPECT_THAT(html, testing::Not(HasSubstr("not finite")));
  // Without covariance, tests and curve.
  const Outcome plain =
      RunMergeplan("analyze '" + data + "' --diagonal-only --report '" + page + "'");
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_THAT(*ReadFile(page), testing::Not(HasSubstr("not finite")));
  EXPECT_EQ(RunMergeplan("analyze '" + data + "' --report '" + folder + "/no/x.html'").code, 2);
}

TEST(AnalyzeMore, TheDiagonalAloneIsThatOfTheWhole) {
  const std::string folder = TestFolder(), data = MakePictures(folder);
  const json whole = json::parse(RunMergeplan("analyze '" + data + "' --json").out);
  const std::string spectrum = folder + "/diagonal.toml";
  const Outcome run = RunMergeplan("analyze '" + data +
                                   "' --diagonal-only --per-channel --json -o '" + spectrum + "'");
  ASSERT_EQ(run.code, 0) << run.err;
  const json diagonal = json::parse(run.out);
  for (int i = 0; i < 32; ++i) {
    EXPECT_NEAR(diagonal["variances"][i], whole["bases"]["diagonal"]["variances"][i], 1e-12);
  }
  EXPECT_NEAR(diagonal["scaling"]["scaling_factor"], whole["scaling"]["scaling_factor"], 1e-12);
  EXPECT_TRUE(diagonal["scaling"]["scaling_factor_error"].is_null());
  EXPECT_TRUE(diagonal["bases"]["diagonal"]["off_diagonal_energy"].is_null());
  EXPECT_EQ(RunMergeplan("plan '" + spectrum + "' -T 8 --schedule cosine -s 1").code, 0);
  for (const std::string flags : {"--basis pca", "--shrink oas", "--bootstrap 9"}) {
    EXPECT_EQ(RunMergeplan("analyze '" + data + "' --diagonal-only " + flags).code, 2);
  }
}

TEST(AnalyzeMore, StandardInputIsReadAsAFileIs) {
  const std::string folder = TestFolder(), data = MakePictures(folder);
  const Outcome file = RunMergeplan("analyze '" + data + "' --json");
  // RunMergeplan itself closes stdin.
  ASSERT_EQ(RunMergeplan("--version", "\"${MERGEPLAN_BIN:-mergeplan}\" analyze - --json < '" +
                                          data + "' > '" + folder + "/piped.json'")
                .code,
            0);
  const json a = json::parse(file.out), b = json::parse(*ReadFile(folder + "/piped.json"));
  EXPECT_EQ(a["variances"], b["variances"]);
  EXPECT_EQ(a["bases"]["pca"]["variances_low"], b["bases"]["pca"]["variances_low"]);
}

TEST(AnalyzeMore, WrongFlagsAreMisuse) {
  const std::string folder = TestFolder(), data = MakePictures(folder);
  for (const auto& [flags, says] :
       {std::pair<std::string, std::string>{"--shrink most", "expected none, oas or ledoit-wolf"},
        {"--bootstrap 1", "at least 2"},
        {"--shard 4/3", "I/N"},
        {"--shard x", "I/N"},
        {"--shards 3", "belong together"},
        {"--scaling-range 1:2", "without --scaling-curve"},
        {"--scaling-curve --scaling-range 2:1", "LOW:HIGH"},
        {"--basis fourier", "diagonal, dct or pca"}}) {
    const Outcome run = RunMergeplan("analyze '" + data + "' " + flags);
    EXPECT_EQ(run.code, 2) << flags;
    EXPECT_THAT(run.err, HasSubstr(says));
  }
  for (const auto& [flags, says] :
       {std::pair<std::string, std::string>{"--components 0", "--components"},
        {"--components 3..2", "--components"},
        {"--covariance odd", "--covariance"},
        {"--rank 2", "without --covariance low-rank"},
        {"--covariance low-rank", "--rank is missing"},
        {"-o x.npz", "ending is for arrays"}}) {
    const Outcome run = RunMergeplan("mixture fit '" + data + "' " + flags);
    EXPECT_EQ(run.code, 2) << flags << run.err;
    EXPECT_THAT(run.err, HasSubstr(says));
  }
  NpzWriter npz;
  npz.Add("z", {20, 2}, std::vector<double>(40, 1));
  ASSERT_TRUE(npz.Write(folder + "/flat.npz").ok());
  EXPECT_THAT(RunMergeplan("analyze '" + folder + "/flat.npz' --basis dct").err,
              HasSubstr("spatial axes"));
  const Outcome same = RunMergeplan("analyze '" + folder + "/flat.npz' --json --scaling-curve");
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_EQ(json::parse(same.out)["scaling"]["scaling_factor"], 0.0);
  EXPECT_EQ(RunMergeplan("mixture fit '" + folder + "/flat.npz'").code, 1);
}

}  // namespace
}  // namespace mergeplan
