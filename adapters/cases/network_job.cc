#include "adapters/cases/network_job.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "adapters/analytic/gaussian.h"
#include "adapters/analytic/mixture.h"
#include "adapters/cases/network_data.h"
#include "adapters/network/data.h"
#include "adapters/network/layout.h"
#include "adapters/runtime/flow_question.h"
#include "adapters/runtime/resumed.h"
#include "adapters/runtime/strategy.h"
#include "planner/base/file.h"
#include "planner/base/memory.h"
#include "planner/base/status_macros.h"
#include "planner/plan/io/evaluate.h"
#include "planner/spectrum/spectrum.h"
#include "plugins/abi/mergeplan_plugin.h"

namespace mergeplan {
namespace {

constexpr int kDefaultBatch = 64;
constexpr std::int64_t kFitOfOthers = 1000;

std::uint64_t TraitsOf(const NetworkJob& job, bool has_spectrum) {
  std::uint64_t traits = MERGEPLAN_TEACHER_DATA_FREE;
  if (has_spectrum) traits |= MERGEPLAN_TEACHER_HAS_SPECTRUM;
  switch (job.student.signature.prediction) {
    case network::Prediction::kEpsilon:
      return traits | MERGEPLAN_TEACHER_PREDICTS_EPSILON;
    case network::Prediction::kSample:
      return traits | MERGEPLAN_TEACHER_PREDICTS_X0;
    default:
      return traits | MERGEPLAN_TEACHER_PREDICTS_V;
  }
}

absl::Status CheckNetworkOptions(const DistillArguments& arguments) {
  if (arguments.reference && *arguments.reference != "teacher") {
    return Misuse(absl::StrCat("--reference ", *arguments.reference,
                               ": networks are no linear operators, so only the teacher can be the "
                               "reference; leave the option out"));
  }
  if (arguments.feature_norm) {
    return Misuse("--feature-norm: means nothing for a network; leave the option out");
  }
  const NetworkArguments& network = arguments.network;
  if (network.memory && !(*network.memory > 0)) {
    return Misuse(absl::StrCat("--memory ", *network.memory, ": expected a number above 0, in MB"));
  }
  if ((network.array || network.rows) && !network.data) {
    return Misuse(absl::StrCat(network.array ? "--array" : "--data-rows",
                               ": is of --data, which is missing"));
  }
  if (network.label_array && !network.labels) {
    return Misuse("--label-array: is of --labels, which is missing");
  }
  return absl::OkStatus();
}

// The networks, loaded, of the type and on the device that was asked for.
absl::Status LoadNetworks(const DistillArguments& arguments, NetworkJob* job) {
  std::shared_ptr<network::Module> teacher;
  if (IsNetwork(job->teacher_name)) {
    MP_ASSIGN_OR_RETURN(job->student, LoadNetwork(job->teacher_name));
    job->teacher_sha256 = job->student.sha256;
    teacher = job->student.module;
  }
  network::Signature teacher_signature = job->student.signature;
  if (arguments.network.student) {
    MP_ASSIGN_OR_RETURN(const TeacherName name, ParseTeacher(*arguments.network.student));
    MP_ASSIGN_OR_RETURN(job->student, LoadNetwork(name));
    job->copies_teacher = false;
    if (teacher != nullptr && teacher_signature.shape != job->student.signature.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat(*arguments.network.student,
                       ": the student has samples of another shape than "
                       "the teacher ",
                       *arguments.teacher));
    }
  }
  network::Signature& signature = job->student.signature;
  const std::int64_t classes = teacher != nullptr ? teacher_signature.classes : 0;
  if (signature.classes != classes) {
    return absl::InvalidArgumentError(
        absl::StrCat(job->student.kind, ":", job->student.path, ": the student has ",
                     signature.classes, " classes, the teacher ", job->teacher_name.kind, ":",
                     job->teacher_name.path, " ", classes, ", expected the same"));
  }
  if (arguments.network.labels && classes == 0) {
    return Misuse(absl::StrCat("--labels ", *arguments.network.labels,
                               ": the network is told no classes; leave the option out"));
  }
  if (arguments.dtype) {
    if (*arguments.dtype != "float32" && *arguments.dtype != "float64") {
      return Misuse(absl::StrCat("--dtype ", *arguments.dtype,
                                 ": expected float32 or float64 (--precision bf16 or fp16 trains "
                                 "with narrow numbers)"));
    }
    signature.dtype = teacher_signature.dtype = *arguments.dtype;
  }
  job->dtype = signature.dtype;
  if (job->dtype != "float32" && job->options.precision != "full") {
    return Misuse(absl::StrCat("--precision ", job->options.precision,
                               ": is for networks of float32, this one is ", job->dtype,
                               "; add --dtype float32, or leave the option out"));
  }
  if (!job->student.module->SetGradientCheckpointing(job->options.checkpointing).ok()) {
    return Misuse(absl::StrCat("--gradient-checkpointing yes: networks of ", job->student.kind,
                               ": have none, unet: has; leave the option out"));
  }
  MP_RETURN_IF_ERROR(MoveNetwork(*job->student.module, job->device, signature));
  MP_ASSIGN_OR_RETURN(const network::Layout layout, network::ParseLayout(job->options.layout));
  MP_RETURN_IF_ERROR(network::SetLayout(*job->student.module, layout));
  MP_ASSIGN_OR_RETURN(const network::Precision precision,
                      network::ParsePrecision(job->options.precision));
  MP_ASSIGN_OR_RETURN(network::NetworkSteps steps,
                      network::NetworkSteps::Create(signature, job->schedule, precision));
  job->steps = std::make_shared<const network::NetworkSteps>(std::move(steps));
  if (teacher == nullptr) return absl::OkStatus();
  // The student trains a copy; what was loaded stays as it is.
  MP_RETURN_IF_ERROR(MoveNetwork(*teacher, job->device, teacher_signature));
  MP_RETURN_IF_ERROR(network::SetLayout(*teacher, layout));
  MP_ASSIGN_OR_RETURN(network::NetworkSteps teacher_steps,
                      network::NetworkSteps::Create(teacher_signature, job->schedule, precision));
  job->teacher = network::MakeNetworkTeacher(teacher, std::move(teacher_steps));
  return absl::OkStatus();
}

// An analytic teacher, and the inputs that it can give.
absl::Status LoadAnalytic(const DistillArguments& arguments, NetworkJob* job) {
  const std::vector<std::int64_t>& shape = job->student.signature.shape;
  const auto d = static_cast<int>(job->student.signature.dimensions());
  const auto fits = [&](int dimensions) {
    if (dimensions == d) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(job->teacher_name.path, ": has ", dimensions,
                                                   " dimensions, the student ", job->student.path,
                                                   " ", d));
  };
  PlanDocument& document = job->document;
  job->has_spectrum = true;
  if (job->teacher_name.kind == kAnalyticTeacher) {
    MP_ASSIGN_OR_RETURN(
        const GaussianTeacher teacher,
        GaussianTeacher::Load(job->teacher_name.path, arguments.basis.value_or("")));
    MP_RETURN_IF_ERROR(fits(teacher.dimensions()));
    job->teacher_sha256 = teacher.sha256();
    document.basis = teacher.basis();
    document.variances = teacher.variances();
    MP_ASSIGN_OR_RETURN(job->teacher,
                        network::MakeGaussianTeacher(teacher.variances(), job->schedule, shape));
    if (job->options.inputs != "analytic") return absl::OkStatus();
    MP_ASSIGN_OR_RETURN(job->inputs,
                        network::MakeGaussianInputs(teacher.variances(), job->schedule, shape,
                                                    StatesOf(*job->steps, job->device)));
    return absl::OkStatus();
  }
  if (arguments.basis) {
    return Misuse("--basis: means nothing for a mixture; leave the option out");
  }
  MP_ASSIGN_OR_RETURN(const MixtureTeacher teacher, MixtureTeacher::Load(job->teacher_name.path));
  MP_RETURN_IF_ERROR(fits(teacher.dimensions()));
  job->teacher_sha256 = teacher.sha256();
  MP_ASSIGN_OR_RETURN(const Spectrum moments, teacher.MomentSpectrum());
  MP_ASSIGN_OR_RETURN(const Basis* basis, moments.FindBasis(moments.recommended_basis));
  document.basis = basis->name;
  document.variances = basis->variances;
  MP_ASSIGN_OR_RETURN(MixtureTrajectory along, teacher.Along(job->schedule));
  const auto trajectory = std::make_shared<const MixtureTrajectory>(std::move(along));
  MP_ASSIGN_OR_RETURN(job->teacher, network::MakeMixtureTeacher(trajectory, shape));
  if (job->options.inputs != "analytic") return absl::OkStatus();
  MP_ASSIGN_OR_RETURN(job->inputs, network::MakeMixtureInputs(trajectory, shape,
                                                              StatesOf(*job->steps, job->device)));
  return absl::OkStatus();
}

