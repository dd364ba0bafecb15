#include "planner/data/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "tests/planner/data/writers.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Npy;
using testing::NpyWithHeader;
using testing::Raw;
using testing::TempFolder;
using testing::Zip;

using Shape = std::vector<std::int64_t>;

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

template <typename T>
void ExpectReads(const std::string& type, const std::vector<T>& values) {
  const TempFolder folder;
  for (const bool big : {false, true}) {
    const std::string descr = absl::StrCat(sizeof(T) == 1 ? "|" : big ? ">" : "<", type);
    const std::string path =
        folder.Write("a.npy", Npy(descr, absl::StrCat("(", values.size(), ",)"), Raw(values, big)));
    const absl::StatusOr<NpyArray> array = ReadNpy(path);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->dtype, descr);
    EXPECT_EQ(array->shape, Shape{static_cast<std::int64_t>(values.size())});
    ASSERT_EQ(array->values.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(array->values[i], static_cast<double>(values[i])) << descr << " " << i;
    }
  }
}

template <typename T>
void ExpectReadsLimits(const std::string& type) {
  ExpectReads<T>(type, {0, 1, 2, std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max()});
}

TEST(Npy, ReadsEveryNumberTypeInBothByteOrders) {
  ExpectReadsLimits<std::uint8_t>("u1");
  ExpectReadsLimits<std::uint16_t>("u2");
  ExpectReadsLimits<std::uint32_t>("u4");
  ExpectReadsLimits<std::uint64_t>("u8");
  ExpectReadsLimits<std::int8_t>("i1");
  ExpectReadsLimits<std::int16_t>("i2");
  ExpectReadsLimits<std::int32_t>("i4");
  ExpectReadsLimits<std::int64_t>("i8");
  ExpectReads<float>("f4", {0.5F, -1e-45F, 3e38F});
  ExpectReads<double>("f8", {0.1, -5e-324, 1e308});
}

TEST(Npy, ReadsBoolAsZeroAndOne) {
  const TempFolder folder;
  const auto array =
      ReadNpy(folder.Write("a.npy", Npy("|b1", "(3,)", std::string("\x00\x01\x07", 3))));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_THAT(array->values, ElementsAre(0, 1, 1));
}

TEST(Npy, ReadsHalfPrecision) {
  const TempFolder folder;
  const std::vector<std::uint16_t> halves = {0x3C00, 0xC000, 0x0001, 0x03FF, 0x0400,
                                             0x7BFF, 0x8000, 0x7C00, 0xFC00, 0x7E00};
  for (const bool big : {false, true}) {
    const auto array =
        ReadNpy(folder.Write("a.npy", Npy(big ? ">f2" : "<f2", "(10,)", Raw(halves, big))));
    ASSERT_TRUE(array.ok()) << array.status();
    const std::vector<double>& v = array->values;
    EXPECT_EQ(v[0], 1);
    EXPECT_EQ(v[1], -2);
    EXPECT_EQ(v[2], std::ldexp(1.0, -24));
    EXPECT_EQ(v[3], std::ldexp(1023.0, -24));
    EXPECT_EQ(v[4], std::ldexp(1.0, -14));
    EXPECT_EQ(v[5], 65504);
    EXPECT_TRUE(v[6] == 0 && std::signbit(v[6]));
    EXPECT_EQ(v[7], std::numeric_limits<double>::infinity());
    EXPECT_EQ(v[8], -std::numeric_limits<double>::infinity());
    EXPECT_TRUE(std::isnan(v[9]));
  }
}

TEST(Npy, ReadsZeroDimensionalNumbersAndTexts) {
  const TempFolder folder;
  const auto number = ReadNpy(folder.Write("a.npy", Npy("<f8", "()", Raw<double>({2.5}))));
  ASSERT_TRUE(number.ok()) << number.status();
  EXPECT_THAT(number->shape, ElementsAre());
  EXPECT_EQ(number->size(), 1);
  EXPECT_THAT(number->values, ElementsAre(2.5));

  const auto text = ReadNpy(folder.Write("b.npy", Npy("|S6", "()", std::string("none\0\0", 6))));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->text, "none");
  EXPECT_THAT(text->values, ElementsAre());

  const auto texts = ReadNpy(folder.Write("c.npy", Npy("|S2", "(2,)", std::string("a\0bc", 4))));
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_EQ(texts->text, std::string("a\0bc", 4));
}

