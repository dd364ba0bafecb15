#include "planner/cli/shards.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"
#include "planner/cli/command.h"
#include "planner/data/fingerprint.h"
#include "planner/spectrum/merge.h"

namespace mergeplan::cli {
namespace fs = std::filesystem;

absl::Status ParseShard(const std::string& text, DataFlags& flags) {
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  if (parts.size() == 2 && absl::SimpleAtoi(parts[0], &flags.shard) &&
      absl::SimpleAtoi(parts[1], &flags.shards) && 1 <= flags.shard &&
      flags.shard <= flags.shards && flags.shards <= 1'000'000) {
    return absl::OkStatus();
  }
  return Misuse(absl::StrCat("--shard: \"", text,
                             "\" is no part, expected I/N with 1 <= I <= N, such as 1/8"));
}

namespace {

// The parts of one data set, as they lie in a folder.
class Checkpoint {
 public:
  static absl::StatusOr<Checkpoint> Open(const DataFlags& flags, const EstimateOptions& options,
                                         int shards, const std::string& folder) {
    Checkpoint out(flags, options, shards, folder);
    MP_RETURN_IF_ERROR(MakeDirectories(folder));
    MP_ASSIGN_OR_RETURN(out.options_.source_sha256, QuickFingerprintOfInput(flags.input));
    MP_ASSIGN_OR_RETURN(out.whole_, OpenFromFlags(flags));
    MP_ASSIGN_OR_RETURN(out.scaling_, ScalingOf(flags, *out.whole_));
    return out;
  }
  // The hash of the whole input, for the result: noted in the folder, so that a run that goes on
  // there need not read it all once more.
  absl::StatusOr<std::string> HashOfWhole() const {
    const std::string note = folder_ + "/input.sha256";
    const std::string mark = fingerprint() + " ";
    const std::string there = ReadFile(note).value_or("");
    if (absl::StartsWith(there, mark) && absl::EndsWith(there, "\n")) {
      return there.substr(mark.size(), there.size() - mark.size() - 1);
    }
    MP_ASSIGN_OR_RETURN(const std::string hash, HashOfInput(flags_.input));
    MP_RETURN_IF_ERROR(WriteFileAtomically(note, absl::StrCat(mark, hash, "\n")));
    return hash;
  }
  std::string PathOf(int k) const {
    return absl::StrCat(folder_, "/part-", k, "-of-", shards_, ".toml");
  }
  // The part that lies there, if it is part k of this data; else it is to be made. Half of a pair
  // that a kill left behind, other data, or another part count for nothing.
  std::optional<Spectrum> Find(int k) const {
    const std::string path = PathOf(k);
    std::error_code ec;
    if (!fs::exists(path, ec)) return std::nullopt;
    absl::StatusOr<Spectrum> there = ReadSpectrum(path);
    const std::vector<SpectrumPart> wanted = {PartOf(FlagsOf(k), *whole_, fingerprint())};
    if (!there.ok() || there->parts != wanted || there->shape != whole_->shape() ||
        there->scaling != scaling_ || there->confidence != options_.confidence ||
        there->has_covariance() != options_.want_covariance) {
      return std::nullopt;
    }
    return *std::move(there);
  }
  absl::StatusOr<Spectrum> FindOrMake(int k) const {
    if (std::optional<Spectrum> there = Find(k)) return *std::move(there);
    std::error_code ec;
    if (fs::exists(PathOf(k), ec)) {
      std::fprintf(stderr,
                   "mergeplan analyze: %s is of other data, another part or damaged; read anew\n",
                   PathOf(k).c_str());
    }
    MP_ASSIGN_OR_RETURN(Spectrum part, EstimateFromFlags(FlagsOf(k), options_));
    MP_RETURN_IF_ERROR(WriteSpectrum(part, PathOf(k)));
    return part;
  }

 private:
  // What the parts in the folder are known by; quick to make (QuickFingerprintOfInput).
  const std::string& fingerprint() const { return options_.source_sha256; }
  Checkpoint(const DataFlags& flags, const EstimateOptions& options, int shards,
             const std::string& folder)
      : flags_(flags), options_(options), shards_(shards), folder_(folder) {
    options_.want_pca = options_.want_dct = false;
    options_.shrinkage_rule = "none";
  }
  DataFlags FlagsOf(int k) const {
    DataFlags flags = flags_;
    flags.shard = k;
    flags.shards = shards_;
    return flags;
  }

  DataFlags flags_;
  EstimateOptions options_;
  int shards_;
  std::string folder_;
  std::unique_ptr<SampleSource> whole_;
  Scaling scaling_;
};

int NumberIn(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  int number = 0;
  return text != nullptr && absl::SimpleAtoi(text, &number) ? number : otherwise;
}

absl::Status Stopped(int made, int of) {
  return absl::CancelledError(absl::StrCat("stopped after ", made, " of ", of,
                                           " parts; the same command goes on from there"));
}

}  // namespace

Ranks RanksOfEnvironment() {
  for (const auto& [size, rank] :
       {std::pair{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}, {"PMI_SIZE", "PMI_RANK"}}) {
    const Ranks out = {NumberIn(rank, -1), NumberIn(size, 0)};
    if (out.size > 1 && 0 <= out.rank && out.rank < out.size) return out;
  }
  return {};
}

absl::StatusOr<std::optional<Spectrum>> EstimateInShards(const DataFlags& flags,
                                                         const EstimateOptions& options, int shards,
                                                         const std::string& folder,
                                                         const Ranks& ranks) {
  MP_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                      Checkpoint::Open(flags, options, shards, folder));
  CatchInterrupts();
  std::vector<std::optional<Spectrum>> parts(static_cast<std::size_t>(shards));
  int made = 0;
  for (int k = 1; k <= shards; ++k) {
    if ((k - 1) % ranks.size != ranks.rank) continue;
    if (Interrupted()) return Stopped(made, shards);
    MP_ASSIGN_OR_RETURN(parts[static_cast<std::size_t>(k - 1)], checkpoint.FindOrMake(k));
    ++made;
    if (ranks.rank > 0) parts[static_cast<std::size_t>(k - 1)].reset();
  }
  if (ranks.rank > 0) return std::optional<Spectrum>();
  std::vector<Spectrum> all;
  for (int k = 1; k <= shards; ++k) {
    std::optional<Spectrum>& part = parts[static_cast<std::size_t>(k - 1)];
    // Another rank's. Where that one fails, mpirun ends this one.
    while (!part && !(part = checkpoint.Find(k))) {
      if (Interrupted()) return Stopped(made, shards);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    all.push_back(*std::move(part));
    part.reset();
  }
  EndOnInterrupt("analyze",
                 absl::StrCat("stopped while the parts were put together; all ", shards, " lie in ",
                              folder, ", and the same command goes on from there"));
  EstimateOptions merge_options = options;
  merge_options.threads = flags.threads;
  merge_options.source = NameOfInput(flags);
  if (flags.hash) {
    MP_ASSIGN_OR_RETURN(merge_options.source_sha256, checkpoint.HashOfWhole());
  }
  MP_ASSIGN_OR_RETURN(Spectrum merged, MergeSpectra(all, merge_options));
  // All of the data now, by its hash where that is known.
  for (SpectrumPart& part : merged.parts) {
    if (!merge_options.source_sha256.empty()) part.sha256 = merge_options.source_sha256;
  }
  return std::optional<Spectrum>(std::move(merged));
}

}  // namespace mergeplan::cli
