#include "planner/cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mergeplan::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Columns of the terminal; a longer line would not be overwritten.
std::size_t Columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

}  // namespace

std::string ProgressText(const SearchProgress& progress) {
  const double gap = progress.objective > 0
                         ? 100 * (progress.objective - progress.lower_bound) / progress.objective
                         : 0;
  return absl::StrFormat("%6.1f s  objective %.6e  no plan below %.6e  gap %.3g %%",
                         progress.seconds, progress.objective, progress.lower_bound, gap);
}

ProgressLine::ProgressLine(bool wanted) : shown_(wanted && isatty(STDERR_FILENO) == 1) {}

std::function<void(const SearchProgress&)> ProgressLine::Callback() {
  if (!shown_) return {};
  return [this](const SearchProgress& progress) { Show(progress); };
}

void ProgressLine::Begin(std::string_view what) {
  const std::lock_guard lock(mutex_);
  what_ = std::string(what);
  progress_.reset();
  written_ = {};
  if (shown_) Write(what_);
}

void ProgressLine::Show(const SearchProgress& progress) {
  constexpr auto kPause = std::chrono::milliseconds(100);
  const std::lock_guard lock(mutex_);
  progress_ = progress;
  told_ = Clock::now();
  if (told_ - written_ < kPause) return;
  written_ = told_;
  Write(absl::StrCat(what_, what_.empty() ? "" : ": ", ProgressText(progress)));
}

void ProgressLine::Tick() {
  constexpr auto kPause = std::chrono::milliseconds(500);
  if (!shown_) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || !progress_) return;
  const Clock::time_point now = Clock::now();
  if (now - written_ < kPause) return;
  written_ = now;
  SearchProgress later = *progress_;
  later.seconds += std::chrono::duration<double>(now - told_).count();
  Write(absl::StrCat(what_, what_.empty() ? "" : ": ", ProgressText(later)));
}

void ProgressLine::Write(const std::string& text) {
  const std::string cut = text.substr(0, Columns() - 1);
  std::fprintf(stderr, "\r%s\033[K", cut.c_str());
  std::fflush(stderr);
  dirty_ = true;
}

void ProgressLine::Clear() {
  const std::lock_guard lock(mutex_);
  progress_.reset();
  if (!dirty_) return;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
  dirty_ = false;
}

}  // namespace mergeplan::cli
