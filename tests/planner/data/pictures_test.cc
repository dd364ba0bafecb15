#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

// jpeglib.h needs size_t and FILE to be known.
#include <jpeglib.h>
#include <png.h>

#include "planner/data/image.h"
#include "planner/data/samples.h"
#include "tests/planner/data/writers.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::ErrorOf;
using testing::Gzip;
using ::testing::HasSubstr;
using testing::Jpeg;
using ::testing::Not;
using testing::Pattern;
using testing::Png;
using testing::ReadAll;
using testing::Rows;
using testing::Tar;
using testing::TarMember;
using testing::TempFolder;

Image Decoded(const std::string& bytes) {
  Image image;
  const absl::Status status = DecodeImage(bytes, "picture", image);
  EXPECT_TRUE(status.ok()) << status;
  return image;
}

float Byte(const std::string& bytes, std::size_t at) {
  return static_cast<float>(static_cast<unsigned char>(bytes[at]));
}

// Compares channels-first values with interleaved bytes of `step` per pixel, of which those from
// `first` on count.
void ExpectPixels(const Image& image, const std::string& rows, std::size_t step, float tolerance) {
  const bool grey = image.shape.size() == 2;
  const std::size_t channels = grey ? 1 : 3;
  ASSERT_EQ(image.values.size(), rows.size() / step * channels);
  const std::size_t pixels = rows.size() / step;
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t i = 0; i < pixels; ++i) {
      ASSERT_NEAR(image.values[c * pixels + i], Byte(rows, i * step + c), tolerance)
          << c << " " << i;
    }
  }
}

TEST(Png, ReadsColourAndGreyWithAndWithoutAlphaAndInterlacing) {
  for (const bool interlaced : {false, true}) {
    const std::string rgb = Pattern(5, 3, 3), rgba = Pattern(5, 3, 4);
    const std::string grey = Pattern(5, 3, 1), grey_alpha = Pattern(5, 3, 2);
    Image image = Decoded(Png(5, 3, PNG_COLOR_TYPE_RGB, 8, rgb, interlaced));
    EXPECT_THAT(image.shape, ElementsAre(3, 3, 5));
    ExpectPixels(image, rgb, 3, 0);
    image = Decoded(Png(5, 3, PNG_COLOR_TYPE_RGB_ALPHA, 8, rgba, interlaced));
    EXPECT_THAT(image.shape, ElementsAre(3, 3, 5));
    ExpectPixels(image, rgba, 4, 0);  // alpha is dropped, the colours stay
    image = Decoded(Png(5, 3, PNG_COLOR_TYPE_GRAY, 8, grey, interlaced));
    EXPECT_THAT(image.shape, ElementsAre(3, 5));
    ExpectPixels(image, grey, 1, 0);
    image = Decoded(Png(5, 3, PNG_COLOR_TYPE_GRAY_ALPHA, 8, grey_alpha, interlaced));
    EXPECT_THAT(image.shape, ElementsAre(3, 5));
    ExpectPixels(image, grey_alpha, 2, 0);
  }
}

TEST(Png, SixteenBitsBecomeFractionsOfTheSameRange) {
  const std::string rows("\x00\x00\x00\x01\x80\x80\xff\xff", 8);
  const Image image = Decoded(Png(4, 1, PNG_COLOR_TYPE_GRAY, 16, rows));
  EXPECT_THAT(image.shape, ElementsAre(1, 4));
  EXPECT_EQ(image.values[0], 0);
  EXPECT_FLOAT_EQ(image.values[1], 1.0F / 257);
  EXPECT_EQ(image.values[2], 128);
  EXPECT_EQ(image.values[3], 255);
  const Image colour = Decoded(Png(1, 1, PNG_COLOR_TYPE_RGB_ALPHA, 16, rows));
  EXPECT_THAT(colour.values, ElementsAre(0, 1.0F / 257, 128));
}

