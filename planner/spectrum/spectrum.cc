#include "planner/spectrum/spectrum.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mergeplan {
namespace {

std::optional<double> ParseFinite(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

absl::StatusOr<Scaling> ParseScaling(std::string_view text) {
  Scaling scaling;
  scaling.text = std::string(text);
  if (text == "none") return scaling;
  const auto error = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("scaling \"", scaling.text, "\" ", std::string(why),
                     "; expected none, or LOW:HIGH, the range for pixels 0..255, such as -1:1"));
  };
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return error("is neither");
  const std::optional<double> low = ParseFinite(text.substr(0, colon));
  const std::optional<double> high = ParseFinite(text.substr(colon + 1));
  if (!low.has_value()) return error("has no finite number before the colon");
  if (!high.has_value()) return error("has no finite number after the colon");
  if (!(*low < *high)) return error("does not rise from LOW to HIGH");
  scaling.multiply = (*high - *low) / 255;
  scaling.add = *low;
  if (!std::isnormal(scaling.multiply)) {
    return error("is a range that float64 cannot hold");
  }
  return scaling;
}

std::string_view ToString(Regime regime) {
  switch (regime) {
    case Regime::kLow:
      return "low";
    case Regime::kHigh:
      return "high";
    case Regime::kMixed:
      break;
  }
  return "mixed";
}

void SummarizeVariances(Basis& basis) {
  const auto above = std::count_if(basis.variances.begin(), basis.variances.end(),
                                   [](double variance) { return variance > 1; });
  const auto all = static_cast<std::ptrdiff_t>(basis.variances.size());
  basis.regime = above == 0 ? Regime::kLow : above == all ? Regime::kHigh : Regime::kMixed;
  basis.fraction_above_one = all > 0 ? static_cast<double>(above) / static_cast<double>(all) : 0.0;
}

double Spectrum::LeadingShare() const {
  double all = 0, carried = 0;
  for (const double variance : diagonal.variances) all += variance;
  for (const double variance : leading.variances) carried += variance;
  return all > 0 ? carried / all : 0.0;
}

std::vector<const Basis*> Spectrum::Bases() const {
  std::vector<const Basis*> out = {&diagonal};
  if (has_dct()) out.push_back(&dct);
  if (has_pca()) out.push_back(&pca);
  return out;
}

absl::StatusOr<const Basis*> Spectrum::FindBasis(std::string_view name) const {
  std::vector<std::string> names;
  for (const Basis* basis : Bases()) {
    // The data's own axes go by their name even in a spectrum that is not filled in yet.
    names.push_back(basis == &diagonal ? "diagonal" : basis->name);
    if (names.back() == name) return basis;
  }
  return absl::NotFoundError(
      absl::StrCat("basis \"", std::string(name), "\" is not in this spectrum; it has ",
                   names.size() == 1 ? "only diagonal"
                                     : absl::StrJoin(names, names.size() == 2 ? " and " : ", ")));
}

}  // namespace mergeplan
