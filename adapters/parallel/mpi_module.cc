#include "adapters/parallel/engine.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

namespace mergeplan {
namespace {

// MPI counts in int.
constexpr std::int64_t kAtOnce = std::int64_t{1} << 28;

MPI_Comm g_training = MPI_COMM_NULL;
MPI_Comm g_ending = MPI_COMM_NULL;  // so that the last meeting is never taken for another one

template <typename T>
int Sum(T* numbers, std::int64_t n, MPI_Datatype type) {
  for (std::int64_t begin = 0; begin < n; begin += kAtOnce) {
    const auto count = static_cast<int>(std::min(kAtOnce, n - begin));
    const int error =
        MPI_Allreduce(MPI_IN_PLACE, numbers + begin, count, type, MPI_SUM, g_training);
    if (error != MPI_SUCCESS) return error;
  }
  return MPI_SUCCESS;
}

int SumDouble(double* numbers, std::int64_t n) { return Sum(numbers, n, MPI_DOUBLE); }
int SumFloat(float* numbers, std::int64_t n) { return Sum(numbers, n, MPI_FLOAT); }

int Broadcast(void* bytes, std::int64_t n) {
  for (std::int64_t begin = 0; begin < n; begin += kAtOnce) {
    const auto count = static_cast<int>(std::min(kAtOnce, n - begin));
    const int error =
        MPI_Bcast(static_cast<char*>(bytes) + begin, count, MPI_BYTE, /*root=*/0, g_training);
    if (error != MPI_SUCCESS) return error;
  }
  return MPI_SUCCESS;
}

int Barrier() { return MPI_Barrier(g_training); }

void Describe(int error, char* text, std::size_t size) {
  char words[MPI_MAX_ERROR_STRING] = "unknown MPI error";
  int length = 0;
  MPI_Error_string(error, words, &length);
  std::snprintf(text, size, "%s", words);
}

void Finish(double seconds) {
  MPI_Request meeting = MPI_REQUEST_NULL;
  int all = 0;
  if (MPI_Ibarrier(g_ending, &meeting) == MPI_SUCCESS) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (MPI_Test(&meeting, &all, MPI_STATUS_IGNORE) == MPI_SUCCESS && all == 0 &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  if (all == 0) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Finalize();
}

}  // namespace
}  // namespace mergeplan

extern "C" __attribute__((visibility("default"))) const mergeplan::EngineFunctions*
mergeplan_engine_open(char* error, std::size_t size) {
  using namespace mergeplan;  // NOLINT(google-build-using-namespace)
  static EngineFunctions functions;
  int given = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS ||
      MPI_Comm_dup(MPI_COMM_WORLD, &g_training) != MPI_SUCCESS ||
      MPI_Comm_dup(MPI_COMM_WORLD, &g_ending) != MPI_SUCCESS) {
    std::snprintf(error, size, "MPI could not be started");
    return nullptr;
  }
  MPI_Comm_set_errhandler(g_training, MPI_ERRORS_RETURN);
  MPI_Comm_rank(g_training, &functions.rank);
  MPI_Comm_size(g_training, &functions.ranks);
  functions.sum_double = SumDouble;
  functions.sum_float = SumFloat;
  functions.broadcast = Broadcast;
  functions.barrier = Barrier;
  functions.describe = Describe;
  functions.finish = Finish;
  return &functions;
}
