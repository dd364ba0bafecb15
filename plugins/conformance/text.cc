#include "plugins/conformance/text.h"

#include <algorithm>
#include <cstring>

namespace mergeplan_conformance {
namespace {

constexpr std::size_t kFence = 64;
constexpr char kMark = '\x5A';
constexpr unsigned char kBehind = 0xC3;
CallHook g_hook = nullptr;

// Length of the UTF-8 sequence at the beginning, 0 where there is none.
std::size_t SequenceLength(std::string_view text) {
  const auto at = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  if (at(0) < 0x80) return 1;
  const std::size_t length = at(0) >= 0xC2 && at(0) <= 0xDF   ? 2
                             : at(0) >= 0xE0 && at(0) <= 0xEF ? 3
                             : at(0) >= 0xF0 && at(0) <= 0xF4 ? 4
                                                              : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t k = 1; k < length; ++k) {
    if ((at(k) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies above U+10FFFF.
  if ((at(0) == 0xE0 && at(1) < 0xA0) || (at(0) == 0xED && at(1) > 0x9F) ||
      (at(0) == 0xF0 && at(1) < 0x90) || (at(0) == 0xF4 && at(1) > 0x8F)) {
    return 0;
  }
  return length;
}

bool IsControl(std::string_view sequence) {
  const auto lead = static_cast<unsigned char>(sequence[0]);
  return lead < 0x20 || lead == 0x7F ||
         (lead == 0xC2 && static_cast<unsigned char>(sequence[1]) < 0xA0);
}

}  // namespace

void SetCallHook(CallHook hook) { g_hook = hook; }

void BeforeCall(const std::string& what) {
  if (g_hook != nullptr) g_hook(what);
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool IsOneLine(std::string_view text) {
  if (!IsUtf8(text)) return false;
  while (!text.empty()) {
    const std::size_t length = SequenceLength(text);
    if (IsControl(text.substr(0, length))) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string LineProblem(const char* text) {
  if (text == nullptr) return "is NULL";
  if (!IsUtf8(text)) return "is no UTF-8: " + Quoted(text);
  if (!IsOneLine(text)) return "is more than one line, or has control characters: " + Quoted(text);
  return "";
}

std::string Quoted(const char* text) {
  if (text == nullptr) return "NULL";
  constexpr std::size_t kMost = 120;
  std::string_view rest(text);
  std::string out = "\"";
  while (!rest.empty() && out.size() < kMost) {
    const std::size_t length = SequenceLength(rest);
    if (length == 0 || IsControl(rest.substr(0, length))) {
      out += '?';
    } else {
      out.append(rest.substr(0, length));
    }
    rest.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out + (rest.empty() ? "\"" : "...\"");
}

std::int32_t Say(mergeplan_error* error, std::int32_t code, std::string_view text) {
  if (error == nullptr || error->struct_size < MERGEPLAN_CONFORMANCE_1_0(mergeplan_error, text)) {
    return code;
  }
  error->code = code;
  if (error->text != nullptr && error->capacity > 0) {
    const std::size_t length =
        std::min<std::size_t>(text.size(), static_cast<std::size_t>(error->capacity) - 1);
    std::memcpy(error->text, text.data(), length);
    error->text[length] = '\0';
  }
  return code;
}

ErrorFence::ErrorFence(const Shape& shape) : shape_(shape) {
  bytes_.assign(static_cast<std::size_t>(shape.capacity) + 2 * kFence, kMark);
  std::memset(&block_, kBehind, sizeof(block_));
  block_.error.struct_size = static_cast<std::uint32_t>(
      shape.size == Size::kOldest ? MERGEPLAN_CONFORMANCE_1_0(mergeplan_error, text)
      : shape.size == Size::kOurs ? sizeof(mergeplan_error)
                                  : sizeof(Block));
  block_.error.code = 0;
  block_.error.capacity = shape.capacity;
  block_.error.text = shape.null_text ? nullptr : bytes_.data() + kFence;
}

std::string ErrorFence::Trespass() const {
  const auto is_mark = [](char c) { return c == kMark; };
  const auto fence = static_cast<std::ptrdiff_t>(kFence);
  if (!std::all_of(bytes_.begin(), bytes_.begin() + fence, is_mark)) {
    return "bytes before error.text were written";
  }
  if (!std::all_of(bytes_.end() - fence, bytes_.end(), is_mark)) {
    return "bytes behind the " + std::to_string(shape_.capacity) +
           " of error.capacity were written";
  }
  if (!std::all_of(std::begin(block_.behind), std::end(block_.behind),
                   [](unsigned char c) { return c == kBehind; })) {
    return "bytes behind the fields of the error that ABI 1.0 has were written";
  }
  const char* text = shape_.null_text ? nullptr : bytes_.data() + kFence;
  if (block_.error.capacity != shape_.capacity || block_.error.text != text) {
    return "capacity or text of the caller's error was changed";
  }
  return "";
}

std::string ErrorFence::Told(std::int32_t code) const {
  if (code < 0 || code > MERGEPLAN_UNAUTHENTICATED) {
    return "returned " + std::to_string(code) + ", expected a canonical code, 0 to 16";
  }
  if (code == MERGEPLAN_OK || shape_.null_error) return "";
  if (block_.error.code != code) {
    return "returned " + std::to_string(code) + ", but error.code is " +
           std::to_string(block_.error.code) + "; expected the same";
  }
  if (shape_.null_text || shape_.capacity == 0) return "";
  const char* begin = bytes_.data() + kFence;
  const void* end = std::memchr(begin, '\0', static_cast<std::size_t>(shape_.capacity));
  if (end == nullptr) return "error.text has no NUL within error.capacity";
  const std::size_t length = std::strlen(begin);
  if (length == 0 && shape_.capacity > 1) {
    return "returned " + std::to_string(code) + " without a text in error.text";
  }
  // What was cut may end inside a character.
  if (length + 1 < shape_.capacity && !IsUtf8(begin)) {
    return "error.text is no UTF-8: " + Quoted(begin);
  }
  return "";
}

std::string ErrorFence::text() const {
  if (shape_.null_text || shape_.capacity == 0) return "";
  const char* begin = bytes_.data() + kFence;
  if (std::memchr(begin, '\0', static_cast<std::size_t>(shape_.capacity)) == nullptr) return "";
  return begin;
}

}  // namespace mergeplan_conformance
