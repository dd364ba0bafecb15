#include "adapters/python/src/array_source.h"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/data/npy.h"
#include "planner/data/source.h"

namespace mergeplan::python {
namespace {

namespace nb = nanobind;
using Array = nb::ndarray<nb::ro>;

absl::StatusOr<ElementType> TypeOf(const nb::dlpack::dtype& dtype, const std::string& name) {
  ElementType type;
  type.size = dtype.bits / 8;
  const bool whole = dtype.lanes == 1 && dtype.bits % 8 == 0;
  const auto code = static_cast<nb::dlpack::dtype_code>(dtype.code);
  const bool small = type.size == 1 || type.size == 2 || type.size == 4 || type.size == 8;
  if (whole && small && code == nb::dlpack::dtype_code::Int) {
    type.kind = 'i';
  } else if (whole && small && code == nb::dlpack::dtype_code::UInt) {
    type.kind = 'u';
  } else if (whole && small && type.size > 1 && code == nb::dlpack::dtype_code::Float) {
    type.kind = 'f';
  } else if (whole && type.size == 2 && code == nb::dlpack::dtype_code::Bfloat) {
    type.kind = 'V';
  } else if (whole && type.size == 1 && code == nb::dlpack::dtype_code::Bool) {
    type.kind = 'b';
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": numbers of DLPack's type code ", static_cast<int>(dtype.code),
                     " with ", static_cast<int>(dtype.bits),
                     " bits, expected float16, float32, float64, bfloat16, integers or booleans"));
  }
  return type;
}

class ArraySource : public CheckedSource {
 public:
  ArraySource(nb::object iterator, const std::string& name, const SamplesOptions& options,
              Raised* raised)
      : CheckedSource(name, options), iterator_(std::move(iterator)), raised_(raised) {}
  ~ArraySource() override {
    const nb::gil_scoped_acquire lock;
    array_.reset();
    iterator_.reset();
  }
  ArraySource(const ArraySource&) = delete;
  ArraySource& operator=(const ArraySource&) = delete;

  // The first array says what the samples are. With the interpreter's lock.
  absl::Status Open() {
    MP_ASSIGN_OR_RETURN(const bool any, NextArray());
    if (!any) {
      return absl::InvalidArgumentError(
          absl::StrCat(name(), ": gives no array at all, expected samples"));
    }
    MP_ASSIGN_OR_RETURN(std::vector<std::int64_t> shape, SampleShape(type_, Shape(), name()));
    const bool pixels = type_.kind == 'u' && type_.size == 1 && array_->ndim() > 1;
    const bool may_be_nonfinite = type_.kind == 'f' || type_.kind == 'V';
    return Describe(std::move(shape), pixels, std::nullopt, may_be_nonfinite);
  }

 protected:
  absl::StatusOr<int> Fill(double* rows, int most) override {
    MP_RETURN_IF_ERROR(LookForSignals());
    while (row_ == rows_) {
      const nb::gil_scoped_acquire lock;
      MP_ASSIGN_OR_RETURN(const bool any, NextArray());
      if (!any) return 0;
    }
    const std::int64_t count = std::min<std::int64_t>(most, rows_ - row_);
    CopyRows(row_, count, rows);
    row_ += count;
    return static_cast<int>(count);
  }

 private:
  std::vector<std::int64_t> Shape() const {
    std::vector<std::int64_t> out;
    for (size_t axis = 0; axis < array_->ndim(); ++axis) {
      out.push_back(static_cast<std::int64_t>(array_->shape(axis)));
    }
    return out;
  }

