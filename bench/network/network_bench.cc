// One update of a merge of two steps: two teacher calls, forward and backward, AdamW, EMA. Prints
// seconds per update as JSON.
//
//   network_bench KIND:PATH [UPDATES [BATCH]]      script:model.toml or unet:FOLDER
//
// "trainer" is the update as a run makes it; "executor" the same with what is around it (records,
// curves, looking for a stop and a checkpoint); "bare" the networks and the optimizer alone, by
// hand. All three are timed in turns, so that they meet the same machine; the fastest turn counts.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/cases/network_files.h"
#include "adapters/network/executor.h"
#include "adapters/network/trainable.h"
#include "bench/network/merge.h"
#include "planner/base/status_macros.h"
#include "planner/plan/plan.h"

namespace mergeplan::network {
namespace {

constexpr int kTurns = 5;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

absl::Status Run(const std::string& name, std::int64_t updates, std::int64_t batch) {
  MP_ASSIGN_OR_RETURN(const TeacherName path, ParseTeacher(name));
  MP_ASSIGN_OR_RETURN(const NetworkFile network, LoadNetwork(path));
  MP_ASSIGN_OR_RETURN(const Schedule schedule, LoadSchedule("ddpm-linear", 8));
  MP_ASSIGN_OR_RETURN(const NetworkSteps steps, NetworkSteps::Create(network.signature, schedule));
  const std::shared_ptr<Teacher> teacher = MakeNetworkTeacher(network.module, steps);
  Frozen frozen;
  frozen.teacher = teacher;
  frozen.student = &steps;
  MP_ASSIGN_OR_RETURN(frozen.snapshots, Snapshots::Create(*network.module, "", 0));
  const std::vector<std::int64_t>& shape = network.signature.shape;
  MP_ASSIGN_OR_RETURN(std::shared_ptr<Inputs> inputs, BenchInputs(network, schedule));
  MP_ASSIGN_OR_RETURN(const TrainerOptions options, BenchOptions((kTurns + 1) * updates, batch));
  MP_ASSIGN_OR_RETURN(std::unique_ptr<Module> student, network.module->Clone());
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                      Trainer::Create(std::move(student), {BenchTask()}, frozen, inputs, options));

  ExecutorOptions around;
  around.recipe = options.recipe;
  around.lr = options.lr;
  around.iterations = updates;
  around.batch = batch;
  around.held_out_rows = 2;
  around.stop = [] { return false; };
  around.checkpoint = [](Executor&, bool) { return absl::OkStatus(); };
  // The six cleaner steps are blocks of their own.
  std::vector<Range> blocks;
  for (int t = 1; t <= 6; ++t) blocks.push_back({t, t});
  blocks.push_back({7, 8});
  PlanBuilder builder(8);
  builder.Merge({{7, 7}, {8, 8}});
  MP_ASSIGN_OR_RETURN(const Plan plan, builder.Finish(blocks));

  MP_ASSIGN_OR_RETURN(std::unique_ptr<Module> bare, network.module->Clone());
  MP_ASSIGN_OR_RETURN(std::vector<at::Tensor> parameters, TrainableParameters(*bare));
  MP_ASSIGN_OR_RETURN(Optimizer optimizer, Optimizer::Create(std::move(parameters), options.recipe,
                                                             options.lr, options.updates));
  std::vector<std::int64_t> sizes = shape;
  sizes.insert(sizes.begin(), batch);
  std::int64_t made = 0;
  const auto by_hand = [&]() -> absl::Status {
    for (std::int64_t k = 0; k < updates; ++k) {
      const at::Tensor z = at::randn(sizes);
      MP_ASSIGN_OR_RETURN(at::Tensor target, teacher->Jump(z, 8, 7));
      MP_ASSIGN_OR_RETURN(target, teacher->Jump(target, 7, 6));
      MP_ASSIGN_OR_RETURN(const at::Tensor out, steps.Jump(*bare, z, 8, 6));
      const at::Tensor loss = (out - target).flatten(1).square().sum(1).mean();
      loss.backward();
      if (!(loss.item<double>() >= 0)) return absl::InternalError("the loss is no number");
      MP_RETURN_IF_ERROR(optimizer.Step(made++).status());
    }
    return absl::OkStatus();
  };
  const auto by_trainer = [&]() -> absl::Status {
    for (std::int64_t k = 0; k < updates; ++k) MP_RETURN_IF_ERROR(trainer->Update());
    return absl::OkStatus();
  };
  double own_seconds = 0;
  const auto by_executor = [&]() -> absl::Status {
    MP_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor,
                        Executor::Create(teacher, *network.module, steps, inputs, plan, around));
    MP_RETURN_IF_ERROR(executor->TrainAll());
    own_seconds = executor->records()[0].seconds;
    return absl::OkStatus();
  };
  double least[3] = {1e300, 1e300, 1e300};
  for (int turn = 0; turn <= kTurns; ++turn) {
    double begin = Now();
    MP_RETURN_IF_ERROR(by_hand());
    const double hand = Now() - begin;
    begin = Now();
    MP_RETURN_IF_ERROR(by_trainer());
    const double inside = Now() - begin;
    MP_RETURN_IF_ERROR(by_executor());
    if (turn == 0) continue;  // the first calls are slower
    least[0] = std::min(least[0], hand);
    least[1] = std::min(least[1], inside);
    least[2] = std::min(least[2], own_seconds);
  }
  const double each = static_cast<double>(updates);
  std::printf(
      "{\"bare\": %.6f, \"trainer\": %.6f, \"executor\": %.6f, \"batch\": %lld, \"threads\": %d}\n",
      least[0] / each, least[1] / each, least[2] / each, static_cast<long long>(batch),
      at::get_num_threads());
  return absl::OkStatus();
}

}  // namespace
}  // namespace mergeplan::network

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s KIND:PATH [UPDATES [BATCH]]\n", argv[0]);
    return 2;
  }
  const absl::Status status = mergeplan::network::Run(argv[1], argc > 2 ? std::atoll(argv[2]) : 20,
                                                      argc > 3 ? std::atoll(argv[3]) : 32);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}
