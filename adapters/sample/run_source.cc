#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/analytic/gaussian.h"
#include "adapters/cases/network_data.h"
#include "adapters/cases/network_files.h"
#include "adapters/network/steps.h"
#include "adapters/network/teachers.h"
#include "adapters/network/try.h"
#include "adapters/runtime/arguments.h"
#include "adapters/runtime/strategy.h"
#include "adapters/sample/sampler.h"
#include "planner/base/status_macros.h"
#include "planner/data/npz.h"
#include "planner/plan/io/document.h"
#include "planner/runs/result_file.h"
#include "planner/runs/run_info.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::sample {
namespace {

// A jump of the student, or steps of the teacher where `module` is null.
struct Part {
  std::shared_ptr<network::Module> module;
  int from = 0, to = 0, landing = 0;
};

absl::StatusOr<std::vector<double>> Numbers(const std::string& folder, const char* name,
                                            std::size_t size) {
  MP_ASSIGN_OR_RETURN(NpyArray array, ReadNpzArray(folder + "/result.npz", name));
  if (array.values.size() == size) return std::move(array.values);
  return absl::DataLossError(absl::StrCat(folder, "/result.npz: ", name, " has ",
                                          array.values.size(), " numbers, expected ", size));
}

// Unmerged steps are the teacher's own.
absl::StatusOr<std::shared_ptr<network::Teacher>> StepsOfTeacher(const RunInfo& info,
                                                                 const Schedule& schedule,
                                                                 const SourceOptions& options) {
  const TeacherName name{info.teacher, info.teacher_file};
  if (!IsNetwork(name)) {
    return absl::UnimplementedError(absl::StrCat(
        "the run's plan leaves steps of the teacher ", info.teacher, ":", info.teacher_file,
        " as they are, which is no network; sample its student's other blocks is not possible"));
  }
  MP_ASSIGN_OR_RETURN(NetworkFile file, LoadNetwork(name));
  if (!info.dtype.empty()) file.signature.dtype = info.dtype;
  MP_RETURN_IF_ERROR(MoveNetwork(*file.module, options.device, file.signature));
  MP_ASSIGN_OR_RETURN(network::NetworkSteps steps,
                      network::NetworkSteps::Create(file.signature, schedule));
  return network::MakeNetworkTeacher(file.module, std::move(steps));
}

absl::StatusOr<Sampler> NetworkStudent(const std::string& folder, const RunInfo& info,
                                       const PlanDocument& document, const SourceOptions& options) {
  MP_ASSIGN_OR_RETURN(const Schedule schedule, WholeScheduleOf(document));
  const Plan& plan = document.plan;
  const std::vector<Range> blocks = plan.BlockRanges();
  MP_ASSIGN_OR_RETURN(const std::vector<double> landings,
                      Numbers(folder, "block_landing", blocks.size()));
  const std::string kind = info.training.contains("student-network")
                               ? info.training.at("student-network")
                                     .substr(0, info.training.at("student-network").find(':'))
                               : info.teacher;
  std::vector<Part> parts;
  std::shared_ptr<const network::NetworkSteps> steps;
  std::shared_ptr<network::Teacher> teacher;
  Sampler out;
  for (std::size_t b = blocks.size(); b-- > 0;) {
    Part part;
    part.from = blocks[b].last;
    part.to = blocks[b].first - 1;
    if (landings[b] < 0) {
      if (teacher == nullptr) {
        MP_ASSIGN_OR_RETURN(teacher, StepsOfTeacher(info, schedule, options));
      }
      out.jumps += part.from - part.to;
      parts.push_back(part);
      continue;
    }
    part.landing = static_cast<int>(landings[b]);
    if (!(landings[b] >= part.to && landings[b] < part.from)) {
      return absl::DataLossError(absl::StrCat(folder, "/result.npz: block_landing is ", landings[b],
                                              " for the block ", blocks[b].first, "-",
                                              blocks[b].last));
    }
    const std::string path =
        absl::StrCat(folder, "/student/", blocks[b].first, "-", blocks[b].last);
    MP_ASSIGN_OR_RETURN(NetworkFile file,
                        LoadNetwork({kind, kind == kScriptTeacher ? path + "/model.toml" : path}));
    if (!info.dtype.empty()) file.signature.dtype = info.dtype;
    MP_RETURN_IF_ERROR(MoveNetwork(*file.module, options.device, file.signature));
    MP_ASSIGN_OR_RETURN(network::NetworkSteps along,
                        network::NetworkSteps::Create(file.signature, schedule));
    steps = std::make_shared<const network::NetworkSteps>(std::move(along));
    out.shape = file.signature.shape;
    out.scaling = network::PixelScaling(file.signature.scaling);
    out.states = StatesOf(*steps, options.device);
    out.classes = file.signature.classes;
    part.module = file.module;
    out.jumps += 1;
    parts.push_back(std::move(part));
  }
  if (steps == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder, ": its plan has no merges, the student is the teacher; sample it with --teacher"));
  }
  out.noise_size = std::hypot(schedule.alpha.back(), schedule.sigma.back());
  out.run = [parts, steps, teacher, scale = schedule.data_scale](
                const at::Tensor& noise, const at::Tensor& label) -> absl::StatusOr<at::Tensor> {
    const c10::NoGradGuard no_gradients;
    at::Tensor z = noise;
    for (const Part& part : parts) {
      if (part.module != nullptr) {
        MP_ASSIGN_OR_RETURN(z, steps->Jump(*part.module, z, part.from, part.landing, label));
        continue;
      }
      for (int t = part.from; t > part.to; --t) {
        MP_ASSIGN_OR_RETURN(z, teacher->Jump(z, t, t - 1, label));
      }
    }
    return z * scale;
  };
  return out;
}

