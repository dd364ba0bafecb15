#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/network/module.h"

namespace mergeplan::network {

// Frozen networks, each under a number, with reference counts: what is no longer needed is dropped,
// and beyond a limit of memory those that were used longest ago lie in files and are loaded back,
// bit by bit, when they are asked for. They all have the architecture of one network.
class Snapshots {
 public:
  // `like` is copied. `folder` (made when it is first needed) takes the files; it may be empty
  // where nothing is persisted: those beyond the limit then lie in a folder in TMPDIR, which goes
  // with this object. `memory` in bytes of parameters and buffers, 0: no limit; the one that is in
  // use stays whatever the limit.
  static absl::StatusOr<std::unique_ptr<Snapshots>> Create(const Module& like, std::string folder,
                                                           std::int64_t memory);
  ~Snapshots();
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;

  // Takes a network over, with one reference. Never the same number twice.
  absl::StatusOr<std::int64_t> Put(std::unique_ptr<Module> module);
  void Retain(std::int64_t id);
  // The last release drops it; its file stays until Sweep, since a state that was written before
  // may still name it.
  void Release(std::int64_t id);

  // Keeps it in memory for as long as the pointer lives. NOT_FOUND for a number that is not there,
  // errors of its file.
  absl::StatusOr<std::shared_ptr<Module>> Get(std::int64_t id);

  // Writes all that have no file yet. Called before a state that names them is written.
  absl::Status Persist();
  // Takes away the files of dropped ones.
  void Sweep();
  // In place of Put, for a state that is taken up: a number whose file is there, with this many
  // references. Errors of the file; DATA_LOSS where its numbers are not this network's.
  absl::Status Adopt(std::int64_t id, int references);
  // Numbers that have been given so far; none below `next` will be given again.
  std::int64_t next() const { return next_; }
  void SetNext(std::int64_t next) { next_ = next; }

  int count() const { return static_cast<int>(entries_.size()); }
  int references(std::int64_t id) const;
  std::int64_t bytes_in_memory() const;
  int spilled() const;  // that lie in files only
  std::string Path(std::int64_t id) const;

 private:
  struct Entry {
    std::shared_ptr<Module> module;  // null: in its file only
    int references = 1;
    bool has_file = false;
    std::uint64_t used = 0;
  };
  Snapshots(std::unique_ptr<Module> like, std::string folder, std::int64_t memory,
            std::int64_t bytes)
      : like_(std::move(like)), folder_(std::move(folder)), memory_(memory), bytes_(bytes) {}
  absl::Status MakeOwnFolder();
  absl::Status WriteOne(std::int64_t id, Entry& entry);
  absl::StatusOr<std::shared_ptr<Module>> ReadOne(std::int64_t id) const;
  // Spills until one more fits; never `keep`.
  absl::Status MakeRoom(std::int64_t keep);

  std::unique_ptr<Module> like_;
  std::string folder_;
  bool own_folder_ = false;
  std::int64_t memory_ = 0;
  std::int64_t bytes_ = 0;  // of one
  std::map<std::int64_t, Entry> entries_;
  std::vector<std::int64_t> dropped_;  // that have files
  std::int64_t next_ = 0;
  std::uint64_t clock_ = 0;
};

// Bytes of parameters and buffers.
std::int64_t BytesOf(const Module& module);
// Copies all values of `from` into `to`, a network of the same architecture. INVALID_ARGUMENT names
// a tensor that does not fit.
absl::Status CopyValues(const Module& from, Module& to);

}  // namespace mergeplan::network
