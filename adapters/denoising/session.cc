#include "adapters/denoising/session.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "adapters/denoising/state.h"
#include "adapters/runtime/arguments.h"
#include "adapters/runtime/device.h"
#include "adapters/runtime/output.h"
#include "adapters/runtime/progress.h"
#include "adapters/runtime/signals.h"
#include "adapters/runtime/strategy.h"
#include "planner/base/exit_code.h"
#include "planner/base/file.h"
#include "planner/base/memory.h"
#include "planner/base/status_macros.h"

namespace mergeplan::denoising {
namespace {

using Clock = std::chrono::steady_clock;

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
  Session(std::string command, std::unique_ptr<Task> task, Folder folder,
          const TrainingArguments& arguments)
      : task_(std::move(task)),
        folder_(std::move(folder)),
        arguments_(arguments),
        printer_(std::move(command), arguments.quiet) {}

  absl::Status Begin() {
    MP_ASSIGN_OR_RETURN(trainer_, task_->MakeTrainer());
    task_->info().parameters = trainer_->parameters();
    log_ = Log(trainer_->objective().parts());
    if (!arguments_.resume) {
      MP_RETURN_IF_ERROR(Keep(RunStatus::kRunning));
      return absl::OkStatus();
    }
    MP_ASSIGN_OR_RETURN(
        const Checkpoint checkpoint,
        ReadCheckpoint(task_->info().fingerprint, CheckpointFile(), trainer_->objective().parts()));
    MP_RETURN_IF_ERROR(trainer_->Restore(checkpoint.trainer));
    log_ = checkpoint.log;
    return absl::OkStatus();
  }

