#include "adapters/encoding/progress_line.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mergeplan::encoding {

ProgressLine::ProgressLine(std::string verb, bool quiet)
    : verb_(std::move(verb)), quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (shown_ && terminal_) std::fprintf(stderr, "\r\033[K");
}

void ProgressLine::Show(const CodingProgress& at) {
  const auto now = std::chrono::steady_clock::now();
  const double wait = terminal_ ? 0.1 : 2;
  if (quiet_ || std::chrono::duration<double>(now - last_).count() < wait) return;
  last_ = now;
  shown_ = true;
  const std::string of = at.of ? absl::StrCat(" of ", *at.of) : "";
  std::fprintf(stderr, "%s%s: %lld%s samples%s", terminal_ ? "\r" : "", verb_.c_str(),
               static_cast<long long>(at.samples), of.c_str(), terminal_ ? "\033[K" : "\n");
}

}  // namespace mergeplan::encoding
