#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace mergeplan::python {

using NumpyArray = nanobind::ndarray<nanobind::numpy, double>;

// Numbers as a numpy array that owns them: no copy but that of the move.
inline NumpyArray ToNumpy(std::vector<double> numbers, std::vector<size_t> shape = {}) {
  if (shape.empty()) shape = {numbers.size()};
  auto kept = std::make_unique<std::vector<double>>(std::move(numbers));
  double* data = kept->data();
  nanobind::capsule owner(kept.get(),
                          [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  kept.release();
  return NumpyArray(data, shape.size(), shape.data(), owner);
}

// The numbers of an array in C order.
inline std::vector<double> Copy(const NumpyArray& array) {
  return std::vector<double>(array.data(), array.data() + array.size());
}

}  // namespace mergeplan::python
