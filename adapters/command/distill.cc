#include "adapters/command/distill.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/cases/cases.h"
#include "adapters/cases/choose.h"
#include "adapters/command/latent_data.h"
#include "adapters/parallel/open.h"
#include "adapters/runtime/device.h"
#include "adapters/runtime/output.h"
#include "adapters/runtime/plugin_runtime.h"
#include "adapters/runtime/progress.h"
#include "adapters/runtime/ranks.h"
#include "adapters/runtime/run_folder.h"
#include "adapters/runtime/signals.h"
#include "adapters/runtime/training.h"
#include "planner/base/exit_code.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"
#include "planner/runs/result_file.h"
#include "plugins/host/services.h"

namespace mergeplan {
namespace {

int CodeOf(const absl::Status& status) { return IsMisuse(status) ? kMisuse : kFailed; }

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "mergeplan distill: %s\n", std::string(status.message()).c_str());
  return CodeOf(status);
}

nlohmann::ordered_json Figure(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

void Print(const RunSummary& summary, RunStatus status, const std::string& run, bool json) {
  RestoreStdout();
  if (json) {
    const nlohmann::ordered_json object = {
        {"status", ToString(status)},
        {"strategy", summary.strategy},
        {"reference", summary.reference},
        {"predicted_error", summary.predicted},
        // Of a run that was stopped there is no student yet.
        {"achieved_error",
         Figure(status == RunStatus::kFinished ? std::optional<double>(summary.achieved)
                                               : std::nullopt)},
        {"achieved_standard_error",
         Figure(status == RunStatus::kFinished ? summary.standard_error : std::nullopt)},
        {"merges_trained", summary.merges},
        {"updates", summary.updates},
        {"teacher_calls", summary.teacher_calls},
        {"seconds", summary.seconds},
        {"run", run}};
    // A path need not be UTF-8, JSON must be.
    constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
    std::printf("%s\n", object.dump(-1, ' ', false, kReplace).c_str());
    return;
  }
  std::printf("%-14s %16s %24s %10s\n", "strategy", "predicted error", "achieved error", "time");
  const std::string predicted =
      std::isnan(summary.predicted) ? "-" : absl::StrFormat("%.6g", summary.predicted);
  std::string achieved = absl::StrFormat("%.6g", summary.achieved);
  // The 95 % interval of a mean over thousands of rows.
  if (summary.standard_error) {
    absl::StrAppendFormat(&achieved, " ± %.2g", 1.96 * *summary.standard_error);
  }
  // In characters, not in bytes.
  const int width = 24 + (summary.standard_error ? 1 : 0);
  std::printf("%-14s %16s %*s %8.1f s\n", summary.strategy.c_str(), predicted.c_str(), width,
              achieved.c_str(), summary.seconds);
}

// run.toml is UTF-8, paths need not be: said before anything is written.
absl::Status CheckTexts(const RunInfo& info) {
  const std::pair<const char*, const std::string*> texts[] = {{"--teacher", &info.teacher_file},
                                                              {"--strategy", &info.plugin}};
  for (const auto& [option, text] : texts) {
    if (IsUtf8(*text)) continue;
    return Misuse(absl::StrCat(option, ": the path ", *text,
                               " is not UTF-8, which run.toml has to name it in; rename it"));
  }
  for (const auto& [name, value] : info.parameters) {
    if (IsUtf8(name) && IsUtf8(value)) continue;
    return Misuse(
        absl::StrCat(info.strategy == "dp_custom" && name == "plan" ? "--plan " : "--set ", name,
                     "=", value, ": is not UTF-8, which run.toml has to say it in; rename it"));
  }
  return absl::OkStatus();
}

// A run that has finished before: its figures again. False where its result cannot be read.
bool PrintFinished(const RunFolder& folder, bool json) {
  const absl::StatusOr<RunResult> result = ReadRunResult(folder.path());
  if (result.ok()) {
    Print(result->summary, RunStatus::kFinished, folder.path(), json);
    return true;
  }
  std::fprintf(stderr, "mergeplan distill: %s; the result is made again\n",
               std::string(result.status().message()).c_str());
  return false;
}

absl::Status ReadCheckpoint(const std::string& folder, Training& training) {
  const absl::Status status = training.ReadCheckpoint(folder);
  if (status.ok() || absl::IsNotFound(status)) return absl::OkStatus();
  return absl::Status(status.code(),
                      absl::StrCat(std::string(status.message()),
                                   "; remove this file to train again from the beginning"));
}

// Trains the plan in its folder, in which the first rank alone writes.
absl::StatusOr<int> Execute(const RunCase& run, const RunFolder& folder,
                            const DistillArguments& arguments, const DistillOutput& output,
                            Ranks& ranks) {
  const std::string plan_file = folder.File("plan.toml");
  RunInfo info = run.Info();
  info.mergeplan_version = MERGEPLAN_VERSION;
  info.torch_version = TorchVersion();
  info.threads = arguments.threads;
  const auto begin = [&]() -> absl::Status {
    if (!arguments.resume) MP_RETURN_IF_ERROR(WritePlan(run.document(), plan_file));
    MP_ASSIGN_OR_RETURN(info.plan_sha256, Sha256OfFile(plan_file));
    return folder.WriteInfo(info);
  };
  MP_RETURN_IF_ERROR(ranks.Agree(ranks.first() ? begin() : absl::OkStatus()));

  const std::string& path = folder.path();
  Checkpointer checkpointer(ranks.first() ? path : "", arguments.checkpoint_seconds);
  ProgressPrinter printer(run.plugin().name(), output.quiet || !ranks.first());
  Recorder recorder(ranks.first() ? folder.path() : "", run.document().plan);
  std::unique_ptr<Training> training;
  TrainingWatch watch;
  watch.communicator = ranks.communicator();
  watch.folder = path;
  watch.stop = [&ranks] { return ranks.Stop(); };
  watch.checkpoint = [&](bool forced) { return checkpointer.Offer(*training, forced); };
  watch.progress = [&printer](const TrainingProgress& p) { printer.Show(p); };
  watch.note = [&printer](const std::string& text) { printer.Line(text); };
  const auto prepare = [&]() -> absl::Status {
    MP_ASSIGN_OR_RETURN(training, run.Begin(watch));
    if (arguments.resume) MP_RETURN_IF_ERROR(ReadCheckpoint(path, *training));
    return recorder.Begin(*training);
  };
  MP_RETURN_IF_ERROR(ranks.Agree(prepare()));

  PluginRuntime runtime(*training, checkpointer, printer, recorder,
                        [&ranks] { return ranks.stopped(); });
  absl::Status status = run.plugin().Execute(run.document().plan, runtime, run.parameters());
  if (status.ok()) status = training->Complete();
  printer.Finish();
  const bool stopped = absl::IsCancelled(status) && ranks.stopped();
  if (!stopped) MP_RETURN_IF_ERROR(status);
  if (!ranks.first()) return stopped ? kStopped : kDone;
  MP_ASSIGN_OR_RETURN(const RunSummary summary, training->Summarize());
  MP_RETURN_IF_ERROR(checkpointer.Offer(*training, /*forced=*/true));
  if (!stopped) {
    MP_RETURN_IF_ERROR(training->WriteResult(folder.path()));
    MP_RETURN_IF_ERROR(recorder.Finish(*training));
  }
  info.status = stopped ? RunStatus::kStopped : RunStatus::kFinished;
  MP_RETURN_IF_ERROR(folder.WriteInfo(info));
  if (stopped) {
    std::fprintf(stderr, "mergeplan distill: %s; go on with: mergeplan distill --resume -o %s\n",
                 std::string(status.message()).c_str(), folder.path().c_str());
  }
  if (!stopped || output.json) Print(summary, info.status, folder.path(), output.json);
  return stopped ? kStopped : kDone;
}

// The run that the arguments ask for; nothing is written.
absl::StatusOr<std::shared_ptr<const RunCase>> Prepare(const DistillArguments& arguments,
                                                       const Ranks& ranks) {
  LinearPlannerServices services(
      [&ranks](LogLevel, std::string_view text) {
        if (!ranks.first()) return;
        std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
      },
      StopRequested);
  absl::StatusOr<std::shared_ptr<const RunCase>> made = NewRun(arguments, services);
  // Also where a plan was made: a search that was stopped gives a worse one than was asked for.
  if (StopRequested() && (made.ok() || absl::IsCancelled(made.status()))) {
    return absl::CancelledError(
        "stopped by a signal before the training began; nothing was written, run the same command "
        "again");
  }
  MP_RETURN_IF_ERROR(made.status());
  MP_RETURN_IF_ERROR(CheckTexts((*made)->Info()));
  return made;
}

absl::StatusOr<int> Distill(DistillArguments arguments, const DistillOutput& output, Ranks& ranks) {
  const auto check = [&]() -> absl::Status {
    MP_RETURN_IF_ERROR(CheckArguments(arguments));
    return RunFolder::Check(arguments.output, arguments.resume);
  };
  MP_RETURN_IF_ERROR(ranks.Agree(check()));
  StopOnSignals();
  if (ranks.several() && arguments.threads == 0) {
    arguments.threads =
        std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / RanksOnThisMachine());
  }
  const bool threads_given = arguments.threads > 0;
  arguments.threads = SetThreads(arguments.threads);
  const bool quiet = output.quiet || arguments.resume;
  MP_RETURN_IF_ERROR(
      ranks.Agree(EncodeData(*ranks.communicator(), quiet, /*judged=*/false, &arguments)));
  MP_RETURN_IF_ERROR(ranks.Agree(ChooseArithmetic(*ranks.communicator(), quiet, &arguments)));

  absl::StatusOr<std::shared_ptr<const RunCase>> made = absl::UnknownError("");
  if (!arguments.resume) {
    made = Prepare(arguments, ranks);
    MP_RETURN_IF_ERROR(ranks.Agree(made.status()));
  }
  absl::StatusOr<RunFolder> folder = ranks.first()
                                         ? RunFolder::Open(arguments.output, arguments.resume)
                                         : RunFolder::Look(arguments.output, arguments.resume);
  MP_RETURN_IF_ERROR(ranks.Agree(folder.status()));
  if (arguments.resume) {
    // The same bits come from as many threads as before.
    if (!threads_given && folder->previous()->threads > 0) {
      arguments.threads = SetThreads(folder->previous()->threads);
    } else if (folder->previous()->threads > 0 &&
               arguments.threads != folder->previous()->threads && ranks.first() && !output.quiet) {
      std::fprintf(
          stderr,
          "mergeplan distill: note: this run was begun with %d threads and goes on with %d: sums "
          "are taken in another order, so that its last digits may differ from a run's that was "
          "never stopped; leave out --threads for the same\n",
          folder->previous()->threads, arguments.threads);
    }
    made = ResumedRun(arguments, *folder);
    MP_RETURN_IF_ERROR(ranks.Agree(made.status()));
    if (folder->previous()->status == RunStatus::kFinished) {
      const bool mine = ranks.first() && PrintFinished(*folder, output.json);
      MP_ASSIGN_OR_RETURN(const bool printed, ranks.communicator()->Any(mine));
      if (printed) return kDone;
    }
  }
  return Execute(**made, *folder, arguments, output, ranks);
}

}  // namespace

int RunDistill(const DistillArguments& arguments, const DistillOutput& output) {
  const absl::StatusOr<std::shared_ptr<const Communicator>> opened = OpenCommunicator();
  if (!opened.ok()) return Fail(opened.status());
  Ranks ranks(*opened);
  const absl::StatusOr<int> code = Distill(arguments, output, ranks);
  const int end = code.ok()                        ? *code
                  : IsToldElsewhere(code.status()) ? CodeOf(code.status())
                                                   : Fail(code.status());
  ranks.communicator()->Finish();
  return end;
}

}  // namespace mergeplan
