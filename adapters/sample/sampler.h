#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/runtime/device.h"

namespace mergeplan::sample {

// How a source is read.
struct SourceOptions {
  std::optional<std::string> schedule;  // of a teacher; its folder's scheduler where it has one
  std::optional<int> teacher_steps;     // levels of that schedule, 50
  std::optional<int> steps;             // jumps of a teacher, as many as levels
  std::optional<std::string> basis;     // of a spectrum
  bool teacher = false;                 // of a run: its teacher instead of its student
  Device device;
};

// What makes samples from noise.
struct Sampler {
  std::string what;                 // "student of RUN (boot, 8 steps into 1)", for people
  int jumps = 0;                    // evaluations of a network (or of a closed form) a sample
  std::vector<std::int64_t> shape;  // of one sample
  std::string scaling;              // how pixels became its data; "" where nobody says
  double noise_size = 1;            // standard deviation of the noise at level T
  at::TensorOptions states;         // type and device
  std::int64_t classes = 0;         // that it is told one of; 0: none
  // States at level T to data in native units, both [B, shape] of `states`; `label`: [B] int64 on
  // the CPU where there are classes, else undefined.
  std::function<absl::StatusOr<at::Tensor>(const at::Tensor& z, const at::Tensor& label)> run;
};

// Which classes samples are of: `each` samples of the first, as many of the next, and so on in
// turns. Empty: none.
struct ClassOrder {
  std::vector<std::int64_t> classes;
  std::int64_t each = 1;

  at::Tensor Labels(std::uint64_t first, std::int64_t rows) const;  // [rows] int64, or undefined
};
// Reads "3", "0,1,2" or "all" for a source of so many classes; "" is all of them where there are
// some. Misuse for others, and for words where there are none.
absl::StatusOr<ClassOrder> ParseClasses(const std::string& text, std::int64_t each,
                                        std::int64_t classes);

// Opens what samples are drawn from: KIND:PATH of a teacher, the folder of a finished run (or its
// student/), a folder with a UNet2DModel, or a TorchScript file with its sidecar. Misuse for
// options that do not belong to it; errors of what it loads.
absl::StatusOr<Sampler> OpenSource(const std::string& source, const SourceOptions& options);

// The parts of it.
absl::StatusOr<Sampler> OpenTeacher(const std::string& kind, const std::string& path,
                                    const SourceOptions& options);
absl::StatusOr<Sampler> OpenRun(const std::string& folder, const SourceOptions& options);

// Samples first .. first + count - 1 of a seed, `batch` at a time: [count, shape] of float32 on the
// CPU. The noise of a sample is that of (seed, sample) alone; the batch changes the numbers by the
// rounding of LibTorch's kernels at most. The class follows from the sample's number. `stop` is
// asked between batches: CANCELLED. FAILED_PRECONDITION names a sample that is not finite;
// RESOURCE_EXHAUSTED.
absl::StatusOr<at::Tensor> DrawSamples(const Sampler& sampler, const ClassOrder& order,
                                       std::uint64_t seed, std::uint64_t first, std::int64_t count,
                                       std::int64_t batch, const std::function<bool()>& stop);

}  // namespace mergeplan::sample
