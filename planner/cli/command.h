#pragma once

#include <signal.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/base/exit_code.h"

namespace mergeplan::cli {

// The same status, marked as the fault of a flag: the command ends with kMisuse.
absl::Status Misuse(absl::Status status);
absl::Status Misuse(std::string_view message);
// A failure that is on stderr already: Report says nothing more and gives `exit_code`.
absl::Status Told(int exit_code);
int ExitCodeOf(const absl::Status& status);

// Misuse unless the folder that `path` would be written into is there: said before the work, not
// after it. An empty path is fine.
// Nor may it be one of the command's own inputs, or end like a file of arrays unless it is one, or,
// where arrays are written beside it, be anything but a plain file with a name in UTF-8.
enum class OutputKind { kText, kWithArrays, kArrays };
absl::Status CheckOutput(const std::string& path, const std::vector<std::string>& inputs,
                         OutputKind kind = OutputKind::kText);

// CheckOutput for a TOML file with arrays beside it, which must end in .toml and whose arrays may
// not overwrite an input or somebody else's. An empty path is fine.
absl::Status CheckTomlOutput(const std::string& path, const std::vector<std::string>& inputs);

// The line that this process was started with, quoted for a shell, its program by name only; empty
// where the system does not tell.
std::string CommandLine();

// Prints "mergeplan COMMAND: message" as one line on stderr and gives the exit code.
int Report(std::string_view command, const absl::Status& status);

// A subcommand: its flags are bound when it is made; `run` is called after parsing.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
};

Command MakeAnalyze(CLI::App& top);
Command MakePlan(CLI::App& top);
Command MakeCompare(CLI::App& top);
Command MakeShow(CLI::App& top);
Command MakeExport(CLI::App& top);
Command MakeReport(CLI::App& top);
Command MakeMixture(CLI::App& top);   // mixture fit
Command MakeSpectrum(CLI::App& top);  // spectrum merge

// Commands of which a program in libexec/mergeplan does the work: `distill` and `plugins`. Replaces
// argv[0] and gives the child's exit code; a child that a signal ended is kFailed with a line that
// says so, or, where that was Ctrl-C or SIGTERM before it looked after signals itself, kStopped.
struct Companion {
  std::string_view command;       // "distill"
  std::string_view program;       // "mergeplan-torch"
  bool passes_command;            // is the command the child's first argument?
  std::string_view help;          // for the list of commands
  std::string_view comes_with;    // which builds have it
  std::string_view after_signal;  // what to do when a signal has ended it
  // Is it kFailed, not kStopped, where it is stopped before there is anything to use or to go on
  // with?
  bool fails_without_work = false;
};
const Companion* FindCompanion(std::string_view command);
absl::Span<const Companion> Companions();
int RunCompanion(const Companion& companion, int argc, char** argv);

// The same with arguments of another command's own making. Ctrl-C meanwhile is the child's.
struct ChildOptions {
  std::string called;             // the command that errors begin with
  int output = -1;                // descriptor that becomes its standard output; -1: this one's
  std::string_view after_signal;  // what to do when a signal has ended it
};
int RunChild(const Companion& companion, const std::vector<std::string>& arguments,
             const ChildOptions& options);

// True after Ctrl-C (SIGINT) or SIGTERM, once CatchInterrupts was called.
void CatchInterrupts();
bool Interrupted();

// From now on Ctrl-C and SIGTERM end the process at once with kStopped and the line "mergeplan
// COMMAND: WHAT" on stderr, whatever it is at: for long computations that never look up. A signal
// that came before (CatchInterrupts) counts.
void EndOnInterrupt(std::string_view command, std::string_view what);

// Ctrl-C and SIGTERM wait while this lives: a file is being written.
class HoldInterrupts {
 public:
  HoldInterrupts();
  ~HoldInterrupts();
  HoldInterrupts(const HoldInterrupts&) = delete;
  HoldInterrupts& operator=(const HoldInterrupts&) = delete;

 private:
  sigset_t before_;
};

}  // namespace mergeplan::cli
