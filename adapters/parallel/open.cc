#include "adapters/parallel/open.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "adapters/parallel/mpi_module.h"

namespace mergeplan {
namespace {

// How long a rank that has come to its end waits for the others.
constexpr double kLastMeetingSeconds = 10;
constexpr char kModule[] = "mergeplan-mpi.so";

int NumberIn(const char* variable) {
  const char* text = std::getenv(variable);
  int number = 0;
  return text != nullptr && absl::SimpleAtoi(text, &number) ? number : 0;
}

class Mpi : public Communicator {
 public:
  explicit Mpi(const MpiFunctions& functions) : functions_(functions) {}

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
        absl::StrCat("rank ", rank(), " of ", ranks(), ": MPI ", what, ": ", words));
  }

  const MpiFunctions& functions_;
};

}  // namespace

int RanksOnThisMachine() {
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}) {
    if (const int ranks = NumberIn(variable); ranks > 0) return ranks;
  }
  return 1;
}

absl::StatusOr<std::shared_ptr<const Communicator>> OpenCommunicator() {
  int ranks = 1;
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const int found = NumberIn(variable); found > 0) {
      ranks = found;
      break;
    }
  }
  if (ranks == 1) return Alone();
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string path = (self.parent_path() / kModule).string();
  // Global: MPI opens components of its own, which look for its symbols.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("started by mpirun as one of ", ranks, " ranks, but ", ::dlerror(),
                     "; mergeplan has to be built where MPI is (Debian: libopenmpi-dev), or start "
                     "it without mpirun"));
  }
  const auto open = reinterpret_cast<MpiOpen>(::dlsym(library, kMpiOpenSymbol));
  char words[512] = "no such symbol";
  const MpiFunctions* functions = open != nullptr ? open(words, sizeof(words)) : nullptr;
  if (functions == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": ", words));
  }
  if (functions->ranks == 1) {
    functions->finish(0);
    return Alone();
  }
  return std::make_shared<Mpi>(*functions);
}

}  // namespace mergeplan
