#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/judge/features.h"
#include "adapters/network/try.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan::judge {
namespace {

class ScriptFeatures : public Features {
 public:
  ScriptFeatures(torch::jit::Module module, const std::string& path, std::string id)
      : module_(std::move(module)),
        name_(absl::StrCat("the TorchScript network ", path)),
        id_(std::move(id)) {}

  absl::StatusOr<at::Tensor> Of(const at::Tensor& pixels) const override {
    return network::Try(name_, [&]() -> absl::StatusOr<at::Tensor> {
      const c10::NoGradGuard no_gradients;
      const torch::jit::GraphOptimizerEnabledGuard plain(false);
      const c10::IValue out = module_.forward({pixels});
      if (!out.isTensor()) {
        return absl::InvalidArgumentError(absl::StrCat(name_, ": forward gave a ", out.tagKind(),
                                                       ", expected one tensor [B, d]"));
      }
      return out.toTensor().flatten(1).to(at::kCPU, at::kDouble);
    });
  }
  const std::string& name() const override { return name_; }
  const std::string& id() const override { return id_; }

 private:
  mutable torch::jit::Module module_;
  std::string name_, id_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Features>> OpenScriptFeatures(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  return network::Try(path, [&]() -> absl::StatusOr<std::unique_ptr<Features>> {
    std::istringstream in(bytes);
    torch::jit::Module module = [&] {
      try {
        return torch::jit::load(in, at::Device(at::kCPU));
      } catch (const std::exception& error) {
        throw std::runtime_error("is no TorchScript module (" + network::FirstLine(error) +
                                 "), expected what torch.jit.save writes");
      }
    }();
    if (!module.find_method("forward")) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": has no method forward"));
    }
    module.eval();
    return std::make_unique<ScriptFeatures>(std::move(module), path, Sha256(bytes));
  });
}

}  // namespace mergeplan::judge
