#pragma once

#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/experts/cuda/backend.h"
#include "adapters/experts/trainer.h"

namespace mergeplan::experts_device {

// Memory of a backend, given back together.
class Memories {
 public:
  explicit Memories(Backend& backend) : backend_(backend) {}
  ~Memories();
  Memories(const Memories&) = delete;
  Memories& operator=(const Memories&) = delete;

  // Room for `count` numbers, all of them 0.
  template <typename X>
  absl::StatusOr<X*> Room(Size count) {
    absl::StatusOr<void*> memory = Bytes(static_cast<std::size_t>(count) * sizeof(X));
    if (!memory.ok()) return memory.status();
    return static_cast<X*>(*memory);
  }
  // A copy of an array; of one that has been copied before, the same again. Null stays null.
  template <typename X>
  absl::StatusOr<const X*> Copy(const X* from, Size count) {
    if (from == nullptr || count == 0) return nullptr;
    absl::StatusOr<const void*> memory =
        CopyBytes(from, static_cast<std::size_t>(count) * sizeof(X));
    if (!memory.ok()) return memory.status();
    return static_cast<const X*>(*memory);
  }

 private:
  absl::StatusOr<void*> Bytes(std::size_t bytes);
  absl::StatusOr<const void*> CopyBytes(const void* from, std::size_t bytes);

  Backend& backend_;
  std::vector<void*> all_;
  std::map<std::pair<const void*, std::size_t>, const void*> copies_;
};

// Copies what the training reads: tasks, embeddings, the law at every level, data, and the targets.
// Its sizes must be there. What is copied must stay where it is until this returns.
template <typename T>
absl::Status FillTables(const std::vector<experts::TrainTask>& tasks, const experts::Inputs& inputs,
                        const experts::TrainerOptions& options, Memories& memories,
                        Training<T>* training);

}  // namespace mergeplan::experts_device
