#include "adapters/autoencoding/options.h"

#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "planner/base/shortest.h"
#include "planner/base/status_macros.h"

namespace mergeplan::autoencoding {
namespace {

using TextMap = std::map<std::string, std::string>;

constexpr char kMsSsimWord[] = "ms-ssim", kSquaredWord[] = "squared";
constexpr char kAuto[] = "auto";
constexpr int kLargestWindow = 101;

absl::Status Wrong(const std::string& option, const std::string& text,
                   const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat("--", option, " ", text, ": expected ", expected));
}

std::optional<std::string> Take(const std::string& name, TextMap* texts) {
  const auto at = texts->find(name);
  if (at == texts->end()) return std::nullopt;
  std::string text = at->second;
  texts->erase(at);
  return text;
}

// "auto" is 0.
bool Whole(const std::string& text, int most, int* out) {
  *out = 0;
  return text == kAuto || (absl::SimpleAtoi(text, out) && *out >= 1 && *out <= most);
}

TextMap WithOwn(TextMap out, const Options& options) {
  for (const char* name : {"loss", "weighting", "gamma", "sample-steps"}) out.erase(name);
  out["loss"] = options.loss == LossKind::kMsSsim ? kMsSsimWord : kSquaredWord;
  out["kl-weight"] = ShortestText(options.kl_weight);
  if (options.loss == LossKind::kMsSsim) {
    out["window"] = options.window == 0 ? kAuto : absl::StrCat(options.window);
    out["scales"] = options.scales == 0 ? kAuto : absl::StrCat(options.scales);
  }
  return out;
}

}  // namespace

absl::StatusOr<Options> Options::Parse(TextMap texts) {
  Options out;
  if (const auto text = Take("loss", &texts)) {
    if (*text != kMsSsimWord && *text != kSquaredWord) {
      return Wrong("loss", *text, "ms-ssim or squared");
    }
    out.loss = *text == kSquaredWord ? LossKind::kSquared : LossKind::kMsSsim;
  }
  if (const auto text = Take("kl-weight", &texts)) {
    if (!absl::SimpleAtod(*text, &out.kl_weight) || !(out.kl_weight >= 0) ||
        !std::isfinite(out.kl_weight)) {
      return Wrong("kl-weight", *text, "a finite number, 0 or more");
    }
  }
  for (const char* name : {"window", "scales"}) {
    if (out.loss == LossKind::kSquared && texts.count(name) != 0) {
      return Wrong(name, texts[name], "--loss ms-ssim beside it");
    }
  }
  if (const auto text = Take("window", &texts)) {
    int window = 0;
    if (!Whole(*text, kLargestWindow, &window) || (window != 0 && window % 2 == 0)) {
      return Wrong("window", *text, absl::StrCat("auto or an odd number, 1 to ", kLargestWindow));
    }
    out.window = window;
  }
  if (const auto text = Take("scales", &texts)) {
    if (!Whole(*text, kMostScales, &out.scales)) {
      return Wrong("scales", *text, absl::StrCat("auto, or 1 to ", kMostScales));
    }
  }
  if ((out.window == 0) != (out.scales == 0)) {
    return absl::InvalidArgumentError("--window and --scales: expected both or none");
  }
  for (const char* name : {"weighting", "gamma", "sample-steps"}) {
    if (texts.count(name) == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, ": is no option of an autoencoder's training; leave it out"));
  }
  texts.emplace("lr", "0.001");
  texts.emplace("samples", "32");
  MP_ASSIGN_OR_RETURN(out.training, denoising::Options::Parse(texts));
  if (out.training.precision == kAuto) {
    return Wrong("precision", out.training.precision, "full, bf16 or fp16");
  }
  if (out.training.layout != "contiguous") {
    return Wrong("layout", out.training.layout,
                 "contiguous, the only one that autoencoders are trained with");
  }
  return out;
}

TextMap Options::Texts() const { return WithOwn(training.Texts(), *this); }
TextMap Options::DecidingTexts() const { return WithOwn(training.DecidingTexts(), *this); }

}  // namespace mergeplan::autoencoding
