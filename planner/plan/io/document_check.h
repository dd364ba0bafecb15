#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "planner/plan/io/document.h"

// What the TOML and the JSON form share besides reading.

namespace mergeplan::plan_io {

inline constexpr int kPlanFormat = 1;
inline constexpr size_t kLongestInlineArray = 64;  // TOML
inline constexpr int kLargestTree = 128;           // JSON
inline constexpr size_t kMostValues = 4096;        // JSON
inline constexpr std::string_view kUnchecked = "unchecked";

// What is wrong with a document, if anything, and the key of the files that it is about.
struct Complaint {
  std::string key;
  std::string message;
};
std::optional<Complaint> FindComplaint(const PlanDocument& document);
// The same as a status, for writing: "PATH: not written, KEY: …".
absl::Status CheckForWriting(const PlanDocument& document, const std::string& path);

// SHA-256 over the question, the plan and the certificate: everything but `seconds` and `input`,
// which say where things came from, and (above kMostValues dimensions) value and tau, which JSON
// leaves out. Bits of the numbers count, so that it is the same whatever the form of the file.
std::string Fingerprint(const PlanDocument& document);

// The document as it can be read back: bytes of texts that are no UTF-8 are replaced by U+FFFD, the
// fields of the budget that its kind does not use are cleared, an empty hash is filled in.
PlanDocument Normalized(const PlanDocument& document);

}  // namespace mergeplan::plan_io
