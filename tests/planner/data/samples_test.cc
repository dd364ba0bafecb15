#include "planner/data/samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tests/planner/data/writers.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::ErrorOf;
using testing::Gzip;
using ::testing::HasSubstr;
using testing::Idx;
using testing::Npy;
using testing::Raw;
using testing::ReadAll;
using testing::Rows;
using testing::TempFolder;
using testing::Zip;

std::vector<double> UpTo(int n) {
  std::vector<double> out;
  for (int i = 0; i < n; ++i) out.push_back(static_cast<float>(i));
  return out;
}

TEST(NpySamples, StreamsRowsOfAnyTypeAndBatch) {
  const TempFolder folder;
  const std::vector<double> doubles = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const std::string path = folder.Write("a.npy", Npy("<f8", "(3, 2, 2)", Raw(doubles)));
  for (const int batch : {1, 2, 3, 100}) {
    const auto rows = ReadAll(path, {}, batch);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_THAT(rows->shape, ElementsAre(2, 2));
    EXPECT_EQ(rows->samples, 3);
    EXPECT_FALSE(rows->is_pixels);
    EXPECT_EQ(rows->values, UpTo(12));
  }
  const auto integers = ReadAll(
      folder.Write("b.npy", Npy(">i8", "(2, 2)", Raw<std::int64_t>({-3, 4, 1 << 30, 6}, true))));
  ASSERT_TRUE(integers.ok()) << integers.status();
  EXPECT_THAT(integers->values, ElementsAre(-3, 4, 1 << 30, 6));
  EXPECT_FALSE(integers->is_pixels);
}

TEST(NpySamples, OneAxisGivesSamplesOfOneDimension) {
  const TempFolder folder;
  const auto rows = ReadAll(folder.Write("a.npy", Npy("|u1", "(3,)", "\x01\x02\x03")));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->shape, ElementsAre(1));
  EXPECT_EQ(rows->samples, 3);
  EXPECT_FALSE(rows->is_pixels);  // a list of bytes is labels
  const auto pixels = ReadAll(folder.Write("b.npy", Npy("|u1", "(1, 3)", "\x01\x02\x03")));
  ASSERT_TRUE(pixels.ok()) << pixels.status();
  EXPECT_TRUE(pixels->is_pixels);
}

TEST(NpySamples, FortranOrderGivesTheSameRows) {
  const TempFolder folder;
  const int n = 11, a = 3, b = 2;
  std::vector<std::int16_t> fortran;
  for (int k = 0; k < b; ++k)
    for (int j = 0; j < a; ++j)
      for (int i = 0; i < n; ++i) {
        fortran.push_back(static_cast<std::int16_t>((i * a + j) * b + k));
      }
  const std::string npy = Npy(">i2", "(11, 3, 2)", Raw(fortran, true), /*fortran=*/true);
  for (const std::string& path : {folder.Write("a.npy", npy), folder.Write("a.npy.gz", Gzip(npy)),
                                  folder.Write("s.npz", Zip({{"x.npy", npy}})),
                                  folder.Write("d.npz", Zip({{"x.npy", npy, true}}))}) {
    for (const int batch : {1, 4, 50}) {
      const auto rows = ReadAll(path, {}, batch);
      ASSERT_TRUE(rows.ok()) << rows.status();
      EXPECT_THAT(rows->shape, ElementsAre(3, 2));
      EXPECT_EQ(rows->values, UpTo(n * a * b)) << path;
    }
  }
}

TEST(NpzSamples, ReadsTheArrayThatIsNamed) {
  const TempFolder folder;
  const std::string x = Npy("<f4", "(2, 2)", Raw<float>({0, 1, 2, 3}));
  const std::string y = Npy("|u1", "(4,)", "\x01\x02\x03\x04");
  const std::string one = folder.Write("one.npz", Zip({{"x.npy", x, true}, {"readme.txt", "hi"}}));
  const auto only = ReadAll(one);
  ASSERT_TRUE(only.ok()) << only.status();
  EXPECT_EQ(only->values, UpTo(4));
  const std::string two = folder.Write("two.npz", Zip({{"x.npy", x, true}, {"y.npy", y, true}}));
  EXPECT_THAT(ErrorOf(two), AllOf(HasSubstr("2 arrays (x, y)"), HasSubstr("--array")));
  SamplesOptions options;
  options.array = "y";
  const auto named = ReadAll(two, options);
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_THAT(named->shape, ElementsAre(1));
  options.array = "z";
  EXPECT_THAT(ErrorOf(two, options), HasSubstr("no array 'z', expected one of x, y"));
  options.array = "x";
  EXPECT_THAT(ErrorOf(folder.Write("x.npy", x), options), HasSubstr("leave --array out"));
  EXPECT_THAT(ErrorOf(folder.Write("z.npz", Zip({{"readme.txt", "hi"}}))),
              HasSubstr("without .npy members"));
  EXPECT_FALSE(ReadAll(folder.Write("e.npz", Zip({}))).ok());
}

