#include "adapters/runtime/signals.h"

#include <csignal>
#include <ctime>

#include "planner/base/finished.h"

namespace mergeplan {
namespace {

volatile std::sig_atomic_t stop_requested = 0;
timespec first_signal = {};

extern "C" void OnSignal(int signal) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (stop_requested == 0) {
    stop_requested = 1;
    first_signal = now;
    return;
  }
  // A second one ends the program at once, unless it is the same request that came on two ways (to
  // the whole group and through the parent).
  const double seconds = static_cast<double>(now.tv_sec - first_signal.tv_sec) +
                         1e-9 * static_cast<double>(now.tv_nsec - first_signal.tv_nsec);
  if (seconds < 0.5) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

void StopOnSignals() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  TellCatchesSignals();
}

bool StopRequested() { return stop_requested != 0; }

}  // namespace mergeplan
