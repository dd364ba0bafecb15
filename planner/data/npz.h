#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mergeplan {

// A numpy array held in memory, as float64 whatever the file's type (bool, u/int8..64,
// float16/32/64), in C order. Whole numbers beyond 2^53 are rounded.
struct NpyArray {
  std::vector<std::int64_t> shape;  // empty for a 0-d array
  std::vector<double> values;
  std::string dtype;  // as the file has it, e.g. "<f4"
  // Byte strings (|S) are kept here and leave `values` empty: a 0-d one without the NULs at its
  // end, as numpy shows it; otherwise one after the other, each as long as dtype says.
  std::string text;

  std::int64_t size() const;
};

// Reads one array of an .npz, or the array of an .npy (name ignored). NOT_FOUND lists the names
// that there are.
absl::StatusOr<NpyArray> ReadNpzArray(const std::string& path, std::string_view name);
absl::StatusOr<NpyArray> ReadNpy(const std::string& path);
absl::StatusOr<std::vector<std::string>> NpzNames(const std::string& path);

// Collects arrays and writes them as one uncompressed .npz (the bytes depend on the content only:
// fixed dates), beside and renamed. Names without ".npy". A value that the type cannot hold, a
// shape that does not fit the values and a name given twice are errors of Bytes and Write.
class NpzWriter {
 public:
  enum class Type { kFloat64, kFloat32, kInt64, kUint8 };
  void Add(std::string name, const std::vector<std::int64_t>& shape,
           absl::Span<const double> values, Type type = Type::kFloat64);
  // The bytes, and the same written to a file piece by piece, without a copy of all of them.
  absl::StatusOr<std::string> Bytes() const;
  absl::Status Write(const std::string& path) const;

 private:
  absl::Status Emit(void* target) const;

  struct Entry {
    std::string name;
    std::string npy;
  };
  std::vector<Entry> entries_;
  absl::Status status_;  // the first fault of an Add
};

}  // namespace mergeplan
