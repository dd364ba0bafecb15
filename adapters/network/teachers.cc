#include "adapters/network/teachers.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "adapters/network/try.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

class NetworkTeacher : public Teacher {
 public:
  NetworkTeacher(std::shared_ptr<Module> module, NetworkSteps steps)
      : module_(std::move(module)), steps_(std::move(steps)) {}
  absl::StatusOr<at::Tensor> Jump(const at::Tensor& z, int from, int to,
                                  const at::Tensor& label) override {
    const c10::NoGradGuard no_gradients;
    return steps_.Jump(*module_, z, from, to, label);
  }
  std::int64_t classes() const override { return steps_.signature().classes; }
  int steps() const override { return steps_.schedule().steps(); }
  const std::vector<std::int64_t>& shape() const override { return steps_.signature().shape; }
  const Module* network() const override { return module_.get(); }

 private:
  std::shared_ptr<Module> module_;
  NetworkSteps steps_;
};

class GaussianSteps : public Teacher {
 public:
  GaussianSteps(std::vector<double> variances, const Schedule& schedule,
                std::vector<std::int64_t> shape)
      : variances_(std::move(variances)), schedule_(schedule), shape_(std::move(shape)) {}
  absl::StatusOr<at::Tensor> Jump(const at::Tensor& z, int from, int to,
                                  const at::Tensor& /*label*/) override {
    return Try("Gaussian teacher", [&]() -> absl::StatusOr<at::Tensor> {
      const c10::NoGradGuard no_gradients;
      const double a = schedule_.alpha[from], s = schedule_.sigma[from];
      const double scale = schedule_.data_scale * schedule_.data_scale;
      std::vector<double> factor;
      factor.reserve(variances_.size());
      for (const double variance : variances_) {
        const double lambda = variance / scale;
        factor.push_back((schedule_.alpha[to] * a * lambda + schedule_.sigma[to] * s) /
                         (a * a * lambda + s * s));
      }
      return z * at::tensor(factor, at::kDouble).view(shape_).to(z.options());
    });
  }
  int steps() const override { return schedule_.steps(); }
  const std::vector<std::int64_t>& shape() const override { return shape_; }

 private:
  std::vector<double> variances_;
  Schedule schedule_;
  std::vector<std::int64_t> shape_;
};

class MixtureSteps : public Teacher {
 public:
  MixtureSteps(std::shared_ptr<const MixtureTrajectory> trajectory, std::vector<std::int64_t> shape)
      : trajectory_(std::move(trajectory)),
        shape_(std::move(shape)),
        scratch_(trajectory_->scratch_size()) {}
  absl::StatusOr<at::Tensor> Jump(const at::Tensor& z, int from, int to,
                                  const at::Tensor& /*label*/) override {
    return Try("mixture teacher", [&]() -> absl::StatusOr<at::Tensor> {
      const c10::NoGradGuard no_gradients;
      const at::Tensor host = z.to(at::kCPU, at::kDouble).contiguous();
      at::Tensor out = at::empty_like(host);
      const auto rows = static_cast<std::size_t>(host.size(0));
      const auto* in = host.const_data_ptr<double>();
      auto* into = out.mutable_data_ptr<double>();
      if (to == from - 1) {
        trajectory_->Step(from).Apply(in, rows, into, absl::MakeSpan(scratch_));
      } else {
        MP_ASSIGN_OR_RETURN(const MixtureStep step,
                            trajectory_->Jump(from, trajectory_->level(to)));
        step.Apply(in, rows, into, absl::MakeSpan(scratch_));
      }
      return out.to(z.options());
    });
  }
  int steps() const override { return trajectory_->steps(); }
  const std::vector<std::int64_t>& shape() const override { return shape_; }

 private:
  std::shared_ptr<const MixtureTrajectory> trajectory_;
  std::vector<std::int64_t> shape_;
  std::vector<double> scratch_;
};

absl::Status TeacherFits(const std::vector<std::int64_t>& shape, std::size_t dimensions) {
  double d = 1;
  for (const std::int64_t extent : shape) d *= static_cast<double>(extent);
  if (d == static_cast<double>(dimensions)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the teacher has ", dimensions,
                                                 " dimensions, the student's samples the shape [",
                                                 absl::StrJoin(shape, ", "), "]"));
}

}  // namespace

std::unique_ptr<Teacher> MakeNetworkTeacher(std::shared_ptr<Module> module, NetworkSteps steps) {
  return std::make_unique<NetworkTeacher>(std::move(module), std::move(steps));
}

absl::StatusOr<std::unique_ptr<Teacher>> MakeGaussianTeacher(std::vector<double> variances,
                                                             const Schedule& schedule,
                                                             std::vector<std::int64_t> shape) {
  MP_RETURN_IF_ERROR(TeacherFits(shape, variances.size()));
  for (std::size_t k = 0; k < variances.size(); ++k) {
    if (!(variances[k] >= 0) || !std::isfinite(variances[k])) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the teacher's variance ", k, " is ", variances[k], ", expected a finite number >= 0"));
    }
  }
  return std::make_unique<GaussianSteps>(std::move(variances), schedule, std::move(shape));
}

absl::StatusOr<std::unique_ptr<Teacher>> MakeMixtureTeacher(
    std::shared_ptr<const MixtureTrajectory> trajectory, std::vector<std::int64_t> shape) {
  MP_RETURN_IF_ERROR(TeacherFits(shape, static_cast<std::size_t>(trajectory->dimensions())));
  return std::make_unique<MixtureSteps>(std::move(trajectory), std::move(shape));
}

}  // namespace mergeplan::network
