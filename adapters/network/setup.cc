#include "adapters/network/setup.h"

#include <ATen/core/grad_mode.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/analytic/gaussian.h"
#include "adapters/analytic/mixture.h"
#include "adapters/network/data.h"
#include "adapters/network/script.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

struct Named {
  std::string kind, path;
};

absl::StatusOr<Named> Split(const std::string& option, const std::string& text,
                            const SetupOptions& options, bool analytic) {
  const std::size_t colon = text.find(':');
  Named out{text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1)};
  std::vector<std::string> known;
  if (analytic) known = {"analytic", "mixture"};
  for (const auto& [kind, loader] : options.loaders) known.push_back(kind);
  for (const std::string& kind : known) {
    if (kind == out.kind && !out.path.empty()) return out;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--", option, " ", text, ": expected KIND:PATH, KIND one of ", absl::StrJoin(known, ", ")));
}

// Everything that is known of the teacher by its kind.
struct TeacherParts {
  std::shared_ptr<Teacher> teacher;
  std::vector<double> variances;                        // of analytic
  std::shared_ptr<const MixtureTrajectory> trajectory;  // of mixture
  bool is_network = false;
  std::string sha256;
};

absl::StatusOr<TeacherParts> AnalyticTeacher(const Named& name, const SetupOptions& options,
                                             const Schedule& schedule,
                                             const std::vector<std::int64_t>& shape) {
  TeacherParts out;
  if (name.kind == "analytic") {
    MP_ASSIGN_OR_RETURN(const GaussianTeacher gaussian,
                        GaussianTeacher::Load(name.path, options.basis));
    out.variances = gaussian.variances();
    out.sha256 = absl::StrCat(gaussian.sha256(), " ", gaussian.basis());
    MP_ASSIGN_OR_RETURN(out.teacher, MakeGaussianTeacher(out.variances, schedule, shape));
    return out;
  }
  MP_ASSIGN_OR_RETURN(const MixtureTeacher mixture, MixtureTeacher::Load(name.path));
  MP_ASSIGN_OR_RETURN(MixtureTrajectory trajectory, mixture.Along(schedule));
  out.trajectory = std::make_shared<const MixtureTrajectory>(std::move(trajectory));
  out.sha256 = mixture.sha256();
  MP_ASSIGN_OR_RETURN(out.teacher, MakeMixtureTeacher(out.trajectory, shape));
  return out;
}

at::ScalarType TypeOf(const NetworkSteps& steps) { return steps.network_type(); }

absl::StatusOr<std::shared_ptr<Inputs>> ChooseInputs(const SetupOptions& options,
                                                     const std::string& word,
                                                     const TeacherParts& teacher,
                                                     const NetworkSteps& student,
                                                     std::string* data_hash) {
  const Schedule& schedule = student.schedule();
  const std::vector<std::int64_t>& shape = student.signature().shape;
  const at::TensorOptions states =
      at::TensorOptions().dtype(student.state_type()).device(options.device);
  if (word != "data" && !options.data.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--data ", options.data, ": expected --inputs data beside it, found ", word));
  }
  if (word != "rollout" && options.pool_rows != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a pool of ", options.pool_rows,
                     " rollouts: expected --inputs rollout beside it, found ", word));
  }
  if (word == "rollout") {
    return MakeRolloutInputs(teacher.teacher, schedule, options.seed, options.pool_rows, states);
  }
  if (word == "analytic") {
    if (!teacher.variances.empty()) {
      return MakeGaussianInputs(teacher.variances, schedule, shape, states);
    }
    if (teacher.trajectory != nullptr) {
      return MakeMixtureInputs(teacher.trajectory, shape, states);
    }
    return absl::InvalidArgumentError(
        "--inputs analytic: a network's law is not known; expected data or rollout");
  }
  if (word != "data") {
    return absl::InvalidArgumentError(
        absl::StrCat("--inputs ", word, ": expected analytic, data or rollout"));
  }
  if (options.data.empty()) {
    return absl::InvalidArgumentError("--inputs data: expected --data with the samples beside it");
  }
  SamplesOptions samples;
  samples.array = options.array;
  MP_ASSIGN_OR_RETURN(
      at::Tensor data,
      LoadData(options.data, samples,
               options.scaling.empty() ? student.signature().scaling : options.scaling, shape));
  *data_hash = Sha256({static_cast<const char*>(data.const_data_ptr()), data.nbytes()});
  return MakeDataInputs(std::move(data), schedule, states);
}

}  // namespace

