// The classifier, features and the judge.
#include "adapters/judge/judge.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "adapters/judge/classifier_training.h"
#include "adapters/judge/sample_noise.h"
#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "tests/adapters/network/support.h"
#include "tests/adapters/support.h"

namespace mergeplan::judge {
namespace {

using ::testing::HasSubstr;

bool Never() { return false; }

class Judging : public ::testing::Test {
 protected:
  // A second thread would only be waited for.
  void SetUp() override { at::set_num_threads(1); }
  std::string File(const std::string& name) const { return folder_.File(name); }
  // A network of features as people have it.
  std::string Script(const std::string& body, const std::string& name = "features.ts") const {
    torch::jit::Module module("Features");
    module.define("def forward(self, x):\n    " + body + "\n");
    module.save(File(name));
    return File(name);
  }
  // Pictures of two classes: the upper or the lower half is bright.
  static Labelled Halves(std::int64_t n, std::uint64_t seed) {
    Labelled out;
    out.pixels = (*SampleNoise(seed, 0, n, {1, 8, 8}) * 20 + 60).clamp(0, 255);
    out.labels = at::arange(n, at::kLong).remainder(2);
    for (std::int64_t i = 0; i < n; ++i) out.pixels[i].narrow(1, i % 2 * 4, 4).add_(120);
    return out;
  }
  testing::TemporaryFolder folder_;
};

TEST_F(Judging, AClassifierLearnsAndReadsBack) {
  const Labelled data = Halves(128, 1), other = Halves(100, 2);
  ClassifierTraining options;
  options.epochs = 6;
  options.batch = 16;
  options.lr = 2e-2;
  auto trained = TrainClassifier(data, "halves", options);
  ASSERT_TRUE(trained.ok()) << trained.status();
  EXPECT_EQ(trained->config().classes, 2);
  EXPECT_GT(*Accuracy(*trained, other), 0.95);
  // The same again, bit by bit.
  const auto again = TrainClassifier(data, "halves", options);
  for (std::size_t k = 0; k < again->parameters().size(); ++k) {
    EXPECT_TRUE(again->parameters()[k].second.equal(trained->parameters()[k].second));
  }
  trained->config().accuracy = 0.97;
  trained->config().tested = 100;
  ASSERT_TRUE(trained->Save(File("a classifier")).ok());
  const auto read = Classifier::Load(File("a classifier"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->config().name, "halves");
  EXPECT_EQ(read->config().tested, 100);
  const c10::NoGradGuard no_gradients;
  EXPECT_TRUE(read->Features(other.pixels)->equal(*trained->Features(other.pixels)));
  EXPECT_THAT(read->Features(at::zeros({2, 1, 9, 8})).status().message(),
              HasSubstr("expected [B, 1, 8, 8]"));
  options.stop = [] { return true; };
  EXPECT_TRUE(absl::IsCancelled(TrainClassifier(data, "halves", options).status()));
}

TEST_F(Judging, AClassifierLooksAtOtherSizesWhereItMay) {
  ClassifierConfig config;
  config.name = "halves";
  config.shape = {1, 8, 8};
  config.deviation = 1;
  ASSERT_TRUE(Classifier::Create(config, 1)->Save(File("net")).ok());
  const auto own = OpenFeatures(File("net"), {1, 8, 8});
  const auto other = OpenFeatures(File("net"), {1, 16, 12}, /*resize=*/true);
  ASSERT_TRUE(own.ok() && other.ok()) << other.status();
  EXPECT_THAT((*other)->name(), HasSubstr("of pictures brought to 8 x 8"));
  // What is one grey is the same in any size, and an edge stays where it is.
  at::Tensor small = at::full({2, 1, 8, 8}, 77.0), large = at::full({2, 1, 16, 12}, 77.0);
  small[1].narrow(1, 0, 4).fill_(200);
  large[1].narrow(1, 0, 8).fill_(200);
  const at::Tensor a = *(*own)->Of(small), b = *(*other)->Of(large);
  EXPECT_LT((a[0] - b[0]).abs().max().item<double>(), 1e-5);
  EXPECT_LT((a[1] - b[1]).norm().item<double>(), 0.2 * (a[1] - a[0]).norm().item<double>());
  EXPECT_FALSE(OpenFeatures(File("net"), {1, 16, 12}).ok());
  EXPECT_FALSE(OpenFeatures(File("net"), {3, 16, 12}, true).ok());
}

TEST_F(Judging, ADamagedClassifierIsSaid) {
  ClassifierConfig config;
  config.name = "x";
  config.shape = {1, 8, 8};
  config.deviation = 1;
  ASSERT_TRUE(Classifier::Create(config, 1)->Save(File("net")).ok());
  const std::string json = *ReadFile(File("net/config.json"));
  const auto with = [&](const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(File("net/config.json"), text).ok());
    return std::string(Classifier::Load(File("net")).status().message());
  };
  EXPECT_THAT(with("{"), HasSubstr("no JSON object"));
  EXPECT_THAT(with("{}"), HasSubstr("config.json"));
  std::string more = json;
  EXPECT_THAT(with(more.replace(1, 0, "\"colour\": 1,")), HasSubstr("unknown key 'colour'"));
  std::string wide = json;
  EXPECT_THAT(with(wide.replace(wide.find("\"deviation\": 1"), 14, "\"deviation\": 0")),
              HasSubstr("a positive deviation"));
  ASSERT_TRUE(WriteFileAtomically(File("net/config.json"), json).ok());
  ASSERT_TRUE(Classifier::Load(File("net")).ok());
  const std::string weights = *ReadFile(File("net/classifier.safetensors"));
  std::string flipped = weights;
  flipped[flipped.size() - 9] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(File("net/classifier.safetensors"), flipped).ok());
  EXPECT_TRUE(absl::IsDataLoss(Classifier::Load(File("net")).status()));
  std::filesystem::remove(File("net/classifier.safetensors"));
  EXPECT_TRUE(absl::IsNotFound(Classifier::Load(File("net")).status()));
}

TEST_F(Judging, LabelsMustBelongToThePictures) {
  const auto write = [&](const std::string& name, const std::vector<std::int64_t>& shape,
                         const std::vector<double>& values) {
    NpzWriter npz;
    npz.Add("x", shape, values);
    EXPECT_TRUE(npz.Write(File(name)).ok());
    return File(name);
  };
  const std::string pictures = write("p.npz", {2, 4, 4}, std::vector<double>(32, 7));
  EXPECT_TRUE(ReadLabelled(pictures, write("l.npz", {2}, {0, 3})).ok());
  EXPECT_THAT(ReadLabelled(pictures, write("three.npz", {3}, {0, 1, 1})).status().message(),
              HasSubstr("has 3 classes for the 2 pictures"));
  EXPECT_THAT(ReadLabelled(pictures, write("half.npz", {2}, {0, 0.5})).status().message(),
              HasSubstr("integers from 0"));
  EXPECT_THAT(ReadLabelled(pictures, write("huge.npz", {2}, {0, 1e12})).status().message(),
              HasSubstr("integers from 0 to 65535"));
  EXPECT_THAT(ReadLabelled(pictures, write("minus.npz", {2}, {0, -1})).status().message(),
              HasSubstr("integers from 0"));
  EXPECT_THAT(
      ReadLabelled(write("line.npz", {2, 4}, std::vector<double>(8)), pictures).status().message(),
      HasSubstr("holds no pictures"));
  EXPECT_THAT(ReadLabelled(write("big.npz", {2, 4, 4}, std::vector<double>(32, 300)), File("l.npz"))
                  .status()
                  .message(),
              HasSubstr("outside of 0..255"));
}

TEST_F(Judging, NoiseIsNamedBySeedAndSample) {
  const auto all = SampleNoise(5, 0, 11, {3, 5});
  ASSERT_TRUE(all.ok());
  const auto part = SampleNoise(5, 4, 3, {3, 5});
  EXPECT_TRUE(part->equal(all->narrow(0, 4, 3)));
  EXPECT_FALSE(SampleNoise(6, 4, 3, {3, 5})->equal(*part));
}

TEST_F(Judging, PixelsAreWhatAFileWouldHold) {
  const at::Tensor x = at::tensor({-1.5F, -1.0F, 0.0F, 0.001F, 1.0F, 9.0F}).view({1, 1, 2, 3});
  const auto pixels = ToPixels(x, "-1:1");
  ASSERT_TRUE(pixels.ok());
  EXPECT_TRUE(pixels->flatten().equal(at::tensor({0.0F, 0.0F, 128.0F, 128.0F, 255.0F, 255.0F})));
  EXPECT_TRUE(ToPixels(x, "none")->equal(x));
  EXPECT_EQ(ToPixels(at::zeros({2, 4, 4}), "")->dim(), 4);
}

TEST_F(Judging, VerdictsOfKnownSamples) {
  JudgeOptions options;
  options.data = "teacher";
  options.samples = 600;
  options.rows = 600;
  options.cache = "";
  options.batch = 64;
  options.folder = File("");
  options.features = Script("return x.flatten(1)");
  Judge judge(options);
  const Generate teacher = [](const at::Tensor& noise, std::uint64_t) {
    return absl::StatusOr<at::Tensor>(noise);
  };
  ASSERT_TRUE(judge.Prepare({1, 2, 2}, "none", teacher, Never).ok());
  EXPECT_THAT(judge.About(), HasSubstr("features of the TorchScript network"));
  const auto same = judge.Look(teacher, "teacher", Never);
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_LT(same->frechet, 0.1);  // two samples of one law
  EXPECT_GT(same->precision, 0.8);
  EXPECT_GT(same->recall, 0.8);
  EXPECT_TRUE(std::filesystem::exists(File(same->grid)));
  // N(2, 1/4) in four dimensions: 4 (2^2 + (1 - 1/2)^2) = 17.
  const Generate other = [](const at::Tensor& noise, std::uint64_t) {
    return absl::StatusOr<at::Tensor>(noise * 0.5 + 2);
  };
  const auto far = judge.Look(other, "", Never);
  EXPECT_NEAR(far->frechet, 17, 1.5);
  EXPECT_LT(far->recall, 0.2);
  EXPECT_EQ(far->grid, "");
  const Generate broken = [](const at::Tensor& noise, std::uint64_t) {
    return absl::StatusOr<at::Tensor>(noise * std::numeric_limits<float>::quiet_NaN());
  };
  EXPECT_THAT(judge.Look(broken, "", Never).status().message(), HasSubstr("not finite"));
  EXPECT_TRUE(absl::IsCancelled(judge.Look(other, "", [] { return true; }).status()));
}

TEST_F(Judging, StatisticsOfAReferenceAreKept) {
  NpzWriter npz;
  std::vector<double> values;
  const auto noise = SampleNoise(1, 0, 50, {1, 2, 2});
  for (int k = 0; k < 200; ++k) values.push_back(noise->const_data_ptr<float>()[k]);
  npz.Add("x", {50, 1, 2, 2}, values);
  ASSERT_TRUE(npz.Write(File("data.npz")).ok());
  JudgeOptions options;
  options.data = File("data.npz");
  options.samples = 40;
  options.cache = File("a cache");
  options.features = Script("return x.flatten(1)");
  const Generate teacher = [](const at::Tensor& z, std::uint64_t) {
    return absl::StatusOr<at::Tensor>(z);
  };
  const auto look = [&](bool* cached) {
    Judge judge(options);
    EXPECT_TRUE(judge.Prepare({1, 2, 2}, "none", teacher, Never).ok());
    *cached = judge.from_cache();
    return *judge.Look(teacher, "", Never);
  };
  bool cached = true;
  const Verdict first = look(&cached);
  EXPECT_FALSE(cached);
  const Verdict second = look(&cached);
  EXPECT_TRUE(cached);
  EXPECT_EQ(second.frechet, first.frechet);
  EXPECT_EQ(second.precision, first.precision);
  EXPECT_EQ(second.recall, first.recall);
  // A damaged file is made anew; other features, rows or data are another file.
  for (const auto& entry : std::filesystem::directory_iterator(options.cache)) {
    network::testing::WritePlain(entry.path(), ReadFile(entry.path())->substr(0, 300));
  }
  EXPECT_EQ(look(&cached).frechet, first.frechet);
  EXPECT_FALSE(cached);
  options.features = Script("return 2 * x.flatten(1)", "others.ts");
  EXPECT_NEAR(look(&cached).frechet, 4 * first.frechet, 1e-9);
  EXPECT_FALSE(cached);
  options.rows = 30;
  look(&cached);
  EXPECT_FALSE(cached);
}

TEST_F(Judging, WrongInputsAreSaid) {
  const Generate teacher = [](const at::Tensor& z, std::uint64_t) {
    return absl::StatusOr<at::Tensor>(z);
  };
  const auto prepare = [&](const JudgeOptions& options,
                           std::vector<std::int64_t> shape = {1, 2, 2}) {
    return std::string(Judge(options).Prepare(shape, "none", teacher, Never).message());
  };
  JudgeOptions options;
  options.data = "teacher";
  options.cache = "";
  options.samples = 3;
  options.features = Script("return x.flatten(1)");
  EXPECT_THAT(prepare(options), HasSubstr("--judge-samples 3: expected 4 or more"));
  options.samples = 8;
  EXPECT_EQ(prepare(options), "");
  options.features = Script("return x.flatten(1).log() * float('nan')", "nan.ts");
  EXPECT_THAT(prepare(options), HasSubstr("not finite"));
  options.features = Script("return x.flatten(1)[:1]", "one.ts");
  EXPECT_THAT(prepare(options), HasSubstr("features of the shape [1, 4] for 8 samples"));
  options.features = Script("return x.sum()", "sum.ts");
  EXPECT_THAT(prepare(options), HasSubstr("sum.ts"));
  options.features = File("none.ts");
  EXPECT_THAT(prepare(options), HasSubstr("none.ts"));
  network::testing::WritePlain(File("bad.ts"), "no TorchScript");
  options.features = File("bad.ts");
  EXPECT_THAT(prepare(options), HasSubstr("is no TorchScript module"));
  // The classifier knows one shape.
  ClassifierConfig config;
  config.name = "grey ones";
  config.shape = {1, 8, 8};
  config.deviation = 1;
  ASSERT_TRUE(Classifier::Create(config, 1)->Save(File("net")).ok());
  options.features = File("net");
  EXPECT_THAT(prepare(options, {3, 8, 8}),
              HasSubstr("give a TorchScript network for them by --features FILE.ts"));
  EXPECT_EQ(prepare(options, {8, 8}), "");
  options.data = File("missing.npz");
  EXPECT_THAT(prepare(options, {8, 8}), HasSubstr("missing.npz"));
}

}  // namespace
}  // namespace mergeplan::judge
