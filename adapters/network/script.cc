#include "adapters/network/script.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/network/try.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

std::string Shape(const at::Tensor& tensor) {
  return absl::StrCat("[", absl::StrJoin(tensor.sizes(), ", "), "]");
}

class ScriptModule : public Module {
 public:
  ScriptModule(torch::jit::Module module, std::string path, const Signature& signature)
      : module_(std::move(module)), path_(std::move(path)), signature_(signature) {}

  absl::StatusOr<at::Tensor> Forward(const at::Tensor& z, const at::Tensor& time,
                                     const at::Tensor& label) override {
    const auto& shape = signature_.shape;
    if (z.dim() != static_cast<std::int64_t>(shape.size()) + 1 ||
        !z.sizes().slice(1).equals(at::IntArrayRef(shape)) || time.dim() != 1 ||
        time.size(0) != z.size(0)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": got a state of shape ", Shape(z), " and times of shape ",
                       Shape(time), ", expected [B, ", absl::StrJoin(shape, ", "), "] and [B]"));
    }
    MP_RETURN_IF_ERROR(CheckLabel(z.size(0), label));
    return Try(path_, [&]() -> absl::StatusOr<at::Tensor> {
      const torch::jit::GraphOptimizerEnabledGuard plain(false);
      std::vector<c10::IValue> arguments;
      for (const std::string& name : signature_.arguments) {
        arguments.emplace_back(name == "z" ? z : name == "time" ? time : label.to(z.device()));
      }
      const c10::IValue out = module_.forward(std::move(arguments));
      if (!out.isTensor()) {
        return absl::InvalidArgumentError(absl::StrCat(path_, ": forward gave a ", out.tagKind(),
                                                       ", expected one tensor of the shape of z"));
      }
      at::Tensor tensor = out.toTensor();
      if (!tensor.sizes().equals(z.sizes())) {
        return absl::InvalidArgumentError(absl::StrCat(path_, ": forward gave the shape ",
                                                       Shape(tensor), " for a state of shape ",
                                                       Shape(z), ", expected the same"));
      }
      return tensor;
    });
  }

  absl::Status CheckLabel(std::int64_t rows, const at::Tensor& label) const {
    if (signature_.classes == 0) {
      if (!label.defined()) return absl::OkStatus();
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": got class labels, its signature takes none"));
    }
    if (label.defined() && label.dim() == 1 && label.size(0) == rows &&
        label.scalar_type() == at::kLong) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": got ", label.defined() ? "labels of shape " + Shape(label) : "none",
                     ", expected ", rows, " whole numbers, the classes of the rows"));
  }

  std::vector<Named> Parameters() const override {
    std::vector<Named> out;
    for (const auto& parameter : module_.named_parameters()) {
      out.emplace_back(parameter.name, parameter.value);
    }
    return out;
  }
  std::vector<Named> Buffers() const override {
    std::vector<Named> out;
    for (const auto& buffer : module_.named_buffers()) out.emplace_back(buffer.name, buffer.value);
    return out;
  }

  absl::StatusOr<std::unique_ptr<Module>> Clone() const override {
    return Try(path_, [&]() -> absl::StatusOr<std::unique_ptr<Module>> {
      const c10::NoGradGuard no_gradients;
      auto copy = std::make_unique<ScriptModule>(module_.deepcopy(), path_, signature_);
      const std::vector<Named> own = Parameters(), theirs = copy->Parameters();
      for (std::size_t i = 0; i < own.size(); ++i) {
        theirs[i].second.set_requires_grad(own[i].second.requires_grad());
      }
      return copy;
    });
  }

  void SetTraining(bool on) override { module_.train(on); }

  absl::Status To(at::Device device, at::ScalarType dtype) override {
    return Try(path_, [&] {
      const c10::NoGradGuard no_gradients;
      module_.to(device, dtype);
      return absl::OkStatus();
    });
  }

  absl::Status Save(const std::string& path) const override {
    return Try(path, [&] {
      std::ostringstream bytes;
      module_.save(bytes);
      return WriteFileAtomically(path, bytes.str());
    });
  }

 private:
  mutable torch::jit::Module module_;  // forward and save are not const
  std::string path_;
  Signature signature_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> LoadScriptModule(const std::string& path,
                                                         const Signature& signature) {
  MP_RETURN_IF_ERROR(Validate(signature, path));
  MP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  return Try(path, [&]() -> absl::StatusOr<std::unique_ptr<Module>> {
    std::istringstream in(bytes);
    torch::jit::Module module = [&] {
      try {
        return torch::jit::load(in, at::Device(at::kCPU));
      } catch (const std::exception& error) {
        throw std::runtime_error("is no TorchScript module (" + FirstLine(error) +
                                 "), expected what torch.jit.save writes");
      }
    }();
    if (!module.find_method("forward")) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": has no method forward"));
    }
    module.eval();
    for (const at::Tensor& parameter : module.parameters()) {
      if (parameter.is_floating_point()) parameter.set_requires_grad(true);
    }
    return std::make_unique<ScriptModule>(std::move(module), path, signature);
  });
}

