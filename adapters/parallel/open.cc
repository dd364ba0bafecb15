#include "adapters/parallel/open.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "adapters/parallel/engine.h"

namespace mergeplan {
namespace {

// How long a rank that has come to its end waits for the others.
constexpr double kLastMeetingSeconds = 10;

int NumberIn(const char* variable) {
  const char* text = std::getenv(variable);
  int number = 0;
  return text != nullptr && absl::SimpleAtoi(text, &number) ? number : 0;
}

// Who started this process with others.
struct Launcher {
  const char* program;  // "mpirun"
  const char* engine;   // "MPI"
  const char* module;
  int ranks;
  const char* needs;  // of a build
};
Launcher LauncherOf() {
  const Launcher mpi = {"mpirun", "MPI", "mergeplan-mpi.so", 1,
                        "mergeplan has to be built where MPI is (Debian: libopenmpi-dev), or start "
                        "it without mpirun"};
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const int ranks = NumberIn(variable); ranks > 0) {
      Launcher out = mpi;
      out.ranks = ranks;
      return out;
    }
  }
  // What torchrun sets; RANK alone may be anybody's.
  if (std::getenv("RANK") != nullptr && std::getenv("MASTER_ADDR") != nullptr) {
    return {
        "torchrun", "NCCL", "mergeplan-nccl.so", std::max(1, NumberIn("WORLD_SIZE")),
        "mergeplan has to be built with a LibTorch that has CUDA, and beside its nccl.h; on the "
        "processor start it with mpirun"};
  }
  return mpi;
}

class Engine : public Communicator {
 public:
  Engine(const EngineFunctions& functions, const char* name) : functions_(functions), name_(name) {}

  int rank() const override { return functions_.rank; }
  int ranks() const override { return functions_.ranks; }
  absl::Status Sum(double* numbers, std::int64_t n) const override {
    return Told("sum", functions_.sum_double(numbers, n));
  }
  absl::Status Sum(float* numbers, std::int64_t n) const override {
    return Told("sum", functions_.sum_float(numbers, n));
  }
  absl::Status Broadcast(void* bytes, std::int64_t n) const override {
    return Told("broadcast", functions_.broadcast(bytes, n));
  }
  absl::Status Barrier() const override { return Told("barrier", functions_.barrier()); }
  void Finish() const override { functions_.finish(kLastMeetingSeconds); }

 private:
  absl::Status Told(const char* what, int error) const {
    if (error == 0) return absl::OkStatus();
    char words[512] = "";
    functions_.describe(error, words, sizeof(words));
    return absl::InternalError(
        absl::StrCat("rank ", rank(), " of ", ranks(), ": ", name_, " ", what, ": ", words));
  }

  const EngineFunctions& functions_;
  const char* name_;
};

}  // namespace

int RanksOnThisMachine() {
  for (const char* variable :
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "LOCAL_WORLD_SIZE"}) {
    if (const int ranks = NumberIn(variable); ranks > 0) return ranks;
  }
  return 1;
}

int RankOnThisMachine() {
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "LOCAL_RANK"}) {
    if (const int rank = NumberIn(variable); rank > 0) return rank;
  }
  return 0;
}

absl::StatusOr<std::shared_ptr<const Communicator>> OpenCommunicator() {
  const Launcher launcher = LauncherOf();
  if (launcher.ranks == 1) return Alone();
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string path = (self.parent_path() / launcher.module).string();
  const std::string started =
      absl::StrCat("started by ", launcher.program, " as one of ", launcher.ranks, " ranks, but ");
  // Global: MPI opens components of its own, which look for its symbols.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(started, ::dlerror(), "; ", launcher.needs));
  }
  const auto open = reinterpret_cast<EngineOpen>(::dlsym(library, kEngineOpenSymbol));
  char words[512] = "no such symbol";
  const EngineFunctions* functions = open != nullptr ? open(words, sizeof(words)) : nullptr;
  if (functions == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(started, launcher.engine, " does not start: ", words));
  }
  if (functions->ranks == 1) {
    functions->finish(0);
    return Alone();
  }
  return std::make_shared<Engine>(*functions, launcher.engine);
}

}  // namespace mergeplan