absl::Status MakeInputs(NetworkJob* job) {
  const at::TensorOptions states = StatesOf(*job->steps, job->device);
  if (job->options.inputs == "data") {
    if (job->data.empty()) return Misuse("--inputs data: --data is missing, expected samples");
    MP_ASSIGN_OR_RETURN(LoadedData data, LoadTrainingData(job->data, job->array, job->data_rows,
                                                          job->student.signature));
    job->data_sha256 = data.sha256;
    LoadedLabels labels;
    if (job->student.signature.classes > 0) {
      MP_ASSIGN_OR_RETURN(labels, LoadTrainingLabels(job->labels, job->label_array, job->data,
                                                     job->student.signature.classes,
                                                     data.samples.size(0), job->data_rows > 0));
      job->labels = labels.path;
      job->label_array = labels.array;
      job->labels_sha256 = labels.sha256;
    }
    MP_ASSIGN_OR_RETURN(job->inputs, network::MakeDataInputs(std::move(data.samples), job->schedule,
                                                             states, std::move(labels.labels)));
    return absl::OkStatus();
  }
  if (!job->labels.empty()) {
    return Misuse(absl::StrCat("--labels ", job->labels, ": is of --inputs data, the inputs are ",
                               job->options.inputs,
                               ", whose rows have classes at random; leave the option out"));
  }
  if (job->options.inputs == "rollout") {
    MP_ASSIGN_OR_RETURN(job->inputs,
                        network::MakeRolloutInputs(job->teacher, job->schedule, job->seed,
                                                   job->options.pool_rows, states));
    return absl::OkStatus();
  }
  if (job->inputs != nullptr) return absl::OkStatus();
  return Misuse(absl::StrCat("--inputs analytic: the law of the data of ", job->teacher_name.kind,
                             ":", job->teacher_name.path, " is not known; use data or rollout"));
}

