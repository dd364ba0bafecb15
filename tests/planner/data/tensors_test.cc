// Tensors of other stacks, patterns, parts and bfloat16: against files written here byte by byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/data/pickle.h"
#include "planner/data/shard.h"
#include "tests/planner/data/writers.h"

namespace mergeplan {
namespace {

using namespace mergeplan::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Safetensors(const std::string& header, const std::string& data) {
  std::string out;
  for (int k = 0; k < 8; ++k) out += static_cast<char>(header.size() >> (8 * k) & 255);
  return out + header + data;
}

using absl::StrCat;

std::string U32(std::uint32_t x) { return Raw(std::vector<std::uint32_t>{x}); }
std::string Text(const std::string& text) {
  return StrCat("X", U32(static_cast<std::uint32_t>(text.size())), text);
}
std::string Small(int x) { return std::string({'K', static_cast<char>(x)}); }

// The instructions of a tensor of shape [4, 2] in storage `key`, `strides` given.
std::string TensorPickle(const std::string& type, const std::string& key, int size, int offset,
                         int stride0, int stride1) {
  return StrCat("ctorch._utils\n_rebuild_tensor_v2\nq\x01((", Text("storage"), "ctorch\n", type,
                "\n", Text(key), Text("cpu"), Small(size), "tQ", Small(offset), Small(4), Small(2),
                "\x86", Small(stride0), Small(stride1), "\x86\x89",
                "ccollections\nOrderedDict\n)RtR");
}
std::string Pickle(const std::string& body) { return absl::StrCat("\x80\x02", body, "."); }
std::string Torch(const std::string& pickle, const std::string& data) {
  return Zip(
      {{"latents/data.pkl", pickle}, {"latents/byteorder", "little"}, {"latents/data/7", data}});
}

const std::vector<float> kValues = {1, 2, 3, 4, 5, 6, 7, 8.5};

TEST(SafetensorsSamples, AreReadByName) {
  const TempFolder folder;
  const std::string one = folder.Write(
      "a b.safetensors",
      Safetensors(
          R"({"__metadata__":{"x":"y"},"z":{"dtype":"F32","shape":[4,2],"data_offsets":[0,32]}})",
          Raw(kValues)));
  const auto rows = ReadAll(one);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->values, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8.5));
  EXPECT_THAT(rows->shape, ElementsAre(2));
  // The second of two, behind the first, in half and brain precision.
  const std::string two = folder.Write(
      "two", Safetensors(R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
                         R"("b":{"dtype":"BF16","shape":[3,1],"data_offsets":[4,10]}})",
                         Raw(std::vector<std::uint16_t>{0x3C00, 0xC000, 0x3F80, 0xC020, 0x7F80})));
  EXPECT_THAT(ReadAll(two).status().message(), HasSubstr("2 tensors (a, b)"));
  EXPECT_THAT(ReadAll(two, {"c"}).status().message(), HasSubstr("no tensor 'c'"));
  EXPECT_THAT(ReadAll(two, {"a"})->values, ElementsAre(1, -2));
  EXPECT_THAT(ReadAll(two, {"b"}).status().message(), HasSubstr("infinite"));
  SamplesOptions skip{"b"};
  skip.skip_nonfinite = true;
  EXPECT_THAT(ReadAll(two, skip)->values, ElementsAre(1, -2.5));
}