absl::StatusOr<Sidecar> SidecarOf(const std::string& path) {
  std::string toml = path;
  if (!path.ends_with(".toml")) {
    const std::size_t dot = path.find_last_of("./");
    toml = (dot == std::string::npos || path[dot] == '/' ? path : path.substr(0, dot)) + ".toml";
  }
  absl::StatusOr<Sidecar> sidecar = ReadSidecar(toml);
  if (absl::IsNotFound(sidecar.status()) && toml != path) {
    return absl::NotFoundError(
        absl::StrCat(path, ": needs a sidecar beside it that says what it predicts: ",
                     std::string(sidecar.status().message())));
  }
  if (sidecar.ok() && toml != path) sidecar->file = path;
  return sidecar;
}

namespace {

// Does the network know as many classes as its sidecar says?
absl::Status CheckClasses(Module& module, const Signature& signature, const std::string& sidecar) {
  if (signature.classes == 0) return absl::OkStatus();
  std::vector<std::int64_t> shape = signature.shape;
  shape.insert(shape.begin(), 1);
  const auto type = signature.dtype == "float64" ? at::kDouble : at::kFloat;
  const c10::NoGradGuard no_gradients;
  const auto asked = [&](std::int64_t label) {
    return module
        .Forward(at::zeros(shape, at::TensorOptions().dtype(type)),
                 at::zeros({1}, at::TensorOptions().dtype(type)),
                 at::full({1}, label, at::TensorOptions().dtype(at::kLong)))
        .status();
  };
  // A network that cannot be asked at all has other faults, which are said where it is used.
  if (!asked(0).ok()) return absl::OkStatus();
  const absl::Status last = asked(signature.classes - 1);
  if (last.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      sidecar, ": classes is ", signature.classes, ", but the network fails when it is told class ",
      signature.classes - 1, " and does not for class 0 (", std::string(last.message()),
      "); expected the number of classes that it was trained with"));
}

}  // namespace

absl::StatusOr<ScriptNetwork> LoadScript(const std::string& path) {
  MP_ASSIGN_OR_RETURN(Sidecar sidecar, SidecarOf(path));
  ScriptNetwork out;
  out.signature = std::move(sidecar.signature);
  out.path = std::move(sidecar.file);
  MP_ASSIGN_OR_RETURN(out.module, LoadScriptModule(out.path, out.signature));
  MP_RETURN_IF_ERROR(CheckClasses(*out.module, out.signature, path));
  return out;
}

absl::Status SaveScript(const Module& module, const Signature& signature,
                        const std::string& folder) {
  MP_RETURN_IF_ERROR(MakeDirectories(folder));
  MP_RETURN_IF_ERROR(module.Save(folder + "/model.ts"));
  return WriteSidecar(signature, "model.ts", folder + "/model.toml");
}

}  // namespace mergeplan::network