TEST(Png, FewBitsAndPalettesAreExpanded) {
  // 1 bit: 1 0 1 1; 2 bits: 3 2 1 0.
  EXPECT_THAT(Decoded(Png(4, 1, PNG_COLOR_TYPE_GRAY, 1, "\xb0")).values,
              ElementsAre(255, 0, 255, 255));
  EXPECT_THAT(Decoded(Png(4, 1, PNG_COLOR_TYPE_GRAY, 2, "\xe4")).values,
              ElementsAre(255, 170, 85, 0));
  // Palette entries (i, 2 i, 255 - i), the first two of them transparent.
  const Image image = Decoded(Png(3, 1, PNG_COLOR_TYPE_PALETTE, 8, std::string("\x00\x01\x40", 3)));
  EXPECT_THAT(image.shape, ElementsAre(3, 1, 3));
  EXPECT_THAT(image.values, ElementsAre(0, 1, 64, 0, 2, 128, 255, 254, 191));
}

TEST(Jpeg, ReadsGreyColourAndProgressive) {
  for (const bool progressive : {false, true}) {
    const std::string grey = Pattern(17, 9, 1);
    Image image = Decoded(Jpeg(17, 9, JCS_GRAYSCALE, grey, progressive, 100));
    EXPECT_THAT(image.shape, ElementsAre(9, 17));
    ExpectPixels(image, grey, 1, 3);
    const std::string flat(17 * 9 * 3, 'd');
    image = Decoded(Jpeg(17, 9, JCS_RGB, flat, progressive, 100));
    EXPECT_THAT(image.shape, ElementsAre(3, 9, 17));
    ExpectPixels(image, flat, 3, 1);
  }
  std::string red;
  for (int i = 0; i < 64; ++i) red += std::string("\xc8\x14\x32", 3);
  const Image image = Decoded(Jpeg(8, 8, JCS_RGB, red, false, 100));
  EXPECT_NEAR(image.values[0], 200, 3);
  EXPECT_NEAR(image.values[64], 20, 3);
  EXPECT_NEAR(image.values[128], 50, 3);
}

TEST(Jpeg, CmykBecomesRgb) {
  // libjpeg writes an Adobe marker for CMYK, so the inks count as inverted: 255 is none of it.
  std::string inks;
  for (int i = 0; i < 64; ++i) inks += std::string("\xff\x80\x00\xff", 4);
  const Image image = Decoded(Jpeg(8, 8, JCS_CMYK, inks, false, 100));
  EXPECT_THAT(image.shape, ElementsAre(3, 8, 8));
  EXPECT_NEAR(image.values[0], 255, 2);
  EXPECT_NEAR(image.values[64], 128, 2);
  EXPECT_NEAR(image.values[128], 0, 2);
}

TEST(Images, DamageIsAnErrorAndNothingIsPrinted) {
  const std::string png = Png(20, 20, PNG_COLOR_TYPE_RGB, 8, Pattern(20, 20, 3));
  const std::string jpeg = Jpeg(40, 40, JCS_RGB, Pattern(40, 40, 3));
  const auto error = [](const std::string& bytes) {
    Image image;
    const absl::Status status = DecodeImage(bytes, "set/0001.x", image);
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr("set/0001.x: "));
    return std::string(status.message());
  };
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  EXPECT_THAT(error(""), HasSubstr("is empty"));
  EXPECT_THAT(error("GIF89a.."), HasSubstr("starts with 'GIF89a..'"));
  EXPECT_THAT(error(png.substr(0, png.size() / 2)), HasSubstr("the PNG is truncated"));
  EXPECT_THAT(error(png.substr(0, png.size() - 1)), HasSubstr("the PNG is truncated"));
  EXPECT_THAT(error(jpeg.substr(0, jpeg.size() / 2)), HasSubstr("the JPEG is truncated"));
  EXPECT_THAT(error(jpeg.substr(0, jpeg.size() - 2)), HasSubstr("the JPEG is truncated"));
  std::string flipped = png;
  flipped[flipped.size() - 14] ^= 0x10;  // the checksum before the twelve bytes of the end
  EXPECT_THAT(error(flipped), HasSubstr("the PNG is damaged (IDAT: CRC error)"));
  std::string bare = jpeg.substr(0, 20) + "\xff\xd9";
  EXPECT_THAT(error(bare), HasSubstr("the JPEG is"));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

