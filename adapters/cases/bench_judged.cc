#include "adapters/cases/bench_judged.h"

#include <ATen/TensorOperators.h>

#include <cctype>
#include <cmath>
#include <utility>

#include "adapters/cases/network_data.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

template <typename Steps>
judge::Generate Generating(const NetworkJob& job, Steps steps) {
  const Schedule& schedule = job.schedule;
  return [states = StatesOf(*job.steps, job.device), scale = schedule.data_scale,
          size = std::hypot(schedule.alpha.back(), schedule.sigma.back()),
          steps = std::move(steps)](const at::Tensor& noise) -> absl::StatusOr<at::Tensor> {
    MP_ASSIGN_OR_RETURN(const at::Tensor x,
                        steps(noise.to(states, /*non_blocking=*/false, /*copy=*/true) * size));
    return x * scale;
  };
}

}  // namespace

judge::Generate SamplesOfTeacher(const NetworkJob& job) {
  return Generating(job,
                    [teacher = job.teacher,
                     T = job.schedule.steps()](at::Tensor z) -> absl::StatusOr<at::Tensor> {
                      for (int t = T; t > 0; --t) {
                        MP_ASSIGN_OR_RETURN(z, teacher->Jump(z, t, t - 1));
                      }
                      return z;
                    });
}

judge::Generate SamplesOfStudent(const NetworkJob& job, const network::Executor& executor) {
  return Generating(job, [&executor](const at::Tensor& z) -> absl::StatusOr<at::Tensor> {
    MP_ASSIGN_OR_RETURN(const std::vector<network::Link> links, executor.Student());
    return executor.Run(links, z);
  });
}

absl::Status JudgedTrials::Look(const judge::Judge& judge, const judge::Generate& generate,
                                const std::string& name, const std::function<bool()>& stop) {
  if (name.empty() && !judge.compares()) return absl::OkStatus();
  MP_ASSIGN_OR_RETURN(const judge::Verdict verdict, judge.Look(generate, name, stop));
  out_.samples = verdict.samples;
  if (!verdict.grid.empty()) out_.grid = verdict.grid;
  if (verdict.compared) {
    frechet_.push_back(verdict.frechet);
    precision_.push_back(verdict.precision);
    recall_.push_back(verdict.recall);
  }
  return absl::OkStatus();
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