TEST(Npy, BringsFortranOrderIntoCOrder) {
  const TempFolder folder;
  const int a = 2, b = 3, c = 4;
  std::vector<float> fortran;
  for (int k = 0; k < c; ++k)
    for (int j = 0; j < b; ++j)
      for (int i = 0; i < a; ++i) fortran.push_back(static_cast<float>(100 * i + 10 * j + k));
  const auto array =
      ReadNpy(folder.Write("a.npy", Npy("<f4", "(2, 3, 4)", Raw(fortran), /*fortran=*/true)));
  ASSERT_TRUE(array.ok()) << array.status();
  std::size_t at = 0;
  for (int i = 0; i < a; ++i)
    for (int j = 0; j < b; ++j)
      for (int k = 0; k < c; ++k) EXPECT_EQ(array->values[at++], 100 * i + 10 * j + k);
}

TEST(Npy, ReadsFormatVersionsOneToThreeAndOldHeaders) {
  const TempFolder folder;
  for (const int version : {1, 2, 3}) {
    const auto array = ReadNpy(
        folder.Write("a.npy", Npy("<i4", "(2,)", Raw<std::int32_t>({7, 8}), false, version)));
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_THAT(array->values, ElementsAre(7, 8));
  }
  const auto old = ReadNpy(folder.Write(
      "b.npy", NpyWithHeader(R"({"shape": (1L, 2L), "fortran_order": False, "descr": "<i4"})",
                             Raw<std::int32_t>({7, 8}))));
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_THAT(old->shape, ElementsAre(1, 2));
  const auto newer =
      ReadNpy(folder.Write("c.npy", Npy("<i4", "(2,)", Raw<std::int32_t>({7, 8}), false, 4)));
  EXPECT_THAT(MessageOf(newer.status()), HasSubstr("version 4.0, expected 1, 2 or 3"));
}

TEST(Npy, RefusesWhatItCannotRead) {
  const TempFolder folder;
  const auto error = [&](std::string_view bytes) {
    const std::string path = folder.Write("bad.npy", bytes);
    const auto array = ReadNpy(path);
    EXPECT_FALSE(array.ok());
    EXPECT_THAT(MessageOf(array.status()), HasSubstr(path));
    return MessageOf(array.status());
  };
  EXPECT_THAT(error(""), HasSubstr("is empty"));
  EXPECT_THAT(error("hello world"), HasSubstr("starts with 'hello wo'"));
  EXPECT_THAT(error("\x93NUM"), HasSubstr("expected the .npy mark"));
  EXPECT_THAT(error("\x93NUMPY\x01"), HasSubstr("ends inside the .npy header"));
  EXPECT_THAT(error(Npy("|O", "(1,)", "12345678")), HasSubstr("pickled"));
  EXPECT_THAT(error(Npy("<c16", "(1,)", "")), HasSubstr("complex"));
  EXPECT_THAT(error(Npy("<U3", "(1,)", "")), HasSubstr("text"));
  EXPECT_THAT(error(Npy("<f16", "(1,)", "")), HasSubstr("'<f16'"));
  EXPECT_THAT(error(Npy("<f3", "(1,)", "")), HasSubstr("'<f3'"));
  EXPECT_THAT(error(Npy("<M8[ns]", "(1,)", "")), HasSubstr("'<M8[ns]'"));
  EXPECT_THAT(error(NpyWithHeader("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}",
                                  "1234")),
              HasSubstr("records"));
  EXPECT_THAT(error(NpyWithHeader("{'descr': '<f4', 'shape': ()}", "1234")),
              HasSubstr("expected the keys"));
  EXPECT_THAT(error(NpyWithHeader("{'descr': '<f4', 'what': 1}", "1234")), HasSubstr("'what'"));
  EXPECT_THAT(error(Npy("<f4", "(2, -1)", "")), HasSubstr("whole number"));
  EXPECT_THAT(error(Npy("<f4", "(2, 99999999999999999999)", "")), HasSubstr("whole number"));
  EXPECT_THAT(error(Npy("<f4", "(3,)", "12345678")),
              AllOf(HasSubstr("truncated"), HasSubstr("found 8 bytes"), HasSubstr("expected 12")));
  EXPECT_THAT(error(Npy("<f4", "(1,)", "12345678")), HasSubstr("goes on after"));
}

