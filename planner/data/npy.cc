#include "planner/data/npy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

static_assert(std::endian::native == std::endian::little, "written for little-endian machines");

// numpy refuses headers beyond 10,000 bytes unless told otherwise; the shapes and types that are
// read here fit in far less.
constexpr std::size_t kMostHeader = std::size_t{1} << 16;

// The dictionary of an .npy header, which is a Python literal:
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  absl::StatusOr<NpyHeader> Parse() {
    NpyHeader header;
    bool have_descr = false, have_order = false, have_shape = false;
    if (!Eat('{')) return Wrong("{");
    while (!Eat('}')) {
      MP_ASSIGN_OR_RETURN(const std::string key, String());
      if (!Eat(':')) return Wrong(":");
      if (key == "descr" && !have_descr) {
        have_descr = true;
        Skip();
        if (position_ < text_.size() && text_[position_] == '[') {
          return absl::InvalidArgumentError(absl::StrCat(
              where_, ": holds records with several fields, expected an array of numbers"));
        }
        MP_ASSIGN_OR_RETURN(header.descr, String());
      } else if (key == "fortran_order" && !have_order) {
        have_order = true;
        Skip();
        if (EatWord("True")) {
          header.fortran_order = true;
        } else if (!EatWord("False")) {
          return Wrong("True or False");
        }
      } else if (key == "shape" && !have_shape) {
        have_shape = true;
        MP_RETURN_IF_ERROR(Shape(header.shape));
      } else {
        return Wrong(absl::StrCat("each of descr, fortran_order and shape once instead of '",
                                  Printable(key, 40), "'"));
      }
      if (!Eat(',')) {
        if (Eat('}')) break;
        return Wrong(", or }");
      }
    }
    Skip();
    if (position_ != text_.size()) return Wrong("its end");
    if (!have_descr || !have_order || !have_shape) {
      return Wrong("the keys descr, fortran_order and shape");
    }
    return header;
  }

 private:
  absl::Status Wrong(std::string_view expected) const {
    return absl::InvalidArgumentError(absl::StrCat(
        where_, ": the .npy header is damaged at character ", position_ + 1, " (",
        position_ < text_.size() ? absl::StrCat("'", Printable(text_.substr(position_), 12), "'")
                                 : "its end",
        "), expected ", std::string(expected)));
  }
  void Skip() {
    while (position_ < text_.size() &&
           (text_[position_] == ' ' || text_[position_] == '\n' || text_[position_] == '\t')) {
      ++position_;
    }
  }
  bool Eat(char c) {
    Skip();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  bool EatWord(std::string_view word) {
    if (text_.substr(position_, word.size()) != word) return false;
    position_ += word.size();
    return true;
  }
  absl::StatusOr<std::string> String() {
    Skip();
    if (position_ >= text_.size() || (text_[position_] != '\'' && text_[position_] != '"')) {
      return Wrong("a quoted text");
    }
    const std::size_t end = text_.find(text_[position_], position_ + 1);
    if (end == std::string_view::npos) return Wrong("a closing quote");
    const std::string value(text_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    return value;
  }
  absl::Status Shape(std::vector<std::int64_t>& shape) {
    if (!Eat('(')) return Wrong("(");
    while (!Eat(')')) {
      Skip();
      const std::size_t begin = position_;
      while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9') {
        ++position_;
      }
      std::int64_t extent = 0;
      const std::string digits(text_.substr(begin, position_ - begin));
      if (!absl::SimpleAtoi(digits, &extent)) {
        position_ = begin;
        return Wrong("a whole number below 2^63");
      }
      EatWord("L");  // Python 2 wrote long integers so
      shape.push_back(extent);
      if (shape.size() > 64) return Wrong("at most 64 axes");
      if (!Eat(',')) {
        if (Eat(')')) break;
        return Wrong(", or )");
      }
    }
    return absl::OkStatus();
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t position_ = 0;
};

float HalfToFloat(std::uint16_t half) {
  const bool negative = (half & 0x8000) != 0;
  const int exponent = (half >> 10) & 31;
  const int fraction = half & 1023;
  float value = 0;
  if (exponent == 31) {
    value = fraction != 0 ? std::numeric_limits<float>::quiet_NaN()
                          : std::numeric_limits<float>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    value = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  }
  return negative ? -value : value;
}

template <typename Stored, bool kSwap, typename Out, typename Convert>
void DecodeAs(const char* in, std::size_t count, Out* out, Convert convert) {
  for (std::size_t i = 0; i < count; ++i) {
    char bytes[sizeof(Stored)];
    std::memcpy(bytes, in + i * sizeof(Stored), sizeof(Stored));
    if constexpr (kSwap) std::reverse(bytes, bytes + sizeof(Stored));
    Stored value;
    std::memcpy(&value, bytes, sizeof(Stored));
    out[i] = convert(value);
  }
}

template <typename Stored, typename Out, typename Convert>
void DecodeAs(const ElementType& type, const char* in, std::size_t count, Out* out,
              Convert convert) {
  if (type.big_endian && sizeof(Stored) > 1) {
    DecodeAs<Stored, true>(in, count, out, convert);
  } else {
    DecodeAs<Stored, false>(in, count, out, convert);
  }
}

template <typename Out>
void Decode(const ElementType& type, const char* in, std::size_t count, Out* out) {
  const auto plain = [](auto value) { return static_cast<Out>(value); };
  switch (type.kind * 16 + type.size) {
    case 'b' * 16 + 1:
      return DecodeAs<std::uint8_t>(
          type, in, count, out, [](std::uint8_t value) { return static_cast<Out>(value != 0); });
    case 'u' * 16 + 1:
      return DecodeAs<std::uint8_t>(type, in, count, out, plain);
    case 'u' * 16 + 2:
      return DecodeAs<std::uint16_t>(type, in, count, out, plain);
    case 'u' * 16 + 4:
      return DecodeAs<std::uint32_t>(type, in, count, out, plain);
    case 'u' * 16 + 8:
      return DecodeAs<std::uint64_t>(type, in, count, out, plain);
    case 'i' * 16 + 1:
      return DecodeAs<std::int8_t>(type, in, count, out, plain);
    case 'i' * 16 + 2:
      return DecodeAs<std::int16_t>(type, in, count, out, plain);
    case 'i' * 16 + 4:
      return DecodeAs<std::int32_t>(type, in, count, out, plain);
    case 'i' * 16 + 8:
      return DecodeAs<std::int64_t>(type, in, count, out, plain);
    case 'f' * 16 + 2:
      return DecodeAs<std::uint16_t>(type, in, count, out, [](std::uint16_t value) {
        return static_cast<Out>(HalfToFloat(value));
      });
    case 'V' * 16 + 2:  // bfloat16: the upper half of a float
      return DecodeAs<std::uint16_t>(type, in, count, out, [](std::uint16_t value) {
        const std::uint32_t bits = std::uint32_t{value} << 16;
        float number;
        std::memcpy(&number, &bits, sizeof(number));
        return static_cast<Out>(number);
      });
    case 'f' * 16 + 4:
      return DecodeAs<float>(type, in, count, out, plain);
    case 'f' * 16 + 8:
      return DecodeAs<double>(type, in, count, out, plain);
    default:  // ParseDescr lets nothing else through
      std::fill_n(out, count, std::numeric_limits<Out>::quiet_NaN());
  }
}

}  // namespace

