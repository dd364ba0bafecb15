#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

// jpeglib.h needs size_t and FILE to be known.
#include <jpeglib.h>
#include <png.h>

#include "planner/data/npz.h"
#include "planner/data/samples.h"
#include "tests/planner/data/writers.h"

// Small valid files of every kind with one byte changed, or cut short, at hundreds of places. Each
// must be read or refused with an error that names it; nothing may crash, which the build with
// sanitizers sharpens.
namespace mergeplan {
namespace {

using testing::Gzip;
using ::testing::HasSubstr;
using testing::Idx;
using testing::Jpeg;
using testing::Npy;
using testing::Pattern;
using testing::Png;
using testing::Raw;
using testing::ReadAll;
using testing::Rows;
using testing::Tar;
using testing::TempFolder;
using testing::Zip;

struct Case {
  std::string name;     // of the file; "set/x.png" for a folder with a picture
  std::string bytes;    // intact
  bool has_checksums;   // what can be read at all is what was written
  std::size_t padding;  // bytes at the end that may be cut
};

std::vector<Case> Cases() {
  const std::vector<float> floats = {1, -2, 3.5F, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const std::string npy = Npy("<f4", "(3, 2, 2)", Raw(floats));
  const std::string idx = Idx(0x08, {5, 4, 4}, Pattern(4, 4, 5));
  const std::string grey = Png(9, 7, PNG_COLOR_TYPE_GRAY, 8, Pattern(9, 7, 1));
  const std::string palette = Png(9, 7, PNG_COLOR_TYPE_PALETTE, 8, Pattern(9, 7, 1), true);
  const std::string deep = Png(9, 7, PNG_COLOR_TYPE_RGB_ALPHA, 16, Pattern(9, 7, 8));
  const std::string jpeg = Jpeg(24, 20, JCS_RGB, Pattern(24, 20, 3));
  const std::string progressive = Jpeg(24, 20, JCS_RGB, Pattern(24, 20, 3), true);
  const std::string cmyk = Jpeg(16, 16, JCS_CMYK, Pattern(16, 16, 4));
  const std::string tar = Tar({{"0.png", grey}, {"0.cls", "3"}, {"1.png", grey}});
  return {
      {"a.npy", npy, false, 0},
      {"f.npy", Npy("<f4", "(3, 2, 2)", Raw(floats), true), false, 0},
      {"stored.npz", Zip({{"x.npy", npy}}), true, 0},
      {"deflated.npz", Zip({{"x.npy", npy, true}}), true, 0},
      {"zip64.npz", Zip({{"x.npy", npy, true}}, true), true, 0},
      {"images-idx3-ubyte", idx, false, 0},
      {"images-idx3-ubyte.gz", Gzip(idx), true, 0},
      {"grey/x.png", grey, true, 0},
      {"palette/x.png", palette, true, 0},
      {"deep/x.png", deep, true, 0},
      {"jpeg/x.jpg", jpeg, false, 0},
      {"progressive/x.jpg", progressive, false, 0},
      {"cmyk/x.jpg", cmyk, false, 0},
      {"a.tar", tar, false, 1024},
      {"a.tar.gz", Gzip(tar), false, 24},
  };
}

class Damage : public ::testing::TestWithParam<Case> {
 protected:
  // The path to open: the folder of a picture, or the file.
  std::string Put(std::string_view bytes) const {
    const std::string path = folder_.Write(GetParam().name, bytes);
    const std::size_t slash = GetParam().name.find('/');
    return slash == std::string::npos ? path : folder_.Path(GetParam().name.substr(0, slash));
  }
  TempFolder folder_;
};

TEST_P(Damage, IsReadOrRefused) {
  const std::string& intact = GetParam().bytes;
  const absl::StatusOr<Rows> original = ReadAll(Put(intact));
  ASSERT_TRUE(original.ok()) << original.status();
  const std::size_t step = std::max<std::size_t>(1, intact.size() / 200);
  int refused = 0;
  for (std::size_t at = 0; at < intact.size(); at += step) {
    for (const int change : {0x01, 0x80, 0xFF}) {
      std::string bytes = intact;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      const std::string path = Put(bytes);
      const absl::StatusOr<Rows> rows = ReadAll(path);
      if (!rows.ok()) {
        ++refused;
        ASSERT_THAT(std::string(rows.status().message()), HasSubstr(path));
        ASSERT_NE(rows.status().code(), absl::StatusCode::kInternal) << rows.status();
      } else if (GetParam().has_checksums) {
        ASSERT_EQ(rows->values, original->values) << "byte " << at << " changed by " << change;
      }
      if (GetParam().name.ends_with(".npz")) {
        ReadNpzArray(path, "x").IgnoreError();
        NpzNames(path).IgnoreError();
      }
    }
  }
  EXPECT_GT(refused, 10);
}

TEST_P(Damage, CutShortIsRefused) {
  const std::string& intact = GetParam().bytes;
  const std::size_t step = std::max<std::size_t>(1, intact.size() / 150);
  for (std::size_t size = 0; size < intact.size() - GetParam().padding; size += step) {
    const std::string path = Put(intact.substr(0, size));
    const absl::StatusOr<Rows> rows = ReadAll(path);
    ASSERT_FALSE(rows.ok()) << "cut to " << size << " of " << intact.size() << " bytes";
    ASSERT_THAT(std::string(rows.status().message()), HasSubstr(path));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryKind, Damage, ::testing::ValuesIn(Cases()),
                         [](const ::testing::TestParamInfo<Case>& info) {
                           std::string name = info.param.name;
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace mergeplan
