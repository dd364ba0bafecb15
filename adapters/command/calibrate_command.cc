#include "adapters/command/calibrate_command.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/calibrate/answer.h"
#include "adapters/calibrate/calibration.h"
#include "adapters/cases/choose.h"
#include "adapters/cases/network_data.h"
#include "adapters/cases/network_job.h"
#include "adapters/cases/network_run.h"
#include "adapters/command/latent_data.h"
#include "adapters/parallel/open.h"
#include "adapters/runtime/device.h"
#include "adapters/runtime/network_options.h"
#include "adapters/runtime/output.h"
#include "adapters/runtime/signals.h"
#include "planner/base/exit_code.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/plan/io/evaluate.h"
#include "plugins/host/services.h"

namespace mergeplan {
namespace {

using calibrate::Calibration;
using calibrate::Measurements;

// Files beside the tables.
std::string Stem(const std::string& output) { return output.substr(0, output.size() - 5); }
std::string ArraysPath(const std::string& output) { return Stem(output) + ".npz"; }
std::string AnswerPath(const std::string& output) { return Stem(output) + ".answer.json"; }
std::string PilotsPath(const std::string& output) { return Stem(output) + ".pilots.json"; }

absl::Status CheckFolder(const std::string& option, const std::string& file) {
  if (file.empty()) return absl::OkStatus();
  const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(option, " ", file, ": the folder ", folder.string(), " cannot be written (",
                   std::strerror(errno), "); make it, or name another"));
}

absl::Status Check(const CalibrateArguments& a) {
  if (!a.question.teacher) {
    return Misuse(
        "--teacher: missing, expected unet:FOLDER, script:MODEL.toml, or mixture:MIXTURE.toml with "
        "--student-network");
  }
  MP_ASSIGN_OR_RETURN(const TeacherName name, ParseTeacher(*a.question.teacher));
  if (!HasNetworkStudents(a.question, name)) {
    return Misuse(absl::StrCat(
        "--teacher ", *a.question.teacher,
        ": its students are no networks, and the linear model plans for those (mergeplan plan); "
        "name a network by --student-network script:MODEL.toml or unet:FOLDER"));
  }
  for (const char* option : {"total-updates", "gain-bound"}) {
    if (!a.question.training.contains(option)) continue;
    return Misuse(absl::StrCat("--", option,
                               ": pilots train as many updates as they are told, to see what more "
                               "of them would do; leave it out"));
  }
  if (!absl::EndsWith(a.output, ".toml") || a.output.size() < 6) {
    return Misuse(absl::StrCat("-o ", a.output, ": expected a name that ends in .toml"));
  }
  if (!a.plan_output.empty() && !absl::EndsWith(a.plan_output, ".toml") &&
      !absl::EndsWith(a.plan_output, ".json")) {
    return Misuse(absl::StrCat("--plan-output ", a.plan_output,
                               ": expected a name that ends in .toml or .json"));
  }
  std::error_code error;
  if (!a.plan_output.empty() && std::filesystem::weakly_canonical(a.output, error) ==
                                    std::filesystem::weakly_canonical(a.plan_output, error)) {
    return Misuse(absl::StrCat("--plan-output ", a.plan_output,
                               ": is the file of the measured model, -o, too; give another name"));
  }
  MP_RETURN_IF_ERROR(CheckFolder("-o", a.output));
  MP_RETURN_IF_ERROR(CheckFolder("--plan-output", a.plan_output));
  const std::string pilots = PilotsPath(a.output);
  const bool there = ::access(pilots.c_str(), F_OK) == 0;
  if (there && !a.resume) {
    return Misuse(absl::StrCat("-o ", a.output, ": ", pilots,
                               " holds the pilots of an earlier calibration; go on with --resume, "
                               "remove it, or name another file"));
  }
  if (!there && a.resume) {
    return Misuse(absl::StrCat("--resume: there is no ", pilots, " to go on from; leave it out"));
  }
  return absl::OkStatus();
}

absl::Status OneProcess() {
  MP_ASSIGN_OR_RETURN(const std::shared_ptr<const Communicator> ranks, OpenCommunicator());
  if (ranks->ranks() == 1) return absl::OkStatus();
  const std::string message = absl::StrCat("started by mpirun as one of ", ranks->ranks(),
                                           " ranks, but calibrate runs in one process");
  const absl::Status status = ranks->first() ? Misuse(message) : Misuse("");
  ranks->Finish();
  return status;
}

// The variances that the linear model is asked with: of the spectrum, or of the teacher's samples.
calibrate::LinearModel::Data LinearDataOf(const NetworkJob& job, const Measurements& m) {
  calibrate::LinearModel::Data data;
  data.schedule = job.schedule;
  data.init = job.document.init;
  data.variances = job.has_spectrum ? job.document.variances : m.variances;
  data.copies = static_cast<double>(m.dimensions) / static_cast<double>(data.variances.size());
  return data;
}

class CalibrateRun {
 public:
  explicit CalibrateRun(const CalibrateArguments& arguments) : a_(arguments) {}

