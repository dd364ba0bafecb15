#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "adapters/runtime/arguments.h"
#include "adapters/runtime/bench_case.h"
#include "adapters/runtime/run_case.h"
#include "adapters/runtime/run_folder.h"
#include "plugins/host/host.h"

namespace mergeplan {

namespace judge {
class Judge;
}

// A new run. With `strategy` its plugin makes the plan; with `plan` the plugin dp_custom reads it.
// Misuse for options that contradict the plan or have no meaning; FAILED_PRECONDITION when plan and
// teacher do not belong together.
absl::StatusOr<std::shared_ptr<const RunCase>> NewRun(const DistillArguments& arguments,
                                                      PlannerServices& services);
// The run in `folder` again, from its run.toml and plan.toml. Options that are given must say what
// the run says. The teacher must still be what it was.
absl::StatusOr<std::shared_ptr<const RunCase>> ResumedRun(const DistillArguments& arguments,
                                                          const RunFolder& folder);

// The same for the kinds of teachers.
absl::StatusOr<std::shared_ptr<const RunCase>> NewGaussianRun(const DistillArguments& arguments,
                                                              PlannerServices& services);
absl::StatusOr<std::shared_ptr<const RunCase>> ResumedGaussianRun(const DistillArguments& arguments,
                                                                  const RunFolder& folder);
absl::StatusOr<std::shared_ptr<const RunCase>> NewMixtureRun(const DistillArguments& arguments,
                                                             PlannerServices& services);
absl::StatusOr<std::shared_ptr<const RunCase>> ResumedMixtureRun(const DistillArguments& arguments,
                                                                 const RunFolder& folder);
absl::StatusOr<std::shared_ptr<const RunCase>> NewNetworkRun(const DistillArguments& arguments,
                                                             PlannerServices& services);
absl::StatusOr<std::shared_ptr<const RunCase>> ResumedNetworkRun(const DistillArguments& arguments,
                                                                 const RunFolder& folder);

// ---- For `mergeplan bench`.

// `arguments` name one strategy or plan. The students are linear; trials are runs with seeds that
// follow each other. `judge`, where it is not null, looks at the samples of all of them.
absl::StatusOr<std::shared_ptr<const BenchCase>> GaussianCase(const DistillArguments& arguments,
                                                              std::shared_ptr<judge::Judge> judge,
                                                              PlannerServices& services);

// What all strategies of one mixture share: the students of single steps that merges start from.
struct MixtureFits;
std::shared_ptr<MixtureFits> NoFits();

// The same for --teacher mixture:PATH. The students are affine mixtures of experts.
absl::StatusOr<std::shared_ptr<const BenchCase>> MixtureCase(const DistillArguments& arguments,
                                                             std::shared_ptr<MixtureFits> fits,
                                                             PlannerServices& services);

// The same with network students, of a network teacher or of another one.
absl::StatusOr<std::shared_ptr<const BenchCase>> NetworkCase(const DistillArguments& arguments,
                                                             std::shared_ptr<judge::Judge> judge,
                                                             PlannerServices& services);

}  // namespace mergeplan
