#include "adapters/denoising/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/denoising/job.h"
#include "adapters/denoising/pictures.h"
#include "adapters/denoising/state.h"
#include "adapters/runtime/arguments.h"
#include "adapters/runtime/device.h"
#include "adapters/runtime/output.h"
#include "adapters/runtime/progress.h"
#include "adapters/runtime/signals.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

using denoising::Folder;
using denoising::Job;
using denoising::TrainInfo;
using Clock = std::chrono::steady_clock;

constexpr int kDone = 0, kFailed = 1, kMisuse = 2, kStopped = 3;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void Print(const TrainInfo& info, const std::string& folder, bool json) {
  RestoreStdout();
  if (json) {
    const nlohmann::ordered_json object = {
        {"status", ToString(info.status)},
        {"parameters", info.parameters},
        {"updates", info.updates},
        {"loss", std::isfinite(info.loss) ? nlohmann::ordered_json(info.loss) : nullptr},
        {"skipped", info.skipped},
        {"seconds", info.seconds},
        {"folder", folder}};
    constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
    std::printf("%s\n", object.dump(-1, ' ', false, kReplace).c_str());
    return;
  }
  std::printf("%12s %10s %12s %10s\n", "parameters", "updates", "loss", "time");
  std::printf("%12d %10d %12.6g %8.1f s\n", static_cast<int>(info.parameters),
              static_cast<int>(info.updates), info.loss, info.seconds);
}

// A training in its folder.
class Session {
 public:
  Session(Job job, Folder folder, const TrainTeacherArguments& arguments)
      : job_(std::move(job)),
        folder_(std::move(folder)),
        arguments_(arguments),
        printer_("train-teacher", arguments.quiet) {}

  absl::Status Begin() {
    MP_ASSIGN_OR_RETURN(trainer_, job_.MakeTrainer());
    job_.info.parameters = trainer_->parameters();
    if (!arguments_.resume) {
      MP_RETURN_IF_ERROR(Keep(RunStatus::kRunning));
      return absl::OkStatus();
    }
    MP_ASSIGN_OR_RETURN(const denoising::Checkpoint checkpoint,
                        denoising::ReadCheckpoint(job_.info.fingerprint, CheckpointFile()));
    MP_RETURN_IF_ERROR(trainer_->Restore(checkpoint.trainer));
    log_ = checkpoint.log;
    return absl::OkStatus();
  }

  absl::StatusOr<int> Train(double time_limit) {
    const Clock::time_point start = Clock::now();
    Clock::time_point kept = start;
    const double before = log_.seconds();
    double cost = 0;  // of the last checkpoint
    const denoising::Options& options = job_.options;
    while (!trainer_->done()) {
      if (StopRequested() || SecondsSince(start) >= time_limit) {
        MP_RETURN_IF_ERROR(Keep(RunStatus::kStopped));
        return kStopped;
      }
      MP_ASSIGN_OR_RETURN(const denoising::Trainer::Update update, trainer_->Step());
      const std::int64_t made = trainer_->updates();
      log_.Add(made, update.loss, update.norm, update.lr, before + SecondsSince(start),
               options.log_every);
      printer_.Show([&](double seconds) {
        return absl::StrFormat(
            "%3.0f%%  update %d of %d, loss %.4g  %.1f s",
            100.0 * static_cast<double>(made) / static_cast<double>(options.iterations), made,
            options.iterations, update.loss, seconds);
      });
      if (options.sample_every > 0 && made % options.sample_every == 0 && !trainer_->done()) {
        MP_RETURN_IF_ERROR(Draw(absl::StrCat("samples-", made, ".png")));
      }
      // Never for more than a twentieth of the time.
      const double passed = SecondsSince(kept);
      if (passed >= arguments_.checkpoint_seconds && passed >= 20 * cost) {
        const Clock::time_point begin = Clock::now();
        MP_RETURN_IF_ERROR(Keep(RunStatus::kRunning));
        cost = SecondsSince(begin);
        kept = Clock::now();
      }
    }
    MP_RETURN_IF_ERROR(Draw("samples.png"));
    MP_RETURN_IF_ERROR(Keep(RunStatus::kFinished));
    std::error_code error;
    std::filesystem::remove(CheckpointFile(), error);
    return kDone;
  }

  const TrainInfo& info() const { return job_.info; }
  const std::string& path() const { return folder_.path(); }
  void EndProgress() { printer_.Finish(); }

 private:
  std::string CheckpointFile() const { return folder_.File("checkpoint.safetensors"); }