// Which inputs there are where nothing is said, and how many updates of a fit.
void SettleDefaults(NetworkJob* job) {
  NetworkOptions& options = job->options;
  if (options.inputs.empty()) {
    options.inputs = !job->data.empty()             ? "data"
                     : IsNetwork(job->teacher_name) ? "rollout"
                                                    : "analytic";
  }
  if (options.fit_updates < 0) options.fit_updates = job->copies_teacher ? 0 : kFitOfOthers;
}

// The variances that plans are made for: of the file named, of the plan's file, or none.
absl::Status FindSpectrum(const DistillArguments& arguments, NetworkJob* job) {
  PlanDocument& document = job->document;
  if (arguments.network.spectrum) {
    MP_ASSIGN_OR_RETURN(const Spectrum spectrum, ReadSpectrum(*arguments.network.spectrum));
    MP_ASSIGN_OR_RETURN(const Basis* basis,
                        spectrum.FindBasis(arguments.basis.value_or(spectrum.recommended_basis)));
    document.input = *arguments.network.spectrum;
    document.basis = basis->name;
    document.variances = basis->variances;
    job->has_spectrum = true;
  } else if (arguments.basis) {
    return Misuse("--basis: is of --spectrum, which is missing; leave the option out");
  } else if (arguments.plan) {
    job->has_spectrum = true;
    return absl::OkStatus();  // as it was made
  } else {
    document.input = "variance 1 (no spectrum was given)";
    document.basis = "given";
    document.variances = {1.0};
  }
  document.weights.clear();
  document.input_sha256 = VariancesHash(document.variances);
  return absl::OkStatus();
}

