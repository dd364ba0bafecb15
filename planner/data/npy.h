#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/data/stream.h"

namespace mergeplan {

// How one number is stored. Kinds are numpy's: b(ool), u(nsigned), i(nteger), f(loat), S (bytes); V
// of 2 bytes is bfloat16.
struct ElementType {
  char kind = 'f';
  int size = 4;  // bytes
  bool big_endian = false;
};

// The type of a numpy "descr" such as "<f4" or "|S13". `where` begins the error, which lists what
// can be read.
absl::StatusOr<ElementType> ParseDescr(std::string_view descr, const std::string& where);

// Turns `count` stored numbers at `in` into float or double. `in` need not be aligned. Not for
// kind S.
void DecodeElements(const ElementType& type, const char* in, std::size_t count, float* out);
void DecodeElements(const ElementType& type, const char* in, std::size_t count, double* out);

// "(60000, 28, 28)", as Python writes it.
std::string ShapeText(absl::Span<const std::int64_t> shape);
// The product of the extents; INVALID_ARGUMENT where one is negative or the product times
// `element_size` passes 2^62.
absl::StatusOr<std::int64_t> CountElements(absl::Span<const std::int64_t> shape, int element_size,
                                           const std::string& where);

// The header of an .npy, format versions 1 to 3.
struct NpyHeader {
  std::string descr;
  ElementType type;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::int64_t count = 0;        // elements
  std::int64_t data_offset = 0;  // bytes before the first element
};
constexpr std::string_view kNpyMagic = "\x93NUMPY";

// Reads the header and leaves `in` at the first element. Errors name the stream; a shape that the
// stream cannot hold is DATA_LOSS, before anything is allocated.
absl::StatusOr<NpyHeader> ReadNpyHeader(ByteStream& in);

// The header of an .npy of format version 1 for data in C order.
std::string NpyHeaderBytes(std::string_view descr, absl::Span<const std::int64_t> shape);

}  // namespace mergeplan