TEST(IdxSamples, ReadsEveryTypePlainAndGzipped) {
  const TempFolder folder;
  const std::vector<std::pair<int, std::string>> types = {
      {0x08, Raw<std::uint8_t>({0, 1, 2, 3, 4, 5, 6, 7})},
      {0x09, Raw<std::int8_t>({0, 1, 2, 3, 4, 5, 6, 7})},
      {0x0B, Raw<std::int16_t>({0, 1, 2, 3, 4, 5, 6, 7}, true)},
      {0x0C, Raw<std::int32_t>({0, 1, 2, 3, 4, 5, 6, 7}, true)},
      {0x0D, Raw<float>({0, 1, 2, 3, 4, 5, 6, 7}, true)},
      {0x0E, Raw<double>({0, 1, 2, 3, 4, 5, 6, 7}, true)}};
  for (const auto& [type, data] : types) {
    const std::string idx = Idx(type, {2, 2, 2}, data);
    for (const std::string& bytes :
         {idx, Gzip(idx), Gzip(idx.substr(0, 9)) + Gzip(idx.substr(9))}) {
      const auto rows = ReadAll(folder.Write("a", bytes));
      ASSERT_TRUE(rows.ok()) << rows.status();
      EXPECT_THAT(rows->shape, ElementsAre(2, 2));
      EXPECT_EQ(rows->values, UpTo(8));
      EXPECT_EQ(rows->is_pixels, type == 0x08);
    }
  }
  const auto labels = ReadAll(folder.Write("labels", Idx(0x08, {3}, "\x01\x02\x03")));
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_THAT(labels->shape, ElementsAre(1));
  EXPECT_FALSE(labels->is_pixels);
}

TEST(IdxSamples, DamageIsAnError) {
  const TempFolder folder;
  const std::string idx = Idx(0x08, {2, 2, 2}, "12345678");
  EXPECT_THAT(ErrorOf(folder.Write("a", idx.substr(0, 20))),
              AllOf(HasSubstr("has 20 bytes, expected 24"), HasSubstr("truncated")));
  EXPECT_THAT(ErrorOf(folder.Write("b", idx + "9")), HasSubstr("has 25 bytes, expected 24"));
  EXPECT_THAT(ErrorOf(folder.Write("c", idx.substr(0, 10))), HasSubstr("inside the IDX header"));
  EXPECT_THAT(ErrorOf(folder.Write("d", Idx(0x0A, {1}, "1"))), HasSubstr("IDX type 0x0a"));
  EXPECT_THAT(ErrorOf(folder.Write("e", Idx(0x08, {}, "1"))), HasSubstr("declares 0 axes"));
  EXPECT_THAT(ErrorOf(folder.Write("f", Idx(0x08, {0, 2, 2}, ""))), HasSubstr("no sample"));
  EXPECT_THAT(ErrorOf(folder.Write("g", Idx(0x08, {2, 0}, ""))), HasSubstr("samples of the shape"));
  const std::uint32_t most = 0xFFFFFFFF;
  EXPECT_THAT(ErrorOf(folder.Write("h", Idx(0x0E, {most, most, most}, "1"))),
              HasSubstr("no file can hold"));
  EXPECT_THAT(ErrorOf(folder.Write("i.gz", Gzip(Idx(0x08, {most, 1000}, "1")))),
              HasSubstr("truncated"));
  // What a gzip file only tells while it is read.
  EXPECT_THAT(ErrorOf(folder.Write("j.gz", Gzip(idx.substr(0, 21)))),
              AllOf(HasSubstr("truncated, ends in sample 1"), HasSubstr("expected 2 samples")));
  EXPECT_THAT(ErrorOf(folder.Write("k.gz", Gzip(idx + "9"))), HasSubstr("goes on after the 24"));
  const std::string gz = Gzip(idx);
  EXPECT_THAT(ErrorOf(folder.Write("l.gz", gz.substr(0, gz.size() - 3))), HasSubstr("truncated"));
  std::string wrong = gz;
  wrong[wrong.size() - 6] ^= 1;  // its checksum
  EXPECT_THAT(ErrorOf(folder.Write("m.gz", wrong)), HasSubstr("damaged"));
}