// Are the variances those of the network's data?
absl::Status CheckSpectrum(const DistillArguments& arguments, NetworkJob* job) {
  const std::int64_t d = job->student.signature.dimensions();
  const int found = job->document.dimensions();
  if (!job->has_spectrum || found == d) return absl::OkStatus();
  if (arguments.network.spectrum) {
    return absl::InvalidArgumentError(
        absl::StrCat("--spectrum ", *arguments.network.spectrum, ": has ", found,
                     " dimensions, the network's samples ", d,
                     "; give the spectrum of its data, or leave the option out"));
  }
  job->has_spectrum = false;  // of a plan that was made for something else: nothing is predicted
  return absl::OkStatus();
}

// States alone, before any network: what cannot be held is said before work begins.
absl::Status CheckSizes(const NetworkJob& job) {
  const double state = 4.0 * static_cast<double>(job.student.signature.dimensions());
  const auto check = [&](const char* option, std::int64_t rows, int states) -> absl::Status {
    const absl::Status enough =
        CheckMemory(absl::StrCat("--", option, " ", rows, ": ", rows, " states alone"),
                    states * state * static_cast<double>(rows));
    if (enough.ok()) return enough;
    return absl::Status(enough.code(),
                        absl::StrCat(std::string(enough.message()), "; give a smaller number"));
  };
  MP_RETURN_IF_ERROR(check("batch", job.batch, 3));  // inputs, targets, outputs
  MP_RETURN_IF_ERROR(check("held-out-rows", job.options.held_out_rows, 2));
  return check("pool-rows", job.options.pool_rows, 1);
}

absl::Status Finish(const DistillArguments& arguments, NetworkJob* job) {
  MP_RETURN_IF_ERROR(LoadNetworks(arguments, job));
  MP_RETURN_IF_ERROR(CheckSpectrum(arguments, job));
  SettleDefaults(job);
  MP_RETURN_IF_ERROR(CheckSizes(*job));
  if (job->options.pool_rows > 0 && job->options.inputs != "rollout") {
    return Misuse(absl::StrCat("--pool-rows ", job->options.pool_rows,
                               ": is of --inputs rollout, the inputs are ", job->options.inputs,
                               "; leave the option out"));
  }
  if (job->teacher == nullptr) {
    MP_RETURN_IF_ERROR(LoadAnalytic(arguments, job));
    job->document.input = job->teacher_name.path;
    job->document.weights.clear();
    job->document.input_sha256 = VariancesHash(job->document.variances);
  }
  return MakeInputs(job);
}

