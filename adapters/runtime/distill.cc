#include "adapters/runtime/distill.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/runtime/checkpoint.h"
#include "adapters/runtime/job.h"
#include "adapters/runtime/output.h"
#include "adapters/runtime/plugin_runtime.h"
#include "adapters/runtime/progress.h"
#include "adapters/runtime/result.h"
#include "adapters/runtime/run_folder.h"
#include "adapters/runtime/signals.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"
#include "plugins/host/services.h"

namespace mergeplan {
namespace {

constexpr int kDone = 0, kFailed = 1, kMisuse = 2, kStopped = 3;

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "mergeplan distill: %s\n", std::string(status.message()).c_str());
  return IsMisuse(status) ? kMisuse : kFailed;
}

void Print(const RunSummary& summary, RunStatus status, const std::string& run, bool json) {
  RestoreStdout();
  if (json) {
    const nlohmann::ordered_json object = {
        {"status", ToString(status)},         {"strategy", summary.strategy},
        {"reference", summary.reference},     {"predicted_error", summary.predicted},
        {"achieved_error", summary.achieved}, {"merges_trained", summary.merges},
        {"updates", summary.updates},         {"teacher_calls", summary.teacher_calls},
        {"seconds", summary.seconds},         {"run", run}};
    // A path need not be UTF-8, JSON must be.
    constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
    std::printf("%s\n", object.dump(-1, ' ', false, kReplace).c_str());
    return;
  }
  std::printf("%-14s %16s %16s %10s\n", "strategy", "predicted error", "achieved error", "time");
  const std::string predicted =
      std::isnan(summary.predicted) ? "-" : absl::StrFormat("%.6g", summary.predicted);
  std::printf("%-14s %16s %16.6g %8.1f s\n", summary.strategy.c_str(), predicted.c_str(),
              summary.achieved, summary.seconds);
}

RunInfo InfoOf(const Job& job, const std::string& plan_sha256) {
  namespace fs = std::filesystem;
  RunInfo info;
  info.strategy = job.plugin->name();
  info.plugin = fs::absolute(job.plugin->manifest().path).string();
  info.plugin_version = job.plugin->manifest().version;
  info.parameters = job.parameters;
  info.spectrum = fs::absolute(job.teacher.path()).string();
  info.spectrum_sha256 = job.teacher.sha256();
  info.variances_sha256 = VariancesHash(job.document.variances);
  info.basis = job.teacher.basis();
  info.seed = static_cast<std::int64_t>(job.seed);
  info.dtype = ToString(job.dtype);
  info.device = job.device.ToString();
  info.batch = job.document.budget.batch;
  info.training = job.recipe.Options();
  info.prediction = job.Prediction();
  info.plan_sha256 = plan_sha256;
  info.fingerprint = job.Fingerprint();
  info.mergeplan_version = MERGEPLAN_VERSION;
  info.torch_version = TorchVersion();
  return info;
}

// run.toml is UTF-8, paths need not be: said before anything is written.
absl::Status CheckTexts(const RunInfo& info) {
  const std::pair<const char*, const std::string*> texts[] = {{"--teacher", &info.spectrum},
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

  absl::StatusOr<Job> made = absl::UnknownError("");
  if (!arguments.resume) {
    // Nothing is written before all options have turned out to make sense.
    made = NewJob(arguments, services);
    // Also where a plan was made: a search that was stopped gives a worse one than was asked for.
    if (StopRequested() && (made.ok() || absl::IsCancelled(made.status()))) {
      return absl::CancelledError(
          "stopped by a signal before the training began; nothing was written, run the same "
          "command "
          "again");
    }
    MP_RETURN_IF_ERROR(made.status());
    MP_RETURN_IF_ERROR(CheckTexts(InfoOf(*made, "")));
  }
  MP_ASSIGN_OR_RETURN(const RunFolder folder, RunFolder::Open(arguments.output, arguments.resume));
  if (arguments.resume) {
    made = ResumedJob(arguments, folder);
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
  const Job& job = *made;

  const std::string plan_file = folder.File("plan.toml");
  if (!arguments.resume) MP_RETURN_IF_ERROR(WritePlan(job.document, plan_file));
  MP_ASSIGN_OR_RETURN(const std::string plan_sha256, Sha256OfFile(plan_file));
  RunInfo info = InfoOf(job, plan_sha256);
  MP_RETURN_IF_ERROR(folder.WriteInfo(info));

  Checkpointer checkpointer(folder.File("checkpoint.npz"), info.fingerprint,
                            arguments.checkpoint_seconds);
  ProgressPrinter printer(job.plugin->name(), output.quiet);
  ExecutorOptions options;
  options.seed = job.seed;
  options.dtype = job.dtype;
  options.device = job.device;
  options.threads = arguments.threads;
  options.recipe = job.recipe;
  options.stop = StopRequested;
  options.checkpoint = [&checkpointer](const Executor& e, bool forced) {
    return checkpointer.Offer(e, forced);
  };
  options.progress = [&printer](const ExecutorProgress& p) { printer.Show(p); };
  MP_ASSIGN_OR_RETURN(Executor executor, Executor::Create(job.model, job.document.plan, options));
  if (arguments.resume) {
    absl::StatusOr<ExecutorState> state =
        ReadCheckpoint(info.fingerprint, folder.File("checkpoint.npz"));
    if (state.ok()) {
      MP_RETURN_IF_ERROR(executor.Restore(*std::move(state)));
    } else if (!absl::IsNotFound(state.status())) {
      return absl::Status(state.status().code(),
                          absl::StrCat(std::string(state.status().message()),
                                       "; remove this file to train again from the beginning"));
    }
  }

  PluginRuntime runtime(executor, checkpointer, printer, StopRequested);
  const absl::Status status = job.plugin->Execute(job.document.plan, runtime, job.parameters);
  printer.Finish();
  if (absl::IsCancelled(status) && StopRequested()) {
    MP_RETURN_IF_ERROR(checkpointer.Offer(executor, /*forced=*/true));
    info.status = RunStatus::kStopped;
    MP_RETURN_IF_ERROR(folder.WriteInfo(info));
    std::fprintf(stderr, "mergeplan distill: %s; go on with: mergeplan distill --resume -o %s\n",
                 std::string(status.message()).c_str(), folder.path().c_str());
    if (output.json) Print(Summarize(job, executor), info.status, folder.path(), true);
    return kStopped;
  }
  MP_RETURN_IF_ERROR(status);
  MP_RETURN_IF_ERROR(checkpointer.Offer(executor, /*forced=*/true));
  MP_RETURN_IF_ERROR(WriteResult(job, executor, folder));
  info.status = RunStatus::kFinished;
  MP_RETURN_IF_ERROR(folder.WriteInfo(info));
  Print(Summarize(job, executor), info.status, folder.path(), output.json);
  return kDone;
}

}  // namespace

int RunDistill(const DistillArguments& arguments, const DistillOutput& output) {
  const absl::StatusOr<int> code = Distill(arguments, output);
  return code.ok() ? *code : Fail(code.status());
}

}  // namespace mergeplan