  absl::StatusOr<int> Train(double time_limit) {
    const Clock::time_point start = Clock::now();
    Clock::time_point kept = start;
    const double before = log_.seconds();
    double cost = 0;  // of the last checkpoint
    const Options& options = task_->options();
    while (!trainer_->done()) {
      if (StopRequested() || SecondsSince(start) >= time_limit) {
        MP_RETURN_IF_ERROR(Keep(RunStatus::kStopped));
        return kStopped;
      }
      MP_ASSIGN_OR_RETURN(const Trainer::Update update, trainer_->Step());
      const std::int64_t made = trainer_->updates();
      log_.Add(made, update.loss, update.norm, update.lr, before + SecondsSince(start),
               options.log_every, update.parts);
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

  const TrainInfo& info() { return task_->info(); }
  const std::string& path() const { return folder_.path(); }
  void EndProgress() { printer_.Finish(); }

 private:
  std::string CheckpointFile() const { return folder_.File("checkpoint.safetensors"); }

  // The training as it stands, and the network as it could be used now. train.toml comes last: a
  // folder without it is no training.
  absl::Status Keep(RunStatus status) {
    MP_ASSIGN_OR_RETURN(const auto network, trainer_->Trained());
    MP_RETURN_IF_ERROR(task_->Write(*network, folder_.path()));
    TrainInfo& info = task_->info();
    if (status != RunStatus::kFinished) {
      MP_RETURN_IF_ERROR(
          WriteCheckpoint({trainer_->Save(), log_}, info.fingerprint, CheckpointFile()));
    }
    Log whole = log_;
    whole.Close();
    MP_RETURN_IF_ERROR(WriteFileAtomically(folder_.File("log.csv"), whole.Csv()));
    info.status = status;
    info.updates = trainer_->updates();
    info.skipped = trainer_->skipped();
    info.loss = whole.RecentLoss(std::max<std::int64_t>(100, task_->options().iterations / 100));
    info.seconds = whole.seconds();
    return WriteTrainInfo(info, folder_.File("train.toml"));
  }

  absl::Status Draw(const std::string& name) {
    if (task_->options().samples == 0) return absl::OkStatus();
    MP_ASSIGN_OR_RETURN(const auto network, trainer_->Trained());
    MP_ASSIGN_OR_RETURN(const std::string png, task_->Picture(*network));
    return png.empty() ? absl::OkStatus() : WriteFileAtomically(folder_.File(name), png);
  }

  std::unique_ptr<Task> task_;
  Folder folder_;
  const TrainingArguments& arguments_;
  ProgressPrinter printer_;
  std::unique_ptr<Trainer> trainer_;
  Log log_;
};

absl::StatusOr<int> Run(const TrainingCommand& command, const TrainingArguments& arguments) {
  MP_ASSIGN_OR_RETURN(const double time_limit, ParseTimeLimit(arguments.time_limit.value_or("")));
  MP_RETURN_IF_ERROR(Folder::Check(arguments.output, arguments.resume));
  StopOnSignals();
  int threads = SetThreads(arguments.threads);
  std::optional<Folder> folder;
  std::unique_ptr<Task> task;
  if (arguments.resume) {
    MP_ASSIGN_OR_RETURN(Folder opened, Folder::Open(arguments.output, true));
    folder.emplace(std::move(opened));
    const std::string file = folder->File("train.toml");
    MP_ASSIGN_OR_RETURN(TrainInfo info, ReadTrainInfo(file));
    if (std::count(command.kinds.begin(), command.kinds.end(), info.kind) == 0) {
      return Misuse(absl::StrCat(file, ": is the training of another kind of network (", info.kind,
                                 "), ", command.name, " goes on with ",
                                 absl::StrJoin(command.kinds, " and "),
                                 "; give the command that began it"));
    }
    MP_RETURN_IF_ERROR(command.same(info));
    // The same bits come from as many threads as before.
    if (arguments.threads == 0 && info.threads > 0) threads = SetThreads(info.threads);
    if (info.status == RunStatus::kFinished) {
      Print(info, arguments.output, arguments.json);
      return kDone;
    }
    MP_ASSIGN_OR_RETURN(task, command.go_on(std::move(info)));
  } else {
    MP_ASSIGN_OR_RETURN(task, command.begin());
    if (StopRequested()) {
      return absl::CancelledError(
          "stopped by a signal before the training began; nothing was written, run the same "
          "command again");
    }
    MP_ASSIGN_OR_RETURN(Folder opened, Folder::Open(arguments.output, false));
    folder.emplace(std::move(opened));
  }
  task->info().mergeplan_version = MERGEPLAN_VERSION;
  task->info().torch_version = TorchVersion();
  task->info().threads = threads;
  if (const std::string note = task->note(); !note.empty() && !arguments.quiet) {
    std::fprintf(stderr, "%s: %s\n", command.name.c_str(), note.c_str());
  }
  Session session(command.name, std::move(task), *std::move(folder), arguments);
  MP_RETURN_IF_ERROR(session.Begin());
  const absl::StatusOr<int> code = session.Train(time_limit);
  session.EndProgress();
  MP_RETURN_IF_ERROR(code.status());
  Print(session.info(), session.path(), arguments.json);
  if (*code == kStopped) {
    std::fprintf(stderr,
                 "mergeplan %s: stopped after %lld updates; the network so far is in "
                 "%s, go on with --resume -o %s\n",
                 command.name.c_str(), static_cast<long long>(session.info().updates),
                 session.path().c_str(), session.path().c_str());
  }
  return *code;
}

}  // namespace

int RunTraining(const TrainingCommand& command, const TrainingArguments& arguments) {
  const absl::StatusOr<int> code = Run(command, arguments);
  if (code.ok()) return *code;
  std::fprintf(stderr, "mergeplan %s: %s\n", command.name.c_str(),
               std::string(code.status().message()).c_str());
  // What is wrong with an option begins with its name.
  const bool option =
      absl::IsInvalidArgument(code.status()) && absl::StartsWith(code.status().message(), "--");
  return option || IsMisuse(code.status()) ? kMisuse : kFailed;
}

absl::StatusOr<double> ParseTimeLimit(const std::string& text) {
  if (text.empty()) return std::numeric_limits<double>::infinity();
  const std::pair<char, double> units[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
  std::string number = text;
  double unit = 1;
  for (const auto& [letter, seconds] : units) {
    if (text.back() != letter) continue;
    unit = seconds;
    number.pop_back();
  }
  double value = 0;
  if (absl::SimpleAtod(number, &value) && value >= 0 && std::isfinite(value)) return value * unit;
  return Misuse(
      absl::StrCat("--time-limit ", text, ": expected seconds (90), minutes (15m) or hours (2h)"));
}

absl::StatusOr<std::map<std::string, std::string>> TextsOf(const TrainingArguments& a) {
  std::map<std::string, std::string> out = a.training;
  const std::pair<const char*, const std::optional<std::string>*> texts[] = {
      {"model", &a.model}, {"data", &a.data}, {"array", &a.array}, {"device", &a.device}};
  for (const auto& [name, text] : texts) {
    if (!*text) continue;
    if ((*text)->empty()) return Misuse(absl::StrCat("--", name, ": is empty, expected a value"));
    // Where it lies is for whoever reads train.toml; data is opened again.
    out[name] = text == &a.data ? AbsolutePath(**text) : **text;
  }
  if (a.rows) out["data-rows"] = absl::StrCat(*a.rows);
  return out;
}

std::string TextOr(const std::map<std::string, std::string>& texts, const std::string& name,
                   const std::string& otherwise) {
  const auto found = texts.find(name);
  return found == texts.end() ? otherwise : found->second;
}

absl::StatusOr<std::int64_t> DataRows(const std::map<std::string, std::string>& texts) {
  const std::string text = TextOr(texts, "data-rows");
  std::int64_t rows = 0;
  if (text.empty() || (absl::SimpleAtoi(text, &rows) && rows >= 1)) return rows;
  return Misuse(absl::StrCat("--data-rows ", text, ": expected a whole number, 1 or more"));
}

absl::Status CheckBatchMemory(std::int64_t batch, std::int64_t numbers_each) {
  const absl::Status enough =
      CheckMemory(absl::StrCat("--batch ", batch, ": its samples, noise and targets alone"),
                  12.0 * static_cast<double>(batch) * static_cast<double>(numbers_each));
  if (enough.ok()) return enough;
  return absl::Status(enough.code(),
                      absl::StrCat(std::string(enough.message()), "; give a smaller batch"));
}

absl::StatusOr<at::Device> DeviceOf(const std::map<std::string, std::string>& texts) {
  MP_ASSIGN_OR_RETURN(const Device device, OpenDevice(TextOr(texts, "device", "cpu")));
  if (!device.cuda) return at::Device(at::kCPU);
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device.index));
}

absl::Status CheckSameTexts(const std::map<std::string, std::string>& given,
                            const std::map<std::string, std::string>& wanted, const TrainInfo& info,
                            const std::string& folder) {
  for (const auto& [name, text] : wanted) {
    const auto had = info.options.find(name);
    if (had != info.options.end() && had->second == text) continue;
    // An option that there was not yet when it began is as it was then.
    if (had == info.options.end() && given.count(name) == 0) continue;
    return Misuse(absl::StrCat("--", name, " ", TextOr(given, name, text), ": the training in ",
                               folder, " has ", had == info.options.end() ? "none" : had->second,
                               "; leave the option out, or begin another training"));
  }
  return absl::OkStatus();
}

}  // namespace mergeplan::denoising
