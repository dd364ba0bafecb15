#include "planner/report/text.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mergeplan {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";

bool IsContinuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// Length of the valid UTF-8 sequence at `text[at]`, 0 where there is none.
size_t SequenceLength(std::string_view text, size_t at) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[at + k]); };
  const size_t left = text.size() - at;
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return left >= 2 && IsContinuation(byte(1)) ? 2 : 0;
  if (lead >= 0xE0 && lead < 0xF0) {
    if (left < 3 || !IsContinuation(byte(1)) || !IsContinuation(byte(2))) return 0;
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;   // overlong
    if (lead == 0xED && byte(1) >= 0xA0) return 0;  // surrogate
    // U+FFFE and U+FFFF are no characters of XML.
    if (lead == 0xEF && byte(1) == 0xBF && byte(2) >= 0xBE) return 0;
    return 3;
  }
  if (lead >= 0xF0 && lead < 0xF5) {
    if (left < 4 || !IsContinuation(byte(1)) || !IsContinuation(byte(2)) ||
        !IsContinuation(byte(3))) {
      return 0;
    }
    if (lead == 0xF0 && byte(1) < 0x90) return 0;
    if (lead == 0xF4 && byte(1) >= 0x90) return 0;
    return 4;
  }
  return 0;
}

std::string WithMinusSign(std::string number) {
  if (number.empty() || number[0] != '-') return number;
  return absl::StrCat("−", number.substr(1));
}

}  // namespace

std::string Escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = SequenceLength(text, at);
    const unsigned char byte = static_cast<unsigned char>(text[at]);
    if (length == 0) {
      out += kReplacement;
      ++at;
      continue;
    }
    if (length > 1) {
      out.append(text.substr(at, length));
    } else if (byte == '&') {
      out += "&amp;";
    } else if (byte == '<') {
      out += "&lt;";
    } else if (byte == '>') {
      out += "&gt;";
    } else if (byte == '"') {
      out += "&quot;";
    } else if (byte == '\'') {
      out += "&#39;";
    } else if ((byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7F) {
      out += kReplacement;
    } else {
      out += static_cast<char>(byte);
    }
    at += length;
  }
  return out;
}

std::string PowerOfTen(int exponent) {
  static constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out = "10";
  if (exponent < 0) out += "⁻";
  for (char digit : std::to_string(std::abs(exponent))) out += kDigits[digit - '0'];
  return out;
}

std::string ShortNumber(double value, int digits) {
  if (!std::isfinite(value)) return "not finite";
  if (value == 0) return "0";
  char scientific[64];
  std::snprintf(scientific, sizeof scientific, "%.*e", digits - 1, value);
  const std::string text = scientific;
  const size_t mark = text.find('e');
  const int exponent = std::atoi(text.c_str() + mark + 1);
  if (exponent >= -3 && exponent <= 4) {
    const int decimals = exponent < digits ? digits - 1 - exponent : 0;
    return WithMinusSign(absl::StrFormat("%.*f", decimals, value));
  }
  return WithMinusSign(absl::StrCat(text.substr(0, mark), "×", PowerOfTen(exponent)));
}

std::string ExactNumber(double value) {
  if (!std::isfinite(value)) return "not finite";
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return WithMinusSign(std::string(text, end.ptr));
}

std::string NumberHtml(double value, int digits) {
  if (std::isnan(value)) return "–";
  return absl::StrCat("<span class=\"n\" title=\"", ExactNumber(value), "\">",
                      ShortNumber(value, digits), "</span>");
}

std::string Grouped(long long value) {
  const std::string digits = std::to_string(value);
  std::string out;
  for (size_t k = 0; k < digits.size(); ++k) {
    const size_t left = digits.size() - k;
    if (k > 0 && digits[k - 1] != '-' && left % 3 == 0) out += ',';
    out += digits[k];
  }
  return WithMinusSign(std::move(out));
}

std::string Percent(double fraction) {
  if (!std::isfinite(fraction)) return "not finite";
  if (fraction == 0) return "0 %";
  if (std::abs(fraction) < 1e-6) return "less than 0.0001 %";
  const double percent = 100 * fraction;
  const double size = std::abs(percent);
  std::string text =
      size >= 100 ? absl::StrFormat("%.0f", percent) : ShortNumber(percent, size >= 10 ? 3 : 2);
  if (text.find('.') != std::string::npos && text.find("×") == std::string::npos) {
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
  }
  return absl::StrCat(WithMinusSign(std::move(text)), " %");
}

std::string Count(long long number, std::string_view noun) {
  return absl::StrCat(Grouped(number), " ", std::string(noun), number == 1 ? "" : "s");
}

std::string Listed(const std::vector<std::string>& items) {
  std::string out;
  for (size_t k = 0; k < items.size(); ++k) {
    if (k > 0) out += k + 1 == items.size() ? " and " : ", ";
    out += items[k];
  }
  return out;
}

int CodePoints(std::string_view text) {
  int count = 0;
  for (char c : text) count += !IsContinuation(static_cast<unsigned char>(c));
  return count;
}

std::string Shortened(std::string_view text, int characters) {
  if (CodePoints(text) <= characters) return std::string(text);
  size_t at = 0;
  for (int k = 0; at < text.size(); ++at) {
    if (IsContinuation(static_cast<unsigned char>(text[at]))) continue;
    if (k++ == characters - 1) break;
  }
  return absl::StrCat(std::string(text.substr(0, at)), "…");
}

}  // namespace mergeplan
