#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/data/samples.h"

// Small writers of every format that is read, independent of the code under test.
namespace mergeplan::testing {

// A folder that is removed at the end.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  // The path of `name` inside, whose folders are made.
  std::string Path(const std::string& name) const;
  // Writes a file and returns its path.
  std::string Write(const std::string& name, std::string_view bytes) const;

 private:
  std::string path_;
};

// The bytes of `values` as they lie in memory, or each reversed.
template <typename T>
std::string Raw(const std::vector<T>& values, bool big_endian = false) {
  std::string out;
  for (const T& value : values) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    std::string piece(bytes, sizeof(T));
    if (big_endian) piece = std::string(piece.rbegin(), piece.rend());
    out += piece;
  }
  return out;
}

// An .npy; `shape` as Python writes it, e.g. "(2, 3)".
std::string Npy(const std::string& descr, const std::string& shape, std::string_view data,
                bool fortran = false, int version = 1);
// The same around a header of any text.
std::string NpyWithHeader(const std::string& header, std::string_view data, int version = 1);

struct ZipMember {
  std::string name;
  std::string bytes;
  bool deflate = false;
};
std::string Zip(const std::vector<ZipMember>& members, bool zip64 = false);
std::string Gzip(std::string_view bytes);
// `type` such as 0x08; `data` in big-endian order.
std::string Idx(int type, const std::vector<std::uint32_t>& shape, std::string_view data);

struct TarMember {
  std::string name;
  std::string bytes;
  char type = '0';  // '2': a symbolic link
};
// Ustar, ended by two blocks of zeros.
std::string Tar(const std::vector<TarMember>& members);

// `colour` is libpng's PNG_COLOR_TYPE_*; `rows` holds height rows of packed bytes. Palettes have
// the entries (i, 2 i, 255 - i).
std::string Png(int width, int height, int colour, int depth, std::string_view rows,
                bool interlaced = false);
// `space` is libjpeg's J_COLOR_SPACE of `rows`: grey, RGB or CMYK.
std::string Jpeg(int width, int height, int space, std::string_view rows, bool progressive = false,
                 int quality = 95);
// A smooth pattern of width x height x channels bytes.
std::string Pattern(int width, int height, int channels, int seed = 0);

// All rows of an opened source, `batch` at a time.
struct Rows {
  std::vector<std::int64_t> shape;
  bool is_pixels = false;
  std::int64_t samples = 0, skipped = 0;
  std::vector<double> values;
};
absl::StatusOr<Rows> ReadAll(const std::string& path, const SamplesOptions& options = {},
                             int batch = 7);

// The message of the error that opening or reading gives; it names the file.
std::string ErrorOf(const std::string& path, const SamplesOptions& options = {});

}  // namespace mergeplan::testing
