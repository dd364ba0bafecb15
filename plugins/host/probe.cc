#include "plugins/host/probe.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace mergeplan {
namespace {

using Clock = std::chrono::steady_clock;

// What the child sends: this, then the message.
struct Answer {
  std::int32_t code = 0;
  std::uint32_t length = 0;
};
constexpr std::uint32_t kLongest = 1 << 16;

void Send(int fd, const void* data, size_t size) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::write(fd, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    bytes += n;
    size -= static_cast<size_t>(n);
  }
}

// Reads `size` bytes. False at the end of the stream; nullopt at the deadline.
std::optional<bool> Receive(int fd, void* data, size_t size, Clock::time_point deadline) {
  char* bytes = static_cast<char*>(data);
  while (size > 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return std::nullopt;
    pollfd wanted = {fd, POLLIN, 0};
    const int ready = ::poll(&wanted, 1, static_cast<int>(std::min<std::int64_t>(left, 60000)));
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t n = ready < 0 ? -1 : ::read(fd, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

[[noreturn]] void RunChild(int fd, pid_t parent, const std::function<absl::Status()>& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it died before that
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  const absl::Status status = body();
  const std::string message(status.message().substr(0, kLongest));
  const Answer answer{static_cast<std::int32_t>(status.code()),
                      static_cast<std::uint32_t>(message.size())};
  Send(fd, &answer, sizeof(answer));
  Send(fd, message.data(), message.size());
  ::_exit(0);
}

absl::Status Ended(const std::string& subject, int status) {
  if (WIFSIGNALED(status)) {
    return absl::FailedPreconditionError(absl::StrCat(
        subject, ": crashed while it was being loaded (signal ", WTERMSIG(status), ", ",
        ::strsignal(WTERMSIG(status)), "), expected a plugin that loads; remove or rebuild it"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(subject, ": ended the program while it was being loaded (exit status ",
                   WEXITSTATUS(status), "), expected a plugin that loads; remove or rebuild it"));
}

}  // namespace

double LoadSeconds() {
  constexpr double kUsual = 10;
  const char* text = std::getenv("MERGEPLAN_PLUGIN_LOAD_SECONDS");
  double seconds = 0;
  const bool usable = text != nullptr && absl::SimpleAtod(text, &seconds) && seconds > 0;
  return usable ? std::min(seconds, 1e6) : kUsual;
}

absl::Status TryLoading(const std::string& subject, const std::function<absl::Status()>& body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat(subject, ": cannot be tried, no pipe: ", std::strerror(errno)));
  }
  std::fflush(nullptr);  // or the child would print it once more
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) RunChild(ends[1], parent, body);
  ::close(ends[1]);
  if (child < 0) {
    const int error = errno;
    ::close(ends[0]);
    return absl::ResourceExhaustedError(
        absl::StrCat(subject, ": cannot be tried, no child process: ", std::strerror(error)));
  }
  const double seconds = LoadSeconds();
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(seconds));
  Answer answer;
  std::string message;
  std::optional<bool> got = Receive(ends[0], &answer, sizeof(answer), deadline);
  if (got == true && answer.length <= kLongest) {
    message.resize(answer.length);
    got = Receive(ends[0], message.data(), message.size(), deadline);
  }
  ::close(ends[0]);
  // A child that closed the pipe without an answer is about to end by itself: its own end is what
  // we want to know. Every other one has nothing left to do.
  int status = 0;
  if (got == true || !got.has_value()) ::kill(child, SIGKILL);
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!got.has_value()) {
    return absl::DeadlineExceededError(absl::StrCat(
        subject, ": was still being loaded after ", seconds,
        " seconds; remove or rebuild it, or set MERGEPLAN_PLUGIN_LOAD_SECONDS to a longer time"));
  }
  if (got == false) return Ended(subject, status);
  return absl::Status(static_cast<absl::StatusCode>(answer.code), message);
}

}  // namespace mergeplan
