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
#include "planner/data/many.h"
#include "planner/data/spool.h"
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

absl::StatusOr<std::string> Fingerprint(const std::string& input) {
  std::error_code ec;
  if (fs::is_regular_file(input, ec)) return Sha256OfFile(input);
  if (input == "-") {
    MP_ASSIGN_OR_RETURN(const std::string path, SpoolStandardInput());
    return Sha256OfFile(path);
  }
  std::vector<std::string> lines;
  const auto add = [&lines](const fs::path& path) {
    std::error_code none;
    const auto time = fs::last_write_time(path, none).time_since_epoch().count();
    lines.push_back(absl::StrCat(path.string(), " ", fs::file_size(path, none), " ", time));
  };
  if (std::error_code none; !fs::is_directory(input, none)) {
    MP_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesLike(input));
    for (const std::string& file : files) add(file);
  }
  const auto options = fs::directory_options::follow_directory_symlink;
  fs::recursive_directory_iterator it;
  if (lines.empty()) it = fs::recursive_directory_iterator(input, options, ec);
  for (const fs::recursive_directory_iterator end; !ec && it != end; it.increment(ec)) {
    std::error_code none;
    if (it->is_regular_file(none)) add(it->path());
  }
  if (ec) {
    return absl::FailedPreconditionError(
        absl::StrCat(input, ": cannot be listed (", ec.message(), ")"));
  }
  std::sort(lines.begin(), lines.end());
  std::string all;
  for (const std::string& line : lines) absl::StrAppend(&all, line, "\n");
  return Sha256(all);
}

absl::StatusOr<Spectrum> EstimateInShards(const DataFlags& flags, const EstimateOptions& options,
                                          int shards, const std::string& folder) {
  MP_RETURN_IF_ERROR(MakeDirectories(folder));
  MP_ASSIGN_OR_RETURN(const std::string fingerprint, Fingerprint(flags.input));
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
