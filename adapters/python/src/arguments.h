#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace mergeplan::python {

// A whole number within [least, most]: what has __index__ (of Python, numpy, torch), but no bool.
// TypeError for other things, ValueError outside; both name the argument. Bools are those of numpy,
// too.
std::int64_t WholeNumber(const nanobind::object& given, const char* name, std::int64_t least,
                         std::int64_t most);
// What has __float__ or __index__, but no bool and no text.
double RealNumber(const nanobind::object& given, const char* name);
std::string Text(const nanobind::object& given, const char* name);
bool Truth(const nanobind::object& given, const char* name);

// The values that a constructor of `names` was called with, None where one was left out that is not
// among the first `required`. TypeError names what does not fit; nanobind would list the whole
// signature.
std::vector<nanobind::object> Bound(const char* type, const char* signature,
                                    const std::vector<const char*>& names, std::size_t required,
                                    const nanobind::args& args, const nanobind::kwargs& kwargs);

// TypeError: "NAME: is a float (2.5), expected EXPECTED".
[[noreturn]] void RaiseKind(const nanobind::object& given, const char* name, const char* expected);

// An argument as it was given, read by its function under its name: what nanobind says of one of
// another type lists the whole signature, not what is wrong. Functions that take these have their
// signatures written out (nb::sig), since any of them accepts None here.
template <typename T>
struct Argument {
  nanobind::object given;

  T operator()(const char* name) const {
    if constexpr (std::is_same_v<T, bool>) {
      return Truth(given, name);
    } else if constexpr (std::is_integral_v<T>) {
      constexpr auto kMost = sizeof(T) < 8 ? std::int64_t{std::numeric_limits<std::int32_t>::max()}
                                           : std::numeric_limits<std::int64_t>::max();
      constexpr auto kLeast = std::is_unsigned_v<T> ? std::int64_t{0} : -kMost;
      return static_cast<T>(WholeNumber(given, name, kLeast, kMost));
    } else if constexpr (std::is_same_v<T, double>) {
      return RealNumber(given, name);
    } else {
      return Text(given, name);
    }
  }
};

template <typename T>
struct Argument<std::optional<T>> {
  nanobind::object given;

  std::optional<T> operator()(const char* name) const {
    if (given.is_none()) return std::nullopt;
    return Argument<T>{given}(name);
  }
};

}  // namespace mergeplan::python

namespace nanobind::detail {

template <typename T>
struct has_arg_defaults<mergeplan::python::Argument<T>> : std::true_type {};

template <typename T>
struct type_caster<mergeplan::python::Argument<T>> {
  NB_TYPE_CASTER(mergeplan::python::Argument<T>, const_name("object"))

  // Whatever it is: the function looks at it.
  bool from_python(handle src, std::uint32_t, cleanup_list*) noexcept {
    value.given = borrow(src);
    return true;
  }
};

}  // namespace nanobind::detail
