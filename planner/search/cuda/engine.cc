#include "planner/search/cuda/engine.h"

#include <algorithm>
#include <utility>

namespace mergeplan::search::device {

// Returns the status where it is an error.
#define MERGEPLAN_TRY(expression)                                        \
  do {                                                                   \
    if (absl::Status status = (expression); !status.ok()) return status; \
  } while (false)
// The same; else `name` becomes the value.
#define MERGEPLAN_LET(name, expression)           \
  auto name##_or = (expression);                  \
  if (!name##_or.ok()) return name##_or.status(); \
  const auto name = *std::move(name##_or)  // NOLINT(bugprone-macro-parentheses): a declaration

Engine::Engine(std::unique_ptr<Backend> backend, EngineSizes sizes)
    : backend_(std::move(backend)), sizes_(sizes) {}

Engine::~Engine() {
  for (const auto& [name, buffer] : buffers_) backend_->Release(buffer.memory);
  for (const Block& block : blocks_) backend_->Release(block.memory);
}

void Engine::Forget() {
  parts_.clear();
  for (Block& block : blocks_) block.used = 0;
}

template <class T>
absl::StatusOr<T*> Engine::Room(const char* name, std::size_t count, bool keep) {
  Buffer& buffer = buffers_[name];
  const std::size_t bytes = std::max<std::size_t>(count, 1) * sizeof(T);
  if (bytes > buffer.bytes) {
    const std::size_t grown = std::max(bytes, buffer.bytes + buffer.bytes / 2);
    Buffer old = std::exchange(buffer, {});
    if (!keep && old.memory != nullptr) backend_->Release(std::exchange(old.memory, nullptr));
    absl::StatusOr<void*> memory = backend_->Allocate(grown);
    if (memory.ok()) {
      buffer = {*memory, grown};
      if (old.memory != nullptr) {
        const absl::Status status = backend_->Copy(buffer.memory, old.memory, old.bytes);
        if (!status.ok()) memory = status;
      }
    }
    if (old.memory != nullptr) backend_->Release(old.memory);
    if (!memory.ok()) return memory.status();
  }
  return static_cast<T*>(buffer.memory);
}

template <class T>
absl::StatusOr<T*> Engine::Send(const char* name, const std::vector<T>& values) {
  MERGEPLAN_LET(to, Room<T>(name, values.size()));
  MERGEPLAN_TRY(backend_->Upload(to, values.data(), values.size() * sizeof(T)));
  return to;
}

absl::Status Engine::SendRows(std::size_t n, std::size_t entries, const double* rows,
                              double* tiles) {
  MERGEPLAN_LET(staging, Room<double>("rows", entries * n));
  MERGEPLAN_TRY(backend_->Upload(staging, rows, entries * n * sizeof(double)));
  return backend_->Run(TileArgs{n, entries, staging, tiles});
}

absl::Status Engine::FetchRows(std::size_t n, std::size_t entries, const double* tiles,
                               double* rows) {
  MERGEPLAN_LET(staging, Room<double>("rows", entries * n));
  MERGEPLAN_TRY(backend_->Run(UntileArgs{n, entries, tiles, staging}));
  return backend_->Download(rows, staging, entries * n * sizeof(double));
}

absl::StatusOr<const double*> Engine::SendPart(std::size_t n, const Part& part) {
  if (const auto at = parts_.find(part.rows); at != parts_.end()) return at->second;
  constexpr std::size_t kAlign = 256;
  const std::size_t bytes =
      (TiledSize(n, part.entries) * sizeof(double) + kAlign - 1) / kAlign * kAlign;
  auto block = std::find_if(blocks_.begin(), blocks_.end(), [bytes](const Block& candidate) {
    return candidate.bytes - candidate.used >= bytes;
  });
  if (block == blocks_.end()) {
    const std::size_t size = std::max(bytes, sizes_.block);
    MERGEPLAN_LET(memory, backend_->Allocate(size));
    block = blocks_.insert(blocks_.end(), Block{memory, size, 0});
  }
  double* tiles = reinterpret_cast<double*>(static_cast<char*>(block->memory) + block->used);
  MERGEPLAN_TRY(SendRows(n, part.entries, part.rows, tiles));
  block->used += bytes;
  parts_[part.rows] = tiles;
  return tiles;
}

absl::StatusOr<Engine::OnDevice> Engine::Enter(const Setting& setting,
                                               const std::vector<bool>& used) {
  OnDevice on;
  const std::size_t n = setting.n;
  on.setting.n = n;
  std::vector<double> packed;
  const double* from[] = {setting.a, setting.b,     setting.sign,  setting.omg,
                          setting.g, setting.start, setting.offset};
  const double** to[] = {&on.setting.a, &on.setting.b,     &on.setting.sign,  &on.setting.omg,
                         &on.setting.g, &on.setting.start, &on.setting.offset};
  for (const double* table : from) {
    if (table != nullptr) packed.insert(packed.end(), table, table + n);
  }
  MERGEPLAN_LET(tables, Send("setting", packed));
  for (std::size_t k = 0, sent = 0; k < std::size(from); ++k) {
    if (from[k] != nullptr) *to[k] = tables + n * sent++;
  }
  on.left.resize(setting.sources.size());
  on.right.resize(setting.sources.size());
  for (std::size_t s = 0; s < setting.sources.size(); ++s) {
    const Source& source = setting.sources[s];
    on.rules.push_back({source.ju, source.jv, source.juv, on.setting.omg, on.setting.g,
                        on.setting.start, on.setting.offset, source.kind});
    if (!used[s]) continue;
    MERGEPLAN_LET(left, SendPart(n, source.left));
    on.left[s] = left;
    if (source.kind == kCopyLeft) continue;
    MERGEPLAN_LET(right, SendPart(n, source.right));
    on.right[s] = right;
  }
  return on;
}

absl::Status Engine::Pairs(const Setting& setting, const std::vector<LeftEntry>& runs, double limit,
                           const std::function<bool()>& stop, std::vector<FoundPair>& found) {
  std::vector<bool> used(setting.sources.size());
  for (const LeftEntry& run : runs) used[run.source] = true;
  MERGEPLAN_LET(on, Enter(setting, used));
  std::vector<PairRun> list(runs.size());
  std::uint64_t total = 0;
  for (std::size_t k = 0; k < runs.size(); ++k) {
    const int source = runs[k].source;
    list[k] = {on.left[source], on.right[source], total, static_cast<std::uint32_t>(runs[k].left),
               static_cast<std::uint32_t>(source)};
    total += setting.sources[source].right.entries;
  }
  MERGEPLAN_LET(device_runs, Send("runs", list));
  MERGEPLAN_LET(rules, Send("rules", on.rules));
  MERGEPLAN_LET(device_found, Room<Found>("found", std::min(total, sizes_.pairs)));
  MERGEPLAN_LET(device_count, Room<unsigned long long>("count", 1));
  std::vector<Found> some;
  for (std::uint64_t begin = 0; begin < total; begin += sizes_.pairs) {
    const std::uint64_t end = std::min(total, begin + sizes_.pairs);
    MERGEPLAN_TRY(backend_->Zero(device_count, sizeof *device_count));
    MERGEPLAN_TRY(
        backend_->Run(PairArgs{setting.n, device_runs, list.size(), begin, end, rules, on.setting.a,
                               on.setting.b, limit, device_found, device_count}));
    unsigned long long count = 0;
    MERGEPLAN_TRY(backend_->Download(&count, device_count, sizeof count));
    some.resize(std::min<std::uint64_t>(count, end - begin));
    if (!some.empty())
      MERGEPLAN_TRY(backend_->Download(some.data(), device_found, some.size() * sizeof(Found)));
    for (const Found& one : some) {
      const auto after =
          std::upper_bound(list.begin(), list.end(), one.pair,
                           [](std::uint64_t pair, const PairRun& run) { return pair < run.first; });
      const std::size_t run = after - list.begin() - 1;
      found.push_back({run, static_cast<int>(one.pair - list[run].first), one.bound});
    }
    if (stop()) break;
  }
  return absl::OkStatus();
}

// The candidates of one batch on the device, and where the kept entries are.
struct Engine::Batch {
  std::size_t n, count, kept_count;
  const double* values;
  const double* shares;
  const Limits* limits;
  const double* sign;
  double* kept;
  double* kept_shares;
  Limits* kept_limits;
  double* losses;
};

absl::Status Engine::Plain(const Batch& batch, std::vector<std::uint32_t>& which,
                           std::vector<std::uint32_t>& stands) {
  MERGEPLAN_LET(device_covered, Room<std::uint32_t>("covered", batch.count));
  MERGEPLAN_LET(device_among, Room<unsigned char>("among", batch.count * batch.count));
  MERGEPLAN_TRY(backend_->Zero(device_covered, batch.count * sizeof(std::uint32_t)));
  MERGEPLAN_TRY(backend_->Run(CoveredArgs{batch.n, batch.kept_count, batch.count, batch.kept,
                                          batch.kept_limits, batch.values, batch.limits, batch.sign,
                                          device_covered}));
  MERGEPLAN_TRY(backend_->Run(AmongArgs{batch.n, batch.count, batch.values, batch.limits,
                                        batch.sign, device_covered, device_among}));
  std::vector<std::uint32_t> covered(batch.count);
  std::vector<unsigned char> among(batch.count * batch.count);
  MERGEPLAN_TRY(
      backend_->Download(covered.data(), device_covered, covered.size() * sizeof(std::uint32_t)));
  MERGEPLAN_TRY(backend_->Download(among.data(), device_among, among.size()));
  for (std::size_t c = 0; c < batch.count; ++c) {
    if (covered[c] != 0) {
      stands.push_back(static_cast<std::uint32_t>(batch.kept_count - covered[c]));
      continue;
    }
    const auto first = std::find_if(which.begin(), which.end(), [&](std::uint32_t w) {
      return among[w * batch.count + c] != 0;
    });
    stands.push_back(static_cast<std::uint32_t>(batch.kept_count + (first - which.begin())));
    if (first == which.end()) which.push_back(static_cast<std::uint32_t>(c));
  }
  MERGEPLAN_LET(device_which, Send("which", which));
  return backend_->Run(AppendArgs{batch.n, which.size(), batch.kept_count, device_which,
                                  batch.values, batch.limits, batch.kept, batch.kept_limits});
}

absl::Status Engine::Slack(const Batch& batch, double slack, std::vector<std::uint32_t>& which,
                           std::vector<std::uint32_t>& stands) {
  MERGEPLAN_LET(loss, Room<double>("loss", batch.kept_count + batch.count));
  MERGEPLAN_LET(decision, Room<std::int64_t>("decision", batch.count));
  MERGEPLAN_LET(count, Send("kept count", std::vector<std::uint64_t>{batch.kept_count}));
  for (std::size_t c = 0; c < batch.count; ++c) {
    MERGEPLAN_TRY(
        backend_->Run(SlackArgs{batch.n, slack, c, batch.kept_count + c, batch.values, batch.shares,
                                batch.limits, batch.sign, batch.kept, batch.kept_shares,
                                batch.kept_limits, batch.losses, loss, count, decision}));
  }
  std::vector<std::int64_t> decisions(batch.count);
  MERGEPLAN_TRY(
      backend_->Download(decisions.data(), decision, decisions.size() * sizeof(std::int64_t)));
  for (std::size_t c = 0; c < batch.count; ++c) {
    if (decisions[c] >= 0) {
      stands.push_back(static_cast<std::uint32_t>(decisions[c]));
      continue;
    }
    stands.push_back(static_cast<std::uint32_t>(batch.kept_count + which.size()));
    which.push_back(static_cast<std::uint32_t>(c));
  }
  return absl::OkStatus();
}

absl::Status Engine::Filter(const Setting& setting, double slack,
                            const std::vector<FilterCandidate>& candidates, const Proceed& proceed,
                            Kept& kept) {
  const std::size_t n = setting.n;
  std::vector<bool> used(setting.sources.size());
  for (const FilterCandidate& candidate : candidates) used[candidate.source] = true;
  MERGEPLAN_LET(on, Enter(setting, used));
  MERGEPLAN_LET(rules, Send("rules", on.rules));
  std::size_t count = kept.limits.size();
  Batch batch = {};
  batch.n = n;
  batch.sign = on.setting.sign;
  // Room for what is kept and one more batch of it.
  const auto make_room = [&](std::size_t entries) -> absl::Status {
    MERGEPLAN_LET(values, Room<double>("kept", TiledSize(n, entries), true));
    MERGEPLAN_LET(limits, Room<Limits>("kept limits", entries, true));
    batch.kept = values;
    batch.kept_limits = limits;
    if (slack <= 0) return absl::OkStatus();
    MERGEPLAN_LET(shares, Room<double>("kept shares", TiledSize(n, entries), true));
    MERGEPLAN_LET(losses, Room<double>("losses", entries, true));
    batch.kept_shares = shares;
    batch.losses = losses;
    return absl::OkStatus();
  };
  MERGEPLAN_TRY(make_room(count + sizes_.batch));
  if (count > 0) {
    MERGEPLAN_TRY(SendRows(n, count, kept.values.data(), batch.kept));
    MERGEPLAN_TRY(backend_->Upload(batch.kept_limits, kept.limits.data(), count * sizeof(Limits)));
    if (slack > 0) {
      MERGEPLAN_TRY(SendRows(n, count, kept.shares.data(), batch.kept_shares));
      MERGEPLAN_TRY(backend_->Upload(batch.losses, kept.losses.data(), count * sizeof(double)));
    }
  }
  std::vector<std::size_t> added;
  std::vector<std::uint32_t> stands;
  for (std::size_t begin = 0; begin < candidates.size(); begin += sizes_.batch) {
    batch.count = std::min(sizes_.batch, candidates.size() - begin);
    batch.kept_count = count;
    MERGEPLAN_TRY(make_room(count + batch.count));
    std::vector<Made> made;
    std::vector<Limits> limits;
    for (std::size_t c = begin; c < begin + batch.count; ++c) {
      const FilterCandidate& one = candidates[c];
      made.push_back({on.left[one.source], on.right[one.source],
                      static_cast<std::uint32_t>(one.left), static_cast<std::uint32_t>(one.right),
                      static_cast<std::uint32_t>(one.source)});
      limits.push_back(one.limits);
    }
    MERGEPLAN_LET(device_made, Send("made", made));
    MERGEPLAN_LET(device_limits, Send("limits", limits));
    MERGEPLAN_LET(values, Room<double>("values", TiledSize(n, batch.count)));
    double* shares = nullptr;
    if (slack > 0) {
      MERGEPLAN_LET(room, Room<double>("shares", TiledSize(n, batch.count)));
      shares = room;
    }
    MERGEPLAN_TRY(backend_->Run(
        ValueArgs{n, batch.count, device_made, rules, on.setting.a, on.setting.b, values, shares}));
    batch.values = values;
    batch.shares = shares;
    batch.limits = device_limits;
    std::vector<std::uint32_t> which;
    MERGEPLAN_TRY(slack > 0 ? Slack(batch, slack, which, stands) : Plain(batch, which, stands));
    std::int64_t sixteenths = 0;
    std::size_t next = 0;
    for (std::size_t c = 0; c < batch.count; ++c) {
      sixteenths += static_cast<std::int64_t>((count + next) / 16);
      if (next < which.size() && which[next] == c) ++next;
    }
    for (const std::uint32_t c : which) added.push_back(begin + c);
    count += which.size();
    if (!proceed(batch.count, which.size(), sixteenths)) return absl::OkStatus();
  }
  std::vector<double> values(count * n), losses(slack > 0 ? count : 0);
  if (count > 0) MERGEPLAN_TRY(FetchRows(n, count, batch.kept, values.data()));
  if (!losses.empty())
    MERGEPLAN_TRY(backend_->Download(losses.data(), batch.losses, count * sizeof(double)));
  for (const std::size_t c : added) kept.limits.push_back(candidates[c].limits);
  kept.values = std::move(values);
  kept.losses = std::move(losses);
  kept.added = std::move(added);
  kept.stands = std::move(stands);
  return absl::OkStatus();
}

#undef MERGEPLAN_TRY
#undef MERGEPLAN_LET

}  // namespace mergeplan::search::device
