#include "plugins/host/border.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace mergeplan::border {
namespace {

constexpr size_t kLongestText = 1000;

// Length of the UTF-8 sequence at text[at], or 0 where there is none.
size_t SequenceLength(std::string_view text, size_t at) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = byte(at);
  const size_t length = lead < 0x80                    ? 1
                        : lead >= 0xC2 && lead <= 0xDF ? 2
                        : lead >= 0xE0 && lead <= 0xEF ? 3
                        : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                       : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (size_t k = 1; k < length; ++k) {
    if ((byte(at + k) & 0xC0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

std::string OneLine(std::string_view text) {
  std::string out;
  bool cut = false;
  for (size_t at = 0; at < text.size();) {
    if (out.size() >= kLongestText) {
      cut = true;
      break;
    }
    const size_t length = SequenceLength(text, at);
    if (length == 0) {
      out += '?';
      ++at;
      continue;
    }
    const auto byte = static_cast<unsigned char>(text[at]);
    // ASCII control characters, DEL, and the C1 controls (0xC2 0x80..0x9F), some of which terminals
    // obey.
    const bool control = byte < 0x20 || byte == 0x7F ||
                         (byte == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0);
    if (control || byte == ' ') {
      if (!out.empty() && out.back() != ' ') out += ' ';
    } else {
      out.append(text.substr(at, length));
    }
    at += length;
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  if (cut) out += " …";
  return out;
}

std::string OneLine(const char* text) {
  if (text == nullptr) return "";
  // A text without an end would be read past its buffer; one kilobyte is more than a line needs.
  return OneLine(std::string_view(text, strnlen(text, kLongestText + 1)));
}

absl::StatusCode ToCode(std::int32_t code) {
  if (code < 0 || code > MERGEPLAN_UNAUTHENTICATED) return absl::StatusCode::kUnknown;
  return static_cast<absl::StatusCode>(code);
}

std::int32_t ReportText(std::int32_t code, std::string_view text, mergeplan_error* error) noexcept {
  if (error == nullptr || error->struct_size < MERGEPLAN_SIZE_1_0(mergeplan_error, text)) {
    return code;
  }
  error->code = code;
  if (error->text != nullptr && error->capacity > 0) {
    const size_t length =
        static_cast<size_t>(std::min<std::uint64_t>(text.size(), error->capacity - 1));
    std::memcpy(error->text, text.data(), length);
    error->text[length] = '\0';
  }
  return code;
}

std::int32_t Report(const absl::Status& status, mergeplan_error* error) {
  if (status.ok()) return MERGEPLAN_OK;
  return ReportText(static_cast<std::int32_t>(status.code()),
                    std::string_view(status.message().data(), status.message().size()), error);
}

ErrorBuffer::ErrorBuffer() : text_{}, error_{} {
  error_.struct_size = sizeof(error_);
  error_.capacity = text_.size();
  error_.text = text_.data();
}

absl::Status ErrorBuffer::Take(std::int32_t code) {
  if (code == MERGEPLAN_OK) return absl::OkStatus();
  // The buffer is ours; that the plugin wrote the NUL is its word only.
  const std::string text =
      OneLine(std::string_view(text_.data(), strnlen(text_.data(), text_.size())));
  const absl::StatusCode known = ToCode(code);
  std::string message = text.empty() ? "failed without saying why" : text;
  if (static_cast<std::int32_t>(known) != code) {
    absl::StrAppend(&message, " (code ", code, ", which is no canonical code)");
  }
  return absl::Status(known, message);
}

absl::Status CheckSize(const char* type, std::uint32_t struct_size, std::size_t needed) {
  if (struct_size >= needed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(type, ": struct_size is ", struct_size,
                                                 ", expected ", needed,
                                                 " or more (set it to sizeof(", type, "))"));
}

}  // namespace mergeplan::border