absl::StatusOr<ElementType> ParseDescr(std::string_view descr, const std::string& where) {
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": has elements of type '", Printable(descr, 40), "'", std::string(why),
        ", expected numbers: bool, u1 to u8, i1 to i8, f2, f4, f8, bfloat16 (V2), or bytes (S)"));
  };
  if (descr.size() < 2) return refuse("");
  std::string_view rest = descr;
  ElementType type;
  type.big_endian = rest[0] == '>';
  if (rest[0] == '<' || rest[0] == '>' || rest[0] == '|' || rest[0] == '=') rest.remove_prefix(1);
  if (rest.empty()) return refuse("");
  type.kind = rest[0];
  rest.remove_prefix(1);
  if (type.kind == 'O') return refuse(" (pickled Python objects)");
  if (type.kind == 'c') return refuse(" (complex)");
  if (type.kind == 'U') return refuse(" (text)");
  if (rest.empty() || rest.size() > 9 || rest.find_first_not_of("0123456789") != rest.npos ||
      !absl::SimpleAtoi(std::string(rest), &type.size)) {
    return refuse("");
  }
  const bool power = type.size == 1 || type.size == 2 || type.size == 4 || type.size == 8;
  switch (type.kind) {
    case 'b':
      if (type.size == 1) return type;
      break;
    case 'u':
    case 'i':
      if (power) return type;
      break;
    case 'f':
      if (power && type.size > 1) return type;
      break;
    case 'V':
      // What numpy writes of ml_dtypes' bfloat16, a type that it does not know.
      if (type.size == 2 && !type.big_endian) return type;
      break;
    case 'S':
      return type;
    default:
      break;
  }
  return refuse("");
}