TEST(ArraySamples, DamageIsAnError) {
  const TempFolder folder;
  EXPECT_THAT(ErrorOf(folder.Write("a.npy", Npy("<f4", "(2, 2)", "123456789"))),
              AllOf(HasSubstr("truncated"), HasSubstr("found 9 bytes"), HasSubstr("expected 16")));
  EXPECT_THAT(ErrorOf(folder.Write("b.npy", Npy("<f4", "(1, 1)", "123456789"))),
              HasSubstr("bytes, expected"));
  EXPECT_THAT(ErrorOf(folder.Write("c.npy", Npy("<f4", "()", "1234"))),
              HasSubstr("is a single number"));
  EXPECT_THAT(ErrorOf(folder.Write("d.npy", Npy("<f4", "(0, 3)", ""))), HasSubstr("no sample"));
  EXPECT_THAT(ErrorOf(folder.Write("e.npy", Npy("<f4", "(3, 0)", ""))),
              HasSubstr("samples of the shape (0,)"));
  EXPECT_THAT(ErrorOf(folder.Write("f.npy", Npy("|S2", "(1, 2)", "1234"))),
              HasSubstr("byte strings"));
  EXPECT_THAT(ErrorOf(folder.Write("g.npz", Zip({{"x.npy", Npy("<f4", "(2, 2)", "1234")}}))),
              AllOf(HasSubstr("member x.npy"), HasSubstr("truncated")));
  const std::string wide = Npy("<f4", "(1, 1000000000)", "1234");
  EXPECT_THAT(ErrorOf(folder.Write("h.npy", wide)), HasSubstr("truncated"));
  EXPECT_THAT(ErrorOf(folder.Write("i.npy.gz", Gzip(wide))), HasSubstr("truncated"));
}

TEST(ArraySamples, ASampleTooWideIsRefused) {
  const TempFolder folder;
  const std::string path = folder.Write("a.npy", Npy("|u1", "(1, 300000000)", ""));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + 300000000);  // sparse
  EXPECT_THAT(ErrorOf(path), HasSubstr("values in a sample"));
}

TEST(Nonfinite, IsAnErrorThatCounts) {
  const TempFolder folder;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> values(20 * 3, 1);
  values[3 * 4 + 1] = nan;
  values[3 * 4 + 2] = inf;
  values[3 * 9] = -inf;
  values[3 * 19 + 2] = nan;
  for (const bool fortran : {false, true}) {
    std::vector<float> stored = values;
    if (fortran) {
      for (std::size_t i = 0; i < 20; ++i)
        for (std::size_t j = 0; j < 3; ++j) stored[j * 20 + i] = values[i * 3 + j];
    }
    const std::string path = folder.Write("a.npy", Npy("<f4", "(20, 3)", Raw(stored), fortran));
    for (const int batch : {1, 7, 100}) {
      const auto error = ReadAll(path, {}, batch);
      EXPECT_THAT(std::string(error.status().message()),
                  AllOf(HasSubstr("sample 4 (counted from 0) has 2 values"),
                        HasSubstr("as 3 of 20 samples have"), HasSubstr("--skip-nonfinite")));
      SamplesOptions options;
      options.skip_nonfinite = true;
      const auto rows = ReadAll(path, options, batch);
      ASSERT_TRUE(rows.ok()) << rows.status();
      EXPECT_EQ(rows->samples, 17);
      EXPECT_EQ(rows->skipped, 3);
      EXPECT_THAT(rows->values, ElementsAreArray(std::vector<double>(17 * 3, 1)));
    }
  }
}

TEST(Nonfinite, KeepsTheOrderOfTheOthers) {
  const TempFolder folder;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string path =
      folder.Write("a.npy", Npy("<f8", "(7,)", Raw<double>({0, nan, nan, 1, 2, 1e300, 3})));
  SamplesOptions options;
  options.skip_nonfinite = true;
  for (const int batch : {1, 2, 3, 100}) {
    const auto rows = ReadAll(path, options, batch);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_THAT(rows->values, ElementsAre(0, 1, 2, 1e300, 3));
    EXPECT_EQ(rows->skipped, 2);  // 1e300 is large, but finite
  }
}

TEST(Nonfinite, NothingLeftIsAnError) {
  const TempFolder folder;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  SamplesOptions options;
  options.skip_nonfinite = true;
  EXPECT_THAT(ErrorOf(folder.Write("a.npy", Npy("<f4", "(2,)", Raw<float>({nan, nan}))), options),
              HasSubstr("all 2 samples"));
}

