#include "planner/spectrum/parts.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/status_macros.h"
#include "planner/data/fingerprint.h"

namespace mergeplan {
namespace {

// How much of the data a part is.
double ShareOf(const SpectrumPart& part) {
  double count = 0;
  for (const auto& [from, to] : part.numbers) count += to - from + 1;
  return count / part.of;
}

// Two parts of the same data, cut in the same way.
bool Overlap(const SpectrumPart& a, const SpectrumPart& b) {
  if (!a.every || a.of == b.of) {
    // Shares of the whole, as fractions. Of two divisions, borders may lie on one sample.
    for (const auto& [from, to] : a.numbers) {
      for (const auto& [first, last] : b.numbers) {
        const std::int64_t p = a.of, q = b.of;
        if ((from - 1) * q < last * p && (first - 1) * p < to * q) return true;
      }
    }
    return false;
  }
  // Sample s belongs to both where s = i (mod a.of) = j (mod b.of), which has an answer exactly
  // where i = j modulo their common divisor.
  const std::size_t common = static_cast<std::size_t>(std::gcd(a.of, b.of));
  std::vector<bool> taken(common);
  for (const auto& [from, to] : a.numbers) {
    for (int i = from; i <= to; ++i) taken[static_cast<std::size_t>(i) % common] = true;
  }
  for (const auto& [from, to] : b.numbers) {
    for (int i = from; i <= to; ++i) {
      if (taken[static_cast<std::size_t>(i) % common]) return true;
    }
  }
  return false;
}

void Absorb(const SpectrumPart& more, SpectrumPart& part) {
  part.numbers.insert(part.numbers.end(), more.numbers.begin(), more.numbers.end());
  std::sort(part.numbers.begin(), part.numbers.end());
  std::vector<std::pair<int, int>> joined;
  for (const auto& run : part.numbers) {
    if (!joined.empty() && joined.back().second + 1 == run.first) {
      joined.back().second = run.second;
    } else {
      joined.push_back(run);
    }
  }
  part.numbers = std::move(joined);
  if (ShareOf(part) < 1) return;
  part.of = 1;
  part.every = false;
  part.numbers = {{1, 1}};
}

bool IsWhole(double share) { return std::abs(share - 1) < 1e-13; }

}  // namespace

std::string PartNumbersText(const SpectrumPart& part) {
  return absl::StrJoin(part.numbers, ",", [](std::string* out, const std::pair<int, int>& run) {
    absl::StrAppend(out, run.first);
    if (run.second > run.first) absl::StrAppend(out, "-", run.second);
  });
}

absl::StatusOr<std::vector<std::pair<int, int>>> ParsePartNumbers(const std::string& text, int of) {
  std::vector<std::pair<int, int>> out;
  int last = 0;
  for (const absl::string_view piece : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(piece, '-');
    int from = 0, to = 0;
    const bool read = ends.size() <= 2 && absl::SimpleAtoi(ends.front(), &from) &&
                      absl::SimpleAtoi(ends.back(), &to);
    if (!read || from <= last || to < from || to > of) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", text, "\" are no numbers of parts, expected rising ones of 1..", of,
                       " such as 1-3,5"));
    }
    out.emplace_back(from, to);
    last = to;
  }
  return out;
}

std::string Describe(const SpectrumPart& part) {
  const std::string array = part.array.empty() ? "" : absl::StrCat(", array ", part.array);
  if (part.of == 1) return absl::StrCat("all of ", part.source, array);
  const bool several = part.numbers.size() > 1 || part.numbers[0].second > part.numbers[0].first;
  return absl::StrCat(several ? "parts " : "part ", PartNumbersText(part), " of ", part.of, " of ",
                      part.source, array);
}

bool SameData(const SpectrumPart& a, const SpectrumPart& b) {
  // Without a name, it is the only array of the file.
  if (a.array != b.array && !a.array.empty() && !b.array.empty()) return false;
  const bool comparable = IsQuickFingerprint(a.sha256) == IsQuickFingerprint(b.sha256);
  if (!a.sha256.empty() && !b.sha256.empty() && comparable) return a.sha256 == b.sha256;
  return a.source == b.source;
}

absl::Status AddParts(const std::vector<SpectrumPart>& more, std::vector<SpectrumPart>& parts) {
  for (const SpectrumPart& added : more) {
    SpectrumPart* place = nullptr;
    for (SpectrumPart& part : parts) {
      if (!SameData(part, added)) continue;
      const bool cut_alike = part.every == added.every || part.of == 1 || added.of == 1;
      if (!cut_alike) {
        return absl::InvalidArgumentError(absl::StrCat(
            "it is ", Describe(added), ", and another is ", Describe(part),
            ", one cut into runs of samples and one by taking every so-manieth (as with "
            "--skip-nonfinite); expected parts of one division, which have no samples in common"));
      }
      if (part.of == 1 || added.of == 1 || Overlap(part, added)) {
        return absl::InvalidArgumentError(
            absl::StrCat("it is ", Describe(added), ", and another is ", Describe(part),
                         ", which have samples in common; expected parts without common samples"));
      }
      if (part.of == added.of) place = &part;
    }
    if (place == nullptr) {
      parts.push_back(added);
    } else {
      Absorb(added, *place);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> MissingParts(const std::vector<SpectrumPart>& parts) {
  for (const SpectrumPart& part : parts) {
    double share = 0;
    std::vector<std::string> there;
    const SpectrumPart* other = nullptr;
    for (const SpectrumPart& candidate : parts) {
      if (!SameData(part, candidate)) {
        other = &candidate;
        continue;
      }
      share += ShareOf(candidate);
      there.push_back(Describe(candidate));
    }
    if (IsWhole(share)) continue;
    if (other != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "there is ", absl::StrJoin(there, " and "), " beside ", Describe(*other),
          "; expected parts of one data set (one file and array), or whole data sets: merge the "
          "parts of each by themselves first"));
    }
    return absl::StrCat("only ", absl::StrJoin(there, " and "));
  }
  return std::string();
}

}  // namespace mergeplan