TEST(Images, HugeDeclaredSizesAreRefusedFirst) {
  // A PNG of one pixel whose header says 60,000 x 1,000 grey pixels, with a correct checksum.
  std::string png = Png(1, 1, PNG_COLOR_TYPE_GRAY, 8, "x");
  png.replace(16, 8, std::string("\x00\x00\xea\x60\x00\x00\x03\xe8", 8));
  std::uint32_t crc = 0xFFFFFFFF;
  for (std::size_t i = 12; i < 29; ++i) {
    crc ^= static_cast<unsigned char>(png[i]);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320U : 0);
  }
  png.replace(29, 4, testing::Raw<std::uint32_t>({~crc}, true));
  Image image;
  EXPECT_THAT(std::string(DecodeImage(png, "a.png", image).message()),
              HasSubstr("declares 60000 x 1000 pixels but has only"));
  std::string jpeg = Jpeg(8, 8, JCS_GRAYSCALE, Pattern(8, 8, 1));
  const std::size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\x3f\xff\x3f\xff");
  EXPECT_THAT(std::string(DecodeImage(jpeg, "a.jpg", image).message()),
              HasSubstr("declares 16383 x 16383 pixels but has only"));
  jpeg.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  EXPECT_THAT(std::string(DecodeImage(jpeg, "a.jpg", image).message()),
              HasSubstr("is a picture of 65500 x 65500 pixels"));
}

std::string Flat(int width, int height, int value) {
  return Png(width, height, PNG_COLOR_TYPE_GRAY, 8,
             std::string(static_cast<std::size_t>(width * height), static_cast<char>(value)));
}

TEST(FolderSamples, ReadsPicturesBelowSortedByName) {
  const TempFolder folder;
  folder.Write("set/b/2.png", Flat(2, 2, 4));
  folder.Write("set/a.PNG", Flat(2, 2, 1));
  folder.Write("set/b/1.jpeg", Jpeg(2, 2, JCS_GRAYSCALE, std::string(4, '\x03'), false, 100));
  folder.Write("set/b.jpg", Flat(2, 2, 2));  // a PNG: the content decides
  folder.Write("set/labels.csv", "1,2,3");
  folder.Write("set/.hidden.png", "no picture");
  const std::string path = folder.Path("set");
  const auto source = OpenSamples(path, {});
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->size(), 4);
  for (const int batch : {1, 3, 10}) {
    const auto rows = ReadAll(path, {}, batch);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_THAT(rows->shape, ElementsAre(2, 2));
    EXPECT_TRUE(rows->is_pixels);
    ASSERT_EQ(rows->samples, 4);
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(rows->values[4 * i], static_cast<float>(i + 1), 1);
  }
}

TEST(FolderSamples, FollowsLinksButNotInCircles) {
  const TempFolder folder;
  folder.Write("real/1.png", Flat(2, 2, 1));
  folder.Write("set/2.png", Flat(2, 2, 2));
  std::filesystem::create_directory_symlink(folder.Path("real"), folder.Path("set/linked"));
  std::filesystem::create_directory_symlink(folder.Path("set"), folder.Path("set/circle"));
  const auto rows = ReadAll(folder.Path("set"));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->samples, 2);
}

TEST(FolderSamples, SaysWhatIsWrong) {
  const TempFolder folder;
  folder.Write("sizes/1.png", Flat(2, 2, 1));
  folder.Write("sizes/2.png", Flat(2, 3, 1));
  EXPECT_THAT(ErrorOf(folder.Path("sizes")),
              AllOf(HasSubstr("sizes/2.png: is a picture of the shape (3, 2), expected (2, 2)"),
                    HasSubstr("sizes/1.png")));
  folder.Write("mixed/1.png", Flat(2, 2, 1));
  folder.Write("mixed/2.png", Png(2, 2, PNG_COLOR_TYPE_RGB, 8, Pattern(2, 2, 3)));
  EXPECT_THAT(ErrorOf(folder.Path("mixed")), HasSubstr("shape (3, 2, 2), expected (2, 2)"));
  folder.Write("bad/1.png", Flat(2, 2, 1));
  folder.Write("bad/2.png", "");
  EXPECT_THAT(ErrorOf(folder.Path("bad")), HasSubstr("2.png: is empty"));
  folder.Write("none/readme.md", "hi");
  folder.Write("none/x.npy", "hi");
  EXPECT_THAT(ErrorOf(folder.Path("none")), HasSubstr("found 1 .md, 1 .npy"));
  std::filesystem::create_directory(folder.Path("empty"));
  EXPECT_THAT(ErrorOf(folder.Path("empty")), HasSubstr("found nothing"));
  folder.Write("both/1.png", Flat(2, 2, 1));
  folder.Write("both/1.tar", Tar({}));
  EXPECT_THAT(ErrorOf(folder.Path("both")), HasSubstr("expected a folder of one kind"));
  EXPECT_THAT(ErrorOf(folder.Path("sizes/1.png")), HasSubstr("give the folder"));
  SamplesOptions options;
  options.array = "x";
  EXPECT_THAT(ErrorOf(folder.Path("sizes"), options), HasSubstr("leave --array out"));
}

