#include <ATen/ATen.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/analytic/gaussian.h"
#include "adapters/analytic/mixture.h"
#include "adapters/cases/network_data.h"
#include "adapters/cases/network_files.h"
#include "adapters/layers/model_folder.h"
#include "adapters/model/describe.h"
#include "adapters/network/steps.h"
#include "adapters/network/teachers.h"
#include "adapters/network/try.h"
#include "adapters/runtime/arguments.h"
#include "adapters/sample/sampler.h"
#include "planner/base/status_macros.h"
#include "planner/runs/run_info.h"
#include "planner/schedule/schedule.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::sample {
namespace {

constexpr int kDefaultSteps = 50;

// What the command line says, or the network's folder.
absl::StatusOr<Schedule> ScheduleOf(const TeacherName& name, const SourceOptions& options) {
  std::string spec = options.schedule.value_or("");
  if (spec.empty() && name.kind == kUnetTeacher) {
    MP_ASSIGN_OR_RETURN(const std::string folder, layers::FindModelFolder(name.path, "unet"));
    const std::optional<model::SchedulerFacts> found = model::FindScheduler(folder);
    if (found) spec = found->file;
  }
  if (spec.empty()) {
    return Misuse(absl::StrCat("--schedule: missing, and ", name.kind, ":", name.path,
                               " does not say; expected a name (cosine), a scheduler_config.json "
                               "or a file of arrays"));
  }
  // Files of arrays have a number of steps of their own.
  absl::StatusOr<Schedule> schedule = LoadSchedule(spec, options.teacher_steps);
  if (!schedule.ok() && !options.teacher_steps) schedule = LoadSchedule(spec, kDefaultSteps);
  if (!schedule.ok()) {
    return Misuse(absl::StrCat("--schedule: ", std::string(schedule.status().message())));
  }
  return schedule;
}

// The levels that N jumps pass, from T to 0.
absl::StatusOr<std::vector<int>> LevelsOf(int levels, std::optional<int> jumps) {
  const int n = jumps.value_or(levels);
  if (n < 1 || n > levels) {
    return Misuse(absl::StrCat("--steps ", n, ": expected 1 to ", levels,
                               ", the levels of the schedule (--teacher-steps)"));
  }
  std::vector<int> out;
  for (int k = n; k >= 0; --k) {
    out.push_back(
        static_cast<int>(std::lround(static_cast<double>(levels) * k / static_cast<double>(n))));
  }
  return out;
}

struct Loaded {
  std::shared_ptr<network::Teacher> teacher;
  std::vector<std::int64_t> shape;  // of what it steps
  Sampler sampler;                  // all but `run`
  // What it steps, times data_scale, to data; none: it is.
  std::function<absl::StatusOr<at::Tensor>(const at::Tensor&)> decode;
};

absl::Status LoadNetworkTeacher(const TeacherName& name, const Schedule& schedule,
                                const SourceOptions& options, Loaded* out) {
  MP_ASSIGN_OR_RETURN(NetworkFile file, LoadNetwork(name));
  MP_RETURN_IF_ERROR(MoveNetwork(*file.module, options.device, file.signature));
  MP_ASSIGN_OR_RETURN(network::NetworkSteps steps,
                      network::NetworkSteps::Create(file.signature, schedule));
  out->shape = out->sampler.shape = file.signature.shape;
  out->sampler.scaling = network::PixelScaling(file.signature.scaling);
  out->sampler.states = StatesOf(steps, options.device);
  out->sampler.classes = file.signature.classes;
  out->teacher = network::MakeNetworkTeacher(file.module, std::move(steps));
  return absl::OkStatus();
}

absl::Status LoadGaussian(const std::string& path, const Schedule& schedule,
                          const SourceOptions& options, Loaded* out) {
  MP_ASSIGN_OR_RETURN(GaussianTeacher loaded,
                      GaussianTeacher::Load(path, options.basis.value_or("")));
  MP_ASSIGN_OR_RETURN(const Spectrum spectrum, ReadSpectrum(path));
  out->shape = {loaded.dimensions()};
  out->sampler.shape = spectrum.shape;
  out->sampler.scaling = spectrum.scaling.text;
  MP_ASSIGN_OR_RETURN(out->teacher,
                      network::MakeGaussianTeacher(loaded.variances(), schedule, out->shape));
  const auto teacher = std::make_shared<const GaussianTeacher>(std::move(loaded));
  out->decode = [teacher](const at::Tensor& rows) {
    return network::Try("samples", [&]() -> absl::StatusOr<at::Tensor> {
      const at::Tensor host = rows.to(at::kCPU, at::kDouble).contiguous();
      const std::vector<double> data =
          teacher->Decode({host.const_data_ptr<double>(), static_cast<std::size_t>(host.numel())});
      return at::tensor(data, at::kDouble).view_as(host);
    });
  };
  return absl::OkStatus();
}

absl::Status LoadMixture(const std::string& path, const Schedule& schedule,
                         const SourceOptions& options, Loaded* out) {
  if (options.basis) return Misuse("--basis: is of analytic teachers; leave the option out");
  MP_ASSIGN_OR_RETURN(const MixtureTeacher loaded, MixtureTeacher::Load(path));
  MP_ASSIGN_OR_RETURN(MixtureTrajectory along, loaded.Along(schedule));
  out->shape = out->sampler.shape = {loaded.dimensions()};
  MP_ASSIGN_OR_RETURN(out->teacher,
                      network::MakeMixtureTeacher(
                          std::make_shared<const MixtureTrajectory>(std::move(along)), out->shape));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Sampler> OpenTeacher(const std::string& kind, const std::string& path,
                                    const SourceOptions& options) {
  const TeacherName name{kind, path};
  if (options.teacher) return Misuse("--teacher: is of a run; leave the option out");
  MP_ASSIGN_OR_RETURN(const Schedule schedule, ScheduleOf(name, options));
  MP_ASSIGN_OR_RETURN(const std::vector<int> levels, LevelsOf(schedule.steps(), options.steps));
  Loaded loaded;
  loaded.sampler.states = at::TensorOptions().dtype(at::kDouble);
  if (IsNetwork(name)) {
    if (options.basis) return Misuse("--basis: is of analytic teachers; leave the option out");
    MP_RETURN_IF_ERROR(LoadNetworkTeacher(name, schedule, options, &loaded));
  } else if (kind == kAnalyticTeacher) {
    MP_RETURN_IF_ERROR(LoadGaussian(path, schedule, options, &loaded));
  } else {
    MP_RETURN_IF_ERROR(LoadMixture(path, schedule, options, &loaded));
  }
  Sampler out = loaded.sampler;
  out.what = absl::StrCat(kind, ":", path);
  out.jumps = static_cast<int>(levels.size()) - 1;
  out.noise_size = std::hypot(schedule.alpha.back(), schedule.sigma.back());
  out.run = [teacher = loaded.teacher, inner = loaded.shape, shape = out.shape,
             scale = schedule.data_scale, levels, decode = loaded.decode](
                const at::Tensor& noise, const at::Tensor& label) -> absl::StatusOr<at::Tensor> {
    const auto sized = [&](const std::vector<std::int64_t>& of) {
      std::vector<std::int64_t> sizes = {noise.size(0)};
      sizes.insert(sizes.end(), of.begin(), of.end());
      return sizes;
    };
    at::Tensor z = noise.view(sized(inner));
    for (std::size_t k = 0; k + 1 < levels.size(); ++k) {
      MP_ASSIGN_OR_RETURN(z, teacher->Jump(z, levels[k], levels[k + 1], label));
    }
    z = z * scale;
    if (decode) {
      MP_ASSIGN_OR_RETURN(z, decode(z));
    }
    return z.view(sized(shape));
  };
  return out;
}

}  // namespace mergeplan::sample
