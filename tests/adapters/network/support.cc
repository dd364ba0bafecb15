#include "tests/adapters/network/support.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/jit/api/module.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"

namespace mergeplan::network::testing {
namespace {

// For networks of a hundred numbers a second thread is only waited for, on a busy machine long.
[[maybe_unused]] const bool kOneThread = [] {
  at::set_num_threads(1);
  return true;
}();

at::ScalarType TypeOf(const Signature& signature) {
  return signature.dtype == "float64" ? at::kDouble : at::kFloat;
}

at::Tensor Random(std::vector<std::int64_t> shape, double size, std::mt19937& generator,
                  at::ScalarType type) {
  std::normal_distribution<double> normal;
  at::Tensor out = at::empty(shape, at::kDouble);
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    out.mutable_data_ptr<double>()[i] = size * normal(generator);
  }
  return out.to(type).set_requires_grad(true);
}

// Through a file, as people's networks come.
std::unique_ptr<Module> Loaded(const torch::jit::Module& module, const Signature& signature) {
  static int number = 0;
  const char* folder = std::getenv("TMPDIR");
  const std::string path = absl::StrCat(folder != nullptr ? folder : "/tmp", "/mergeplan-network-",
                                        getpid(), "-", number++, ".ts");
  module.save(path);
  std::unique_ptr<Module> out = LoadScriptModule(path, signature).value();
  unlink(path.c_str());
  return out;
}

torch::jit::Module Script(const Signature& signature, const std::string& body) {
  torch::jit::Module module("Net");
  module.register_parameter(
      "w", at::full({signature.dimensions()}, 0.5, TypeOf(signature)).set_requires_grad(true),
      false);
  module.register_buffer("count", at::ones({1}, TypeOf(signature)));
  const char* label = signature.classes > 0 ? ", label" : "";
  module.define(absl::StrCat("def forward(self, z, time", label, "):\n    ", body, "\n"));
  return module;
}

}  // namespace

std::string SharedFolder() {
  const char* folder = std::getenv("MERGEPLAN_SHARED");
  return folder != nullptr ? folder : "";
}

Signature SmallSignature(int d, Prediction prediction, const std::string& dtype) {
  Signature out;
  out.prediction = prediction;
  out.shape = {d};
  out.dtype = dtype;
  out.time = TimeKind::kFraction;
  return out;
}

Signature WithClasses(Signature signature, std::int64_t classes) {
  signature.classes = classes;
  signature.arguments.emplace_back("label");
  return signature;
}

std::unique_ptr<Module> SmallNetwork(const Signature& signature, int hidden, std::uint64_t seed) {
  std::mt19937 generator(seed);
  const auto type = TypeOf(signature);
  const std::int64_t d = signature.dimensions();
  torch::jit::Module module("Net");
  const auto add = [&](const char* name, std::vector<std::int64_t> shape, double size) {
    module.register_parameter(name, Random(std::move(shape), size, generator, type), false);
  };
  add("w1", {d, hidden}, 0.7);
  add("wt", {4, hidden}, 0.7);
  add("b1", {hidden}, 0.3);
  add("w2", {hidden, d}, 0.3);
  add("b2", {d}, 0.1);
  module.define(R"(
def forward(self, z, time):
    t = time.reshape(-1, 1)
    features = torch.cat([t, torch.sin(3.0 * t), torch.cos(3.0 * t), torch.sin(6.0 * t)], dim=1)
    h = torch.tanh(torch.matmul(z, self.w1) + torch.matmul(features, self.wt) + self.b1)
    return torch.matmul(h, self.w2) + self.b2
)");
  return Loaded(module, signature);
}

std::unique_ptr<Module> DiagonalNetwork(const Signature& signature,
                                        const std::vector<double>& weight) {
  std::unique_ptr<Module> out = NetworkOf(signature, "return z * self.w");
  at::Tensor w = out->Parameters().front().second;
  const c10::NoGradGuard no_gradients;
  w.copy_(at::tensor(weight, at::kDouble));
  return out;
}

std::unique_ptr<Module> NetworkOf(const Signature& signature, const std::string& body) {
  return Loaded(Script(signature, body), signature);
}

void WriteNetworkOf(const Signature& signature, const std::string& body, const std::string& path) {
  Script(signature, body).save(path);
}

std::unique_ptr<Module> TiedNetwork(const Signature& signature) {
  torch::jit::Module module("Net");
  const at::Tensor tensor =
      at::full({signature.dimensions()}, 0.5, TypeOf(signature)).set_requires_grad(true);
  module.register_parameter("w", tensor, false);
  module.register_parameter("u", tensor, false);
  module.define("def forward(self, z, time):\n    return z * self.w + self.u\n");
  return Loaded(module, signature);
}

std::unique_ptr<Module> FixedNetwork(const Signature& signature) {
  torch::jit::Module module("Net");
  module.define("def forward(self, z, time):\n    return z * 0.5\n");
  return Loaded(module, signature);
}

void WritePlain(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
}

std::vector<double> Numbers(const Module& module) {
  std::vector<double> out;
  for (const auto& [name, tensor] : module.Parameters()) {
    const at::Tensor flat = tensor.detach().to(at::kDouble).contiguous();
    out.insert(out.end(), flat.const_data_ptr<double>(),
               flat.const_data_ptr<double>() + flat.numel());
  }
  return out;
}

}  // namespace mergeplan::network::testing
