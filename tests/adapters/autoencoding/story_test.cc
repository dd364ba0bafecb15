// examples/mssim_vae/story.sh from beginning to end, on a few pictures with few updates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "planner/base/file.h"
#include "planner/data/samples.h"
#include "tests/adapters/support.h"

namespace mergeplan::autoencoding {
namespace {

using ::testing::HasSubstr;

constexpr char kPictures[] = "/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz";

TEST(MssimVaeStory, RunsFromBeginningToEnd) {
  if (!std::filesystem::exists(kPictures)) {
    GTEST_SKIP() << kPictures << " is missing; install the package dataset-fashion-mnist";
  }
  const testing::TemporaryFolder folder;
  // 200 of the pictures, as IDX has them.
  const auto source = OpenSamples(kPictures, {});
  ASSERT_TRUE(source.ok()) << source.status();
  std::vector<double> rows(200 * 784);
  ASSERT_EQ((*source)->Read(absl::MakeSpan(rows)).value(), 200);
  std::string idx = {0, 0, 8, 3, 0, 0, 0, static_cast<char>(200), 0, 0, 0, 28, 0, 0, 0, 28};
  for (const double value : rows) idx.push_back(static_cast<char>(static_cast<int>(value)));
  ASSERT_TRUE(WriteFileAtomically(folder.File("t10k-images-idx3-ubyte.gz"), idx).ok());

  const char* root = std::getenv("MERGEPLAN_SOURCE_DIR");
  const char* program = std::getenv("MERGEPLAN_BIN");
  ASSERT_TRUE(root != nullptr && program != nullptr) << "run this test through ctest";
  const std::string out = folder.File("out of it");
  const std::string command = "MERGEPLAN='" + std::string(program) + "' DATA='" + folder.path() +
                              "' UPDATES='10 20' SAMPLES=8 bash '" + root +
                              "/examples/mssim_vae/story.sh' '" + out + "' >'" +
                              folder.File("log") + "' 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << ReadFile(folder.File("log")).value_or("no log");
  const std::string table = ReadFile(out + "/table.md").value();
  EXPECT_THAT(table, HasSubstr("**mean**: 200 latents, basis pca"));
  EXPECT_THAT(table, HasSubstr("**mean-diagonal**: 200 latents, basis diagonal"));
  for (const char* what :
       {"error of the operator against the surrogate",
        "decoded, from the teacher's samples for the same noise", "decoded, Frechet distance"}) {
    EXPECT_THAT(table,
                HasSubstr(std::string("| ") + what + "; the same updates in all | 10 | 20 |"));
  }
  EXPECT_THAT(table, HasSubstr("| BOOT | "));
  EXPECT_THAT(ReadFile(out + "/mean/analysis.html").value(), HasSubstr("<h2>Covariance</h2>"));
  EXPECT_THAT(ReadFile(folder.File("log")).value(), HasSubstr("error-maps-20.png: red is a"));
  // Rows of 32 pixels: the teacher and six runs; eight pictures and eight maps.
  std::filesystem::create_directory(folder.File("maps"));
  std::filesystem::copy(out + "/error-maps-20.png", folder.File("maps"));
  const auto map = OpenSamples(folder.File("maps"), {});
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ((*map)->shape(), (std::vector<std::int64_t>{3, 7 * 32, 16 * 32}));
}

}  // namespace
}  // namespace mergeplan::autoencoding