  absl::StatusOr<int> Run() {
    MP_RETURN_IF_ERROR(Check(a_));
    MP_RETURN_IF_ERROR(OneProcess());
    const absl::StatusOr<calibrate::SpendLimits> limits =
        a_.budget.empty() ? calibrate::SpendLimits() : calibrate::SpendLimits::Parse(a_.budget);
    if (!limits.ok()) {
      return Misuse(absl::StrCat("--budget: ", std::string(limits.status().message())));
    }
    StopOnSignals();
    SetThreads(a_.question.threads);
    LinearPlannerServices services([](LogLevel, std::string_view) {}, StopRequested);
    DistillArguments question = a_.question;
    question.strategy = "vanilla";  // any: the plan is what is looked for
    MP_RETURN_IF_ERROR(EncodeData(*Alone(), /*quiet=*/false, /*judged=*/false, &question));
    MP_RETURN_IF_ERROR(Choose(&question));
    MP_ASSIGN_OR_RETURN(const NetworkJob job, NewNetworkJob(question, services));
    MP_RETURN_IF_ERROR(TryNetworks(*job.steps, *job.student.module, *job.teacher, job.device));
    calibrate::CalibrateOptions options;
    MP_ASSIGN_OR_RETURN(options, OptionsOf(job, *limits));
    calibrate::Setting setting;
    setting.teacher = job.teacher;
    setting.student = job.student.module.get();
    setting.steps = job.steps.get();
    setting.inputs = job.inputs;
    MP_ASSIGN_OR_RETURN(setting.options, job.ExecutorOptions());
    absl::StatusOr<Calibration> found = Calibrate(std::move(setting), options);
    if (!found.ok()) return IsMisfit(found.status()) ? AsMisuse(found.status()) : found.status();
    return Finish(job, *found);
  }

 private:
  // What --layout auto and --precision auto stand for. A calibration that goes on computes as it
  // began.
  absl::Status Choose(DistillArguments* question) {
    std::vector<std::string> open;
    for (const char* option : {"layout", "precision"}) {
      const auto found = question->training.find(option);
      if (found != question->training.end() && found->second == kAuto) open.emplace_back(option);
    }
    if (open.empty()) return absl::OkStatus();
    Measurements before;
    if (a_.resume) {
      MP_ASSIGN_OR_RETURN(before, calibrate::ReadMeasurements(PilotsPath(a_.output)));
    } else {
      MP_RETURN_IF_ERROR(ChooseArithmetic(*Alone(), a_.quiet, question));
    }
    for (const std::string& option : open) {
      if (a_.resume && !before.chosen.contains(option)) {
        return Misuse(absl::StrCat("--", option, " auto: the calibration in ",
                                   PilotsPath(a_.output),
                                   " did not leave it open; give the word that it began with"));
      }
      if (a_.resume) question->training[option] = before.chosen.at(option);
      chosen_[option] = question->training[option];
    }
    return absl::OkStatus();
  }

  static bool IsMisfit(const absl::Status& status) { return absl::IsInvalidArgument(status); }

  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

