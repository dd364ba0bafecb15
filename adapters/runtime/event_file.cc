#include "adapters/runtime/event_file.h"

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"

namespace mergeplan {
namespace {

constexpr std::array<std::uint32_t, 256> MakeTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? 0x82f63b78U : 0U);
    table[byte] = rest;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = MakeTable();

// A CRC next to the data it is of would be found in a CRC of both: records store it turned.
std::uint32_t Masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8U; }

template <typename Int>
void AppendLittleEndian(Int value, std::string* out) {
  for (std::size_t i = 0; i < sizeof(Int); ++i) {
    out->push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
}

// ---- Protocol buffers: a field is a number and a type, then its value.
constexpr int kVarint = 0, k64Bits = 1, kBytes = 2, k32Bits = 5;

void AppendVarint(std::uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}
void AppendKey(int field, int type, std::string* out) {
  AppendVarint(static_cast<std::uint64_t>(field << 3 | type), out);
}
void AppendBytes(int field, const std::string& bytes, std::string* out) {
  AppendKey(field, kBytes, out);
  AppendVarint(bytes.size(), out);
  *out += bytes;
}

double Now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Event.wall_time is field 1.
std::string BeginEvent() {
  std::string event;
  AppendKey(1, k64Bits, &event);
  AppendLittleEndian(std::bit_cast<std::uint64_t>(Now()), &event);
  return event;
}

void AppendRecord(const std::string& event, std::string* out) {
  std::string length;
  AppendLittleEndian(static_cast<std::uint64_t>(event.size()), &length);
  *out += length;
  AppendLittleEndian(Masked(Crc32c(length)), out);
  *out += event;
  AppendLittleEndian(Masked(Crc32c(event)), out);
}

}  // namespace

std::uint32_t Crc32c(const std::string& bytes) {
  std::uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  }
  return ~crc;
}

void EventFile::Clear() {
  bytes_.clear();
  written_ = 0;
  std::string event = BeginEvent();
  AppendBytes(3, "brain.Event:2", &event);  // Event.file_version
  AppendRecord(event, &bytes_);
}

void EventFile::AddScalar(const std::string& tag, std::int64_t step, double value) {
  std::string number;  // Summary.Value: tag, simple_value
  AppendBytes(1, tag, &number);
  AppendKey(2, k32Bits, &number);
  AppendLittleEndian(std::bit_cast<std::uint32_t>(static_cast<float>(value)), &number);
  std::string summary;
  AppendBytes(1, number, &summary);
  std::string event = BeginEvent();
  AppendKey(2, kVarint, &event);  // Event.step
  AppendVarint(static_cast<std::uint64_t>(step), &event);
  AppendBytes(5, summary, &event);  // Event.summary
  AppendRecord(event, &bytes_);
}

absl::Status EventFile::Write(const std::string& path) {
  absl::Status status = WriteFileAtomically(path, bytes_);
  if (status.ok()) written_ = bytes_.size();
  return status;
}

absl::Status EventFile::Append(const std::string& path) {
  const std::string rest = bytes_.substr(written_);
  std::FILE* file = std::fopen(path.c_str(), "ab");
  const bool whole =
      file != nullptr && std::fwrite(rest.data(), 1, rest.size(), file) == rest.size();
  const bool closed = file != nullptr && std::fclose(file) == 0;
  if (!whole || !closed) {
    return absl::UnavailableError(
        absl::StrCat(path, ": cannot be written (", std::strerror(errno), ")"));
  }
  written_ = bytes_.size();
  return absl::OkStatus();
}

}  // namespace mergeplan