std::map<std::string, NetworkLoader> NetworkLoaders() {
  return {{"script", [](const std::string& path) -> absl::StatusOr<LoadedNetwork> {
             MP_ASSIGN_OR_RETURN(ScriptNetwork script, LoadScript(path));
             LoadedNetwork out;
             out.module = std::move(script.module);
             out.signature = std::move(script.signature);
             MP_ASSIGN_OR_RETURN(out.sha256, Sha256OfFile(script.path));
             return out;
           }}};
}

absl::StatusOr<Setup> MakeSetup(const SetupOptions& options, const Schedule& schedule) {
  MP_ASSIGN_OR_RETURN(const Named teacher_name,
                      Split("teacher", options.teacher, options, /*analytic=*/true));
  const bool analytic = teacher_name.kind == "analytic" || teacher_name.kind == "mixture";
  if (analytic && options.student.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--teacher ", options.teacher,
                     ": is no network; expected --student with one to begin with"));
  }
  LoadedNetwork teacher_network, student;
  if (!analytic) {
    MP_ASSIGN_OR_RETURN(teacher_network, options.loaders.at(teacher_name.kind)(teacher_name.path));
  }
  const bool own = !analytic && (options.student.empty() || options.student == options.teacher);
  if (own) {
    MP_ASSIGN_OR_RETURN(student.module, teacher_network.module->Clone());
    student.signature = teacher_network.signature;
    student.sha256 = teacher_network.sha256;
  } else {
    MP_ASSIGN_OR_RETURN(const Named name,
                        Split("student", options.student, options, /*analytic=*/false));
    MP_ASSIGN_OR_RETURN(student, options.loaders.at(name.kind)(name.path));
  }
  if (student.signature.dtype == "float16" || student.signature.dtype == "bfloat16") {
    student.signature.dtype = "float32";
  }
  MP_ASSIGN_OR_RETURN(const NetworkSteps steps,
                      NetworkSteps::Create(student.signature, schedule, options.precision));
  MP_RETURN_IF_ERROR(student.module->To(options.device, TypeOf(steps)));

  TeacherParts teacher;
  if (analytic) {
    MP_ASSIGN_OR_RETURN(teacher,
                        AnalyticTeacher(teacher_name, options, schedule, student.signature.shape));
  } else {
    MP_ASSIGN_OR_RETURN(
        const NetworkSteps teacher_steps,
        NetworkSteps::Create(teacher_network.signature, schedule, options.precision));
    MP_RETURN_IF_ERROR(teacher_network.module->To(options.device, TypeOf(teacher_steps)));
    teacher_network.module->SetTraining(false);
    if (teacher_network.signature.shape != student.signature.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("--student ", options.student, ": its samples have the shape [",
                       absl::StrJoin(student.signature.shape, ", "), "], expected the teacher's, [",
                       absl::StrJoin(teacher_network.signature.shape, ", "), "]"));
    }
    teacher.is_network = true;
    teacher.sha256 = teacher_network.sha256;
    teacher.teacher = MakeNetworkTeacher(std::move(teacher_network.module), teacher_steps);
  }
  std::string word = options.inputs;
  if (word.empty()) word = !options.data.empty() ? "data" : analytic ? "analytic" : "rollout";
  std::string data_hash;
  MP_ASSIGN_OR_RETURN(std::shared_ptr<Inputs> inputs,
                      ChooseInputs(options, word, teacher, steps, &data_hash));
  const std::string identity = Sha256(absl::StrJoin(
      {teacher_name.kind, teacher.sha256, student.sha256, word, data_hash,
       absl::StrCat(options.pool_rows), absl::StrCat(options.seed), options.device.str()},
      "\n"));
  return Setup{std::move(teacher.teacher),
               std::move(student.module),
               steps,
               std::move(inputs),
               !own,
               identity,
               word};
}

}  // namespace mergeplan::network