TEST(Npy, RefusesHugeShapesBeforeTakingMemory) {
  const TempFolder folder;
  // 2^60 bytes, and a product that does not fit 64 bits: reserving either would fail or throw.
  const std::string large = Npy("<f8", "(1152921504606846976,)", "12345678");
  const std::string beyond = Npy("<f8", "(4294967296, 4294967296, 4294967296)", "12345678");
  for (const std::string& bytes : {large, beyond}) {
    EXPECT_FALSE(ReadNpy(folder.Write("a.npy", bytes)).ok());
    const auto zipped = ReadNpzArray(folder.Write("a.npz", Zip({{"x.npy", bytes, true}})), "x");
    EXPECT_FALSE(zipped.ok());
    EXPECT_THAT(MessageOf(zipped.status()), HasSubstr("a.npz: member x.npy"));
  }
}

TEST(Npz, ReadsStoredDeflatedAndZip64Members) {
  const TempFolder folder;
  const std::string x = Npy("<f8", "(2,)", Raw<double>({1, 2}));
  const std::string y = Npy("<i4", "(1, 3)", Raw<std::int32_t>({3, 4, 5}));
  for (const bool deflate : {false, true}) {
    for (const bool zip64 : {false, true}) {
      const std::string path = folder.Write(
          "a.npz",
          Zip({{"x.npy", x, deflate}, {"notes.txt", "hi", deflate}, {"sub/y.npy", y, deflate}},
              zip64));
      const auto names = NpzNames(path);
      ASSERT_TRUE(names.ok()) << names.status();
      EXPECT_THAT(*names, ElementsAre("x", "sub/y"));
      const auto array = ReadNpzArray(path, "sub/y");
      ASSERT_TRUE(array.ok()) << array.status();
      EXPECT_THAT(array->values, ElementsAre(3, 4, 5));
      EXPECT_THAT(array->shape, ElementsAre(1, 3));
      const auto suffixed = ReadNpzArray(path, "x.npy");
      ASSERT_TRUE(suffixed.ok()) << suffixed.status();
      EXPECT_THAT(suffixed->values, ElementsAre(1, 2));
      const auto missing = ReadNpzArray(path, "z");
      EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
      EXPECT_THAT(MessageOf(missing.status()),
                  AllOf(HasSubstr("no array 'z'"), HasSubstr("x, sub/y")));
    }
  }
}

TEST(Npz, LeavesTheOtherMembersAlone) {
  const TempFolder folder;
  const std::string x = Npy("<f8", "(2,)", Raw<double>({1, 2}));
  std::string bytes = Zip({{"x.npy", x}, {"y.npy", x}});
  bytes[bytes.find(Raw<double>({1, 2}))] ^= 1;  // the data of x, whose checksum is then wrong
  const std::string path = folder.Write("a.npz", bytes);
  EXPECT_TRUE(ReadNpzArray(path, "y").ok());
  const auto damaged = ReadNpzArray(path, "x");
  EXPECT_EQ(damaged.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(damaged.status()), AllOf(HasSubstr("member x.npy"), HasSubstr("CRC")));
}

