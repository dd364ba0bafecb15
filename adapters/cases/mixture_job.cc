#include "adapters/cases/mixture_job.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/cases/expert_options.h"
#include "adapters/experts/cuda/device_trainer.h"
#include "adapters/runtime/flow_question.h"
#include "adapters/runtime/resumed.h"
#include "adapters/runtime/strategy.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/plan/io/evaluate.h"
#include "plugins/abi/mergeplan_plugin.h"

namespace mergeplan {
namespace {

constexpr std::uint64_t kTraits =
    MERGEPLAN_TEACHER_PREDICTS_X0 | MERGEPLAN_TEACHER_DATA_FREE | MERGEPLAN_TEACHER_HAS_SPECTRUM;
constexpr int kMostRows = 1 << 24;

absl::Status CheckMixtureOptions(const DistillArguments& arguments) {
  if (arguments.reference && *arguments.reference != "teacher") {
    return Misuse(absl::StrCat("--reference ", *arguments.reference,
                               ": the students of a mixture are no linear operators, so only the "
                               "teacher can be the reference; leave the option out"));
  }
  if (arguments.feature_norm || arguments.basis) {
    return Misuse(absl::StrCat(arguments.basis ? "--basis" : "--feature-norm",
                               ": means nothing for a mixture; leave the option out"));
  }
  if (arguments.batch && *arguments.batch > kMostRows) {
    return Misuse(absl::StrCat("--batch ", *arguments.batch, ": expected 1 to ", kMostRows));
  }
  return absl::OkStatus();
}

absl::StatusOr<experts::Precision> PrecisionOf(const DistillArguments& arguments) {
  if (!arguments.dtype) return experts::ExecutorOptions().precision;
  const auto precision = experts::ParsePrecision(*arguments.dtype);
  if (precision.ok()) return *precision;
  return Misuse(absl::StrCat("--dtype: ", std::string(precision.status().message())));
}

// Opens the device of --device and lets students train there.
absl::Status OpenDeviceOf(const std::string& word, MixtureJob* job) {
  const absl::StatusOr<Device> opened = OpenDevice(word);
  if (!opened.ok()) {
    const absl::Status status(opened.status().code(),
                              absl::StrCat("--", std::string(opened.status().message())));
    return absl::IsInvalidArgument(status) ? AsMisuse(status) : status;
  }
  job->device = *opened;
  if (opened->cuda) job->options.elsewhere = experts::TrainOnCuda(opened->index);
  return absl::OkStatus();
}

int ThreadsOf(const DistillArguments& arguments) {
  if (arguments.threads > 0) return arguments.threads;
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

// Asks the question about the Gaussian with the mixture's moments.
absl::Status AskAboutMoments(const MixtureTeacher& teacher, PlanDocument* document) {
  MP_ASSIGN_OR_RETURN(const Spectrum moments, teacher.MomentSpectrum());
  MP_ASSIGN_OR_RETURN(const Basis* basis, moments.FindBasis(moments.recommended_basis));
  document->input = teacher.path();
  document->basis = basis->name;
  document->variances = basis->variances;
  document->weights.clear();
  document->input_sha256 = VariancesHash(document->variances);
  document->reference = Reference::kTeacher;
  return absl::OkStatus();
}

}  // namespace

std::string MixtureJob::Fingerprint() const {
  std::string text = "mergeplan mixture run 1\n";
  absl::StrAppend(&text, document.plan.teacher_steps(), " ", document.plan.ToString(), "\n");
  for (const std::vector<double>* table : {&document.alpha, &document.sigma}) {
    absl::StrAppend(&text, VariancesHash(*table), "\n");
  }
  absl::StrAppendFormat(&text, "%a %s %s\n", document.data_scale,
                        std::string(ToString(document.init)), teacher->sha256());
  absl::StrAppend(&text, seed, " ", std::string(ToString(options.precision)), " ", options.batch,
                  "\n");
  for (const auto& [option, value] : ToTexts(options)) {
    absl::StrAppend(&text, option, "=", value, "\n");
  }
  if (device.cuda) absl::StrAppend(&text, "cuda\n");
  return Sha256(text);
}

absl::StatusOr<MixtureJob> NewMixtureJob(const DistillArguments& arguments,
                                         PlannerServices& services) {
  MP_RETURN_IF_ERROR(CheckMixtureOptions(arguments));
  MP_ASSIGN_OR_RETURN(const auto texts, ExpertTexts(arguments));
  MP_ASSIGN_OR_RETURN(const TeacherName name, ParseTeacher(*arguments.teacher));
  MixtureJob job;
  job.seed = static_cast<std::uint64_t>(arguments.seed.value_or(0));
  MP_ASSIGN_OR_RETURN(const experts::Precision precision, PrecisionOf(arguments));
  PlanDocument& document = job.document;
  MP_ASSIGN_OR_RETURN(document, FlowQuestion(arguments, Init::kChild, &job.schedule));
  MP_ASSIGN_OR_RETURN(MixtureTeacher teacher, MixtureTeacher::Load(name.path));
  MP_RETURN_IF_ERROR(AskAboutMoments(teacher, &document));
  MP_ASSIGN_OR_RETURN(job.options, ParseExpertOptions(texts, teacher.dimensions()));
  job.options.batch = arguments.batch.value_or(job.options.batch);
  job.options.precision = precision;
  job.options.init = document.init;
  job.options.threads = ThreadsOf(arguments);
  MP_RETURN_IF_ERROR(OpenDeviceOf(arguments.device.value_or("cpu"), &job));
  MP_ASSIGN_OR_RETURN(job.parameters, PluginParameters(arguments));
  MP_ASSIGN_OR_RETURN(job.plugin, NewPlugin(arguments.strategy.value_or(kPlanPlugin), arguments,
                                            job.parameters, kTraits));
  MP_RETURN_IF_ERROR(AnswerFlowQuestion(arguments, job.schedule, *job.plugin, job.parameters,
                                        services, "the Gaussian with the moments of the mixture",
                                        &document));
  MP_ASSIGN_OR_RETURN(Model model, ModelOf(document));
  job.model = std::make_shared<Model>(std::move(model));
  job.teacher = std::make_shared<MixtureTeacher>(std::move(teacher));
  return job;
}

absl::StatusOr<MixtureJob> ResumedMixtureJob(const DistillArguments& arguments,
                                             const RunFolder& folder) {
  const RunInfo& info = *folder.previous();
  const std::string plan_file = folder.File("plan.toml");
  MP_RETURN_IF_ERROR(CheckMixtureOptions(arguments));
  MixtureJob job;
  MP_ASSIGN_OR_RETURN(job.document, ResumedPlan(arguments, folder, kTraits));
  MP_RETURN_IF_ERROR(CheckScheduleAndStart(arguments, job.document, plan_file));
  MP_RETURN_IF_ERROR(CheckTrainTime(arguments, job.document, folder));
  MP_ASSIGN_OR_RETURN(const auto given, ExpertTexts(arguments));
  const absl::StatusOr<experts::ExecutorOptions> had = ParseExpertOptions(info.training, 1);
  if (!had.ok()) {
    return absl::DataLossError(
        absl::StrCat(folder.File("run.toml"), ": training: ", std::string(had.status().message())));
  }
  MP_RETURN_IF_ERROR(
      CheckTraining(folder, given, info.training,
                    [](const auto& texts) -> absl::StatusOr<std::map<std::string, std::string>> {
                      MP_ASSIGN_OR_RETURN(const auto options, ParseExpertOptions(texts, 1));
                      return ToTexts(options);
                    }));

  std::string path = info.teacher_file;
  if (arguments.teacher) {
    MP_ASSIGN_OR_RETURN(const TeacherName name, ParseTeacher(*arguments.teacher));
    path = name.path;
  }
  const std::string bring_back =
      absl::StrCat("; expected the mixture that the run in ", folder.path(),
                   " began with: bring it back, or say where it is now by --teacher");
  absl::StatusOr<MixtureTeacher> teacher = MixtureTeacher::Load(path);
  if (!teacher.ok()) {
    return absl::Status(teacher.status().code(),
                        absl::StrCat(std::string(teacher.status().message()), bring_back));
  }
  if (teacher->sha256() != info.teacher_sha256) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": is another mixture (SHA-256 ", teacher->sha256(), ", ",
                     folder.File("run.toml"), " says ", info.teacher_sha256, ")", bring_back));
  }
  MP_ASSIGN_OR_RETURN(job.options, ParseExpertOptions(info.training, teacher->dimensions()));
  DistillArguments settled = arguments;
  settled.dtype = info.dtype;
  const absl::StatusOr<experts::Precision> precision = PrecisionOf(settled);
  if (!precision.ok()) {
    return absl::DataLossError(
        absl::StrCat(folder.File("run.toml"), ": ", std::string(precision.status().message())));
  }
  job.options.precision = *precision;
  job.options.batch = info.batch;
  job.options.init = job.document.init;
  job.options.threads = ThreadsOf(arguments);
  MP_RETURN_IF_ERROR(OpenDeviceOf(arguments.device.value_or(info.device), &job));
  if (arguments.device && job.device.cuda != (info.device != "cpu")) {
    return DiffersFromRun(folder, "--device", job.device.ToString(), info.device);
  }
  job.schedule = ScheduleOf(job.document);
  job.seed = static_cast<std::uint64_t>(info.seed);
  job.parameters = info.parameters;
  MP_ASSIGN_OR_RETURN(job.plugin, OldPlugin(info, arguments, kTraits));
  MP_ASSIGN_OR_RETURN(Model model, ModelOf(job.document));
  job.model = std::make_shared<Model>(std::move(model));
  job.teacher = std::make_shared<MixtureTeacher>(*std::move(teacher));
  if (job.Fingerprint() != info.fingerprint) {
    return absl::DataLossError(
        absl::StrCat(folder.File("run.toml"),
                     ": the fingerprint is not that of the run it describes; bring "
                     "the old file back, or begin another run"));
  }
  return job;
}

}  // namespace mergeplan
