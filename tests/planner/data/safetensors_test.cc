#include "planner/data/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "planner/base/file.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Safetensors : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "mergeplan test XXXXXX").string();
    folder_ = mkdtemp(name.data());
    path_ = folder_ + "/a b.safetensors";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static SafetensorsTensor Tensor(const std::string& name, const std::string& dtype,
                                  const std::vector<std::int64_t>& shape,
                                  const std::string& bytes) {
    return {name, dtype, shape, [bytes]() -> absl::StatusOr<std::string_view> { return bytes; }};
  }
  // Bytes go out of scope with their tensor; these stay.
  std::string ErrorOf(const std::string& file) {
    EXPECT_TRUE(WriteFileAtomically(path_, file).ok());
    const auto opened = SafetensorsFile::Open(path_);
    if (opened.ok()) return "fine";
    EXPECT_THAT(std::string(opened.status().message()), HasSubstr(path_));
    return std::string(opened.status().message());
  }
  static std::string WithHeader(const std::string& header, const std::string& data) {
    std::string file(8, '\0');
    for (int k = 0; k < 8; ++k) file[k] = static_cast<char>(header.size() >> (8 * k) & 0xff);
    return file + header + data;
  }

  std::string folder_, path_;
};

TEST_F(Safetensors, WhatIsWrittenIsReadBack) {
  const std::string empty, two = "ab", eight = "12345678", four = "wxyz";
  std::vector<SafetensorsTensor> tensors = {
      Tensor("z", "F16", {1}, two), Tensor("b \"q\" \xc3\xa4", "F64", {1, 1}, eight),
      Tensor("c", "F32", {}, four), Tensor("a", "F32", {3, 0}, empty)};
  ASSERT_TRUE(WriteSafetensors(path_, tensors, {{"format", "pt"}, {"x", "y\n"}}).ok());
  const auto file = SafetensorsFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT((*file)->metadata(),
              ElementsAre(::testing::Pair("format", "pt"), ::testing::Pair("x", "y\n")));
  const std::vector<SafetensorsEntry>& entries = (*file)->entries();
  ASSERT_EQ(entries.size(), 4U);
  // Wide types first, then by name.
  EXPECT_EQ(entries[0].name, "b \"q\" \xc3\xa4");
  EXPECT_EQ(entries[1].name, "a");
  EXPECT_EQ(entries[2].name, "c");
  EXPECT_EQ(entries[3].name, "z");
  EXPECT_EQ(entries[0].begin % 8, 0);
  EXPECT_THAT(entries[1].shape, ElementsAre(3, 0));
  EXPECT_TRUE(entries[2].shape.empty());
  std::string found(4, '\0');
  ASSERT_TRUE((*file)->Read(entries[2], 0, absl::MakeSpan(found)).ok());
  EXPECT_EQ(found, four);
  found.resize(2);
  ASSERT_TRUE((*file)->Read(entries[0], 5, absl::MakeSpan(found)).ok());
  EXPECT_EQ(found, "67");
  EXPECT_FALSE((*file)->Read(entries[0], 7, absl::MakeSpan(found)).ok());
  EXPECT_FALSE((*file)->Read(entries[0], -1, absl::MakeSpan(found)).ok());
}

TEST_F(Safetensors, AFileWithoutTensorsIsOne) {
  ASSERT_TRUE(WriteSafetensors(path_, {}, {}).ok());
  EXPECT_TRUE((*SafetensorsFile::Open(path_))->entries().empty());
}

TEST_F(Safetensors, WhatCannotBeWrittenLeavesTheOldFile) {
  ASSERT_TRUE(WriteFileAtomically(path_, "old").ok());
  const auto error = [&](std::vector<SafetensorsTensor> tensors) {
    const absl::Status status = WriteSafetensors(path_, std::move(tensors), {});
    EXPECT_EQ(ReadFile(path_).value(), "old");
    int files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++files;
    EXPECT_EQ(files, 1);
    return std::string(status.message());
  };
  const std::string four = "wxyz";
  EXPECT_THAT(error({Tensor("a", "F32", {1}, four), Tensor("a", "F32", {1}, four)}),
              HasSubstr("tensor a: this name is taken"));
  EXPECT_THAT(error({Tensor("__metadata__", "F32", {1}, four)}), HasSubstr("this name is taken"));
  EXPECT_THAT(error({Tensor("a", "F12", {1}, four)}), HasSubstr("expected F64, I64"));
  EXPECT_THAT(error({Tensor("a", "F32", {2}, four)}), HasSubstr("was given 4 bytes, expected 8"));
  EXPECT_THAT(error({Tensor("a", "F32", {-1}, four)}), HasSubstr("tensor a"));
  EXPECT_THAT(error({Tensor("a\xff", "F32", {1}, four)}), HasSubstr("UTF-8"));
  EXPECT_THAT(error({{"a",
                      "F32",
                      {1},
                      [] { return absl::StatusOr<std::string_view>(absl::InternalError("no")); }}}),
              HasSubstr("no"));
}

