#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "adapters/noise/noise.h"

namespace mergeplan::network {

// Class labels of rows: [rows] int64 on the CPU, from 0 on.

// Of a stream of rows, all classes as likely: each follows from the stream's name and the row's
// number alone.
at::Tensor UniformLabels(const StreamName& name, std::uint64_t first_row, std::int64_t rows,
                         std::int64_t classes);

// Of samples that people look at: the classes in turns, so that a picture has all of them.
at::Tensor TurnLabels(std::uint64_t first, std::int64_t rows, std::int64_t classes);

// Reads the labels of `samples` samples: a file of one whole number for each (IDX, .npy, or an .npz
// with `array`). More are there where `part`, less never. INVALID_ARGUMENT names the number that is
// no class below `classes`.
absl::StatusOr<at::Tensor> LoadLabels(const std::string& path, const std::string& array,
                                      std::int64_t classes, std::int64_t samples, bool part);

// The array of labels that an .npz of samples has beside them, one number for each: "labels",
// "label" or "y"; empty where it has none, or where the file is no .npz.
std::string LabelArrayOf(const std::string& path);

}  // namespace mergeplan::network
