#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "planner/data/npz.h"
#include "planner/data/samples.h"
#include "tests/planner/data/writers.h"

// Real data, where it is present.
namespace mergeplan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Shared(const std::string& name) {
  if (const char* set = std::getenv("MERGEPLAN_SHARED")) return std::string(set) + "/" + name;
  const char* source = std::getenv("MERGEPLAN_SOURCE_DIR");
  return std::string(source != nullptr ? source : ".") + "/../shared/" + name;
}

#define SKIP_WITHOUT(path)                              \
  if (!std::filesystem::exists(path)) {                 \
    GTEST_SKIP() << "reference data missing: " << path; \
  }                                                     \
  static_assert(true)

struct Summary {
  std::vector<std::int64_t> shape;
  std::int64_t samples = 0;
  double mean = 0;
  double least = 0, most = 0;
};

Summary Summarize(const std::string& path, const SamplesOptions& options = {}) {
  Summary out;
  const auto source = OpenSamples(path, options);
  EXPECT_TRUE(source.ok()) << source.status();
  if (!source.ok()) return out;
  EXPECT_TRUE((*source)->is_pixels());
  out.shape = (*source)->shape();
  const std::int64_t d = (*source)->dimensions();
  std::vector<double> rows(static_cast<std::size_t>(500 * d));
  double sum = 0;
  out.least = 1e9F;
  out.most = -1e9F;
  for (;;) {
    const absl::StatusOr<int> n = (*source)->Read(absl::MakeSpan(rows));
    EXPECT_TRUE(n.ok()) << n.status();
    if (!n.ok() || *n == 0) break;
    out.samples += *n;
    for (std::size_t i = 0; i < static_cast<std::size_t>(*n * d); ++i) {
      sum += rows[i];
      out.least = std::min(out.least, rows[i]);
      out.most = std::max(out.most, rows[i]);
    }
  }
  out.mean = sum / static_cast<double>(out.samples * d);
  return out;
}

TEST(Reference, FashionMnist) {
  const std::string path = "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz";
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << path << " is missing; Debian's package dataset-fashion-mnist brings it";
  }
  const Summary summary = Summarize(path);
  EXPECT_THAT(summary.shape, ElementsAre(28, 28));
  EXPECT_EQ(summary.samples, 60000);
  EXPECT_EQ(summary.least, 0);
  EXPECT_EQ(summary.most, 255);
  EXPECT_NEAR(summary.mean / 255, 0.2860, 5e-5);  // the mean that everybody normalises it with
}

TEST(Reference, Mnist) {
  const std::string path = Shared("data/mnist/mnist10k.npz");
  SKIP_WITHOUT(path);
  EXPECT_THAT(std::string(OpenSamples(path, {}).status().message()),
              HasSubstr("2 arrays (images, labels)"));
  SamplesOptions options;
  options.array = "images";
  const Summary summary = Summarize(path, options);
  EXPECT_THAT(summary.shape, ElementsAre(28, 28));
  EXPECT_EQ(summary.samples, 10000);
  const auto images = ReadNpzArray(path, "images");
  ASSERT_TRUE(images.ok()) << images.status();
  double sum = 0;
  for (const double value : images->values) sum += value;
  EXPECT_DOUBLE_EQ(summary.mean, sum / static_cast<double>(images->size()));
  EXPECT_EQ(ReadNpzArray(path, "labels")->size(), 10000);
}

TEST(Reference, CifarTars) {
  const std::string folder = Shared("data/cifar10");
  SKIP_WITHOUT(folder);
  const Summary test = Summarize(folder + "/test-0000.tar");
  EXPECT_THAT(test.shape, ElementsAre(3, 32, 32));
  EXPECT_EQ(test.samples, 5000);
  const Summary both = Summarize(folder);
  EXPECT_THAT(both.shape, ElementsAre(3, 32, 32));
  EXPECT_EQ(both.samples, 15000);
  // CIFAR-10's mean over all channels, (0.4914 + 0.4822 + 0.4465) / 3; these are samples of it.
  EXPECT_NEAR(both.mean / 255, 0.4734, 0.005);
}

TEST(Reference, SchedulerTables) {
  const std::string folder = Shared("reference/diffusers/schedulers");
  SKIP_WITHOUT(folder);
  int files = 0, arrays = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".npz") continue;
    ++files;
    const auto names = NpzNames(entry.path().string());
    ASSERT_TRUE(names.ok()) << names.status();
    for (const std::string& name : *names) {
      const auto array = ReadNpzArray(entry.path().string(), name);
      ASSERT_TRUE(array.ok()) << array.status();
      ++arrays;
      if (array->dtype[1] == 'S') {
        EXPECT_FALSE(array->text.empty());
      } else {
        EXPECT_EQ(static_cast<std::int64_t>(array->values.size()), array->size());
      }
    }
  }
  EXPECT_GE(files, 8);
  EXPECT_GE(arrays, 8 * files);
  const std::string flux = folder + "/flux1-dev.npz";
  EXPECT_EQ(ReadNpzArray(flux, "class_name")->text, "FlowMatchEulerDiscreteScheduler");
  EXPECT_THAT(ReadNpzArray(flux, "mu")->values, ElementsAre(1.15));
}

}  // namespace
}  // namespace mergeplan
