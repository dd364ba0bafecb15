#include "adapters/cases/bench_judged.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include <cctype>
#include <cmath>
#include <utility>

#include "adapters/cases/network_data.h"
#include "adapters/network/labels.h"
#include "adapters/network/try.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

template <typename Steps>
judge::Generate Generating(const NetworkJob& job, Steps steps) {
  const Schedule& schedule = job.schedule;
  return [states = StatesOf(*job.steps, job.device), scale = schedule.data_scale,
          size = std::hypot(schedule.alpha.back(), schedule.sigma.back()),
          classes = job.student.signature.classes, steps = std::move(steps)](
             const at::Tensor& noise, std::uint64_t first) -> absl::StatusOr<at::Tensor> {
    const at::Tensor label =
        classes > 0 ? network::TurnLabels(first, noise.size(0), classes) : at::Tensor();
    MP_ASSIGN_OR_RETURN(
        const at::Tensor x,
        steps(noise.to(states, /*non_blocking=*/false, /*copy=*/true) * size, label));
    return x * scale;
  };
}

}  // namespace

judge::Generate SamplesOfTeacher(const NetworkJob& job) {
  return Generating(job,
                    [teacher = job.teacher, T = job.schedule.steps()](
                        at::Tensor z, const at::Tensor& label) -> absl::StatusOr<at::Tensor> {
                      for (int t = T; t > 0; --t) {
                        MP_ASSIGN_OR_RETURN(z, teacher->Jump(z, t, t - 1, label));
                      }
                      return z;
                    });
}

judge::Generate SamplesOfStudent(const NetworkJob& job, const network::Executor& executor) {
  return Generating(
      job, [&executor](const at::Tensor& z, const at::Tensor& label) -> absl::StatusOr<at::Tensor> {
        MP_ASSIGN_OR_RETURN(const std::vector<network::Link> links, executor.Student());
        return executor.Run(links, z, label);
      });
}

judge::Generate SamplesOfOperator(const Job& job, absl::Span<const double> value) {
  const Schedule& schedule = job.model.schedule();
  std::vector<double> gain(value.begin(), value.end());
  const double size =
      std::hypot(schedule.alpha.back(), schedule.sigma.back()) * schedule.data_scale;
  for (double& x : gain) x *= size;
  return [&job, gain = std::move(gain)](const at::Tensor& noise, std::uint64_t /*first*/) {
    return network::Try("samples", [&]() -> absl::StatusOr<at::Tensor> {
      const at::Tensor rows =
          (noise.flatten(1).to(at::kDouble) * at::tensor(gain, at::kDouble)).contiguous();
      const std::vector<double> data = job.teacher.Decode(
          {rows.const_data_ptr<double>(), static_cast<std::size_t>(rows.numel())});
      return at::tensor(data, at::kFloat).view_as(noise);
    });
  };
}

absl::Status JudgedTrials::LookAtTeacher(judge::Judge& judge, const judge::Generate& generate,
                                         const std::function<bool()>& stop) {
  MP_ASSIGN_OR_RETURN(const judge::Verdict verdict, judge.LookAtTeacher(generate, "teacher", stop));
  Take(verdict);
  return absl::OkStatus();
}

absl::Status JudgedTrials::Look(const judge::Judge& judge, const judge::Generate& generate,
                                const std::string& name, const std::function<bool()>& stop) {
  MP_ASSIGN_OR_RETURN(const judge::Verdict verdict, judge.Look(generate, name, stop));
  Take(verdict);
  return absl::OkStatus();
}

void JudgedTrials::Take(const judge::Verdict& verdict) {
  out_.samples = verdict.samples;
  if (!verdict.grid.empty()) out_.grid = verdict.grid;
  if (!std::isnan(verdict.distance)) distance_.push_back(verdict.distance);
  if (!verdict.compared) return;
  frechet_.push_back(verdict.frechet);
  precision_.push_back(verdict.precision);
  recall_.push_back(verdict.recall);
}

std::optional<JudgedSamples> JudgedTrials::Result() const {
  if (out_.samples == 0) return std::nullopt;
  JudgedSamples out = out_;
  out.compared = !frechet_.empty();
  if (out.compared) {
    out.frechet = SpreadOf(frechet_);
    out.precision = SpreadOf(precision_);
    out.recall = SpreadOf(recall_);
  }
  if (!distance_.empty()) out.distance = SpreadOf(distance_);
  return out;
}

void AddLevels(const network::Executor& executor, int trials, std::vector<LevelFigure>* levels) {
  const Plan& plan = executor.plan();
  levels->resize(static_cast<std::size_t>(plan.size()));
  for (int m = 0; m < plan.size(); ++m) {
    LevelFigure& figure = (*levels)[static_cast<std::size_t>(m)];
    const network::ErrorEstimate& error = executor.records()[m].teacher;
    figure.first = plan.merges()[m].first;
    figure.last = plan.merges()[m].last;
    figure.error += error.mean / trials;
    figure.standard_error += error.standard_error / trials;
  }
}

std::string PictureName(const std::string& strategy, bool total_budget) {
  std::string out;
  for (const char c : strategy) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
    out.push_back(plain ? c : '_');
  }
  return out + (total_budget ? "-total" : "-per-merge");
}

}  // namespace mergeplan