absl::Status OpenDeviceOf(const std::string& word, NetworkJob* job) {
  const absl::StatusOr<Device> opened = OpenDevice(word);
  if (!opened.ok()) {
    const absl::Status status(opened.status().code(),
                              absl::StrCat("--", opened.status().message()));
    return absl::IsInvalidArgument(status) ? AsMisuse(status) : status;
  }
  job->device = *opened;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<network::ExecutorOptions> NetworkJob::ExecutorOptions() const {
  network::ExecutorOptions out;
  out.init = document.init;
  out.shared = options.shared;
  out.recipe = options.recipe;
  out.lr = options.lr;
  out.iterations = options.iterations;
  out.total_updates = options.total_updates;
  out.gain_bound = options.gain_bound;
  out.batch = batch;
  MP_ASSIGN_OR_RETURN(out.precision, network::ParsePrecision(options.precision));
  MP_ASSIGN_OR_RETURN(out.loss.space, network::ParseLossSpace(options.loss));
  MP_ASSIGN_OR_RETURN(out.loss.weighting, network::ParseWeighting(options.weighting));
  out.loss.gamma = options.gamma;
  out.seed = seed;
  out.fit_updates = options.fit_updates;
  out.held_out_rows = options.held_out_rows;
  out.memory = static_cast<std::int64_t>(memory);
  out.deterministic = options.deterministic;
  return out;
}

std::map<std::string, std::string> NetworkJob::Texts() const {
  std::map<std::string, std::string> texts = options.Texts();
  if (!copies_teacher) {
    texts["student-network"] = absl::StrCat(student.kind, ":", student.path);
    texts["student-sha256"] = student.sha256;
  }
  if (!data_sha256.empty()) {
    texts["data"] = data;
    texts["data-sha256"] = data_sha256;
    if (!array.empty()) texts["array"] = array;
    if (data_rows > 0) texts["data-rows"] = absl::StrCat(data_rows);
  }
  if (!labels_sha256.empty()) {
    texts["labels"] = labels;
    texts["labels-sha256"] = labels_sha256;
    if (!label_array.empty()) texts["label-array"] = label_array;
  }
  if (!probed.empty()) texts["probed"] = probed;
  return texts;
}

absl::StatusOr<NetworkJob> NewNetworkJob(const DistillArguments& arguments,
                                         PlannerServices& services) {
  MP_RETURN_IF_ERROR(CheckNetworkOptions(arguments));
  MP_ASSIGN_OR_RETURN(const auto texts, NetworkTexts(arguments));
  NetworkJob job;
  MP_ASSIGN_OR_RETURN(job.options, NetworkOptions::Parse(texts));
  MP_ASSIGN_OR_RETURN(job.teacher_name, ParseTeacher(*arguments.teacher));
  job.seed = static_cast<std::uint64_t>(arguments.seed.value_or(0));
  job.batch = arguments.batch.value_or(kDefaultBatch);
  job.memory = 1e6 * arguments.network.memory.value_or(0);
  job.data = AbsolutePath(arguments.network.data.value_or(""));
  job.array = arguments.network.array.value_or("");
  job.data_rows = arguments.network.rows.value_or(0);
  job.labels = AbsolutePath(arguments.network.labels.value_or(""));
  job.label_array = arguments.network.label_array.value_or("");
  job.probed = arguments.network.probed;
  if (!job.data.empty() && !job.options.inputs.empty() && job.options.inputs != "data") {
    return Misuse(absl::StrCat("--data: is not used with --inputs ", job.options.inputs,
                               "; leave one of them out"));
  }
  MP_RETURN_IF_ERROR(OpenDeviceOf(arguments.device.value_or("cpu"), &job));
  MP_ASSIGN_OR_RETURN(job.document, FlowQuestion(arguments, Init::kChildJump, &job.schedule));
  if (arguments.plan) {
    MP_ASSIGN_OR_RETURN(job.schedule, WholeScheduleOf(job.document));
  }
  if (IsNetwork(job.teacher_name)) {
    MP_RETURN_IF_ERROR(FindSpectrum(arguments, &job));
  } else if (arguments.network.spectrum) {
    return Misuse(absl::StrCat("--spectrum: the teacher ", *arguments.teacher,
                               " has its own; leave the option out"));
  }
  MP_RETURN_IF_ERROR(Finish(arguments, &job));
  MP_ASSIGN_OR_RETURN(job.parameters, PluginParameters(arguments));
  MP_ASSIGN_OR_RETURN(job.plugin, NewPlugin(arguments.strategy.value_or(kPlanPlugin), arguments,
                                            job.parameters, TraitsOf(job, job.has_spectrum)));
  MP_RETURN_IF_ERROR(AnswerFlowQuestion(
      arguments, job.schedule, *job.plugin, job.parameters, services,
      job.has_spectrum ? "data with these variances" : "data of variance 1", &job.document));
  return job;
}

absl::StatusOr<NetworkJob> ResumedNetworkJob(const DistillArguments& arguments,
                                             const RunFolder& folder) {
  const RunInfo& info = *folder.previous();
  const std::string run_file = folder.File("run.toml");
  MP_RETURN_IF_ERROR(CheckNetworkOptions(arguments));
  NetworkJob job;
  const std::uint64_t traits = ~std::uint64_t{0};  // the plugin has been asked before
  MP_ASSIGN_OR_RETURN(job.document, ResumedPlan(arguments, folder, traits));
  MP_RETURN_IF_ERROR(CheckScheduleAndStart(arguments, job.document, folder.File("plan.toml")));
  MP_RETURN_IF_ERROR(CheckTrainTime(arguments, job.document, folder));

  std::map<std::string, std::string> had = info.training;
  const auto take = [&had](const char* name) {
    const auto found = had.extract(name);
    return found.empty() ? std::string() : found.mapped();
  };
  const std::string student = take("student-network"), student_sha256 = take("student-sha256");
  const std::string data = take("data"), data_sha256 = take("data-sha256");
  job.array = take("array");
  job.probed = take("probed");
  job.label_array = take("label-array");
  const std::string labels = take("labels"), labels_sha256 = take("labels-sha256");
  const std::string rows = take("data-rows");
  if (!rows.empty() && !absl::SimpleAtoi(rows, &job.data_rows)) {
    return absl::DataLossError(
        absl::StrCat(run_file, ": training: data-rows is ", rows, ", expected a number"));
  }
  const absl::StatusOr<NetworkOptions> options = NetworkOptions::Parse(had);
  if (!options.ok()) {
    return absl::DataLossError(
        absl::StrCat(run_file, ": training: ", std::string(options.status().message())));
  }
  job.options = *options;
  MP_ASSIGN_OR_RETURN(const auto given, NetworkTexts(arguments));
  MP_RETURN_IF_ERROR(
      CheckTraining(folder, given, had,
                    [](const auto& texts) -> absl::StatusOr<std::map<std::string, std::string>> {
                      MP_ASSIGN_OR_RETURN(const auto options, NetworkOptions::Parse(texts));
                      return options.Texts();
                    }));
  // Files may have moved; what is in them must be the same.
  DistillArguments settled = arguments;
  settled.dtype = info.dtype;
  if (info.teacher == kAnalyticTeacher) settled.basis = info.basis;
  if (!settled.network.student && !student.empty()) settled.network.student = student;
  if (settled.network.student && student.empty()) {
    return DiffersFromRun(folder, "--student-network", *settled.network.student,
                          "a copy of the teacher's network");
  }
  job.data = AbsolutePath(settled.network.data.value_or(data));
  if (!job.data.empty() && data.empty()) {
    return DiffersFromRun(folder, "--data", job.data, "no data");
  }
  // Labels that lay in the data's own file lie there still, wherever it is now.
  const bool own = !labels.empty() && labels == data && !settled.network.labels;
  job.labels = own ? job.data : AbsolutePath(settled.network.labels.value_or(labels));
  if (!job.labels.empty() && labels.empty()) {
    return DiffersFromRun(folder, "--labels", job.labels, "no labels");
  }
  if (settled.network.label_array) job.label_array = *settled.network.label_array;
  job.teacher_name = {info.teacher, info.teacher_file};
  if (arguments.teacher) {
    MP_ASSIGN_OR_RETURN(job.teacher_name, ParseTeacher(*arguments.teacher));
  }
  job.has_spectrum = info.prediction == "moments";
  job.seed = static_cast<std::uint64_t>(info.seed);
  job.batch = info.batch;
  job.memory = 1e6 * arguments.network.memory.value_or(0);
  MP_RETURN_IF_ERROR(OpenDeviceOf(arguments.device.value_or(info.device), &job));
  MP_ASSIGN_OR_RETURN(job.schedule, WholeScheduleOf(job.document));
  const PlanDocument document = job.document;
  MP_RETURN_IF_ERROR(Finish(settled, &job));
  job.document = document;
  const auto changed = [&](const std::string& what, const std::string& path,
                           const std::string& option) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": is not the ", what, " that the run in ", folder.path(),
                     " began with; bring it back, or say where it is now by ", option));
  };
  if (job.teacher_sha256 != info.teacher_sha256) {
    return changed("teacher", job.teacher_name.path, "--teacher");
  }
  if (!student.empty() && job.student.sha256 != student_sha256) {
    return changed("student's network", job.student.path, "--student-network");
  }
  if (job.data_sha256 != data_sha256) return changed("data", job.data, "--data");
  if (job.labels_sha256 != labels_sha256) return changed("labels", job.labels, "--labels");
  job.parameters = info.parameters;
  MP_ASSIGN_OR_RETURN(job.plugin, OldPlugin(info, arguments, traits));
  return job;
}

}  // namespace mergeplan
