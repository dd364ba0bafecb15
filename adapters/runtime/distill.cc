#include "adapters/runtime/distill.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/runtime/device.h"
#include "adapters/runtime/output.h"
#include "adapters/runtime/plugin_runtime.h"
#include "adapters/runtime/progress.h"
#include "adapters/runtime/run_case.h"
#include "adapters/runtime/run_folder.h"
#include "adapters/runtime/signals.h"
#include "adapters/runtime/training.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"
#include "planner/runs/result_file.h"
#include "plugins/host/services.h"

namespace mergeplan {
namespace {

constexpr int kDone = 0, kFailed = 1, kMisuse = 2, kStopped = 3;

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "mergeplan distill: %s\n", std::string(status.message()).c_str());
  return IsMisuse(status) ? kMisuse : kFailed;
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
        {"achieved_error", summary.achieved},
        {"achieved_standard_error", Figure(summary.standard_error)},
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

// Trains the plan in its folder.
absl::StatusOr<int> Execute(const RunCase& run, const RunFolder& folder,
                            const DistillArguments& arguments, const DistillOutput& output) {
  const std::string plan_file = folder.File("plan.toml");
  if (!arguments.resume) MP_RETURN_IF_ERROR(WritePlan(run.document(), plan_file));
  RunInfo info = run.Info();
  info.mergeplan_version = MERGEPLAN_VERSION;
  info.torch_version = TorchVersion();
  MP_ASSIGN_OR_RETURN(info.plan_sha256, Sha256OfFile(plan_file));
  MP_RETURN_IF_ERROR(folder.WriteInfo(info));

  const std::string checkpoint = folder.File("checkpoint.npz");
  Checkpointer checkpointer(checkpoint, arguments.checkpoint_seconds);
  ProgressPrinter printer(run.plugin().name(), output.quiet);
  std::unique_ptr<Training> training;
  TrainingWatch watch;
  watch.stop = StopRequested;
  watch.checkpoint = [&](bool forced) { return checkpointer.Offer(*training, forced); };
  watch.progress = [&printer](const TrainingProgress& p) { printer.Show(p); };
  MP_ASSIGN_OR_RETURN(training, run.Begin(watch));
  if (arguments.resume) {
    const absl::Status status = training->ReadCheckpoint(checkpoint);
    if (!status.ok() && !absl::IsNotFound(status)) {
      return absl::Status(status.code(),
                          absl::StrCat(std::string(status.message()),
                                       "; remove this file to train again from the beginning"));
    }
  }

  PluginRuntime runtime(*training, checkpointer, printer, StopRequested);
  absl::Status status = run.plugin().Execute(run.document().plan, runtime, run.parameters());
  if (status.ok()) status = training->Complete();
  printer.Finish();
  if (absl::IsCancelled(status) && StopRequested()) {
    MP_RETURN_IF_ERROR(checkpointer.Offer(*training, /*forced=*/true));
    info.status = RunStatus::kStopped;
    MP_RETURN_IF_ERROR(folder.WriteInfo(info));
    std::fprintf(stderr, "mergeplan distill: %s; go on with: mergeplan distill --resume -o %s\n",
                 std::string(status.message()).c_str(), folder.path().c_str());
    if (output.json) {
      MP_ASSIGN_OR_RETURN(const RunSummary summary, training->Summarize());
      Print(summary, info.status, folder.path(), true);
    }
    return kStopped;
  }
  MP_RETURN_IF_ERROR(status);
  MP_ASSIGN_OR_RETURN(const RunSummary summary, training->Summarize());
  MP_RETURN_IF_ERROR(checkpointer.Offer(*training, /*forced=*/true));
  MP_RETURN_IF_ERROR(training->WriteResult(folder.path()));
  info.status = RunStatus::kFinished;
  MP_RETURN_IF_ERROR(folder.WriteInfo(info));
  Print(summary, info.status, folder.path(), output.json);
  return kDone;
}

absl::StatusOr<int> Distill(const DistillArguments& arguments, const DistillOutput& output) {
  MP_RETURN_IF_ERROR(CheckArguments(arguments));
  MP_RETURN_IF_ERROR(RunFolder::Check(arguments.output, arguments.resume));
  LinearPlannerServices services(
      [](LogLevel, std::string_view text) {
        std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
      },
      StopRequested);
  StopOnSignals();
  SetThreads(arguments.threads);

  absl::StatusOr<std::shared_ptr<const RunCase>> made = absl::UnknownError("");
  if (!arguments.resume) {
    // Nothing is written before all options have turned out to make sense.
    made = NewRun(arguments, services);
    // Also where a plan was made: a search that was stopped gives a worse one than was asked for.
    if (StopRequested() && (made.ok() || absl::IsCancelled(made.status()))) {
      return absl::CancelledError(
          "stopped by a signal before the training began; nothing was written, run the same "
          "command "
          "again");
    }
    MP_RETURN_IF_ERROR(made.status());
    MP_RETURN_IF_ERROR(CheckTexts((*made)->Info()));
  }
  MP_ASSIGN_OR_RETURN(const RunFolder folder, RunFolder::Open(arguments.output, arguments.resume));
  if (arguments.resume) {
    made = ResumedRun(arguments, folder);
    MP_RETURN_IF_ERROR(made.status());
    if (folder.previous()->status == RunStatus::kFinished) {
      const absl::StatusOr<RunResult> result = ReadRunResult(folder.path());
      if (result.ok()) {
        Print(result->summary, RunStatus::kFinished, folder.path(), output.json);
        return kDone;
      }
      std::fprintf(stderr, "mergeplan distill: %s; the result is made again\n",
                   std::string(result.status().message()).c_str());
    }
  }
  const RunCase& run = **made;
  return Execute(run, folder, arguments, output);
}

}  // namespace

int RunDistill(const DistillArguments& arguments, const DistillOutput& output) {
  const absl::StatusOr<int> code = Distill(arguments, output);
  return code.ok() ? *code : Fail(code.status());
}

}  // namespace mergeplan