TEST(OpenSamples, SaysWhatItFound) {
  const TempFolder folder;
  EXPECT_EQ(ReadAll(folder.Path("missing")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(ErrorOf(folder.Write("empty", "")), HasSubstr("is empty"));
  EXPECT_THAT(ErrorOf(folder.Write("text", "some words")),
              AllOf(HasSubstr("starts with 'some wor...'"), HasSubstr("expected .npy")));
  EXPECT_THAT(ErrorOf(folder.Write("text.gz", Gzip("some words"))),
              HasSubstr("holds gzipped data that start with 'some wor...'"));
  EXPECT_FALSE(ReadAll(folder.Write("cut.gz", "\x1f\x8b")).ok());
  const std::string pipe = folder.Path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(ErrorOf(pipe), HasSubstr("a device or a pipe"));
}

TEST(OpenSamples, AnErrorStaysAndRoomIsChecked) {
  const TempFolder folder;
  const std::string gz = folder.Write("a.gz", Gzip(Idx(0x08, {3, 2}, "12345")));
  auto source = OpenSamples(gz, {});
  ASSERT_TRUE(source.ok()) << source.status();
  std::vector<double> rows(2);
  EXPECT_EQ(*(*source)->Read(absl::MakeSpan(rows)), 1);
  EXPECT_EQ(*(*source)->Read(absl::MakeSpan(rows)), 1);
  const auto first = (*source)->Read(absl::MakeSpan(rows));
  EXPECT_EQ(first.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ((*source)->Read(absl::MakeSpan(rows)).status(), first.status());
  auto again = OpenSamples(gz, {});
  EXPECT_THAT(std::string((*again)->Read(absl::Span<double>()).status().message()),
              HasSubstr("room for 0 values"));
}

// Writes 256 MiB of pixels as a deflated member in a file of some hundred kilobytes.
std::string LongNpz(const TempFolder& folder, std::int64_t samples, std::int64_t dimensions) {
  const std::string header = Npy("|u1", absl::StrCat("(", samples, ", ", dimensions, ")"), "");
  const std::string block(1 << 20, '\0');
  z_stream stream = {};
  deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::string packed;
  std::uint32_t crc = 0;
  std::int64_t total = 0;
  const auto add = [&](std::string_view bytes, int flush) {
    crc = static_cast<std::uint32_t>(
        crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
    total += static_cast<std::int64_t>(bytes.size());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    char out[4096];
    do {
      stream.next_out = reinterpret_cast<Bytef*>(out);
      stream.avail_out = sizeof out;
      deflate(&stream, flush);
      packed.append(out, sizeof out - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  add(header, Z_NO_FLUSH);
  for (std::int64_t done = 0; done < samples * dimensions;
       done += static_cast<std::int64_t>(block.size())) {
    add(block, Z_NO_FLUSH);
  }
  add("", Z_FINISH);
  deflateEnd(&stream);
  // Around it goes a zip that was made for an empty member, with its numbers replaced.
  std::string zip = Zip({{"x.npy", "", true}});
  const auto number = [](std::uint64_t value) {
    return Raw<std::uint32_t>({static_cast<std::uint32_t>(value)});
  };
  const std::string sizes =
      number(crc) + number(packed.size()) + number(static_cast<std::uint64_t>(total));
  const std::size_t data = 30 + 5, old = 2;  // an empty deflate stream is two bytes long
  const std::size_t central = data + old;
  zip.replace(14, 12, sizes);
  zip.replace(central + 16, 12, sizes);
  zip.replace(zip.size() - 6, 4, number(data + packed.size()));
  zip.replace(data, old, packed);
  return folder.Write("long.npz", zip);
}

TEST(OpenSamples, MemoryDoesNotGrowWithTheNumberOfSamples) {
  const TempFolder folder;
  const std::int64_t samples = 1 << 18, dimensions = 1 << 10;
  const std::string path = LongNpz(folder, samples, dimensions);
  const auto peak_kilobytes = [] {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const long before = peak_kilobytes();
  auto source = OpenSamples(path, {});
  ASSERT_TRUE(source.ok()) << source.status();
  std::vector<double> rows(static_cast<std::size_t>(512 * dimensions));
  std::int64_t read = 0;
  for (;;) {
    const absl::StatusOr<int> n = (*source)->Read(absl::MakeSpan(rows));
    ASSERT_TRUE(n.ok()) << n.status();
    if (*n == 0) break;
    read += *n;
  }
  EXPECT_EQ(read, samples);
  EXPECT_LT(peak_kilobytes() - before, 64 * 1024);  // of 256 MiB in the file, 1 GiB as floats
}

}  // namespace
}  // namespace mergeplan
