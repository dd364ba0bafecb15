#include "adapters/sample/sample_command.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/judge/grid.h"
#include "adapters/runtime/arguments.h"
#include "adapters/runtime/device.h"
#include "adapters/runtime/output.h"
#include "adapters/runtime/output_files.h"
#include "adapters/runtime/signals.h"
#include "adapters/sample/sampler.h"
#include "planner/base/exit_code.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/npz.h"

namespace mergeplan {
namespace {

constexpr std::int64_t kCount = 64;

absl::StatusOr<std::string> NpzOf(const SampleArguments& arguments, const at::Tensor& samples,
                                  const at::Tensor& labels) {
  NpzWriter npz;
  const at::Tensor wide = samples.to(at::kDouble).contiguous();
  npz.Add("samples", {samples.sizes().begin(), samples.sizes().end()},
          {wide.const_data_ptr<double>(), static_cast<std::size_t>(wide.numel())},
          NpzWriter::Type::kFloat32);
  npz.Add("seed", {1}, {{static_cast<double>(arguments.seed)}}, NpzWriter::Type::kInt64);
  npz.Add("first", {1}, {{static_cast<double>(arguments.first)}}, NpzWriter::Type::kInt64);
  if (labels.defined()) {
    const at::Tensor numbers = labels.to(at::kDouble).contiguous();
    npz.Add("labels", {labels.numel()},
            {numbers.const_data_ptr<double>(), static_cast<std::size_t>(numbers.numel())},
            NpzWriter::Type::kInt64);
  }
  return npz.Bytes();
}

absl::Status Sample(const SampleArguments& arguments) {
  MP_RETURN_IF_ERROR(CheckOutputFiles(arguments.outputs, {".png", ".npz"}));
  StopOnSignals();
  SetThreads(arguments.threads);
  sample::SourceOptions options;
  options.schedule = arguments.schedule;
  options.basis = arguments.basis;
  options.teacher_steps = arguments.teacher_steps;
  options.steps = arguments.steps;
  options.teacher = arguments.teacher;
  const absl::StatusOr<Device> device = OpenDevice(arguments.device);
  if (!device.ok()) {
    const std::string text = absl::StrCat("--", std::string(device.status().message()));
    return absl::IsInvalidArgument(device.status()) ? Misuse(text)
                                                    : absl::Status(device.status().code(), text);
  }
  options.device = *device;
  MP_ASSIGN_OR_RETURN(const sample::Sampler sampler, sample::OpenSource(arguments.source, options));
  MP_ASSIGN_OR_RETURN(
      const sample::ClassOrder order,
      sample::ParseClasses(arguments.classes, arguments.per_class, sampler.classes));
  const std::int64_t count = arguments.count.value_or(
      arguments.per_class > 1
          ? arguments.per_class * static_cast<std::int64_t>(order.classes.size())
          : kCount);
  for (const std::string& output : arguments.outputs) {
    if (!absl::EndsWith(output, ".png")) continue;
    const absl::Status drawn = judge::CheckPicture(sampler.shape);
    if (!drawn.ok()) {
      return Misuse(absl::StrCat("-o ", output, ": ", std::string(drawn.message()),
                                 "; write an .npz instead"));
    }
  }
  const auto start = std::chrono::steady_clock::now();
  MP_ASSIGN_OR_RETURN(
      const at::Tensor samples,
      sample::DrawSamples(sampler, order, static_cast<std::uint64_t>(arguments.seed),
                          static_cast<std::uint64_t>(arguments.first), count, arguments.batch,
                          StopRequested));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  // All files are made before the first is written.
  std::vector<std::string> contents;
  for (const std::string& output : arguments.outputs) {
    if (absl::EndsWith(output, ".npz")) {
      MP_ASSIGN_OR_RETURN(std::string bytes,
                          NpzOf(arguments, samples,
                                order.Labels(static_cast<std::uint64_t>(arguments.first), count)));
      contents.push_back(std::move(bytes));
      continue;
    }
    judge::GridOptions grid;
    grid.columns = arguments.columns;
    // A row for every class.
    if (grid.columns == 0 && arguments.per_class > 1) {
      grid.columns = static_cast<int>(std::min<std::int64_t>(arguments.per_class, 65536));
    }
    MP_ASSIGN_OR_RETURN(
        std::string bytes,
        judge::GridPng({samples.const_data_ptr<float>(), static_cast<std::size_t>(samples.numel())},
                       sampler.shape, sampler.scaling, grid));
    contents.push_back(std::move(bytes));
  }
  for (std::size_t k = 0; k < contents.size(); ++k) {
    MP_RETURN_IF_ERROR(WriteFileAtomically(arguments.outputs[k], contents[k]));
  }
  RestoreStdout();
  if (arguments.json) {
    nlohmann::ordered_json out = {{"source", sampler.what},   {"count", count},
                                  {"first", arguments.first}, {"seed", arguments.seed},
                                  {"shape", sampler.shape},   {"jumps", sampler.jumps},
                                  {"seconds", seconds},       {"files", arguments.outputs}};
    if (!order.classes.empty()) out["classes"] = order.classes;
    std::printf("%s\n",
                out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s: %lld samples of [%s] from seed %lld, %d jump%s each, in %.2f s: %s\n",
                sampler.what.c_str(), static_cast<long long>(count),
                absl::StrJoin(sampler.shape, ", ").c_str(), static_cast<long long>(arguments.seed),
                sampler.jumps, sampler.jumps == 1 ? "" : "s", seconds,
                absl::StrJoin(arguments.outputs, ", ").c_str());
  }
  return absl::OkStatus();
}

}  // namespace

int RunSampleCommand(const SampleArguments& arguments) {
  const absl::Status status = Sample(arguments);
  if (status.ok()) return kDone;
  std::fprintf(stderr, "mergeplan sample: %s\n", std::string(status.message()).c_str());
  if (absl::IsCancelled(status)) return kStopped;
  return IsMisuse(status) ? kMisuse : kFailed;
}

}  // namespace mergeplan
