#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/network/module.h"
#include "adapters/network/steps.h"
#include "planner/mixture/trajectory.h"
#include "planner/schedule/schedule.h"

namespace mergeplan::network {

// What is distilled: an x0 estimate at every level of a schedule. States are [B, shape] in the
// schedule's coordinates. Nothing here is differentiated. Not for several threads at once.
class Teacher {
 public:
  virtual ~Teacher() = default;

  // The estimate at level `from`, used down to the level `to` < `from`: a DDIM step of any length.
  // Single steps (to = from - 1) are what a plan is made of. `label`: classes of the rows, [B]
  // int64 on the CPU, where it has some.
  virtual absl::StatusOr<at::Tensor> Jump(const at::Tensor& z, int from, int to,
                                          const at::Tensor& label = {}) = 0;
  virtual int steps() const = 0;
  // Of one sample.
  virtual const std::vector<std::int64_t>& shape() const = 0;
  // How many classes it is told one of; 0: none.
  virtual std::int64_t classes() const { return 0; }
  // The network behind it, from which students may start; null where there is none.
  virtual const Module* network() const { return nullptr; }
};

// A pretrained network. It must stay as it is.
std::unique_ptr<Teacher> MakeNetworkTeacher(std::shared_ptr<Module> module, NetworkSteps steps);

// N(0, diag(variances)) of data in native units (adapters/analytic/gaussian.h): a step multiplies.
// INVALID_ARGUMENT for variances that are not finite or negative; sizes must fit the shape.
absl::StatusOr<std::unique_ptr<Teacher>> MakeGaussianTeacher(std::vector<double> variances,
                                                             const Schedule& schedule,
                                                             std::vector<std::int64_t> shape);

// A Gaussian mixture, computed in double on the CPU wherever the states are.
absl::StatusOr<std::unique_ptr<Teacher>> MakeMixtureTeacher(
    std::shared_ptr<const MixtureTrajectory> trajectory, std::vector<std::int64_t> shape);

}  // namespace mergeplan::network
