#include "planner/base/finished.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace mergeplan {

namespace {

// The descriptor, or -1 where nobody asked.
int Listener() {
  const char* text = std::getenv(kFinishedVariable);
  if (text == nullptr) return -1;
  char* end = nullptr;
  const long fd = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || fd <= STDERR_FILENO || fd > 1 << 20) return -1;
  return static_cast<int>(fd);
}

void Tell(int fd, char what) {
  while (::write(fd, &what, 1) < 0 && errno == EINTR) {
  }
}

}  // namespace

void TellCatchesSignals() {
  if (const int fd = Listener(); fd >= 0) Tell(fd, kCatchesSignals);
}

void TellFinished() {
  const int fd = Listener();
  if (fd < 0) return;
  Tell(fd, kCameToItsEnd);
  ::close(fd);
}

}  // namespace mergeplan