  // A signal, or something that was raised elsewhere meanwhile.
  absl::Status LookForSignals() {
    if (raised_->error) return absl::CancelledError(absl::StrCat(name(), ": stopped"));
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() == 0) return absl::OkStatus();
    return Keep(nb::python_error());
  }

  absl::Status Keep(nb::python_error error) {
    absl::Status status = absl::CancelledError(absl::StrCat(name(), ": ", error.what()));
    raised_->error.emplace(std::move(error));
    return status;
  }

  // False at the end.
  absl::StatusOr<bool> NextArray() {
    array_.reset();
    rows_ = row_ = 0;
    try {
      const nb::object item = nb::steal(PyIter_Next(iterator_.ptr()));
      if (!item.is_valid()) {
        if (PyErr_Occurred() != nullptr) throw nb::python_error();
        return false;
      }
      Array array;
      if (!nb::try_cast(item, array)) {
        return absl::InvalidArgumentError(
            absl::StrCat(name(), ": array ", arrays_, " (counted from 0) is a ",
                         nb::type_name(item.type()).c_str(),
                         " that cannot be read as an array, expected one with __dlpack__ or the "
                         "buffer protocol"));
      }
      return Take(std::move(array));
    } catch (nb::python_error& error) {
      return Keep(std::move(error));
    }
  }

  absl::StatusOr<bool> Take(Array array) {
    if (array.device_type() != nb::device::cpu::value) {
      return absl::InvalidArgumentError(absl::StrCat(
          name(), ": array ", arrays_, " (counted from 0) is not in the memory of the CPU"));
    }
    MP_ASSIGN_OR_RETURN(const ElementType type, TypeOf(array.dtype(), name()));
    array_.emplace(std::move(array));
    if (arrays_ == 0) {
      type_ = type;
      first_shape_ = Shape();
    } else if (type.kind != type_.kind || type.size != type_.size) {
      return absl::InvalidArgumentError(
          absl::StrCat(name(), ": array ", arrays_,
                       " (counted from 0) has another type of number than the first one"));
    } else if (array_->ndim() != first_shape_.size() ||
               !std::equal(first_shape_.begin() + 1, first_shape_.end(), Shape().begin() + 1)) {
      return absl::InvalidArgumentError(absl::StrCat(
          name(), ": array ", arrays_, " (counted from 0) has the shape ", ShapeText(Shape()),
          ", the first one ", ShapeText(first_shape_), "; expected samples of one shape"));
    }
    ++arrays_;
    if (array_->ndim() > 0) rows_ = static_cast<std::int64_t>(array_->shape(0));
    contiguous_ = IsContiguous();
    return true;
  }

  // Do the values of a sample stand one behind the other, the last axis first?
  bool IsContiguous() const {
    std::int64_t expected = 1;
    for (size_t axis = array_->ndim(); axis-- > 1;) {
      if (array_->shape(axis) != 1 && array_->stride(axis) != expected) return false;
      expected *= static_cast<std::int64_t>(array_->shape(axis));
    }
    return true;
  }

  void CopyRows(std::int64_t from, std::int64_t count, double* out) const {
    const auto* data = static_cast<const char*>(array_->data());
    const auto d = static_cast<size_t>(dimensions());
    const std::int64_t step = array_->stride(0);
    if (contiguous_ && step == static_cast<std::int64_t>(d)) {
      DecodeElements(type_, data + from * step * type_.size, static_cast<size_t>(count) * d, out);
      return;
    }
    for (std::int64_t row = from; row < from + count; ++row, out += d) {
      const char* begin = data + row * step * type_.size;
      if (contiguous_) {
        DecodeElements(type_, begin, d, out);
      } else {
        CopyStrided(begin, out);
      }
    }
  }

  // Runs along the last axis, in row-major order of the others.
  void CopyStrided(const char* begin, double* out) const {
    const size_t axes = array_->ndim();
    std::vector<std::int64_t> index(axes, 0);
    const size_t d = static_cast<size_t>(dimensions());
    std::int64_t offset = 0;
    for (size_t k = 0; k < d; ++k) {
      DecodeElements(type_, begin + offset * type_.size, 1, out + k);
      for (size_t axis = axes; axis-- > 1;) {
        offset += array_->stride(axis);
        if (++index[axis] < static_cast<std::int64_t>(array_->shape(axis))) break;
        offset -= array_->stride(axis) * index[axis];
        index[axis] = 0;
      }
    }
  }

  nb::object iterator_;
  Raised* raised_;
  std::optional<Array> array_;
  ElementType type_;
  std::vector<std::int64_t> first_shape_;
  std::int64_t arrays_ = 0;  // that the iterator has given
  std::int64_t rows_ = 0, row_ = 0;
  bool contiguous_ = true;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SampleSource>> OpenArrays(nb::object iterator,
                                                         const std::string& name,
                                                         bool skip_nonfinite, Raised* raised) {
  SamplesOptions options;
  options.skip_nonfinite = skip_nonfinite;
  auto source = std::make_unique<ArraySource>(std::move(iterator), name, options, raised);
  MP_RETURN_IF_ERROR(source->Open());
  return source;
}

}  // namespace mergeplan::python