// A multiplication for every dimension of the basis.
absl::StatusOr<Sampler> LinearStudent(const std::string& folder, const RunInfo& info,
                                      const PlanDocument& document) {
  MP_ASSIGN_OR_RETURN(GaussianTeacher loaded, GaussianTeacher::Load(info.teacher_file, info.basis));
  MP_ASSIGN_OR_RETURN(const Spectrum spectrum, ReadSpectrum(info.teacher_file));
  MP_ASSIGN_OR_RETURN(const std::vector<double> value,
                      Numbers(folder, "value", static_cast<std::size_t>(loaded.dimensions())));
  Sampler out;
  out.jumps = document.plan.student_steps();
  out.shape = spectrum.shape;
  out.scaling = spectrum.scaling.text;
  out.states = at::TensorOptions().dtype(at::kDouble);
  const auto teacher = std::make_shared<const GaussianTeacher>(std::move(loaded));
  out.run = [teacher, value, scale = document.data_scale](const at::Tensor& noise,
                                                          const at::Tensor& /*label*/) {
    return network::Try("samples", [&]() -> absl::StatusOr<at::Tensor> {
      const at::Tensor rows =
          (noise.flatten(1) * at::tensor(value, at::kDouble) * scale).contiguous();
      const std::vector<double> data =
          teacher->Decode({rows.const_data_ptr<double>(), static_cast<std::size_t>(rows.numel())});
      return at::tensor(data, at::kDouble).view_as(noise);
    });
  };
  return out;
}

}  // namespace

absl::StatusOr<Sampler> OpenRun(const std::string& folder, const SourceOptions& options) {
  MP_ASSIGN_OR_RETURN(const RunInfo info, ReadRunInfo(folder + "/run.toml"));
  if (options.schedule || options.teacher_steps || options.basis) {
    return Misuse(absl::StrCat(options.schedule        ? "--schedule"
                               : options.teacher_steps ? "--teacher-steps"
                                                       : "--basis",
                               ": the run ", folder, " has its own; leave the option out"));
  }
  MP_ASSIGN_OR_RETURN(const PlanDocument document, ReadPlan(folder + "/plan.toml"));
  if (options.teacher) {
    SourceOptions of_teacher = options;
    of_teacher.teacher = false;
    of_teacher.schedule = document.schedule_spec;
    of_teacher.teacher_steps = document.plan.teacher_steps();
    if (info.teacher == kAnalyticTeacher) of_teacher.basis = info.basis;
    MP_ASSIGN_OR_RETURN(Sampler out, OpenTeacher(info.teacher, info.teacher_file, of_teacher));
    out.what = absl::StrCat("teacher of ", folder);
    return out;
  }
  if (options.steps) {
    return Misuse(absl::StrCat("--steps: the student of ", folder, " has ",
                               document.plan.student_steps(),
                               "; leave the option out, or add --teacher"));
  }
  if (info.status != RunStatus::kFinished) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder, ": the run is ", ToString(info.status),
        ", expected a finished one; go on with mergeplan distill --resume -o ", folder));
  }
  MP_RETURN_IF_ERROR(ReadRunResult(folder).status());
  absl::StatusOr<Sampler> out = absl::UnimplementedError(absl::StrCat(
      folder, ": its students are ", info.student,
      ", expected linear ones or networks; result.npz has samples of it, and --teacher draws from "
      "its teacher"));
  if (info.student == kNetworkStudent) out = NetworkStudent(folder, info, document, options);
  if (info.student == kLinearStudent) out = LinearStudent(folder, info, document);
  if (!out.ok()) return out.status();
  out->what =
      absl::StrCat("student of ", folder, " (", info.strategy, ", ", document.plan.teacher_steps(),
                   " steps into ", document.plan.student_steps(), ")");
  return out;
}

}  // namespace mergeplan::sample