TEST_F(Safetensors, PiecesGiveTheSameFile) {
  const std::string whole = "abcdefghijkl";
  ASSERT_TRUE(WriteSafetensors(folder_ + "/whole", {Tensor("a", "F32", {3}, whole)}, {}).ok());
  const auto pieces = [&](std::size_t size, std::size_t in_all) {
    SafetensorsTensor tensor;
    tensor.name = "a";
    tensor.dtype = "F32";
    tensor.shape = {3};
    tensor.in_pieces = true;
    std::size_t at = 0;
    tensor.bytes = [=]() mutable -> absl::StatusOr<std::string_view> {
      const std::string_view piece =
          std::string_view(whole).substr(at, std::min(size, in_all - at));
      at += piece.size();
      return piece;
    };
    return WriteSafetensors(folder_ + "/pieces", {tensor}, {});
  };
  for (const std::size_t size : {1, 5, 12}) {
    ASSERT_TRUE(pieces(size, 12).ok());
    EXPECT_EQ(ReadFile(folder_ + "/pieces").value(), ReadFile(folder_ + "/whole").value());
  }
  EXPECT_THAT(std::string(pieces(5, 11).message()), HasSubstr("was given 11 bytes, expected 12"));
}

TEST_F(Safetensors, DamagedHeadersAreErrors) {
  const std::string four = "wxyz";
  const auto one = [](const std::string& entry) { return "{\"a\":" + entry + "}"; };
  const std::string good = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_EQ(ErrorOf(WithHeader(one(good), four)), "fine");
  EXPECT_THAT(ErrorOf(WithHeader(one(good), "wxy")), HasSubstr("in a file with 3 bytes of data"));
  EXPECT_THAT(ErrorOf(WithHeader(one(good), "wxyz!")), HasSubstr("has 1 bytes behind its tensors"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("has 0 bytes"));
  EXPECT_THAT(ErrorOf("1234567"), HasSubstr("has 7 bytes"));
  EXPECT_THAT(ErrorOf(std::string(8, '\xff') + "x"), HasSubstr("cut short or no .safetensors"));
  EXPECT_THAT(ErrorOf(WithHeader("", "")), HasSubstr("no valid JSON"));
  EXPECT_THAT(ErrorOf(WithHeader("[]", "")), HasSubstr("is array, expected an object"));
  EXPECT_THAT(ErrorOf(WithHeader("{\"a\":" + good + ",\"a\":" + good + "}", four)),
              HasSubstr("\"a\" stands in it twice"));
  EXPECT_THAT(ErrorOf(WithHeader("{\"a\":" + good + ",\"b\":" + good + "}", four)),
              HasSubstr("tensor b begins at byte"));
  for (const char* entry : {"3", "{}", R"({"dtype":"F32","shape":[1]})",
                            R"({"dtype":3,"shape":[1],"data_offsets":[0,4]})",
                            R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})",
                            R"({"dtype":"F32","shape":[1],"data_offsets":[0]})"}) {
    EXPECT_THAT(ErrorOf(WithHeader(one(entry), four)), HasSubstr("tensor a: its entry lacks"))
        << entry;
  }
  EXPECT_THAT(ErrorOf(WithHeader(one(R"({"dtype":"F8","shape":[1],"data_offsets":[0,4]})"), four)),
              AllOf(HasSubstr("dtype \"F8\" cannot be read"), HasSubstr("BF16")));
  for (const char* shape : {"[-1]", "[1.5]", "[1e30]", "[\"1\"]", "[99999999999999999999]"}) {
    const std::string entry =
        std::string(R"({"dtype":"F32","shape":)") + shape + R"(,"data_offsets":[0,4]})";
    EXPECT_THAT(ErrorOf(WithHeader(one(entry), four)), HasSubstr("expected whole numbers"))
        << shape;
  }
  EXPECT_THAT(ErrorOf(WithHeader(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"), four)),
              HasSubstr("shape (2,) of F32 needs 8 bytes, its data_offsets hold 4"));
  EXPECT_THAT(
      ErrorOf(WithHeader(
          one(R"({"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,4]})"), four)),
      HasSubstr("tensor a"));
  for (const char* offsets : {"[4,0]", "[-4,0]", "[0,1e2]", "[null,4]", "[0,8]"}) {
    const std::string entry =
        std::string(R"({"dtype":"F32","shape":[1],"data_offsets":)") + offsets + "}";
    EXPECT_THAT(ErrorOf(WithHeader(one(entry), four)), HasSubstr("data_offsets")) << offsets;
  }
  EXPECT_THAT(ErrorOf(WithHeader("{\"__metadata__\":{\"a\":1}}", "")), HasSubstr("is no text"));
  EXPECT_THAT(ErrorOf(WithHeader("{\"__metadata__\":[]}", "")), HasSubstr("is no object"));
}

TEST_F(Safetensors, OnlyRegularFilesAreOpened) {
  EXPECT_THAT(std::string(SafetensorsFile::Open(folder_).status().message()),
              HasSubstr("is no regular file"));
  EXPECT_EQ(SafetensorsFile::Open(folder_ + "/none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(SafetensorsFile::Open("/dev/null").ok());
}

TEST_F(Safetensors, AnIndexSaysWhereTensorsAre) {
  const auto read = [&](const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(path_, text).ok());
    return ReadSafetensorsIndex(path_);
  };
  EXPECT_THAT(*read(R"({"metadata":{},"weight_map":{"a":"x.safetensors"}})"),
              ElementsAre(::testing::Pair("a", "x.safetensors")));
  for (const char* text : {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{"a":1}})",
                           R"({"weight_map":{"a":""}})", R"({"weight_map":{"a":".."}})",
                           R"({"weight_map":{"a":"/etc/passwd"}})"}) {
    const auto index = read(text);
    ASSERT_FALSE(index.ok()) << text;
    EXPECT_THAT(std::string(index.status().message()), HasSubstr(path_));
  }
}

}  // namespace
}  // namespace mergeplan
