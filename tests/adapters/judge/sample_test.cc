// `mergeplan sample`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "adapters/network/script.h"
#include "planner/mixture/mixture.h"
#include "planner/mixture/mixture_io.h"
#include "tests/adapters/command/distill_program.h"
#include "tests/adapters/network/support.h"

namespace mergeplan {
namespace {

using network::testing::NetworkOf;
using network::testing::SmallNetwork;
using network::testing::SmallSignature;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class Sample : public Distill {
 protected:
  void SetUp() override {
    Distill::SetUp();
    const network::Signature signature = SmallSignature(2);
    ASSERT_TRUE(
        network::SaveScript(*SmallNetwork(signature, 16, 5), signature, File("a net")).ok());
    ASSERT_TRUE(WriteMixture(*CircleMixture(3, 1.0, 0.3), File("mixture.toml")).ok());
  }
  std::string Net() const { return "script:" + File("a net") + "/model.toml"; }
  std::vector<std::string> Of(const std::string& source, const std::string& output,
                              const std::vector<std::string>& more = {}) const {
    // A second thread would only be waited for.
    std::vector<std::string> a = {"sample", source, "--threads", "1", "-o", File(output)};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  }
  std::vector<double> Drawn(const std::string& name) const {
    const auto array = ReadNpzArray(File(name), "samples");
    EXPECT_TRUE(array.ok()) << array.status();
    return array.ok() ? array->values : std::vector<double>();
  }
  static void ExpectClose(const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-5 * (1 + std::abs(b[k])));
  }
};

const std::vector<std::string> kFour = {"--schedule", "cosine", "--teacher-steps", "4"};

std::vector<std::string> With(std::vector<std::string> a, const std::vector<std::string>& more) {
  a.insert(a.end(), more.begin(), more.end());
  return a;
}

TEST_F(Sample, TheBatchChangesNothingAndTheSeedAll) {
  const auto draw = [&](const std::string& name, const std::vector<std::string>& more) {
    const Outcome outcome = Run(Of(Net(), name, With(kFour, more)));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Drawn(name);
  };
  const std::vector<double> all = draw("all.npz", {"--count", "13"});
  ASSERT_EQ(all.size(), 26u);
  EXPECT_EQ(draw("again.npz", {"--count", "13"}), all);
  EXPECT_EQ(*ReadFile(File("again.npz")), *ReadFile(File("all.npz")));
  for (const char* batch : {"1", "4", "13"}) {
    ExpectClose(draw("batch.npz", {"--count", "13", "--batch", batch}), all);
  }
  ExpectClose(draw("part.npz", {"--count", "3", "--first", "10"}), {all.begin() + 20, all.end()});
  EXPECT_NE(draw("seed.npz", {"--count", "13", "--seed", "1"}), all);
  EXPECT_NE(draw("one.npz", {"--count", "13", "--steps", "1"}), all);
}

TEST_F(Sample, OfARunWithNetworks) {
  const std::string run = File("run");
  std::vector<std::string> distill = {"distill",   "--threads",
                                      "1",         "--strategy",
                                      "boot",      "--teacher-steps",
                                      "4",         "--student-steps",
                                      "2",         "--schedule",
                                      "cosine",    "--batch",
                                      "16",        "--lr",
                                      "0.01",      "--iterations",
                                      "20",        "--held-out-rows",
                                      "16",        "--quiet",
                                      "--seed",    "7",
                                      "--teacher", Net(),
                                      "-o",        run};
  ASSERT_EQ(Run(distill).code, 0);
  const Outcome outcome = Run(Of(run, "student.npz", {"--seed", "7", "--count", "64", "--json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["jumps"], 2);
  EXPECT_THAT(json["source"].get<std::string>(), HasSubstr("boot, 4 steps into 2"));
  // What the run itself drew.
  std::vector<double> expected = Array("run", "samples");
  expected.resize(128);
  ExpectClose(Drawn("student.npz"), expected);
  ASSERT_EQ(Run(Of(run, "teacher.npz", {"--seed", "7", "--teacher"})).code, 0);
  expected = Array("run", "teacher_samples");
  expected.resize(128);
  ExpectClose(Drawn("teacher.npz"), expected);
  // From the same noise as the teacher alone.
  ASSERT_EQ(Run(Of(Net(), "alone.npz", With(kFour, {"--seed", "7"}))).code, 0);
  EXPECT_EQ(Drawn("alone.npz"), Drawn("teacher.npz"));
  EXPECT_EQ(Run(Of(run + "/student", "inside.npz")).code, 0);
  EXPECT_EQ(Run(Of(run + "/student/1-2", "inside.npz")).code, 2);  // one of two blocks
  EXPECT_EQ(Run(Of(run, "no.npz", {"--steps", "2"})).code, 2);
  EXPECT_EQ(Run(Of(run, "no.npz", {"--schedule", "cosine"})).code, 2);
  std::filesystem::remove_all(run + "/student/1-2");
  EXPECT_EQ(Run(Of(run, "no.npz")).code, 1);
}

TEST_F(Sample, OfKnownLaws) {
  // Linear students.
  ASSERT_EQ(Run(Distill::Small("boot", "linear", {"--seed", "3", "--threads", "1"})).code, 0);
  ASSERT_EQ(Run(Of(File("linear"), "l.npz", {"--seed", "3", "--count", "16"})).code, 0);
  ExpectClose(Drawn("l.npz"), Array("linear", "samples"));
  ASSERT_EQ(Run(Of(File("linear"), "t.npz", {"--seed", "3", "--count", "16", "--teacher"})).code,
            0);
  ExpectClose(Drawn("t.npz"), Array("linear", "teacher_samples"));
  // A mixture: three modes on a circle.
  const Outcome outcome =
      Run(Of("mixture:" + File("mixture.toml"), "m.npz",
             {"--schedule", "cosine", "--teacher-steps", "100", "--count", "200"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<double> modes = Drawn("m.npz");
  double radius = 0;
  for (int i = 0; i < 200; ++i) radius += std::hypot(modes[2 * i], modes[2 * i + 1]) / 200;
  EXPECT_NEAR(radius, 1.0, 0.15);
}

TEST_F(Sample, PicturesAreDrawnWhereThereAreAny) {
  network::Signature signature = SmallSignature(16);
  signature.shape = {1, 4, 4};
  signature.scaling = "-1:1";
  ASSERT_TRUE(network::SaveScript(*NetworkOf(signature, "return z * 0.5 + self.w.sum() * 0"),
                                  signature, File("pictures"))
                  .ok());
  const Outcome outcome = Run(
      Of(File("pictures"), "grid.png", With(kFour, {"-o", File("also.npz"), "--columns", "3"})));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(ReadFile(File("grid.png"))->substr(1, 3), "PNG");
  EXPECT_EQ(Drawn("also.npz").size(), 64u * 16);
  const Outcome none = Run(Of(Net(), "grid.png", kFour));
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, AllOf(HasSubstr("are no pictures"), HasSubstr("write an .npz instead")));
}

// What is drawn is a number for each class, so that it shows which was asked for.
TEST_F(Sample, OfClasses) {
  const network::Signature signature =
      network::testing::WithClasses(SmallSignature(3, network::Prediction::kSample), 3);
  ASSERT_TRUE(
      network::SaveScript(
          *NetworkOf(signature, "return label.to(z.dtype).unsqueeze(1).expand_as(z) + 0 * self.w"),
          signature, File("classes"))
          .ok());
  const auto classes = [&](const std::vector<std::string>& more) {
    const Outcome outcome = Run(Of(File("classes"), "c.npz", With(kFour, more)));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::vector<double> drawn = Drawn("c.npz");
    std::vector<double> out;
    for (std::size_t k = 0; k < drawn.size(); k += 3)
      out.push_back(std::round(drawn[k] * 1e4) / 1e4);
    EXPECT_EQ(ReadNpzArray(File("c.npz"), "labels")->values, out);
    return out;
  };
  using List = std::vector<double>;
  EXPECT_EQ(classes({"--count", "5"}), (List{0, 1, 2, 0, 1}));
  EXPECT_EQ(classes({"--count", "5", "--first", "4"}), (List{1, 2, 0, 1, 2}));
  EXPECT_EQ(classes({"--count", "3", "--class", "2"}), (List{2, 2, 2}));
  EXPECT_EQ(classes({"--count", "5", "--class", "2,0", "--batch", "2"}), (List{2, 0, 2, 0, 2}));
  EXPECT_EQ(classes({"--per-class", "2"}), (List{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(classes({"--class", "2,1", "--per-class", "3", "--count", "7"}),
            (List{2, 2, 2, 1, 1, 1, 2}));
  // The student of a run.
  std::vector<std::string> distill = {
      "distill", "--threads",       "1",         "--strategy",
      "boot",    "--teacher-steps", "4",         "--schedule",
      "cosine",  "--batch",         "16",        "--lr",
      "1e-9",    "--iterations",    "2",         "--held-out-rows",
      "8",       "--quiet",         "--teacher", "script:" + File("classes") + "/model.toml",
      "-o",      File("run")};
  const Outcome distilled = Run(distill);
  ASSERT_EQ(distilled.code, 0) << distilled.err;
  ASSERT_EQ(Run(Of(File("run"), "s.npz", {"--class", "1", "--count", "2"})).code, 0);
  for (const double x : Drawn("s.npz")) EXPECT_NEAR(x, 1, 1e-4);
  const auto turns = ReadNpzArray(File("run") + "/result.npz", "sample_labels");
  ASSERT_TRUE(turns.ok()) << turns.status();
  EXPECT_EQ(turns->values[4], 1);
  EXPECT_NEAR(ReadNpzArray(File("run") + "/result.npz", "samples")->values[12], 1, 1e-4);

  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {Of(File("classes"), "a.npz", With(kFour, {"--class", "3"})), "--class 3: expected all, or"},
      {Of(File("classes"), "a.npz", With(kFour, {"--class", "1,,2"})), "--class 1,,2"},
      {Of(Net(), "a.npz", With(kFour, {"--class", "0"})), "--class: what is sampled is told no"},
      {Of(Net(), "a.npz", With(kFour, {"--per-class", "2"})), "--per-class: what is"}};
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, 2) << message;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
}

TEST_F(Sample, SaysWhatIsWrong) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {Of(File("nothing"), "a.npz"), "does not exist"},
      {Of(File(""), "a.npz"), "holds neither a run"},
      {Of("unet:", "a.npz"), "no path"},
      {Of(Net(), "a.npz"), "--schedule: missing"},
      {Of(Net(), "a.npz", With(kFour, {"--steps", "9"})), "--steps 9: expected 1 to 4"},
      {Of(Net(), "a.npz", With(kFour, {"--teacher"})), "--teacher: is of a run"},
      {Of(Net(), "a.npz", With(kFour, {"--basis", "pca"})), "--basis: is of analytic"},
      {Of(Net(), "a.jpg", kFour), "ends in .png or .npz"},
      {Of(Net(), "a.npz", With(kFour, {"-o", File("a.npz")})), "stands there twice"},
      {Of(Net(), "a.npz", {"--schedule", "spiral"}), "--schedule: "},
      {Of(Net(), "a.npz", With(kFour, {"--device", "abacus"})), "--device"},
      {{"sample", Net()}, "-o: missing"},
  };
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, 2) << message;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("mergeplan sample: "), HasSubstr(message)));
  }
  EXPECT_EQ(Run(Of(Net(), "no folder/a.npz", kFour)).code, 1);
  const network::Signature signature = SmallSignature(2);
  ASSERT_TRUE(network::SaveScript(*NetworkOf(signature, "return z * float('nan')"), signature,
                                  File("broken"))
                  .ok());
  const Outcome nan = Run(Of(File("broken"), "nan.npz", kFour));
  EXPECT_EQ(nan.code, 1);
  EXPECT_THAT(nan.err, HasSubstr("sample 0 of seed 0 is not finite"));
  EXPECT_FALSE(std::filesystem::exists(File("nan.npz")));
}

}  // namespace
}  // namespace mergeplan
