#include "adapters/python/src/arguments.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace mergeplan::python {
namespace {

namespace nb = nanobind;

// The type, and where that is short the value.
std::string Shown(const nb::object& given) {
  if (given.is_none()) return "None";
  std::string out = absl::StrCat("a ", nb::type_name(given.type()).c_str());
  const nb::object text = nb::steal(PyObject_Repr(given.ptr()));
  if (!text.is_valid()) {
    PyErr_Clear();
    return out;
  }
  const auto shown = nb::cast<std::string_view>(text);
  if (shown.size() <= 60 && shown.find('\n') == shown.npos) {
    absl::StrAppend(&out, " (", absl::string_view(shown.data(), shown.size()), ")");
  }
  return out;
}

}  // namespace

void RaiseKind(const nb::object& given, const char* name, const char* expected) {
  throw nb::type_error(absl::StrCat(name, ": is ", Shown(given), ", expected ", expected).c_str());
}

std::int64_t WholeNumber(const nb::object& given, const char* name, std::int64_t least,
                         std::int64_t most) {
  if (PyBool_Check(given.ptr())) RaiseKind(given, name, "a whole number");
  const nb::object number = nb::steal(PyNumber_Index(given.ptr()));
  if (!number.is_valid()) {
    PyErr_Clear();
    RaiseKind(given, name, "a whole number");
  }
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0 || value < least || value > most) {
    throw nb::value_error(absl::StrCat(name, ": is ", nb::str(number).c_str(),
                                       ", expected a whole number from ", least, " to ", most)
                              .c_str());
  }
  return value;
}

double RealNumber(const nb::object& given, const char* name) {
  const bool text = nb::isinstance<nb::str>(given) || nb::isinstance<nb::bytes>(given);
  if (!PyBool_Check(given.ptr()) && !text) {
    const double value = PyFloat_AsDouble(given.ptr());
    if (PyErr_Occurred() == nullptr) return value;
    PyErr_Clear();
  }
  RaiseKind(given, name, "a number");
}

std::string Text(const nb::object& given, const char* name) {
  if (!nb::isinstance<nb::str>(given)) RaiseKind(given, name, "a str");
  return nb::cast<std::string>(given);
}

bool Truth(const nb::object& given, const char* name) {
  if (PyBool_Check(given.ptr())) return given.ptr() == Py_True;
  const auto kind = std::string(nb::type_name(given.type()).c_str());
  if (kind != "numpy.bool_" && kind != "numpy.bool") RaiseKind(given, name, "True or False");
  return PyObject_IsTrue(given.ptr()) == 1;
}

}  // namespace mergeplan::python
