#include "adapters/python/src/glue.h"

#include <nanobind/ndarray.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "adapters/python/src/arguments.h"

namespace mergeplan::python {

namespace nb = nanobind;

nb::object Glue(const char* function) {
  return nb::module_::import_("mergeplan._glue").attr(function);
}

std::vector<double> Numbers(const nb::object& object, const char* what) {
  using Flat = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
  Flat array;
  try {
    array = nb::cast<Flat>(Glue("numbers")(object));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_ValueError)) throw;
    // what() would have the whole traceback.
    throw nb::value_error(
        absl::StrCat(what, ": cannot be read as numbers (", nb::str(error.value()).c_str(), ")")
            .c_str());
  }
  if (array.ndim() != 1) {
    throw nb::value_error(
        absl::StrCat(what, ": has ", array.ndim(), " axes, expected one (a list of numbers)")
            .c_str());
  }
  return std::vector<double>(array.data(), array.data() + array.size());
}

void RefusePath(const nb::object& object, const char* what) {
  if (!nb::isinstance<nb::str>(object) && !nb::hasattr(object, "__fspath__")) return;
  throw nb::value_error(absl::StrCat(what, ": is the path \"", PathOf(object),
                                     "\", expected a Spectrum or numbers; read a spectrum.toml "
                                     "with Spectrum.from_file, data with Spectrum.from_latents")
                            .c_str());
}

std::string PathOf(const nb::object& path) {
  const nb::object text = nb::steal(PyOS_FSPath(path.ptr()));
  if (!text.is_valid()) {
    PyErr_Clear();
    RaiseKind(path, "path", "a str, bytes or os.PathLike");
  }
  const nb::object bytes = nb::steal(
      PyUnicode_Check(text.ptr()) ? PyUnicode_EncodeFSDefault(text.ptr()) : text.inc_ref().ptr());
  if (!bytes.is_valid()) throw nb::python_error();
  const auto& raw = nb::cast<nb::bytes>(bytes);
  if (raw.size() == 0) throw nb::value_error("path: is empty, expected the name of a file");
  // What follows would be left out of the name.
  if (std::memchr(raw.c_str(), 0, raw.size()) != nullptr) {
    throw nb::value_error("path: has a NUL character in it, expected the name of a file");
  }
  return std::string(raw.c_str(), raw.size());
}

}  // namespace mergeplan::python