TEST(SafetensorsSamples, DamageIsNamed) {
  const TempFolder folder;
  const std::string header = R"({"z":{"dtype":"F32","shape":[4,2],"data_offsets":[0,32]}})";
  const auto says = [&](const std::string& bytes) {
    const absl::Status status = ReadAll(folder.Write("x", bytes)).status();
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  };
  EXPECT_THAT(says(Safetensors(header, Raw(kValues).substr(0, 31))), HasSubstr("truncated"));
  EXPECT_THAT(says(Safetensors(R"({"z":{"dtype":"F32","shape":[5,2],"data_offsets":[0,32]}})",
                               Raw(kValues))),
              HasSubstr("needs 40 bytes, its data_offsets hold 32"));
  EXPECT_THAT(says(Safetensors(R"({"z":{"dtype":"F32","shape":[-1],"data_offsets":[0,32]}})", "")),
              HasSubstr("shape [-1], expected whole numbers"));
  EXPECT_THAT(says(Safetensors(R"({"z":{"dtype":"F8","shape":[1],"data_offsets":[0,1]}})", "x")),
              HasSubstr("type F8"));
  EXPECT_THAT(says(Safetensors("{nonsense", "")), HasSubstr("no valid JSON"));
  EXPECT_THAT(says(Safetensors("{}", "")), HasSubstr("no tensor"));
  EXPECT_THAT(says(Safetensors(header, Raw(kValues) + "x")), HasSubstr("1 bytes behind"));
  EXPECT_THAT(says(Safetensors(R"({"z":{"dtype":"F32","data_offsets":[0,32]}})", Raw(kValues))),
              HasSubstr("lacks dtype"));
  // A tensor of a type that we do not know does not keep others from being read.
  const std::string mixed = folder.Write(
      "mixed", Safetensors(R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]},)"
                           R"("z":{"dtype":"F32","shape":[4,2],"data_offsets":[4,36]}})",
                           "1234" + Raw(kValues)));
  EXPECT_EQ(ReadAll(mixed, {"z"})->values.size(), 8u);
  // Any byte changed or the file cut anywhere: an error or numbers, nothing else.
  const std::string good = Safetensors(header, Raw(kValues));
  std::mt19937 random(1);
  for (int k = 0; k < 400; ++k) {
    std::string bad = good.substr(0, k % 2 == 0 ? good.size() : random() % good.size());
    if (!bad.empty()) bad[random() % bad.size()] = static_cast<char>(random());
    (void)ReadAll(folder.Write("y", bad));
  }
}

TEST(TorchFiles, TensorsAndDictionariesAreReadWithoutRunningThem) {
  const TempFolder folder;
  const std::string bare = folder.Write(
      "bare.pt", Torch(Pickle(TensorPickle("FloatStorage", "7", 8, 0, 2, 1)), Raw(kValues)));
  const auto rows = ReadAll(bare);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->values, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8.5));
  // A part of a storage, inside a dictionary.
  std::vector<float> longer = {-1, -2};
  longer.insert(longer.end(), kValues.begin(), kValues.end());
  const std::string dict = folder.Write(
      "dict.pt",
      Torch(Pickle(StrCat("}q\x09(", Text("z"), TensorPickle("FloatStorage", "7", 10, 2, 2, 1),
                          Text("n"), Small(3), "u")),
            Raw(longer)));
  EXPECT_THAT(ReadAll(dict)->values, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8.5));
  EXPECT_THAT(ReadAll(dict, {"y"}).status().message(), HasSubstr("expected one of z"));
}

TEST(TorchFiles, EverythingElseInAPickleIsRefusedByName) {
  const TempFolder folder;
  const auto says = [&](const std::string& pickle, std::size_t bytes = 32) {
    const absl::Status status =
        ReadAll(folder.Write("x.pt", Torch(pickle, Raw(kValues).substr(0, bytes)))).status();
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  };
  EXPECT_THAT(says(Pickle(StrCat("cos\nsystem\n(", Text("true"), "tR"))),
              HasSubstr("the name os.system"));
  EXPECT_THAT(says(Pickle("cposix\nsystem\n")), HasSubstr("posix.system"));
  EXPECT_THAT(says(Pickle("i")), HasSubstr("the instruction 0x69"));
  EXPECT_THAT(says(Pickle("}")), HasSubstr("holds no tensor"));
  EXPECT_THAT(says(Pickle(TensorPickle("FloatStorage", "7", 8, 0, 1, 4))), HasSubstr("contiguous"));
  EXPECT_THAT(says(Pickle(TensorPickle("FloatStorage", "8", 8, 0, 2, 1))), HasSubstr("data/8"));
  EXPECT_THAT(says(Pickle(TensorPickle("FloatStorage", "7", 8, 1, 2, 1))), HasSubstr("beyond its"));
  EXPECT_THAT(says(Pickle(TensorPickle("QStorage", "7", 8, 0, 2, 1))), HasSubstr("QStorage"));
  EXPECT_THAT(says(Pickle(TensorPickle("FloatStorage", "7", 8, 0, 2, 1)), 20),
              HasSubstr("truncated"));
  // Random programs end, without a crash.
  const std::string good =
      Pickle(StrCat("}(", Text("z"), TensorPickle("FloatStorage", "7", 8, 0, 2, 1), "u"));
  EXPECT_TRUE(ReadTensorPickle(good, "x").ok());
  std::mt19937 random(2);
  for (int k = 0; k < 20000; ++k) {
    std::string bad = good;
    for (int n = 0; n < 1 + k % 4; ++n) bad[random() % bad.size()] = static_cast<char>(random());
    (void)ReadTensorPickle(bad, "x");
    (void)ReadTensorPickle(good.substr(0, random() % good.size()), "x");
  }
}

