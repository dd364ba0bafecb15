#include "adapters/denoising/state.h"

#include <ATen/ops/tensor.h>

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/network/tensor_file.h"
#include "adapters/network/try.h"
#include "planner/base/status_macros.h"

namespace mergeplan::denoising {
namespace {

constexpr char kFormat[] = "mergeplan denoising state 1";

void AddList(const std::string& prefix, const std::vector<at::Tensor>& tensors,
             network::TensorFile* file) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    file->tensors.emplace_back(absl::StrCat(prefix, i), tensors[i]);
  }
}

std::vector<at::Tensor> ListOf(const network::TensorFile& file, const std::string& prefix) {
  std::vector<at::Tensor> out;
  while (const at::Tensor* tensor = file.Find(absl::StrCat(prefix, out.size()))) {
    out.push_back(*tensor);
  }
  return out;
}

absl::Status Numbers(const network::TensorFile& file, const std::string& path, const char* name,
                     std::vector<double>* out) {
  const at::Tensor* found = file.Find(name);
  if (found == nullptr || found->scalar_type() != at::kDouble) {
    return absl::DataLossError(
        absl::StrCat(path, ": the tensor ", name, " is missing or not of float64"));
  }
  const at::Tensor flat = found->contiguous();
  const auto* begin = flat.const_data_ptr<double>();
  out->assign(begin, begin + flat.numel());
  return absl::OkStatus();
}

// -1 where it is no such number.
std::int64_t Whole(double value) {
  return value >= 0 && value < 0x1p53 && value == std::floor(value)
             ? static_cast<std::int64_t>(value)
             : -1;
}

}  // namespace

absl::Status WriteCheckpoint(const Checkpoint& checkpoint, const std::string& fingerprint,
                             const std::string& path) {
  return network::Try(path, [&]() -> absl::Status {
    const TrainerState& s = checkpoint.trainer;
    network::TensorFile file;
    file.metadata = {{"format", kFormat}, {"fingerprint", fingerprint}};
    const auto add = [&](const char* name, const std::vector<double>& values) {
      file.tensors.emplace_back(name, at::tensor(values, at::kDouble));
    };
    add("counts", {static_cast<double>(s.updates), static_cast<double>(s.skipped),
                   static_cast<double>(s.good), static_cast<double>(s.optimizer.steps)});
    add("scale", {s.scale});
    add("log", checkpoint.log.Numbers());
    AddList("parameter.", s.parameters, &file);
    AddList("buffer.", s.buffers, &file);
    AddList("average.", s.average, &file);
    AddList("first.", s.optimizer.first, &file);
    AddList("second.", s.optimizer.second, &file);
    return network::WriteTensorFile(file, path);
  });
}

absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& fingerprint, const std::string& path,
                                          std::vector<std::string> parts) {
  MP_ASSIGN_OR_RETURN(const network::TensorFile file, network::ReadTensorFile(path));
  MP_RETURN_IF_ERROR(network::CheckOrigin(
      file, path, kFormat, fingerprint,
      "belongs to a training with another network, schedule, data or options"));
  std::vector<double> counts, scale, log;
  MP_RETURN_IF_ERROR(Numbers(file, path, "counts", &counts));
  MP_RETURN_IF_ERROR(Numbers(file, path, "scale", &scale));
  MP_RETURN_IF_ERROR(Numbers(file, path, "log", &log));
  Checkpoint out;
  out.log = Log(std::move(parts));
  if (counts.size() != 4 || scale.size() != 1 || !out.log.FromNumbers(log)) {
    return absl::DataLossError(
        absl::StrCat(path, ": the tensor counts, scale or log has another size"));
  }
  TrainerState& s = out.trainer;
  s.updates = Whole(counts[0]);
  s.skipped = Whole(counts[1]);
  s.good = Whole(counts[2]);
  s.optimizer.steps = Whole(counts[3]);
  s.scale = scale[0];
  return network::Try(path, [&]() -> absl::StatusOr<Checkpoint> {
    s.parameters = ListOf(file, "parameter.");
    s.buffers = ListOf(file, "buffer.");
    s.average = ListOf(file, "average.");
    s.optimizer.first = ListOf(file, "first.");
    s.optimizer.second = ListOf(file, "second.");
    return out;
  });
}

}  // namespace mergeplan::denoising
