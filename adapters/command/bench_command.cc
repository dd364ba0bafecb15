#include "adapters/command/bench_command.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/cases/choose.h"
#include "adapters/command/bench_budget.h"
#include "adapters/command/latent_data.h"
#include "adapters/parallel/open.h"
#include "adapters/runtime/device.h"
#include "adapters/runtime/output.h"
#include "adapters/runtime/signals.h"
#include "planner/base/exit_code.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

// One line on stderr that says what runs; rewritten on a terminal.
class Line {
 public:
  explicit Line(bool quiet) : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}
  ~Line() { Clear(); }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  void Forecast(const BenchForecast& forecast) const {
    for (const std::string& name : forecast.left_out) {
      std::fprintf(
          stderr,
          "mergeplan bench: of all strategies this one has no plan here, the others run: %s\n",
          name.c_str());
    }
    if (quiet_) return;
    std::fprintf(stderr, "%s\n", ForecastText(forecast).c_str());
    for (const std::string& above : forecast.above) {
      std::fprintf(stderr, "mergeplan bench: above the limit %s; it goes on\n", above.c_str());
    }
  }
  void Begin(const BenchRow& row, int trial) {
    if (quiet_ || !terminal_) return;
    std::fprintf(stderr, "\r\033[K%s, %s, trial %d", row.strategy.c_str(),
                 row.total_budget ? "total" : "per merge", trial + 1);
    std::fflush(stderr);
    shown_ = true;
  }
  void Clear() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
    shown_ = false;
  }

 private:
  bool quiet_, terminal_, shown_ = false;
};

// A folder that is not there, is empty, or holds an older comparison.
absl::Status CheckFolder(const std::string& path) {
  std::error_code ec;
  const bool there = std::filesystem::exists(path, ec);
  // A name with another ending is more likely a mistake than a folder.
  const bool ending = !there && std::filesystem::path(path).has_extension();
  if (ending || (there && !std::filesystem::is_directory(path, ec))) {
    return Misuse(absl::StrCat("-o ", path,
                               ": expected a name that ends in .csv or .json, or a folder (without "
                               "an ending, unless it is there)"));
  }
  if (there) {
    if (!std::filesystem::is_empty(path, ec) &&
        !std::filesystem::exists(path + "/bench.json", ec)) {
      return Misuse(absl::StrCat(
          "-o ", path,
          ": holds something else than a comparison, expected an empty folder or none"));
    }
  }
  // table.txt is a slip rather than a folder.
  if (!std::filesystem::is_directory(path, ec) && std::filesystem::path(path).has_extension()) {
    return Misuse(absl::StrCat("-o ", path,
                               ": expected a name that ends in .csv or .json, or a folder, which "
                               "must be there where its name has an ending"));
  }
  return MakeDirectories(path);
}

absl::StatusOr<int> Bench(const BenchArguments& asked, const BenchOutput& output) {
  if (output.file_given && output.file.empty()) {
    return Misuse("-o: is empty, expected a file; leave it out or give one");
  }
  const bool csv = absl::EndsWith(output.file, ".csv");
  const bool folder_wanted = !output.file.empty() && !csv && !absl::EndsWith(output.file, ".json");
  BenchArguments arguments = asked;
  if (folder_wanted) {
    MP_RETURN_IF_ERROR(CheckFolder(output.file));
    arguments.judge.folder = output.file;
  }
  MP_RETURN_IF_ERROR(ParseBenchBudget(arguments.budget).status());
  if (arguments.judge.cache == "default") arguments.judge.cache = CacheFolder("references");
  // Hours of training should not end at a folder that is not there.
  if (!output.file.empty() && !folder_wanted) {
    const std::filesystem::path folder = std::filesystem::absolute(output.file).parent_path();
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("-o ", output.file, ": the folder ", folder.string(), " cannot be written (",
                       std::strerror(errno), "); make it, or name another"));
    }
  }
  MP_ASSIGN_OR_RETURN(const std::shared_ptr<const Communicator> ranks, OpenCommunicator());
  if (ranks->ranks() > 1) {
    const std::string message =
        absl::StrCat("started by mpirun as one of ", ranks->ranks(),
                     " ranks, but bench runs in one process; start it without mpirun (distill can "
                     "share its batches among ranks)");
    // One of them says so.
    const absl::Status status = ranks->first() ? Misuse(message) : Misuse("");
    ranks->Finish();
    return status;
  }
  StopOnSignals();
  SetThreads(arguments.question.threads);
  const bool judged = !arguments.judge.data.empty() || !arguments.judge.folder.empty();
  MP_RETURN_IF_ERROR(EncodeData(*ranks, output.quiet, judged, &arguments.question));
  // All strategies compute in the same way.
  MP_RETURN_IF_ERROR(ChooseArithmetic(*ranks, output.quiet, &arguments.question));
  Line line(output.quiet);
  BenchWatch watch;
  watch.stop = StopRequested;
  watch.forecast = [&line](const BenchForecast& forecast) { line.Forecast(forecast); };
  watch.begin = [&line](const BenchRow& row, int trial) { line.Begin(row, trial); };
  MP_ASSIGN_OR_RETURN(const BenchResult result, RunBench(arguments, watch));
  line.Clear();
  const std::string json = BenchJson(result);
  RestoreStdout();
  std::fputs((output.json ? json : BenchText(result)).c_str(), stdout);
  std::fflush(stdout);
  // Nothing takes the place of what an earlier bench has found.
  const bool write = !output.file.empty() && !(result.stopped && result.rows.empty());
  if (write && folder_wanted) {
    MP_RETURN_IF_ERROR(WriteFileAtomically(output.file + "/bench.csv", BenchCsv(result)));
    MP_ASSIGN_OR_RETURN(const std::string page, BenchHtml(result, output.file));
    MP_RETURN_IF_ERROR(WriteFileAtomically(output.file + "/bench.html", page));
    MP_RETURN_IF_ERROR(WriteFileAtomically(output.file + "/bench.json", json));
  } else if (write) {
    MP_RETURN_IF_ERROR(WriteFileAtomically(output.file, csv ? BenchCsv(result) : json));
  }
  if (result.stopped) {
    std::fprintf(stderr, "mergeplan bench: stopped by a signal after %d rows%s\n",
                 static_cast<int>(result.rows.size()),
                 !write && !output.file.empty() ? "; nothing was written" : "");
    return kStopped;
  }
  int failed = 0;
  for (const BenchRow& row : result.rows) {
    if (row.error.empty()) continue;
    ++failed;
    if (output.json) {
      std::fprintf(stderr, "mergeplan bench: %s: %s\n", row.strategy.c_str(), row.error.c_str());
    }
  }
  return failed > 0 ? kFailed : kDone;
}

}  // namespace

int RunBenchCommand(const BenchArguments& arguments, const BenchOutput& output) {
  const absl::StatusOr<int> code = Bench(arguments, output);
  if (code.ok()) return *code;
  if (code.status().message().empty()) return kMisuse;
  std::fprintf(stderr, "mergeplan bench: %s\n", std::string(code.status().message()).c_str());
  if (absl::IsCancelled(code.status())) return kStopped;
  return IsMisuse(code.status()) ? kMisuse : kFailed;
}

}  // namespace mergeplan
