// One update of a merge of two steps of a TorchScript network: two teacher calls, forward and
// backward, AdamW, EMA. Prints seconds per update.
//
//   network_bench model.toml [UPDATES [BATCH]]
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "adapters/network/inputs.h"
#include "adapters/network/loss.h"
#include "adapters/network/script.h"
#include "adapters/network/snapshots.h"
#include "adapters/network/steps.h"
#include "adapters/network/teachers.h"
#include "adapters/network/trainer.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

absl::Status Run(const std::string& path, std::int64_t updates, std::int64_t batch) {
  MP_ASSIGN_OR_RETURN(ScriptNetwork network, LoadScript(path));
  MP_ASSIGN_OR_RETURN(const Schedule schedule, LoadSchedule("ddpm-linear", 8));
  MP_ASSIGN_OR_RETURN(const NetworkSteps steps, NetworkSteps::Create(network.signature, schedule));
  const std::shared_ptr<Module> module(std::move(network.module));
  Frozen frozen;
  frozen.teacher = MakeNetworkTeacher(module, steps);
  frozen.student = &steps;
  MP_ASSIGN_OR_RETURN(frozen.snapshots, Snapshots::Create(*module, "", 0));
  // Unit noise for states at level 8: what is timed does not depend on their law.
  const std::vector<double> ones(static_cast<std::size_t>(network.signature.dimensions()), 1.0);
  MP_ASSIGN_OR_RETURN(std::shared_ptr<Inputs> inputs,
                      MakeGaussianInputs(ones, schedule, network.signature.shape, at::kFloat));
  TrainTask task;
  task.name = "merge [7, 8]";
  task.range = {7, 8};
  task.landing = 6;
  task.target = {{8, 6, -1, 0}};
  TrainerOptions options;
  MP_ASSIGN_OR_RETURN(options.recipe, Recipe::Parse({{"optimizer", "adamw"}, {"ema", "0.99"}}));
  options.lr = 1e-5;
  options.updates = updates + 3;
  options.batch = batch;
  MP_ASSIGN_OR_RETURN(std::unique_ptr<Module> student, module->Clone());
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                      Trainer::Create(std::move(student), {task}, frozen, inputs, options));
  for (int warm = 0; warm < 3; ++warm) MP_RETURN_IF_ERROR(trainer->Update());
  const auto begin = std::chrono::steady_clock::now();
  while (!trainer->done()) MP_RETURN_IF_ERROR(trainer->Update());
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  std::printf("%.6f seconds per update, batch %lld, %d threads\n",
              passed.count() / static_cast<double>(updates), static_cast<long long>(batch),
              at::get_num_threads());
  return absl::OkStatus();
}

}  // namespace
}  // namespace mergeplan::network

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s model.toml [UPDATES [BATCH]]\n", argv[0]);
    return 2;
  }
  const absl::Status status = mergeplan::network::Run(argv[1], argc > 2 ? std::atoll(argv[2]) : 20,
                                                      argc > 3 ? std::atoll(argv[3]) : 32);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}
