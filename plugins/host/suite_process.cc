#include "plugins/host/suite_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace mergeplan {
namespace {

using Clock = std::chrono::steady_clock;

// Both ends close in programs that this process starts; `ends[1]` is passed on by number.
class Pipe {
 public:
  Pipe() { open_ = ::pipe2(ends_, O_CLOEXEC) == 0; }
  ~Pipe() {
    CloseWriter();
    if (open_) ::close(ends_[0]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  bool open() const { return open_; }
  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void CloseWriter() {
    if (open_ && ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
  bool open_ = false;
};

// Text that arrives in pieces, as lines.
class Lines {
 public:
  // Reads what is there. False at the end.
  bool Read(int fd, const std::function<void(const std::string&)>& line) {
    char bytes[4096];
    const ssize_t n = ::read(fd, bytes, sizeof(bytes));
    if (n < 0) return errno == EINTR || errno == EAGAIN;
    if (n == 0) return false;
    rest_.append(bytes, static_cast<size_t>(n));
    size_t begin = 0;
    for (size_t end = 0; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      line(rest_.substr(begin, end - begin));
    }
    rest_.erase(0, begin);
    // A line without an end must not fill the memory.
    constexpr size_t kLongest = 1 << 16;
    if (rest_.size() > kLongest) rest_.resize(kLongest);
    return true;
  }

 private:
  std::string rest_;
};

[[noreturn]] void Become(const std::string& program, const std::vector<std::string>& arguments,
                         int events, int errors, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it died before that
  const int nowhere = ::open("/dev/null", O_RDWR);
  ::dup2(nowhere, STDIN_FILENO);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  const int passed_on = ::dup(events);  // without close-on-exec
  // What the caller's environment says of GoogleTest is about other tests.
  std::vector<std::string> about_tests;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (text.rfind("GTEST_", 0) == 0) about_tests.push_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : about_tests) ::unsetenv(name.c_str());
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.emplace_back("--events");
  words.push_back(absl::StrCat(passed_on));
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  ::dprintf(STDERR_FILENO, "%s: %s\n", program.c_str(), std::strerror(errno));
  ::_exit(127);
}

}  // namespace

absl::StatusOr<SuiteRun> RunSuite(const std::string& program,
                                  const std::vector<std::string>& arguments, double seconds,
                                  const std::function<void(const std::string&)>& line) {
  Pipe events;
  Pipe errors;
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = events.open() && errors.open() ? ::fork() : -1;
  if (child < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat(program, ": no child process could be made: ", std::strerror(errno)));
  }
  if (child == 0) Become(program, arguments, events.writer(), errors.writer(), parent);
  ::setpgid(child, child);  // whichever of the two is first
  events.CloseWriter();
  errors.CloseWriter();

  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(std::min(seconds, 1e6)));
  SuiteRun run;
  Lines event_lines;
  Lines error_lines;
  const auto keep = [&run](const std::string& text) {
    if (!text.empty()) run.last_words = text;
  };
  pollfd wanted[2] = {{events.reader(), POLLIN, 0}, {errors.reader(), POLLIN, 0}};
  const auto read_what_is_there = [&](int wait_ms) {
    if (::poll(wanted, 2, wait_ms) <= 0) return false;
    if (wanted[0].revents != 0 && !event_lines.Read(wanted[0].fd, line)) wanted[0].fd = -1;
    if (wanted[1].revents != 0 && !error_lines.Read(wanted[1].fd, keep)) wanted[1].fd = -1;
    return wanted[0].fd >= 0 || wanted[1].fd >= 0;
  };
  // The child's end counts, not that of its pipes: a process that it left behind may hold those.
  constexpr int kTickMs = 20;
  int status = 0;
  while (true) {
    read_what_is_there(kTickMs);
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (wanted[0].fd < 0 && wanted[1].fd < 0) ::poll(nullptr, 0, kTickMs);
    if (Clock::now() < deadline) continue;
    run.end = SuiteRun::End::kDeadline;
    ::kill(-child, SIGKILL);
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    break;
  }
  ::kill(-child, SIGKILL);  // what it left behind
  while (read_what_is_there(0) && Clock::now() < deadline) {
  }
  if (run.end == SuiteRun::End::kDeadline) return run;
  run.end = WIFSIGNALED(status) ? SuiteRun::End::kSignalled : SuiteRun::End::kExited;
  run.number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return run;
}

}  // namespace mergeplan
