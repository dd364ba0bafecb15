// Updates per second of a merge of two steps (two teacher calls, forward and backward, AdamW, EMA)
// in each layout and precision, and what a probe of this machine chooses.
//
//   layout_bench NAME KIND:PATH [UPDATES [BATCH]]      script:model.toml or unet:FOLDER
//
// One row of the table in README.md. The ways go in turns; the fastest turn of each counts.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/cases/network_files.h"
#include "adapters/network/executor.h"
#include "adapters/network/probe.h"
#include "bench/network/merge.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

constexpr int kTurns = 3;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A training in one of the ways; what it needs lives as long.
struct Way {
  Arithmetic arithmetic;
  std::unique_ptr<NetworkSteps> steps;
  std::unique_ptr<Trainer> trainer;
  double least = 1e300;  // seconds of a turn
};

absl::StatusOr<Way> WayOf(const NetworkFile& network, const Schedule& schedule,
                          const Arithmetic& arithmetic, std::int64_t updates, std::int64_t batch) {
  Way out;
  out.arithmetic = arithmetic;
  MP_ASSIGN_OR_RETURN(NetworkSteps steps,
                      NetworkSteps::Create(network.signature, schedule, arithmetic.precision));
  out.steps = std::make_unique<NetworkSteps>(std::move(steps));
  MP_ASSIGN_OR_RETURN(std::unique_ptr<Module> student, network.module->Clone());
  MP_RETURN_IF_ERROR(SetLayout(*student, arithmetic.layout));
  MP_ASSIGN_OR_RETURN(std::shared_ptr<Module> teacher, student->Clone());
  Frozen frozen;
  frozen.teacher = MakeNetworkTeacher(teacher, *out.steps);
  frozen.student = out.steps.get();
  MP_ASSIGN_OR_RETURN(frozen.snapshots, Snapshots::Create(*student, "", 0));
  MP_ASSIGN_OR_RETURN(std::shared_ptr<Inputs> inputs, BenchInputs(network, schedule));
  MP_ASSIGN_OR_RETURN(TrainerOptions options, BenchOptions((kTurns + 1) * updates, batch));
  options.precision = arithmetic.precision;
  MP_ASSIGN_OR_RETURN(out.trainer, Trainer::Create(std::move(student), {BenchTask()},
                                                   std::move(frozen), std::move(inputs), options));
  return out;
}

absl::Status Run(const std::string& words, const std::string& name, std::int64_t updates,
                 std::int64_t batch) {
  MP_ASSIGN_OR_RETURN(const TeacherName path, ParseTeacher(name));
  MP_ASSIGN_OR_RETURN(const NetworkFile network, LoadNetwork(path));
  MP_ASSIGN_OR_RETURN(const Schedule schedule, LoadSchedule("ddpm-linear", 8));
  const std::vector<Arithmetic> choices =
      Choices(*network.module, network.signature.dtype, std::nullopt, std::nullopt);
  std::vector<Way> ways;
  for (const Arithmetic& choice : choices) {
    MP_ASSIGN_OR_RETURN(Way way, WayOf(network, schedule, choice, updates, batch));
    ways.push_back(std::move(way));
  }
  for (int turn = 0; turn <= kTurns; ++turn) {
    for (Way& way : ways) {
      const double begin = Now();
      for (std::int64_t k = 0; k < updates; ++k) MP_RETURN_IF_ERROR(way.trainer->Update());
      if (turn > 0) way.least = std::min(way.least, Now() - begin);  // the first calls are slower
    }
  }
  const double begin = Now();
  MP_ASSIGN_OR_RETURN(const Probed probed,
                      Probe(*network.module, network.signature, at::kCPU, batch, choices));
  const double seconds = Now() - begin;
  double parameters = 0;
  for (const auto& [unused, tensor] : network.module->Parameters()) {
    parameters += static_cast<double>(tensor.numel());
  }
  std::string row = absl::StrFormat("| %s | %.2f M | %d | %d |", words, parameters / 1e6, batch,
                                    at::get_num_threads());
  for (const Way& way : ways) {
    absl::StrAppendFormat(&row, " %.3g |", static_cast<double>(updates) / way.least);
  }
  std::printf("%s %s | %.1f s |\n", row.c_str(), ToString(probed.chosen).c_str(), seconds);
  return absl::OkStatus();
}

}  // namespace
}  // namespace mergeplan::network

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s NAME KIND:PATH [UPDATES [BATCH]]\n", argv[0]);
    return 2;
  }
  const absl::Status status = mergeplan::network::Run(
      argv[1], argv[2], argc > 3 ? std::atoll(argv[3]) : 5, argc > 4 ? std::atoll(argv[4]) : 32);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}
