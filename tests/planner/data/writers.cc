#include "tests/planner/data/writers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

// jpeglib.h needs size_t and FILE to be known.
#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace mergeplan::testing {
namespace {

std::string Little(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 255));
  return out;
}

// `window` as zlib wants it: -15 raw deflate, 31 gzip.
std::string Compress(std::string_view bytes, int window) {
  z_stream stream = {};
  deflateInit2(&stream, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  char buffer[1 << 16];
  int code = Z_OK;
  while (code == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer);
    stream.avail_out = sizeof buffer;
    code = deflate(&stream, Z_FINISH);
    out.append(buffer, sizeof buffer - stream.avail_out);
  }
  deflateEnd(&stream);
  return out;
}

}  // namespace

TempFolder::TempFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "mergeplan-data-XXXXXX").string();
  path_ = ::mkdtemp(name.data());
}
TempFolder::~TempFolder() {
  std::error_code ec;
  std::filesystem::remove_all(path_, ec);
}
std::string TempFolder::Path(const std::string& name) const {
  const std::filesystem::path path = std::filesystem::path(path_) / name;
  std::filesystem::create_directories(path.parent_path());
  return path.string();
}
std::string TempFolder::Write(const std::string& name, std::string_view bytes) const {
  const std::string path = Path(name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string NpyWithHeader(const std::string& header, std::string_view data, int version) {
  std::string out("\x93NUMPY");
  out += Little(static_cast<std::uint64_t>(version), 1) + Little(0, 1);
  out += Little(header.size(), version == 1 ? 2 : 4) + header;
  return out.append(data);
}

std::string Npy(const std::string& descr, const std::string& shape, std::string_view data,
                bool fortran, int version) {
  return NpyWithHeader(absl::StrCat("{'descr': '", descr, "', 'fortran_order': ",
                                    fortran ? "True" : "False", ", 'shape': ", shape, ", }\n"),
                       data, version);
}

std::string Zip(const std::vector<ZipMember>& members, bool zip64) {
  std::string out, directory;
  for (const ZipMember& member : members) {
    const std::string stored = member.deflate ? Compress(member.bytes, -15) : member.bytes;
    const auto crc = crc32(0, reinterpret_cast<const Bytef*>(member.bytes.data()),
                           static_cast<uInt>(member.bytes.size()));
    const std::uint64_t offset = out.size();
    const std::string common = Little(zip64 ? 45 : 20, 2) + Little(0, 2) +
                               Little(member.deflate ? 8 : 0, 2) + Little(0, 2) + Little(0x21, 2) +
                               Little(crc, 4) + Little(zip64 ? 0xFFFFFFFF : stored.size(), 4) +
                               Little(zip64 ? 0xFFFFFFFF : member.bytes.size(), 4) +
                               Little(member.name.size(), 2);
    const std::string sizes = Little(member.bytes.size(), 8) + Little(stored.size(), 8);
    const std::string local = zip64 ? Little(1, 2) + Little(16, 2) + sizes : "";
    const std::string central =
        zip64 ? Little(1, 2) + Little(24, 2) + sizes + Little(offset, 8) : "";
    out += "PK\x03\x04" + common + Little(local.size(), 2) + member.name + local + stored;
    directory += "PK\x01\x02" + Little(zip64 ? 45 : 20, 2) + common + Little(central.size(), 2) +
                 Little(0, 2) + Little(0, 2) + Little(0, 2) + Little(0, 4) +
                 Little(zip64 ? 0xFFFFFFFF : offset, 4) + member.name + central;
  }
  const std::uint64_t begin = out.size(), count = members.size();
  out += directory;
  if (zip64) {
    const std::uint64_t record = out.size();
    out += "PK\x06\x06" + Little(44, 8) + Little(45, 2) + Little(45, 2) + Little(0, 4) +
           Little(0, 4) + Little(count, 8) + Little(count, 8) + Little(directory.size(), 8) +
           Little(begin, 8);
    out += "PK\x06\x07" + Little(0, 4) + Little(record, 8) + Little(1, 4);
    out += "PK\x05\x06" + Little(0, 4) + Little(0xFFFF, 2) + Little(0xFFFF, 2) +
           Little(0xFFFFFFFF, 4) + Little(0xFFFFFFFF, 4) + Little(0, 2);
  } else {
    out += "PK\x05\x06" + Little(0, 4) + Little(count, 2) + Little(count, 2) +
           Little(directory.size(), 4) + Little(begin, 4) + Little(0, 2);
  }
  return out;
}

std::string Gzip(std::string_view bytes) { return Compress(bytes, 31); }

std::string Idx(int type, const std::vector<std::uint32_t>& shape, std::string_view data) {
  std::string out{0, 0, static_cast<char>(type), static_cast<char>(shape.size())};
  out += Raw(shape, true);
  return out.append(data);
}

std::string Tar(const std::vector<TarMember>& members) {
  std::string out;
  for (const TarMember& member : members) {
    std::string header(512, '\0');
    const auto put = [&](std::size_t at, const std::string& text) {
      header.replace(at, text.size(), text);
    };
    char field[16];
    put(0, member.name);
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    const bool link = member.type == '2';
    std::snprintf(field, sizeof field, "%011zo", link ? std::size_t{0} : member.bytes.size());
    put(124, field);
    put(136, "00000000000");
    put(148, "        ");
    header[156] = member.type;
    if (link) put(157, member.bytes);
    put(257, std::string("ustar\0"
                         "00",
                         8));
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    std::snprintf(field, sizeof field, "%06o", sum);
    put(148, std::string(field, 7) + " ");
    out += header;
    if (link) continue;
    out += member.bytes;
    out.append((512 - member.bytes.size() % 512) % 512, '\0');
  }
  return out.append(1024, '\0');
}

std::string Png(int width, int height, int colour, int depth, std::string_view rows,
                bool interlaced) {
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &out,
      [](png_structp p, png_bytep data, std::size_t size) {
        static_cast<std::string*>(png_get_io_ptr(p))
            ->append(reinterpret_cast<const char*>(data), size);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), depth,
               colour, interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (colour == PNG_COLOR_TYPE_PALETTE) {
    std::vector<png_color> palette(std::size_t{1} << depth);
    for (std::size_t i = 0; i < palette.size(); ++i) {
      palette[i] = {static_cast<png_byte>(i), static_cast<png_byte>(2 * i),
                    static_cast<png_byte>(255 - i)};
    }
    png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
    const png_byte alpha[2] = {0, 128};
    png_set_tRNS(png, info, alpha, 2, nullptr);
  }
  const std::size_t stride = rows.size() / static_cast<std::size_t>(height);
  std::vector<png_bytep> pointers;
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
    pointers.push_back(reinterpret_cast<png_bytep>(const_cast<char*>(rows.data())) + y * stride);
  }
  png_write_info(png, info);
  png_write_image(png, pointers.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return out;
}

std::string Jpeg(int width, int height, int space, std::string_view rows, bool progressive,
                 int quality) {
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.in_color_space = static_cast<J_COLOR_SPACE>(space);
  info.input_components = space == JCS_GRAYSCALE ? 1 : space == JCS_CMYK ? 4 : 3;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  const std::size_t stride = rows.size() / static_cast<std::size_t>(height);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row =
        reinterpret_cast<JSAMPROW>(const_cast<char*>(rows.data())) + stride * info.next_scanline;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string out(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  return out;
}

std::string Pattern(int width, int height, int channels, int seed) {
  std::string out;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        out.push_back(static_cast<char>((seed * 31 + x * 5 + y * 3 + c * 60) & 255));
      }
    }
  }
  return out;
}

