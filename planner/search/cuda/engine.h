#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "planner/search/cuda/backend.h"

namespace mergeplan::search::device {

// A kept part as it lies in the processor's memory: values [entries][n]. It must keep its place and
// values until Engine::Forget().
struct Part {
  const double* rows = nullptr;
  std::size_t entries = 0;
};

// Where candidates come from: pairs of an entry of `left` and one of `right`, combined by a rule.
struct Source {
  Part left, right;  // kCopyLeft has no right
  RuleKind kind = kProduct;
  double ju = 0, jv = 0, juv = 1;
};

// What all candidates for one interval (or prefix) share; n doubles behind each pointer.
struct Setting {
  std::size_t n = 0;
  const double* a = nullptr;  // the bound of a value x is the sum of max(0, a + b x)^2
  const double* b = nullptr;
  const double* sign = nullptr;  // +1: larger is better, -1: smaller is better
  // Of merges; null where there are none.
  const double* omg = nullptr;
  const double* g = nullptr;
  const double* start = nullptr;   // null: the right part
  const double* offset = nullptr;  // null: none
  std::vector<Source> sources;
};

// An entry of the left part of a source, to be paired with all of the right part.
struct LeftEntry {
  int source = 0, left = 0;
};
struct FoundPair {
  std::size_t run = 0;
  int right = 0;
  double bound = 0;
};

struct FilterCandidate {
  int source = 0, left = 0, right = 0;
  Limits limits = {0, 0};  // its merges and rounds where these are limited, else 0 for all
};
// What is kept so far, and afterwards what is kept in the end.
struct Kept {
  std::vector<double> values;  // [count][n]
  std::vector<double> shares;  // [count][n], only with slack: RowSquares of the values; not kept up
  std::vector<double> losses;  // [count], only with slack
  std::vector<Limits> limits;  // [count]
  std::vector<std::size_t> added;     // the candidates that were added, in order
  std::vector<std::uint32_t> stands;  // for every candidate the entry that stands for it
};

struct EngineSizes {
  std::uint64_t pairs = std::uint64_t{1} << 22;  // looked at by one kernel
  std::size_t batch = 512;                       // candidates that the filter takes at once
  std::size_t block = std::size_t{64} << 20;     // bytes of memory that parts ask for at once
};

// Candidates and the dominance filter on a backend, with the results of the processor's loops in
// frontier.cc, digit by digit. Memory is kept between calls; parts that were sent once stay until
// Forget(). One thread at a time. After an error the engine is of no more use.
class Engine {
 public:
  explicit Engine(std::unique_ptr<Backend> backend, EngineSizes sizes = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::string name() const { return backend_->name(); }

  // Before parts change or go.
  void Forget();

  // Appends to `found`, in no order, the pairs of the runs whose bound is below `limit`. `stop` is
  // asked after every EngineSizes::pairs of them; true ends the call early. O(pairs n) work.
  absl::Status Pairs(const Setting& setting, const std::vector<LeftEntry>& runs, double limit,
                     const std::function<bool()>& stop, std::vector<FoundPair>& found);

  // Goes through the candidates in order as Pass::Select does: with slack 0 drops those that a kept
  // one covers and keeps the others; with slack lets kept ones stand for them. `proceed` is told
  // after every batch how many candidates it had, how many of them were kept, and the sum of
  // (number kept)/16 over its candidates; false ends the call early, with `kept` as it was.
  // O(candidates kept n) work.
  using Proceed =
      std::function<bool(std::size_t candidates, std::size_t kept, std::int64_t sixteenths)>;
  absl::Status Filter(const Setting& setting, double slack,
                      const std::vector<FilterCandidate>& candidates, const Proceed& proceed,
                      Kept& kept);

 private:
  struct Buffer {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };
  struct Block {
    void* memory = nullptr;
    std::size_t bytes = 0, used = 0;
  };
  struct OnDevice {
    Setting setting;  // pointers into the backend's memory; no sources
    std::vector<Rule> rules;
    std::vector<const double*> left, right;  // by source, null where not sent
  };

  // Memory for `count` of T, by name, valid until the next call with this name. `keep`: with what
  // it holds.
  template <class T>
  absl::StatusOr<T*> Room(const char* name, std::size_t count, bool keep = false);
  // The same, filled.
  template <class T>
  absl::StatusOr<T*> Send(const char* name, const std::vector<T>& values);
  absl::StatusOr<const double*> SendPart(std::size_t n, const Part& part);
  absl::Status SendRows(std::size_t n, std::size_t entries, const double* rows, double* tiles);
  absl::Status FetchRows(std::size_t n, std::size_t entries, const double* tiles, double* rows);
  absl::StatusOr<OnDevice> Enter(const Setting& setting, const std::vector<bool>& used);

  // One batch of the filter.
  struct Batch;
  absl::Status Plain(const Batch& batch, std::vector<std::uint32_t>& which,
                     std::vector<std::uint32_t>& stands);
  absl::Status Slack(const Batch& batch, double slack, std::vector<std::uint32_t>& which,
                     std::vector<std::uint32_t>& stands);

  std::unique_ptr<Backend> backend_;
  EngineSizes sizes_;
  std::map<std::string, Buffer> buffers_;
  std::vector<Block> blocks_;
  std::unordered_map<const double*, const double*> parts_;
};

}  // namespace mergeplan::search::device
