#pragma once

// Inside plugins/host only: what every crossing of the C border needs.

#include <array>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "plugins/abi/mergeplan_plugin.h"

namespace mergeplan::border {

// Text from a plugin as one printable line: control characters become spaces, runs of spaces one,
// bytes that are no UTF-8 become '?', and what is longer than 1,000 bytes is cut.
std::string OneLine(std::string_view text);
// The same of a C string that may be NULL.
std::string OneLine(const char* text);

// Any int32 as a canonical code; numbers that are none become UNKNOWN.
absl::StatusCode ToCode(std::int32_t code);

// Fills the caller's error struct (which may be NULL or too small) and returns the code.
std::int32_t Report(const absl::Status& status, mergeplan_error* error);
std::int32_t ReportText(std::int32_t code, std::string_view text, mergeplan_error* error) noexcept;

// A mergeplan_error with its buffer, for calls into a plugin.
class ErrorBuffer {
 public:
  ErrorBuffer();
  ErrorBuffer(const ErrorBuffer&) = delete;
  ErrorBuffer& operator=(const ErrorBuffer&) = delete;

  mergeplan_error* get() { return &error_; }
  // The status of a call that returned `code`; text without code counts for nothing.
  absl::Status Take(std::int32_t code);

 private:
  std::array<char, 4096> text_;
  mergeplan_error error_;
};

// Calls into a plugin: what it throws becomes INTERNAL. `call` returns an absl::Status.
template <typename Call>
absl::Status CatchThrown(Call&& call) {
  try {
    return call();
  } catch (const std::exception& e) {
    return absl::InternalError("threw an exception across the border: " + OneLine(e.what()));
  } catch (...) {
    return absl::InternalError(
        "threw an exception across the border (of a type that is no std::exception)");
  }
}

// Serves a call from a plugin: `call` returns an absl::Status, which is reported; an exception of
// ours does not reach the plugin.
template <typename Call>
std::int32_t Serve(mergeplan_error* error, Call&& call) noexcept {
  try {
    return Report(call(), error);
  } catch (const std::bad_alloc&) {
    return ReportText(MERGEPLAN_RESOURCE_EXHAUSTED, "out of memory", error);
  } catch (const std::exception& e) {
    return ReportText(MERGEPLAN_INTERNAL, e.what(), error);
  } catch (...) {
    return ReportText(MERGEPLAN_INTERNAL, "an exception that is no std::exception", error);
  }
}

// The same for calls that cannot report: `otherwise` is returned after an exception.
template <typename Result, typename Call>
Result ServeQuietly(Result otherwise, Call&& call) noexcept {
  try {
    return call();
  } catch (...) {
    return otherwise;
  }
}

// INVALID_ARGUMENT unless a struct reaches as far as its fields of ABI 1.0.
absl::Status CheckSize(const char* type, std::uint32_t struct_size, std::size_t needed);

}  // namespace mergeplan::border

// Size of a struct up to and including `last_field`, the last one that it had in ABI 1.0.
// NOLINTBEGIN(bugprone-macro-parentheses): `type` is a type.
#define MERGEPLAN_SIZE_1_0(type, last_field) \
  (offsetof(type, last_field) + sizeof(static_cast<type*>(nullptr)->last_field))
// NOLINTEND(bugprone-macro-parentheses)
