#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "planner/base/finished.h"
#include "planner/cli/command.h"

namespace mergeplan::cli {
namespace {

constexpr Companion kCompanions[] = {
    {"distill", "mergeplan-torch", true,
     "Execute a plan or strategy against a teacher (needs LibTorch)",
     "builds that have LibTorch (preset \"release\")",
     "if the folder of the run has a run.toml, go on with --resume, else run the command again",
     true},
    {"bench", "mergeplan-torch", true,
     "Train several strategies and compare predicted with achieved (needs LibTorch)",
     "builds that have LibTorch (preset \"release\")",
     "nothing was written, run the command again"},
    {"calibrate", "mergeplan-torch", true,
     "Train a few merges and fill the measured model, for plan --measured (needs LibTorch)",
     "builds that have LibTorch (preset \"release\")",
     "if the pilots' file is there, go on with --resume, else run the command again"},
    {"model", "mergeplan-torch", true,
     "Say what a pretrained network is and how far from a reference (needs LibTorch)",
     "builds that have LibTorch (preset \"release\")",
     "nothing was written, run the command again"},
    {"encode", "mergeplan-torch", true, "Encode pictures into latents with a VAE (needs LibTorch)",
     "builds that have LibTorch (preset \"release\")",
     "finished parts are kept, run the command again"},
    {"decode", "mergeplan-torch", true, "Turn latents into pictures with a VAE (needs LibTorch)",
     "builds that have LibTorch (preset \"release\")",
     "nothing was written, run the command again"},
    {"train-teacher", "mergeplan-torch", true,
     "Train a network to denoise, a teacher of your own (needs LibTorch)",
     "builds that have LibTorch (preset \"release\")",
     "if the folder of the training has a train.toml, go on with --resume, else run the command "
     "again",
     true},
    {"train-vae", "mergeplan-torch", true,
     "Train a variational autoencoder on pictures (needs LibTorch)",
     "builds that have LibTorch (preset \"release\")",
     "if the folder of the training has a train.toml, go on with --resume, else run the command "
     "again",
     true},
    {"sample", "mergeplan-torch", true, "Draw samples from a student or a teacher (needs LibTorch)",
     "builds that have LibTorch (preset \"release\")",
     "nothing was written, run the command again"},
    {"features", "mergeplan-torch", true,
     "Train or test a small classifier that samples are compared by (needs LibTorch)",
     "builds that have LibTorch (preset \"release\")",
     "nothing was written, run the command again"},
    {"plugins", "mergeplan-plugins", false, "List, show and check strategy plugins", "every build",
     "nothing was changed, run the command again"},
};

pid_t g_child = 0;

// Passes on what was sent to this process alone; Ctrl-C on a terminal (SI_KERNEL) reaches the child
// by itself.
extern "C" void Forward(int signal, siginfo_t* info, void* /*context*/) {
  if (g_child > 0 && (signal != SIGINT || info->si_code == SI_USER)) ::kill(g_child, signal);
}

// bin/mergeplan -> libexec/mergeplan/PROGRAM, in the build tree and where it is installed.
std::string PathOf(std::string_view program) {
  if (const char* folder = std::getenv("MERGEPLAN_LIBEXEC"); folder != nullptr && *folder != '\0') {
    return (std::filesystem::path(folder) / program).string();
  }
  std::error_code ec;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ec);
  return (self.parent_path().parent_path() / "libexec" / "mergeplan" / program).string();
}

// Says that a signal ended the child before it looked after signals, which a training does before
// it writes anything.
int StoppedAtItsStart(const Companion& companion, const std::vector<std::string>& words,
                      const ChildOptions& options, int signal) {
  const bool resumes = std::find(words.begin(), words.end(), "--resume") != words.end();
  if (companion.fails_without_work && !resumes) {
    std::fprintf(stderr,
                 "mergeplan %s: stopped by a signal before the training began; nothing was "
                 "written, run the same command again\n",
                 options.called.c_str());
    return kFailed;
  }
  std::fprintf(stderr, "mergeplan %s: stopped by signal %d (%s); %s\n", options.called.c_str(),
               signal, ::strsignal(signal), std::string(options.after_signal).c_str());
  return kStopped;
}

}  // namespace

const Companion* FindCompanion(std::string_view command) {
  for (const Companion& companion : kCompanions) {
    if (companion.command == command) return &companion;
  }
  return nullptr;
}

absl::Span<const Companion> Companions() { return kCompanions; }