  absl::StatusOr<calibrate::CalibrateOptions> OptionsOf(const NetworkJob& job,
                                                        const calibrate::SpendLimits& limits) {
    calibrate::CalibrateOptions out;
    calibrate::DesignQuestion& q = out.question;
    const Init init = job.document.init;
    q.teacher_steps = job.schedule.steps();
    q.student_steps = job.document.plan.student_steps();
    q.starts_from_child = init == Init::kChild || init == Init::kChildJump;
    q.iterations = job.options.iterations;
    q.rows = std::int64_t{job.batch} * job.options.recipe.accumulate;
    q.held_out_rows = job.options.held_out_rows;
    q.fit_updates = job.options.fit_updates;
    q.rollout = job.options.inputs == "rollout" && job.options.pool_rows == 0;
    q.pool_rows = job.options.pool_rows;
    q.replicates = a_.replicates;
    q.pilot_updates = a_.pilot_updates.value_or(0);
    q.limits = limits;
    if (q.pilot_updates > q.iterations) {
      return Misuse(absl::StrCat("--pilot-updates ", q.pilot_updates,
                                 ": expected at most --iterations, ", q.iterations));
    }
    MP_ASSIGN_OR_RETURN(const std::string run, FingerprintOf(job));
    out.fingerprint = Sha256(absl::StrCat("mergeplan calibration 1\n", run, "\n"));
    out.file = PilotsPath(a_.output);
    out.chosen = chosen_;
    if (a_.resume) {
      MP_ASSIGN_OR_RETURN(out.before, calibrate::ReadMeasurements(out.file));
      if (out.before.fingerprint != out.fingerprint) {
        return absl::FailedPreconditionError(absl::StrCat(
            out.file,
            ": holds pilots of another teacher, schedule, data or training than what is "
            "asked; ask the same, or name another file by -o"));
      }
    }
    const double seconds =
        std::min(a_.time_limit.value_or(HUGE_VAL), 60 * limits.minutes.value_or(HUGE_VAL));
    out.stop = [this, seconds] {
      timed_out_ = timed_out_ || Seconds() > seconds;
      return StopRequested() || timed_out_;
    };
    if (a_.quiet) return out;
    out.forecast = [](const calibrate::Design& design, int there) {
      for (const std::string& note : design.notes)
        std::fprintf(stderr, "budget: %s\n", note.c_str());
      std::fprintf(stderr,
                   "%d pilots of %lld updates%s: %lld updates, %.4g teacher calls, about %.2g "
                   "minutes\n",
                   static_cast<int>(design.pilots.size()),
                   static_cast<long long>(design.pilot_updates),
                   there > 0 ? absl::StrCat(" (", there, " are there already)").c_str() : "",
                   static_cast<long long>(design.spend.updates),
                   static_cast<double>(design.spend.calls), design.spend.seconds / 60);
    };
    out.progress = [this](int done, int total, const calibrate::Pilot& next) {
      std::fprintf(stderr, "%5.0f s  pilot %d of %d: %s%s\n", Seconds(), done + 1, total,
                   next.ToString().c_str(),
                   next.replicate > 0 ? absl::StrCat(", seed +", next.replicate).c_str() : "");
    };
    return out;
  }

  // The measured plan as distill and bench take it: an answer to the question that they ask, whose
  // linear figures are those of the question's time.
  absl::Status WritePlanFile(const NetworkJob& job, const calibrate::Answer& answer) {
    if (a_.plan_output.empty()) return absl::OkStatus();
    PlanDocument document = job.document;
    document.plan = answer.plan.plan;
    document.strategies.clear();
    document.lower_bound = 0;
    document.status = "unchecked";
    document.guarantee = absl::StrCat(
        "the best plan of the measured model in ", a_.output, " at ", job.options.iterations,
        " updates per merge; the figures here are those of linear students, which it was not made "
        "for");
    MP_ASSIGN_OR_RETURN(const Model model, ModelOf(document));
    MP_RETURN_IF_ERROR(ComputeFigures(model, &document));
    return WritePlan(document, a_.plan_output);
  }

