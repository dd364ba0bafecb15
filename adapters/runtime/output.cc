#include "adapters/runtime/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace mergeplan {
namespace {

int g_stdout = -1;  // the real one while it is diverted

}  // namespace

void DivertStdout() {
  if (g_stdout >= 0) return;
  std::fflush(stdout);
  g_stdout = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (g_stdout >= 0) ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

void RestoreStdout() {
  if (g_stdout < 0) return;
  std::fflush(stdout);
  ::dup2(g_stdout, STDOUT_FILENO);
  ::close(g_stdout);
  g_stdout = -1;
}

}  // namespace mergeplan
