#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace mergeplan::encoding {

struct CodingProgress {
  std::int64_t samples = 0;  // seen so far
  std::optional<std::int64_t> of;
};

// "encode: 300 of 1000 samples" on stderr, at most every two seconds; rewritten ten times a second
// on a terminal, and gone at the end.
class ProgressLine {
 public:
  ProgressLine(std::string verb, bool quiet);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void Show(const CodingProgress& at);

 private:
  std::string verb_;
  bool quiet_, terminal_, shown_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace mergeplan::encoding
