#include "adapters/runtime/progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mergeplan {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTerminalPause{100};
constexpr std::chrono::seconds kPlainPause{5};

}  // namespace

ProgressPrinter::ProgressPrinter(std::string strategy, bool quiet)
    : strategy_(std::move(strategy)),
      quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(Clock::now()),
      last_(start_) {}

void ProgressPrinter::Show(const TrainingProgress& progress) {
  Show([&](double seconds) {
    const double share = progress.updates_total > 0
                             ? static_cast<double>(progress.updates_done) /
                                   static_cast<double>(progress.updates_total)
                             : 1.0;
    const Range& range = progress.first_of_group;
    std::string text = absl::StrFormat("%3.0f%%  %d of %d merges, training ", 100 * share,
                                       progress.merges_done, progress.merges_total);
    if (range.last == 0) {
      absl::StrAppend(&text, "single steps");
    } else {
      absl::StrAppendFormat(&text, "[%d, %d]", range.first, range.last);
    }
    if (progress.group > 1) absl::StrAppendFormat(&text, " and %d more", progress.group - 1);
    absl::StrAppendFormat(&text, "  %.1f s", seconds);
    return text;
  });
}

void ProgressPrinter::Show(const std::function<std::string(double seconds)>& text) {
  if (quiet_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (now - last_ < (terminal_ ? Clock::duration(kTerminalPause) : Clock::duration(kPlainPause))) {
    return;
  }
  last_ = now;
  const std::string line = text(std::chrono::duration<double>(now - start_).count());
  std::fprintf(stderr, terminal_ ? "\r\033[K%s: %s" : "%s: %s\n", strategy_.c_str(), line.c_str());
  std::fflush(stderr);
  shown_ = terminal_;
}

void ProgressPrinter::Line(const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Clear();
  std::fprintf(stderr, "%s\n", text.c_str());
}

void ProgressPrinter::Finish() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Clear();
}

void ProgressPrinter::Clear() {
  if (!shown_) return;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace mergeplan