TEST(TorchFiles, DeepNestsAndLoopsAreRefusedWithoutRunningOutOfStack) {
  constexpr int kDeep = 250'000;
  const auto times = [](int count, const std::string& what) {
    std::string out;
    for (int k = 0; k < count; ++k) out += what;
    return out;
  };
  const auto put = [](char slot) { return std::string({'q', slot}); };
  const auto get = [](char slot) { return std::string({'h', slot}); };
  const std::string body[] = {
      ")" + times(kDeep, "\x85"),                        // a tuple of a tuple of ...
      times(kDeep, "]") + times(kDeep - 1, "a"),         // the same of lists
      times(kDeep, "}K\x01") + "N" + times(kDeep, "s"),  // and of dictionaries
      "]" + put(0) + get(0) + "a",                       // a list that holds itself
      // Each list gets the next one after it has been put away, all of them in one tuple.
      "(]" + put(0) + times(kDeep / 3, "]" + put(1) + get(0) + get(1) + "a" + get(1) + put(0)) +
          "t",
      // Tuples of four times the one before: 4^20 ways to the innermost.
      "()" + put(0) + times(20, "(" + get(0) + get(0) + get(0) + get(0) + "t" + put(0)) + "t",
  };
  for (const std::string& one : body) {
    const absl::Status status = ReadTensorPickle(Pickle(one), "x.pt").status();
    EXPECT_THAT(std::string(status.message()),
                ::testing::ContainsRegex("more than 32 levels|more entries|more instructions"));
  }
}

TEST(SafetensorsSamples, DeepNestsAreRefused) {
  const TempFolder folder;
  const std::string nest = std::string(300'000, '[') + std::string(300'000, ']');
  for (const std::string& header :
       {StrCat(R"({"z":{"dtype":"F32","shape":)", nest, R"(,"data_offsets":[0,32]}})"),
        StrCat(R"({"z":{"dtype":"F32","shape":[4,2],"data_offsets":)", nest, "}}"),
        StrCat(R"({"__metadata__":)", nest, "}"), nest}) {
    const absl::Status status =
        ReadAll(folder.Write("x", Safetensors(header, Raw(kValues)))).status();
    EXPECT_FALSE(status.ok());
  }
}

TEST(Npy, HoldsBfloat16AsMlDtypesWritesIt) {
  const TempFolder folder;
  const std::string path = folder.Write(
      "b.npy",
      Npy("<V2", "(2, 2)", Raw(std::vector<std::uint16_t>{0x3F80, 0x4000, 0xC040, 0x0001})));
  const auto rows = ReadAll(path);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->values[0], 1);
  EXPECT_EQ(rows->values[1], 2);
  EXPECT_EQ(rows->values[2], -3);
  EXPECT_EQ(rows->values[3], std::ldexp(1.0, -133));
  EXPECT_FALSE(ReadAll(folder.Write("c.npy", Npy("|V4", "(1,)", "abcd"))).ok());
}

TEST(Patterns, AreAllFilesThatMatchInOrder) {
  const TempFolder folder;
  folder.Write("part 2.npy", Npy("<f4", "(2, 2)", Raw(std::vector<float>{5, 6, 7, 8})));
  folder.Write("part 1.npy", Npy("<f4", "(2, 2)", Raw(std::vector<float>{1, 2, 3, 4})));
  const auto rows = ReadAll(folder.Path("part*.npy"));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->values, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(ReadAll(folder.Path("none*.npy")).status().message(), HasSubstr("no file matches"));
  folder.Write("part 3.npy", Npy("<f4", "(1, 3)", Raw(std::vector<float>{1, 2, 3})));
  EXPECT_THAT(ReadAll(folder.Path("part*.npy")).status().message(), HasSubstr("expected (2,)"));
  // A file of that very name is a file.
  folder.Write("odd[1].npy", Npy("<f4", "(1, 1)", Raw(std::vector<float>{9})));
  EXPECT_THAT(ReadAll(folder.Path("odd[1].npy"))->values, ElementsAre(9));
}

