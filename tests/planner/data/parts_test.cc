// The folder that `mergeplan encode` writes, and arrays written piece by piece.
#include "planner/data/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/data/npz_stream.h"
#include "planner/data/safetensors.h"
#include "planner/data/shard.h"
#include "tests/planner/data/writers.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using testing::ErrorOf;
using ::testing::HasSubstr;
using testing::ReadAll;
using testing::TempFolder;

// Parts of 3, 3 and 2 samples of the shape [2]; the values count up.
class PartsFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    float next = 0;
    for (int part = 0; part < 3; ++part) {
      std::vector<float> values;
      for (int k = 0; k < (part < 2 ? 6 : 4); ++k) values.push_back(next++);
      WritePart(part, "latents", {static_cast<std::int64_t>(values.size()) / 2, 2}, values);
    }
    folder_.Write("a [folder]/encode.toml", "format = 1\n");
    folder_.Write("a [folder]/latents.toml", "format = 1\nsamples = 8\n");
  }
  void WritePart(int part, const std::string& name, std::vector<std::int64_t> shape,
                 const std::vector<float>& values) {
    std::filesystem::create_directories(Path());
    const std::string bytes = testing::Raw(values);
    std::vector<SafetensorsTensor> tensors;
    tensors.push_back({name, "F32", std::move(shape),
                       [&]() -> absl::StatusOr<std::string_view> { return bytes; }});
    ASSERT_TRUE(WriteSafetensors(absl::StrCat(Path(), "/part-00000", part, ".safetensors"),
                                 std::move(tensors), {})
                    .ok());
  }
  std::string Path() const { return folder_.Path("a [folder]"); }
  TempFolder folder_;
};

TEST_F(PartsFolder, IsReadAsOneArray) {
  for (const int batch : {1, 2, 7, 100}) {
    const auto rows = ReadAll(Path(), {}, batch);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ(rows->samples, 8);
    EXPECT_EQ(rows->shape, std::vector<std::int64_t>{2});
    EXPECT_FALSE(rows->is_pixels);
    for (std::size_t k = 0; k < 16; ++k) EXPECT_EQ(rows->values[k], static_cast<double>(k));
  }
  EXPECT_EQ(OpenSamples(Path(), {}).value()->size(), 8);
}

TEST_F(PartsFolder, IsPassedOverAndCutIntoParts) {
  for (int skip = 0; skip <= 9; ++skip) {
    const auto source = OpenSamples(Path(), {}).value();
    ASSERT_TRUE(source->Skip(skip).ok());
    std::vector<double> row(2);
    const int got = source->Read(absl::MakeSpan(row)).value();
    EXPECT_EQ(got, skip < 8 ? 1 : 0);
    if (got == 1) {
      EXPECT_EQ(row[0], 2 * skip);
    }
  }
  // Shards of it are ranges, as the number of samples is known.
  std::vector<double> all;
  for (int k = 1; k <= 3; ++k) {
    const auto shard = ShardOf(OpenSamples(Path(), {}).value(), k, 3, false);
    std::vector<double> rows(16);
    for (;;) {
      const int got = shard->Read(absl::MakeSpan(rows)).value();
      if (got == 0) break;
      all.insert(all.end(), rows.begin(), rows.begin() + 2 * got);
    }
  }
  ASSERT_EQ(all.size(), 16u);
  for (std::size_t k = 0; k < 16; ++k) EXPECT_EQ(all[k], static_cast<double>(k));
}

TEST_F(PartsFolder, SaysWhatIsMissing) {
  std::filesystem::remove(Path() + "/latents.toml");
  EXPECT_THAT(ErrorOf(Path()), HasSubstr("not all encoded yet"));
  folder_.Write("a [folder]/latents.toml", "format = 1\nsamples = 9\n");
  EXPECT_THAT(ErrorOf(Path()), HasSubstr("part-000003.safetensors"));
  folder_.Write("a [folder]/latents.toml", "format = 1\nsamples = 7\n");
  EXPECT_THAT(ErrorOf(Path()), AllOf(HasSubstr("hold 8 samples"), HasSubstr("says 7")));
  folder_.Write("a [folder]/latents.toml", "format = 1\n");
  EXPECT_THAT(ErrorOf(Path()), HasSubstr("does not say how many samples"));
  folder_.Write("a [folder]/latents.toml", "samples = \n");
  EXPECT_THAT(ErrorOf(Path()), HasSubstr("does not say how many samples"));
  folder_.Write("a [folder]/latents.toml", "samples = 8\n");
  EXPECT_THAT(ErrorOf(Path(), {.array = "log_variance"}),
              AllOf(HasSubstr("no tensor 'log_variance'"), HasSubstr("latents")));
  WritePart(1, "latents", {2, 3}, {1, 2, 3, 4, 5, 6});
  WritePart(2, "latents", {3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(ErrorOf(Path()), HasSubstr("has samples of the shape"));
}

TEST(NpzStream, WritesTheBytesOfTheWriterThatHoldsAll) {
  const TempFolder folder;
  const std::vector<double> values = {0, 1, 2, 250, 4, 255};
  const std::string bytes("\x00\x01\x02\xfa\x04\xff", 6);
  NpzWriter whole;
  whole.Add("pictures", {2, 3}, values, NpzWriter::Type::kUint8);
  const std::string path = folder.Path("a.npz");
  auto stream = NpzStream::Create(path, "pictures", "|u1", {2, 3});
  ASSERT_TRUE(stream.ok()) << stream.status();
  ASSERT_TRUE(stream->Append(bytes.substr(0, 1)).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(stream->Append(bytes.substr(1)).ok());
  ASSERT_TRUE(stream->Finish().ok());
  EXPECT_EQ(ReadFile(path).value(), whole.Bytes().value());
  auto plain = NpzStream::Create(folder.Path("a.npy"), "", "|u1", {2, 3});
  ASSERT_TRUE(plain.ok());
  ASSERT_TRUE(plain->Append(bytes).ok());
  ASSERT_TRUE(plain->Finish().ok());
  EXPECT_EQ(ReadNpy(folder.Path("a.npy"))->values, values);
}

TEST(NpzStream, WantsAsManyBytesAsTheShapeHas) {
  const TempFolder folder;
  const std::string path = folder.Write("a.npz", "old");
  {
    auto stream = NpzStream::Create(path, "x", "<f4", {2});
    ASSERT_TRUE(stream.ok());
    ASSERT_TRUE(stream->Append("1234").ok());
    EXPECT_THAT(std::string(stream->Finish().message()), HasSubstr("lacks 4 bytes"));
    EXPECT_THAT(std::string(stream->Append("123456789").message()), HasSubstr("at most 4"));
  }
  // What was not finished leaves the old file, and nothing beside it.
  EXPECT_EQ(ReadFile(path).value(), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.Path("")), {}), 1);
  EXPECT_FALSE(NpzStream::Create(path + "/in-a-file.npz", "x", "<f4", {2}).ok());
  EXPECT_FALSE(NpzStream::Create(path, "x", "|O", {2}).ok());
}

}  // namespace
}  // namespace mergeplan