TEST(TarSamples, ReadsPicturesAmongOtherMembers) {
  const TempFolder folder;
  const std::vector<TarMember> members = {{"000.png", Flat(2, 2, 1)},
                                          {"000.cls", "7"},
                                          {"./._001.png", "resource"},
                                          {"001.png", Flat(2, 2, 2)},
                                          {"002.img", Flat(2, 2, 3)}};
  const std::string tar = Tar(members);
  for (const std::string& path : {folder.Write("a.tar", tar), folder.Write("b.bin", tar),
                                  folder.Write("c.tar.gz", Gzip(tar))}) {
    const auto rows = ReadAll(path, {}, 2);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_THAT(rows->shape, ElementsAre(2, 2));
    EXPECT_TRUE(rows->is_pixels);
    EXPECT_THAT(rows->values, ElementsAre(1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3));
  }
  // Two archives in one file.
  const auto rows = ReadAll(folder.Write("d.tar", tar + tar));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->samples, 6);
}

TEST(TarSamples, AFolderOfTarsIsReadInOrder) {
  const TempFolder folder;
  folder.Write("set/train-0001.tar", Tar({{"1.png", Flat(1, 2, 3)}}));
  folder.Write("set/train-0000.tar", Tar({{"9.png", Flat(1, 2, 1)}, {"0.png", Flat(1, 2, 2)}}));
  const auto rows = ReadAll(folder.Path("set"), {}, 2);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->values, ElementsAre(1, 1, 2, 2, 3, 3));
  folder.Write("set/train-0002.tar", Tar({{"1.png", Flat(2, 2, 3)}}));
  EXPECT_THAT(ErrorOf(folder.Path("set")),
              AllOf(HasSubstr("train-0002.tar: member 1.png: is a picture of the shape (2, 2)"),
                    HasSubstr("as in"), HasSubstr("train-0000.tar: member 9.png")));
}

TEST(TarSamples, DamageIsAnError) {
  const TempFolder folder;
  const std::string png = Flat(2, 2, 1);
  const std::string tar = Tar({{"1.png", png}, {"2.png", png}});
  EXPECT_THAT(ErrorOf(folder.Write("a.tar", tar.substr(0, 2048))), HasSubstr("truncated"));
  EXPECT_THAT(ErrorOf(folder.Write("b.tar", tar.substr(0, 1024 + 300))), HasSubstr("truncated"));
  std::string damaged = tar;
  damaged[1024 + 30] ^= 1;  // the second header, whose checksum is then wrong
  EXPECT_THAT(ErrorOf(folder.Write("c.tar", damaged)), HasSubstr("amaged"));
  EXPECT_THAT(ErrorOf(folder.Write("d.tar", Tar({{"1.cls", "3"}, {"1.webp", "RIFF"}}))),
              HasSubstr("holds no picture or array (found 1 .cls, 1 .webp)"));
  EXPECT_THAT(ErrorOf(folder.Write("e.tar", Tar({{"1.png", "no picture"}}))),
              HasSubstr("e.tar: member 1.png: starts with 'no pictu"));
  EXPECT_THAT(ErrorOf(folder.Write("f.tar", Tar({{"1.png", png}, {"2.png", "1.png", '2'}}))),
              HasSubstr("f.tar: member 2.png: is a link"));
  const std::string gz = Gzip(tar);
  EXPECT_FALSE(ReadAll(folder.Write("g.tar.gz", gz.substr(0, gz.size() - 12))).ok());
  folder.Write("set/a.tar", tar);
  folder.Write("set/b.tar", "");
  const auto rows = ReadAll(folder.Path("set"));
  EXPECT_THAT(std::string(rows.status().message()),
              AllOf(HasSubstr("b.tar"), HasSubstr("truncated")));
}

}  // namespace
}  // namespace mergeplan
