#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mergeplan {

// An .npz of one array, or an .npy, whose numbers come piece by piece: nothing of it lies in
// memory. Written beside the path and renamed by Finish (AtomicFile); the bytes of an .npz are
// those that NpzWriter writes.
class NpzStream {
 public:
  // `descr` is numpy's ("<f4", "|u1"); an .npy where `path` ends so. Errors of AtomicFile.
  static absl::StatusOr<NpzStream> Create(const std::string& path, const std::string& name,
                                          const std::string& descr,
                                          const std::vector<std::int64_t>& shape);
  NpzStream(NpzStream&&) noexcept;
  NpzStream& operator=(NpzStream&&) = delete;
  // What was not finished is gone, and an older file stands.
  ~NpzStream();

  // The next elements in C order, as `descr` stores them.
  absl::Status Append(std::string_view bytes);
  // INVALID_ARGUMENT unless as many bytes came as the shape says.
  absl::Status Finish();

 private:
  struct State;
  explicit NpzStream(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mergeplan