absl::StatusOr<Rows> ReadAll(const std::string& path, const SamplesOptions& options, int batch) {
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<SampleSource> source, OpenSamples(path, options));
  Rows out;
  out.shape = source->shape();
  out.is_pixels = source->is_pixels();
  const std::size_t d = static_cast<std::size_t>(source->dimensions());
  std::vector<double> rows(d * static_cast<std::size_t>(batch));
  for (;;) {
    MP_ASSIGN_OR_RETURN(const int n, source->Read(absl::MakeSpan(rows)));
    if (n == 0) break;
    out.samples += n;
    out.values.insert(out.values.end(), rows.begin(),
                      rows.begin() + static_cast<std::ptrdiff_t>(d * static_cast<std::size_t>(n)));
  }
  out.skipped = source->skipped();
  if (source->size() && *source->size() != out.samples + out.skipped) {
    return absl::InternalError(absl::StrCat(path, ": size() is ", *source->size(), ", read ",
                                            out.samples, ", skipped ", out.skipped));
  }
  return out;
}

std::string ErrorOf(const std::string& path, const SamplesOptions& options) {
  const absl::StatusOr<Rows> rows = ReadAll(path, options);
  EXPECT_FALSE(rows.ok()) << path << " was read, expected an error";
  const std::string message(rows.status().message());
  EXPECT_THAT(message, ::testing::HasSubstr(path));
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

}  // namespace mergeplan::testing
