#include "adapters/cases/network_result.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/cases/network_data.h"
#include "adapters/cases/teacher_result.h"
#include "adapters/judge/grid.h"
#include "adapters/network/labels.h"
#include "adapters/network/operators.h"
#include "adapters/noise/noise.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/npz.h"
#include "planner/runs/curve_updates.h"

namespace mergeplan {
namespace {

// As many as show the modes of a few dimensions, and few of many.
std::int64_t SampleRows(std::int64_t d) { return d <= 64 ? 1024 : 64; }

std::vector<double> Numbers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kCPU, at::kDouble).contiguous();
  const double* data = flat.const_data_ptr<double>();
  return {data, data + flat.numel()};
}

void AddMerges(const Plan& plan, const network::Executor& executor, NpzWriter& npz) {
  std::vector<double> ranges, updates, losses, ends;
  for (int m = 0; m < plan.size(); ++m) {
    const Range range = plan.merges()[m].range();
    ranges.insert(ranges.end(),
                  {static_cast<double>(range.first), static_cast<double>(range.last)});
    const network::StudentRecord& record = executor.records()[m];
    const std::vector<std::int64_t> at = CurveUpdates(record.updates);
    for (std::size_t k = 0; k < std::min(at.size(), record.curve.size()); ++k) {
      updates.push_back(static_cast<double>(at[k]));
      losses.push_back(record.curve[k]);
    }
    ends.push_back(static_cast<double>(losses.size()));
  }
  const auto merges = static_cast<std::int64_t>(plan.size());
  const auto points = static_cast<std::int64_t>(losses.size());
  npz.Add("merge_range", {merges, 2}, ranges, NpzWriter::Type::kInt64);
  npz.Add("loss_update", {points}, updates, NpzWriter::Type::kInt64);
  npz.Add("loss", {points}, losses);
  npz.Add("loss_end", {merges}, ends, NpzWriter::Type::kInt64);
}

absl::Status AddBlocks(const NetworkJob& job, network::Executor& executor,
                       const std::string& folder, NpzWriter& npz) {
  const Plan& plan = job.document.plan;
  const std::vector<Range> blocks = plan.BlockRanges();
  std::vector<double> ranges, landings, levels, errors;
  MP_RETURN_IF_ERROR(MakeDirectories(folder + "/student"));
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const int merge = plan.blocks()[b] - plan.teacher_steps();
    ranges.insert(ranges.end(),
                  {static_cast<double>(blocks[b].first), static_cast<double>(blocks[b].last)});
    landings.push_back(merge < 0 ? -1 : executor.records()[merge].landing);
    if (merge < 0) continue;
    MP_ASSIGN_OR_RETURN(const std::shared_ptr<network::Module> weights, executor.Weights(merge));
    MP_RETURN_IF_ERROR(
        SaveNetwork(*weights, job.student,
                    absl::StrCat(folder, "/student/", blocks[b].first, "-", blocks[b].last)));
  }
  MP_ASSIGN_OR_RETURN(const std::vector<network::LevelError> measured, executor.Evaluate());
  for (const network::LevelError& error : measured) {
    levels.push_back(error.level);
    errors.insert(errors.end(), {error.error.mean, error.error.standard_error});
  }
  const auto n = static_cast<std::int64_t>(blocks.size());
  const auto points = static_cast<std::int64_t>(levels.size());
  npz.Add("block_range", {n, 2}, ranges, NpzWriter::Type::kInt64);
  npz.Add("block_landing", {n}, landings, NpzWriter::Type::kInt64);
  npz.Add("block_level", {points}, levels, NpzWriter::Type::kInt64);
  npz.Add("block_error", {points, 2}, errors);
  return absl::OkStatus();
}

// Pictures are easier to look at than arrays.
absl::Status WritePicture(const NetworkJob& job, const at::Tensor& x, const std::string& path) {
  const network::Signature& signature = job.student.signature;
  if (!judge::CheckPicture(signature.shape).ok()) return absl::OkStatus();
  const at::Tensor host = x.to(at::kCPU, at::kFloat).contiguous();
  // A student that leads nowhere has no picture; its figures say so.
  if (!at::isfinite(host).all().item<bool>()) return absl::OkStatus();
  MP_ASSIGN_OR_RETURN(
      const std::string png,
      judge::GridPng({host.const_data_ptr<float>(), static_cast<std::size_t>(host.numel())},
                     signature.shape, signature.scaling));
  return WriteFileAtomically(path, png);
}

absl::Status AddSamples(const NetworkJob& job, const network::Executor& executor,
                        const std::string& folder, NpzWriter& npz) {
  const std::int64_t d = job.student.signature.dimensions(), rows = SampleRows(d);
  std::vector<float> noise(static_cast<std::size_t>(rows * d));
  // No merge has the range [0, 0], so that this stream is used by nothing else.
  NoiseStream(job.seed, 0, 0, 0).Fill(noise.data(), rows * d);
  std::vector<std::int64_t> shape = job.student.signature.shape;
  shape.insert(shape.begin(), rows);
  const at::Tensor z = at::from_blob(noise.data(), shape, at::kFloat)
                           .to(StatesOf(*job.steps, job.device), /*non_blocking=*/false,
                               /*copy=*/true);
  MP_ASSIGN_OR_RETURN(const std::vector<network::Link> student, executor.Student());
  const int T = job.document.plan.teacher_steps();
  const std::vector<network::Link> teacher = {{T, 0, -1, 0}};
  const std::int64_t classes = job.student.signature.classes;
  at::Tensor label;
  if (classes > 0) {
    label = network::TurnLabels(0, rows, classes);
    npz.Add("sample_labels", {rows}, Numbers(label), NpzWriter::Type::kInt64);
  }
  for (const auto& [name, links] : {std::pair{"samples", student}, {"teacher_samples", teacher}}) {
    MP_ASSIGN_OR_RETURN(const at::Tensor x, executor.Run(links, z, label));
    npz.Add(name, {rows, d}, Numbers(x * job.document.data_scale));
    MP_RETURN_IF_ERROR(
        WritePicture(job, x * job.document.data_scale, absl::StrCat(folder, "/", name, ".png")));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteNetworkResult(const NetworkJob& job, network::Executor& executor,
                                const RunSummary& summary, const std::string& folder) {
  const Plan& plan = job.document.plan;
  NpzWriter npz;
  AddMerges(plan, executor, npz);
  MP_RETURN_IF_ERROR(AddBlocks(job, executor, folder, npz));
  MP_RETURN_IF_ERROR(AddSamples(job, executor, folder, npz));
  MP_ASSIGN_OR_RETURN(const std::string bytes, npz.Bytes());
  MP_RETURN_IF_ERROR(WriteFileAtomically(folder + "/result.npz", bytes));

  RunResult result =
      TeacherResult(summary, job.Texts(), static_cast<int>(job.student.signature.dimensions()));
  for (int m = 0; m < plan.size(); ++m) {
    const network::StudentRecord& record = executor.records()[m];
    result.merges.push_back(TeacherRecord(plan.merges()[m], record, record.teacher.mean,
                                          record.teacher.standard_error));
  }
  result.arrays_sha256 = Sha256(bytes);
  return WriteRunResult(result, folder);
}

}  // namespace mergeplan