TEST(Npz, TakesAnNpyAndRefusesOtherFiles) {
  const TempFolder folder;
  const std::string npy = folder.Write("a.npy", Npy("<f8", "(2,)", Raw<double>({1, 2})));
  EXPECT_TRUE(ReadNpzArray(npy, "whatever").ok());
  EXPECT_THAT(MessageOf(NpzNames(npy).status()), HasSubstr("without names"));
  EXPECT_EQ(NpzNames(folder.Path("none")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(NpzNames(folder.Path(".")).status()), HasSubstr("is a folder"));
  EXPECT_THAT(MessageOf(NpzNames(folder.Write("b", "")).status()), HasSubstr("is empty"));
  EXPECT_THAT(MessageOf(NpzNames(folder.Write("c", "%PDF")).status()), HasSubstr("'%PDF'"));
  const std::string zip = Zip({{"x.npy", "no array"}});
  EXPECT_FALSE(NpzNames(folder.Write("d", zip.substr(0, zip.size() - 1))).ok());
  EXPECT_THAT(MessageOf(ReadNpzArray(folder.Write("e", zip), "x").status()),
              HasSubstr("e: member x.npy: starts with 'no array'"));
}

TEST(NpzWriter, RoundTripsAllTypes) {
  const TempFolder folder;
  const std::vector<double> values = {0, 1, 2, 3, 254, 255};
  NpzWriter writer;
  writer.Add("a", {2, 3}, values);
  writer.Add("group/b", {6}, values, NpzWriter::Type::kFloat32);
  writer.Add("c", {3, 1, 2}, values, NpzWriter::Type::kInt64);
  writer.Add("d", {6}, values, NpzWriter::Type::kUint8);
  writer.Add("scalar", {}, {0.1});
  writer.Add("empty", {0, 4}, {});
  const std::string path = folder.Path("out.npz");
  ASSERT_TRUE(writer.Write(path).ok());
  EXPECT_THAT(*NpzNames(path), ElementsAre("a", "group/b", "c", "d", "scalar", "empty"));
  for (const auto& [name, dtype, shape] :
       std::vector<std::tuple<std::string, std::string, Shape>>{{"a", "<f8", {2, 3}},
                                                                {"group/b", "<f4", {6}},
                                                                {"c", "<i8", {3, 1, 2}},
                                                                {"d", "|u1", {6}}}) {
    const auto array = ReadNpzArray(path, name);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->dtype, dtype);
    EXPECT_EQ(array->shape, shape);
    EXPECT_EQ(array->values, values);
  }
  EXPECT_THAT(ReadNpzArray(path, "scalar")->values, ElementsAre(0.1));
  EXPECT_THAT(ReadNpzArray(path, "empty")->shape, ElementsAre(0, 4));
}

TEST(NpzWriter, BytesDependOnTheContentOnly) {
  const auto make = [](const char* zone) {
    ::setenv("TZ", zone, 1);
    ::tzset();
    NpzWriter writer;
    writer.Add("a", {2}, {1, 2});
    return *writer.Bytes();
  };
  const char* before = std::getenv("TZ");
  const std::string old = before != nullptr ? before : "";
  const std::string first = make("Pacific/Auckland"), second = make("America/Los_Angeles");
  before != nullptr ? ::setenv("TZ", old.c_str(), 1) : ::unsetenv("TZ");
  EXPECT_EQ(first, second);
  EXPECT_THAT(first, HasSubstr("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"));
}