int RunCompanion(const Companion& companion, int argc, char** argv) {
  return RunChild(
      companion, {argv + 2, argv + argc},
      {.called = std::string(companion.command), .after_signal = companion.after_signal});
}

int RunChild(const Companion& companion, const std::vector<std::string>& words,
             const ChildOptions& options) {
  const std::string command = options.called;
  const std::string path = PathOf(companion.program);
  if (::access(path.c_str(), X_OK) != 0) {
    std::fprintf(
        stderr,
        "mergeplan %s: %s cannot be run (%s); it comes with %s, or set MERGEPLAN_LIBEXEC to "
        "the folder that holds it\n",
        command.c_str(), path.c_str(), std::strerror(errno),
        std::string(companion.comes_with).c_str());
    return kFailed;
  }
  const std::string first(companion.command);
  std::vector<char*> arguments{const_cast<char*>(path.c_str())};
  if (companion.passes_command) arguments.push_back(const_cast<char*>(first.c_str()));
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  // What the child loads may end it with any exit status in the middle of its work, so that it says
  // when it has come to its end.
  int finished[2] = {-1, -1};
  if (::pipe(finished) != 0) {
    std::fprintf(stderr, "mergeplan %s: no pipe could be made: %s\n", command.c_str(),
                 std::strerror(errno));
    return kFailed;
  }
  ::fcntl(finished[0], F_SETFL, O_NONBLOCK);
  std::fflush(nullptr);
  // What comes before Forward is in place waits for it.
  std::optional<HoldInterrupts> hold(std::in_place);
  g_child = ::fork();
  if (g_child < 0) {
    std::fprintf(stderr, "mergeplan %s: no child process could be made: %s\n", command.c_str(),
                 std::strerror(errno));
    return kFailed;
  }
  if (g_child == 0) {
    // Nothing trains on unseen when this process is killed: the child then stops as on SIGTERM,
    // resumable.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::close(finished[0]);
    if (options.output >= 0) ::dup2(options.output, STDOUT_FILENO);
    ::setenv(kFinishedVariable, std::to_string(finished[1]).c_str(), 1);
    ::signal(SIGINT, SIG_DFL);
    ::signal(SIGTERM, SIG_DFL);
    hold.reset();
    ::execv(path.c_str(), arguments.data());
    std::fprintf(stderr, "mergeplan %s: %s could not be started: %s\n", command.c_str(),
                 path.c_str(), std::strerror(errno));
    TellFinished();
    ::_exit(kFailed);
  }
  ::close(finished[1]);
  // The child decides how to stop, and this waits for it.
  struct sigaction action = {};
  action.sa_sigaction = Forward;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  struct sigaction before[2] = {};
  ::sigaction(SIGINT, &action, &before[0]);
  ::sigaction(SIGTERM, &action, &before[1]);
  hold.reset();
  int status = 0;
  while (::waitpid(g_child, &status, 0) < 0 && errno == EINTR) {
  }
  ::sigaction(SIGINT, &before[0], nullptr);
  ::sigaction(SIGTERM, &before[1], nullptr);
  g_child = 0;
  char told[16];
  const ssize_t size = std::max<ssize_t>(0, ::read(finished[0], told, sizeof told));
  const auto said = [&](char what) { return std::find(told, told + size, what) != told + size; };
  const bool ended = said(kCameToItsEnd);
  ::close(finished[0]);
  if (WIFEXITED(status) && ended) return WEXITSTATUS(status);
  if (WIFEXITED(status)) {
    std::fprintf(stderr,
                 "mergeplan %s: %s ended with exit status %d before it had finished: a plugin, or "
                 "something that it loads, ended the program (mergeplan plugins check finds such a "
                 "plugin); %s\n",
                 command.c_str(), std::string(companion.program).c_str(), WEXITSTATUS(status),
                 std::string(options.after_signal).c_str());
    return kFailed;
  }
  const int signal = WTERMSIG(status);
  if ((signal == SIGINT || signal == SIGTERM) && !said(kCatchesSignals)) {
    return StoppedAtItsStart(companion, words, options, signal);
  }
  std::fprintf(stderr,
               "mergeplan %s: %s was ended by signal %d (%s) before it could stop by itself; %s\n",
               command.c_str(), std::string(companion.program).c_str(), signal, ::strsignal(signal),
               std::string(options.after_signal).c_str());
  return kFailed;
}

}  // namespace mergeplan::cli
