#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "planner/search/search.h"

namespace mergeplan::cli {

// One line on stderr that is written over and over while a search runs: seconds, best objective,
// lower bound, gap. Nothing at all unless stderr is a terminal.
class ProgressLine {
 public:
  // `wanted`: false keeps it silent on a terminal too.
  explicit ProgressLine(bool wanted);
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // For SearchOptions; empty where nothing is shown, so that the search need not say anything.
  // Holds a pointer to this object.
  std::function<void(const SearchProgress&)> Callback();
  // What is searched, in front of the figures: "2 of 6, cosine, 32 steps"; or what else takes time.
  void Begin(std::string_view what);
  // Lets the seconds go on where the search has nothing new. Cheap; may be called from any thread,
  // while Begin, Clear and the callback are for one.
  void Tick();
  // Takes the line away, so that other output can follow.
  void Clear();

 private:
  void Show(const SearchProgress& progress);
  void Write(const std::string& text);

  const bool shown_;
  std::mutex mutex_;    // of all that follows
  bool dirty_ = false;  // is there a line?
  std::string what_;
  std::optional<SearchProgress> progress_;      // the last that was told
  std::chrono::steady_clock::time_point told_;  // when
  std::chrono::steady_clock::time_point written_;
};

// "  1.2 s  objective 5.592e-02  no plan below 5.1e-02  gap 8.8 %".
std::string ProgressText(const SearchProgress& progress);

}  // namespace mergeplan::cli