TEST(Shards, AreDisjointAndTogetherAll) {
  const TempFolder folder;
  for (const int n : {1, 2, 7, 100}) {
    std::vector<double> values;
    for (int k = 0; k < 2 * n; ++k) values.push_back(k);
    const std::string shape = StrCat("(", n, ", 2)");
    for (const bool fortran : {false, true}) {
      const std::string path = folder.Write("x.npy", Npy("<f8", shape, Raw(values), fortran));
      const auto whole = ReadAll(path);
      ASSERT_TRUE(whole.ok());
      for (const int count : {1, 2, 3, 9}) {
        for (const bool every : {false, true}) {
          std::vector<double> seen;
          for (int index = 1; index <= count; ++index) {
            auto source = OpenSamples(path, {});
            ASSERT_TRUE(source.ok());
            const auto part = ShardOf(*std::move(source), index, count, every);
            std::vector<double> buffer(6);
            while (true) {
              const auto got = part->Read(absl::MakeSpan(buffer));
              ASSERT_TRUE(got.ok()) << got.status();
              if (*got == 0) break;
              seen.insert(seen.end(), buffer.begin(), buffer.begin() + 2 * *got);
            }
          }
          std::vector<double> all = whole->values;
          if (every) {
            std::sort(seen.begin(), seen.end());
            std::sort(all.begin(), all.end());
          }
          EXPECT_EQ(seen, all) << n << " in " << count;
        }
      }
    }
  }
}

// What lies before a part is passed over, not read: here it could not be.
TEST(Shards, OfPatternsAndFoldersReadTheirOwnPartOnly) {
  const TempFolder folder;
  const auto part_of = [](const std::string& path, int index, int count,
                          std::vector<double>& values) {
    auto source = OpenSamples(path, {});
    if (!source.ok()) return source.status();
    EXPECT_FALSE(CutsEvery(**source, false)) << path;
    const auto part = ShardOf(*std::move(source), index, count, false);
    std::vector<double> buffer(3);
    while (true) {
      const auto got = part->Read(absl::MakeSpan(buffer));
      if (!got.ok()) return got.status();
      if (*got == 0) return absl::OkStatus();
      values.insert(values.end(), buffer.begin(), buffer.begin() + *got);
    }
  };
  // Six samples in three files; of four parts the borders are 1, 3 and 4.
  folder.Write("a1.npy", Npy("<f8", "(3, 1)", Raw(std::vector<double>{1, 2, std::nan("")})));
  folder.Write("a2.npy", Npy("<f8", "(1, 1)", Raw(std::vector<double>{4})));
  folder.Write("a3.npy", Npy("<f8", "(2, 1)", Raw(std::vector<double>{5, 6})));
  std::vector<double> seen;
  EXPECT_TRUE(part_of(folder.Path("a*.npy"), 1, 4, seen).ok());
  EXPECT_TRUE(part_of(folder.Path("a*.npy"), 3, 4, seen).ok());
  EXPECT_TRUE(part_of(folder.Path("a*.npy"), 4, 4, seen).ok());
  EXPECT_THAT(seen, ElementsAre(1, 4, 5, 6));
  EXPECT_THAT(part_of(folder.Path("a*.npy"), 2, 4, seen).message(), HasSubstr("NaN"));
  // Pictures: the second and the fourth are none.
  for (const int k : {1, 3, 5, 6}) {
    folder.Write(StrCat("set/", k, ".png"), Png(1, 1, 0, 8, std::string(1, static_cast<char>(k))));
  }
  folder.Write("set/2.png", "no picture");
  folder.Write("set/4.png", "no picture");
  seen.clear();
  EXPECT_TRUE(part_of(folder.Path("set"), 1, 6, seen).ok());
  EXPECT_TRUE(part_of(folder.Path("set"), 3, 6, seen).ok());
  EXPECT_TRUE(part_of(folder.Path("set"), 3, 3, seen).ok());
  EXPECT_THAT(seen, ElementsAre(1, 3, 5, 6));
  EXPECT_THAT(part_of(folder.Path("set"), 1, 2, seen).message(), HasSubstr("2.png"));
}

}  // namespace
}  // namespace mergeplan