TEST(NpzWriter, RefusesWhatATypeCannotHold) {
  const auto error = [](Shape shape, const std::vector<double>& values, NpzWriter::Type type,
                        const std::string& name = "a") {
    NpzWriter writer;
    writer.Add(name, std::move(shape), values, type);
    const absl::StatusOr<std::string> bytes = writer.Bytes();
    EXPECT_FALSE(bytes.ok());
    return MessageOf(bytes.status());
  };
  using Type = NpzWriter::Type;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(error({1}, {256}, Type::kUint8), HasSubstr("value 0 is 256"));
  EXPECT_THAT(error({2}, {1, -1}, Type::kUint8), HasSubstr("value 1 is -1"));
  EXPECT_THAT(error({1}, {0.5}, Type::kInt64), HasSubstr("whole number"));
  EXPECT_THAT(error({1}, {nan}, Type::kInt64), HasSubstr("whole number"));
  EXPECT_THAT(error({1}, {1e19}, Type::kInt64), HasSubstr("int64"));
  EXPECT_THAT(error({1}, {1e39}, Type::kFloat32), HasSubstr("float32"));
  EXPECT_THAT(error({2, 2}, {1, 2, 3}, Type::kFloat64), HasSubstr("has 3 values, expected 4"));
  EXPECT_THAT(error({-1}, {}, Type::kFloat64), HasSubstr("negative"));
  EXPECT_THAT(error({1}, {1}, Type::kFloat64, ""), HasSubstr("expected a name"));
  EXPECT_THAT(error({1}, {1}, Type::kFloat64, "a\n"), HasSubstr("printable"));
  NpzWriter twice;
  twice.Add("a", {1}, {1});
  twice.Add("a", {1}, {1});
  EXPECT_THAT(MessageOf(twice.Bytes().status()), HasSubstr("added twice"));
  EXPECT_THAT(MessageOf(twice.Write("/nowhere/a.npz")), HasSubstr("/nowhere/a.npz: array a"));
}

TEST(NpzWriter, NumpyReadsWhatItWrites) {
  const char* chosen = std::getenv("MERGEPLAN_PYTHON");
  const std::string python = chosen != nullptr ? chosen : "python3";
  if (std::system((python + " -c 'import numpy' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << python << " has no numpy; name one that has in MERGEPLAN_PYTHON";
  }
  const TempFolder folder;
  NpzWriter writer;
  writer.Add("a", {2, 3}, {0.1, 1, 2, 3, 4, 1e300});
  writer.Add("b", {}, {7}, NpzWriter::Type::kInt64);
  writer.Add("c", {2}, {0, 255}, NpzWriter::Type::kUint8);
  writer.Add("d", {1, 1}, {0.5}, NpzWriter::Type::kFloat32);
  const std::string path = folder.Path("out.npz");
  ASSERT_TRUE(writer.Write(path).ok());
  const std::string script = folder.Write("check.py", R"(
import sys, zipfile, numpy as np
assert zipfile.ZipFile(sys.argv[1]).testzip() is None
z = np.load(sys.argv[1])
assert z.files == ['a', 'b', 'c', 'd'], z.files
assert z['a'].dtype == np.float64 and (z['a'] == [[0.1, 1, 2], [3, 4, 1e300]]).all()
assert z['b'].dtype == np.int64 and z['b'].shape == () and z['b'] == 7
assert z['c'].dtype == np.uint8 and (z['c'] == [0, 255]).all()
assert z['d'].dtype == np.float32 and (z['d'] == [[0.5]]).all()
# And back: what numpy writes.
a = np.arange(24, dtype='>f4').reshape(2, 3, 4)
np.savez(sys.argv[2], c=a, f=np.asfortranarray(a), h=a.astype(np.float16))
np.savez_compressed(sys.argv[3], c=a, f=np.asfortranarray(a), h=a.astype(np.float16))
)");
  const std::string stored = folder.Path("s.npz"), deflated = folder.Path("d.npz");
  ASSERT_EQ(
      std::system(absl::StrCat(python, " ", script, " ", path, " ", stored, " ", deflated).c_str()),
      0);
  std::vector<double> expected;
  for (int i = 0; i < 24; ++i) expected.push_back(i);
  for (const std::string& file : {stored, deflated}) {
    for (const char* name : {"c", "f", "h"}) {
      const auto array = ReadNpzArray(file, name);
      ASSERT_TRUE(array.ok()) << array.status();
      EXPECT_EQ(array->values, expected);
      EXPECT_THAT(array->shape, ElementsAre(2, 3, 4));
    }
  }
}

}  // namespace
}  // namespace mergeplan
