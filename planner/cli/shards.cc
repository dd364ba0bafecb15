#include "planner/cli/shards.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

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

absl::StatusOr<Spectrum> EstimateInShards(const DataFlags& flags, const EstimateOptions& options,
                                          int shards, const std::string& folder) {
  MP_RETURN_IF_ERROR(MakeDirectories(folder));
  MP_ASSIGN_OR_RETURN(const std::string fingerprint, FingerprintOfInput(flags.input));
  EstimateOptions part_options = options;
  part_options.want_pca = part_options.want_dct = false;
  part_options.shrinkage_rule = "none";
  CatchInterrupts();
  std::vector<Spectrum> parts;
  for (int k = 1; k <= shards; ++k) {
    const std::string path = absl::StrCat(folder, "/part-", k, "-of-", shards, ".toml");
    DataFlags part_flags = flags;
    part_flags.shard = k;
    part_flags.shards = shards;
    std::error_code ec;
    if (fs::exists(path, ec)) {
      absl::StatusOr<Spectrum> there = ReadSpectrum(path);
      // Half of a pair that a kill left behind, or other data: read again.
      const bool same_scale =
          there.ok() && (flags.scale.empty() || there->scaling.text == flags.scale);
      if (there.ok() && there->source_sha256 == fingerprint && same_scale &&
          there->confidence == options.confidence) {
        parts.push_back(*std::move(there));
        continue;
      }
      std::fprintf(stderr, "mergeplan analyze: %s is of other data or damaged; read anew\n",
                   path.c_str());
    }
    if (Interrupted()) {
      return absl::CancelledError(absl::StrCat("stopped after ", k - 1, " of ", shards,
                                               " parts; the same command goes on from there"));
    }
    MP_ASSIGN_OR_RETURN(Spectrum part, EstimateFromFlags(part_flags, part_options));
    part.source_sha256 = fingerprint;
    MP_RETURN_IF_ERROR(WriteSpectrum(part, path));
    parts.push_back(std::move(part));
  }
  EstimateOptions merge_options = options;
  merge_options.threads = flags.threads;
  merge_options.source = ReplaceInvalidUtf8(flags.input);
  merge_options.source_sha256 = fingerprint;
  return MergeSpectra(parts, merge_options);
}

}  // namespace mergeplan::cli
