#include "adapters/encoding/share.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace mergeplan::encoding {

absl::StatusOr<Share> ParseShare(const std::string& text) {
  Share share;
  if (text.empty()) return share;
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &share.index) ||
      !absl::SimpleAtoi(parts[1], &share.count) || share.count < 1 || share.count > 1'000'000 ||
      share.index < 1 || share.index > share.count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--shard ", text, ": expected INDEX/COUNT with 1 <= INDEX <= COUNT <= 1000000"));
  }
  return share;
}

}  // namespace mergeplan::encoding
