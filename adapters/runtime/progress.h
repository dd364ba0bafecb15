#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>

#include "adapters/runtime/training.h"

namespace mergeplan {

// Tells people how far a run is, on stderr: one line that is rewritten ten times a second on a
// terminal, a plain line every few seconds elsewhere, nothing when quiet. Any thread.
class ProgressPrinter {
 public:
  ProgressPrinter(std::string strategy, bool quiet);
  ~ProgressPrinter() { Finish(); }
  ProgressPrinter(const ProgressPrinter&) = delete;
  ProgressPrinter& operator=(const ProgressPrinter&) = delete;

  void Show(const TrainingProgress& progress);
  // The same of anything else: what stands behind the name, asked for when it is shown, from the
  // seconds since the beginning.
  void Show(const std::function<std::string(double seconds)>& text);
  // A line of its own, whatever stands on the terminal's last line.
  void Line(const std::string& text);
  // Clears the rewritten line.
  void Finish();

 private:
  void Clear();  // with the mutex held

  std::mutex mutex_;
  std::string strategy_;
  bool quiet_, terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace mergeplan
