#pragma once

// Inside plugins/conformance only: texts that cross the border, and errors with a fence around
// them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mergeplan_plugin.h"

namespace mergeplan_conformance {

bool IsUtf8(std::string_view text);
// UTF-8 without control characters.
bool IsOneLine(std::string_view text);
// Empty where the text may be shown to a user, else what is wrong with it.
std::string LineProblem(const char* text);
// Quoted, cut where it is long, control characters and bytes that are no UTF-8 as '?'.
std::string Quoted(const char* text);

// Is told what is about to be asked of the plugin, so that it is known when the plugin ends the
// process. NULL: nobody. Set before the checks run; may be called from several threads.
using CallHook = void (*)(const std::string& what);
void SetCallHook(CallHook hook);
void BeforeCall(const std::string& what);

// How large a struct was in ABI 1.0.
// NOLINTBEGIN(bugprone-macro-parentheses): `type` is a type.
#define MERGEPLAN_CONFORMANCE_1_0(type, last_field) \
  (offsetof(type, last_field) + sizeof(static_cast<type*>(nullptr)->last_field))
// NOLINTEND(bugprone-macro-parentheses)

// What a function of the host says: fills the plugin's error as the header asks for.
std::int32_t Say(mergeplan_error* error, std::int32_t code, std::string_view text);

// Which struct a plugin is handed.
enum class Size {
  kOurs,    // as this header has it
  kOldest,  // as ABI 1.0 had it; what lies behind must not be read
  kLarger,  // as a later minor may have it
};

// A mergeplan_error for one call into a plugin, with guard bytes around the text.
class ErrorFence {
 public:
  struct Shape {
    std::uint64_t capacity = 4096;
    bool null_text = false;   // only with capacity 0
    bool null_error = false;  // the plugin gets NULL
    Size size = Size::kOurs;
  };
  explicit ErrorFence(const Shape& shape);
  ErrorFence(const ErrorFence&) = delete;
  ErrorFence& operator=(const ErrorFence&) = delete;

  mergeplan_error* get() { return shape_.null_error ? nullptr : &block_.error; }
  // What the plugin wrote where it may not, or empty.
  std::string Trespass() const;
  // What is wrong with the way in which a failure was told, or empty; `code` is what was returned.
  std::string Told(std::int32_t code) const;
  std::string text() const;

 private:
  struct Block {
    mergeplan_error error;
    unsigned char behind[64];
  };
  Shape shape_;
  std::vector<char> bytes_;
  Block block_;
};

}  // namespace mergeplan_conformance
