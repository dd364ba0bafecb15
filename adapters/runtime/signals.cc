#include "adapters/runtime/signals.h"

#include <csignal>

namespace mergeplan {
namespace {

volatile std::sig_atomic_t stop_requested = 0;

extern "C" void OnSignal(int signal) {
  stop_requested = 1;
  // A second one finds what was there before us.
  std::signal(signal, SIG_DFL);
}

}  // namespace

void StopOnSignals() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool StopRequested() { return stop_requested != 0; }

}  // namespace mergeplan