void DecodeElements(const ElementType& type, const char* in, std::size_t count, float* out) {
  Decode(type, in, count, out);
}
void DecodeElements(const ElementType& type, const char* in, std::size_t count, double* out) {
  Decode(type, in, count, out);
}

std::string ShapeText(absl::Span<const std::int64_t> shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), shape.size() == 1 ? ",)" : ")");
}

absl::StatusOr<std::int64_t> CountElements(absl::Span<const std::int64_t> shape, int element_size,
                                           const std::string& where) {
  const std::int64_t most = (std::int64_t{1} << 62) / std::max(element_size, 1);
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": has the shape ", ShapeText(shape), ", expected no negative axis"));
    }
    if (extent == 0) {
      empty = true;
    } else if (count > most / extent) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": declares the shape ",
                                                     ShapeText(shape), ", which no file can hold"));
    } else {
      count *= extent;
    }
  }
  return empty ? 0 : count;
}

absl::StatusOr<NpyHeader> ReadNpyHeader(ByteStream& in) {
  const auto ends_early = [&](std::size_t got, std::size_t wanted) {
    return absl::DataLossError(absl::StrCat(in.name(), ": ends inside the .npy header, found ", got,
                                            " bytes, expected ", wanted));
  };
  const std::int64_t begin = in.position();
  unsigned char start[12] = {};
  MP_ASSIGN_OR_RETURN(std::size_t n, in.Read(reinterpret_cast<char*>(start), 8));
  const std::string_view found(reinterpret_cast<const char*>(start), n);
  if (n == 0) return absl::DataLossError(absl::StrCat(in.name(), ": is empty, expected an .npy"));
  if (found.substr(0, kNpyMagic.size()) != kNpyMagic) {
    return absl::InvalidArgumentError(absl::StrCat(in.name(), ": starts with '",
                                                   Printable(found.substr(0, 8)),
                                                   "', expected the .npy mark '\\x93NUMPY'"));
  }
  if (n < 8) return ends_early(n, 8);
  const int version = start[6];
  if (version < 1 || version > 3) {
    return absl::InvalidArgumentError(absl::StrCat(in.name(), ": has .npy format version ", version,
                                                   ".", static_cast<int>(start[7]),
                                                   ", expected 1, 2 or 3"));
  }
  const std::size_t width = version == 1 ? 2 : 4;
  MP_ASSIGN_OR_RETURN(n, in.Read(reinterpret_cast<char*>(start) + 8, width));
  if (n < width) return ends_early(8 + n, 8 + width);
  std::size_t length = start[8] + (std::size_t{start[9]} << 8);
  if (version > 1) length += (std::size_t{start[10]} << 16) + (std::size_t{start[11]} << 24);
  if (length > kMostHeader) {
    return absl::InvalidArgumentError(absl::StrCat(in.name(), ": declares an .npy header of ",
                                                   length, " bytes, expected at most ",
                                                   kMostHeader));
  }
  std::string text(length, '\0');
  MP_ASSIGN_OR_RETURN(n, in.Read(text.data(), length));
  if (n < length) return ends_early(8 + width + n, 8 + width + length);

  MP_ASSIGN_OR_RETURN(NpyHeader header, HeaderParser(text, in.name()).Parse());
  MP_ASSIGN_OR_RETURN(header.type, ParseDescr(header.descr, in.name()));
  MP_ASSIGN_OR_RETURN(header.count, CountElements(header.shape, header.type.size, in.name()));
  header.data_offset = in.position() - begin;
  const std::int64_t wanted = header.count * header.type.size;
  const std::int64_t there = in.size().value_or(in.size_limit()) - in.position();
  if (wanted > there) {
    return absl::DataLossError(absl::StrCat(
        in.name(), ": is truncated, found ", in.size() ? "" : "at most ",
        std::max<std::int64_t>(there, 0), " bytes of values, expected ", wanted, " for the shape ",
        ShapeText(header.shape), " of '", Printable(header.descr, 40), "'"));
  }
  return header;
}

std::string NpyHeaderBytes(std::string_view descr, absl::Span<const std::int64_t> shape) {
  std::string dict = absl::StrCat("{'descr': '", std::string(descr),
                                  "', 'fortran_order': False, 'shape': ", ShapeText(shape), ", }");
  constexpr std::size_t kBefore = 10;  // mark, version and length
  dict.append(64 - (kBefore + dict.size() + 1) % 64, ' ');
  dict.push_back('\n');
  std::string out(kNpyMagic);
  out.push_back('\x01');
  out.push_back('\x00');
  out.push_back(static_cast<char>(dict.size() & 255));
  out.push_back(static_cast<char>(dict.size() >> 8));
  return out + dict;
}

}  // namespace mergeplan
