#pragma once

namespace mergeplan {

// A program that another one starts says how far it came, whatever its exit status: code that it
// loads (a plugin) may end it with exit status 0 in the middle of its work, and before it looks
// after signals itself, Ctrl-C ends it like any other program.

// The environment variable that names the file descriptor to tell it on.
inline constexpr char kFinishedVariable[] = "MERGEPLAN_FINISHED_FD";

// What is written there.
inline constexpr char kCatchesSignals = 's';
inline constexpr char kCameToItsEnd = '1';

// Signals are looked after from now on. Does nothing where nobody asked.
void TellCatchesSignals();

// The last thing in main(). Does nothing where nobody asked.
void TellFinished();

}  // namespace mergeplan