  absl::StatusOr<int> Finish(const NetworkJob& job, const Calibration& found) {
    const Measurements& m = found.measured;
    const std::string kept = PilotsPath(a_.output);
    const char* cause = timed_out_ ? "by its limit of time" : "by a signal";
    if (!calibrate::CanFit(m)) {
      if (!found.why.empty()) {
        return absl::FailedPreconditionError(
            absl::StrCat(found.why, "; what was measured before is kept in ", kept));
      }
      std::fprintf(stderr,
                   "mergeplan calibrate: stopped %s after %d of %d pilots, too few for the tables; "
                   "they are kept in %s, go on with --resume\n",
                   cause, static_cast<int>(m.pilots.size()),
                   static_cast<int>(found.design.pilots.size()), kept.c_str());
      return kStopped;
    }
    MP_ASSIGN_OR_RETURN(const std::string arrays, calibrate::MeasurementsNpz(m));
    calibrate::AnswerQuestion question;
    question.student_steps = job.document.plan.student_steps();
    question.iterations = job.options.iterations;
    question.linear = LinearDataOf(job, m);
    question.interrupted = StopRequested;
    question.source =
        absl::StrCat("mergeplan calibrate: ", job.teacher_name.kind, ":", job.teacher_name.path,
                     ", init ", std::string(ToString(job.document.init)), ", lr ",
                     absl::StrFormat("%g", job.options.lr), ", batch ", job.batch, ", inputs ",
                     job.options.inputs, "; ", m.pilots.size(), " pilots; all measurements in ",
                     std::filesystem::path(ArraysPath(a_.output)).filename().string(), ", sha256 ",
                     Sha256(arrays));
    MP_ASSIGN_OR_RETURN(const calibrate::Answer answer, MakeAnswer(m, question));
    MP_RETURN_IF_ERROR(WriteFileAtomically(ArraysPath(a_.output), arrays));
    MP_RETURN_IF_ERROR(WriteMeasured(answer.fit.tables, a_.output));
    MP_RETURN_IF_ERROR(WritePlanFile(job, answer));
    calibrate::Heading heading;
    heading.teacher = *a_.question.teacher;
    heading.start = std::string(ToString(job.document.init));
    heading.inputs = job.options.inputs;
    heading.training =
        absl::StrFormat("%s with rate %g, batch %d", job.options.recipe.Options().at("optimizer"),
                        job.options.lr, job.batch);
    heading.iterations = job.options.iterations;
    heading.stopped = found.stopped;
    heading.why = found.why;
    heading.output = a_.output;
    heading.arrays = ArraysPath(a_.output);
    heading.plan = a_.plan_output;
    MP_ASSIGN_OR_RETURN(heading.output_sha256, Sha256OfFile(a_.output));
    const std::string json = AnswerJson(m, answer, heading);
    MP_RETURN_IF_ERROR(WriteFileAtomically(AnswerPath(a_.output), json));
    RestoreStdout();
    std::fputs((a_.json ? json : AnswerText(m, answer, heading)).c_str(), stdout);
    std::fflush(stdout);
    if (!found.why.empty()) return absl::FailedPreconditionError(found.why);
    if (!found.stopped) return kDone;
    std::fprintf(
        stderr, "mergeplan calibrate: stopped %s after %d of %d pilots; go on with --resume\n",
        cause, static_cast<int>(m.pilots.size()), static_cast<int>(found.design.pilots.size()));
    return kStopped;
  }

  const CalibrateArguments& a_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::map<std::string, std::string> chosen_;  // by the machine
  bool timed_out_ = false;
};

}  // namespace

int RunCalibrateCommand(const CalibrateArguments& arguments) {
  const absl::StatusOr<int> code = CalibrateRun(arguments).Run();
  if (code.ok()) return *code;
  if (code.status().message().empty()) return kMisuse;
  std::fprintf(stderr, "mergeplan calibrate: %s\n", std::string(code.status().message()).c_str());
  return IsMisuse(code.status()) ? kMisuse : absl::IsCancelled(code.status()) ? kStopped : kFailed;
}

}  // namespace mergeplan
