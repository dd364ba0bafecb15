#include "adapters/python/src/arguments.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "adapters/python/src/glue.h"

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

bool IsNumpyBool(const nb::object& given) {
  const nb::handle type = given.type();
  const auto text = [&](const char* key) { return std::string(nb::str(type.attr(key)).c_str()); };
  const std::string name = text("__name__");  // bool_ before numpy 2
  return (name == "bool" || name == "bool_") && text("__module__") == "numpy";
}

bool IsBool(const nb::object& given) {
  return PyBool_Check(given.ptr()) != 0 || IsNumpyBool(given);
}

}  // namespace

std::vector<nb::object> Bound(const char* type, const char* signature,
                              const std::vector<const char*>& names, std::size_t required,
                              const nb::args& args, const nb::kwargs& kwargs) {
  std::vector<nb::object> out(names.size());
  bool fits = args.size() <= names.size();
  for (std::size_t k = 0; fits && k < args.size(); ++k) out[k] = args[k];
  for (const auto& [key, value] : kwargs) {
    const std::string name = nb::cast<std::string>(key);
    const auto at =
        std::find_if(names.begin(), names.end(), [&](const char* known) { return name == known; });
    fits = fits && at != names.end() && !out[at - names.begin()].is_valid();
    if (fits) out[at - names.begin()] = nb::borrow(value);
  }
  for (std::size_t k = 0; fits && k < names.size(); ++k) {
    if (!out[k].is_valid() && k < required) fits = false;
    if (!out[k].is_valid()) out[k] = nb::none();
  }
  if (!fits) Glue("misfit")(type, signature, args, kwargs);
  return out;
}

void RaiseKind(const nb::object& given, const char* name, const char* expected) {
  throw nb::type_error(absl::StrCat(name, ": is ", Shown(given), ", expected ", expected).c_str());
}

std::int64_t WholeNumber(const nb::object& given, const char* name, std::int64_t least,
                         std::int64_t most) {
  if (IsBool(given)) RaiseKind(given, name, "a whole number");
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
  if (!IsBool(given) && !text) {
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
  if (!IsNumpyBool(given)) RaiseKind(given, name, "True or False");
  return PyObject_IsTrue(given.ptr()) == 1;
}

}  // namespace mergeplan::python