  // The training as it stands, and the network as it could be used now. train.toml comes last: a
  // folder without it is no training.
  absl::Status Keep(RunStatus status) {
    MP_ASSIGN_OR_RETURN(const auto network, trainer_->Trained());
    MP_RETURN_IF_ERROR(WriteModel(*network, job_.model, folder_.path()));
    if (status != RunStatus::kFinished) {
      MP_RETURN_IF_ERROR(denoising::WriteCheckpoint({trainer_->Save(), log_}, job_.info.fingerprint,
                                                    CheckpointFile()));
    }
    denoising::Log whole = log_;
    whole.Close();
    MP_RETURN_IF_ERROR(WriteFileAtomically(folder_.File("log.csv"), whole.Csv()));
    TrainInfo& info = job_.info;
    info.status = status;
    info.updates = trainer_->updates();
    info.skipped = trainer_->skipped();
    info.loss = whole.RecentLoss(std::max<std::int64_t>(100, job_.options.iterations / 100));
    info.seconds = whole.seconds();
    return WriteTrainInfo(info, folder_.File("train.toml"));
  }

  absl::Status Draw(const std::string& name) {
    const denoising::Options& options = job_.options;
    const network::Signature& signature = job_.model.signature;
    const bool pixels =
        signature.shape.size() == 3 && (signature.shape[0] == 1 || signature.shape[0] == 3);
    if (options.samples == 0 || !pixels || job_.scaling == "none") return absl::OkStatus();
    MP_ASSIGN_OR_RETURN(const auto network, trainer_->Trained());
    MP_ASSIGN_OR_RETURN(
        const at::Tensor samples,
        denoising::DrawSamples(
            *network, signature,
            denoising::Thinned(job_.schedule, static_cast<int>(options.sample_steps)),
            options.samples, static_cast<std::uint64_t>(options.seed), job_.device));
    MP_ASSIGN_OR_RETURN(const std::string png, denoising::EncodeGrid(samples, job_.scaling));
    return WriteFileAtomically(folder_.File(name), png);
  }

  Job job_;
  Folder folder_;
  const TrainTeacherArguments& arguments_;
  ProgressPrinter printer_;
  std::unique_ptr<denoising::Trainer> trainer_;
  denoising::Log log_;
};

absl::StatusOr<int> Run(const TrainTeacherArguments& arguments) {
  MP_ASSIGN_OR_RETURN(const double time_limit,
                      denoising::ParseTimeLimit(arguments.time_limit.value_or("")));
  MP_RETURN_IF_ERROR(Folder::Check(arguments.output, arguments.resume));
  StopOnSignals();
  SetThreads(arguments.threads);
  std::optional<Folder> folder;
  std::optional<Job> job;
  if (arguments.resume) {
    MP_ASSIGN_OR_RETURN(Folder opened, Folder::Open(arguments.output, true));
    folder.emplace(std::move(opened));
    MP_ASSIGN_OR_RETURN(TrainInfo info, denoising::ReadTrainInfo(folder->File("train.toml")));
    MP_RETURN_IF_ERROR(denoising::CheckSameOptions(arguments, info));
    if (info.status == RunStatus::kFinished) {
      Print(info, arguments.output, arguments.json);
      return kDone;
    }
    MP_ASSIGN_OR_RETURN(Job made, denoising::ResumedJob(std::move(info), arguments.output));
    job.emplace(std::move(made));
  } else {
    MP_ASSIGN_OR_RETURN(Job made, denoising::NewJob(arguments));
    job.emplace(std::move(made));
    if (StopRequested()) {
      return absl::CancelledError(
          "stopped by a signal before the training began; nothing was written, run the same "
          "command again");
    }
    MP_ASSIGN_OR_RETURN(Folder opened, Folder::Open(arguments.output, false));
    folder.emplace(std::move(opened));
  }
  job->info.mergeplan_version = MERGEPLAN_VERSION;
  job->info.torch_version = TorchVersion();
  if (!job->note.empty() && !arguments.quiet) {
    std::fprintf(stderr, "train-teacher: %s\n", job->note.c_str());
  }
  Session session(*std::move(job), *std::move(folder), arguments);
  MP_RETURN_IF_ERROR(session.Begin());
  const absl::StatusOr<int> code = session.Train(time_limit);
  session.EndProgress();
  MP_RETURN_IF_ERROR(code.status());
  Print(session.info(), session.path(), arguments.json);
  if (*code == kStopped) {
    std::fprintf(stderr,
                 "mergeplan train-teacher: stopped after %lld updates; the network so far is in "
                 "%s, go on with --resume -o %s\n",
                 static_cast<long long>(session.info().updates), session.path().c_str(),
                 session.path().c_str());
  }
  return *code;
}

}  // namespace

int RunTrainTeacher(const TrainTeacherArguments& arguments) {
  const absl::StatusOr<int> code = Run(arguments);
  if (code.ok()) return *code;
  std::fprintf(stderr, "mergeplan train-teacher: %s\n",
               std::string(code.status().message()).c_str());
  return IsMisuse(code.status()) ? kMisuse : kFailed;
}

}  // namespace mergeplan
