#include "adapters/denoising/options.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "adapters/network/loss.h"
#include "adapters/runtime/network_options.h"
#include "planner/base/shortest.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::denoising {
namespace {

using TextMap = std::map<std::string, std::string>;

constexpr std::int64_t kMost = std::int64_t{1} << 53;
constexpr char kOwnLoss[] = "output", kContiguous[] = "contiguous";

constexpr std::pair<const char*, std::int64_t Options::*> kTold[] = {
    {"log-every", &Options::log_every},
    {"samples", &Options::samples},
    {"sample-steps", &Options::sample_steps},
    {"sample-every", &Options::sample_every}};

absl::Status Wrong(const std::string& option, const std::string& text,
                   const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat("--", option, " ", text, ": expected ", expected));
}

// Takes options out of a map; the first fault stays.
class Taker {
 public:
  explicit Taker(TextMap texts) : texts_(std::move(texts)) {}

  void Whole(const std::string& name, std::int64_t least, std::int64_t* out) {
    Take(name, [&](const std::string& text) {
      if (absl::SimpleAtoi(text, out) && *out >= least && *out <= kMost) return absl::OkStatus();
      return Wrong(name, text, absl::StrCat("a whole number, ", least, " or more"));
    });
  }
  void Number(const std::string& name, bool (*holds)(double), const char* expected, double* out) {
    Take(name, [&](const std::string& text) {
      if (absl::SimpleAtod(text, out) && holds(*out)) return absl::OkStatus();
      return Wrong(name, text, expected);
    });
  }
  // `parse` gives a StatusOr of what is stored.
  template <typename Parse, typename Out>
  void Word(const std::string& name, Parse parse, const char* expected, Out* out) {
    Take(name, [&](const std::string& text) {
      auto parsed = parse(text);
      if (!parsed.ok()) return Wrong(name, text, expected);
      *out = *std::move(parsed);
      return absl::OkStatus();
    });
  }
  template <typename Body>
  void Take(const std::string& name, Body body) {
    const auto at = texts_.find(name);
    if (at == texts_.end()) return;
    if (status_.ok()) status_ = body(at->second);
    texts_.erase(at);
  }
  const absl::Status& status() const { return status_; }
  const TextMap& rest() const { return texts_; }

 private:
  TextMap texts_;
  absl::Status status_;
};

bool Positive(double x) { return x > 0 && std::isfinite(x); }
bool BelowOne(double x) { return x >= 0 && x < 1; }

absl::StatusOr<bool> YesOrNo(const std::string& text) {
  if (text == "yes" || text == "no") return text == "yes";
  return absl::InvalidArgumentError("");
}
absl::StatusOr<std::string> PrecisionWord(const std::string& text) {
  if (text == "full" || text == "bf16" || text == "fp16" || text == kAuto) return text;
  return absl::InvalidArgumentError("");
}
absl::StatusOr<std::string> LayoutWord(const std::string& text) {
  if (text == kContiguous || text == "channels_last" || text == kAuto) return text;
  return absl::InvalidArgumentError("");
}
absl::StatusOr<std::string> ScalingText(const std::string& text) {
  MP_ASSIGN_OR_RETURN(const Scaling scaling, ParseScaling(text));
  return scaling.text;
}

// How the recipe's options begin here.
void SettleRecipe(std::int64_t iterations, TextMap* texts) {
  texts->emplace("optimizer", "adamw");
  texts->emplace("lr-schedule", "cosine");
  texts->emplace("warmup", absl::StrCat(std::min<std::int64_t>(500, iterations / 10)));
  texts->emplace("clip-norm", "1");
}

}  // namespace

absl::StatusOr<Options> Options::Parse(const TextMap& texts) {
  Options out;
  Taker taker(texts);
  taker.Whole("iterations", 1, &out.iterations);
  taker.Whole("batch", 1, &out.batch);
  taker.Whole("seed", 0, &out.seed);
  for (const auto& [name, member] : kTold) {
    taker.Whole(name, member == &Options::log_every ? 1 : 0, &(out.*member));
  }
  if (taker.status().ok() && out.samples > 0 && out.sample_steps < 1) {
    return Wrong("sample-steps", absl::StrCat(out.sample_steps), "1 or more");
  }
  taker.Number("lr", Positive, "a positive, finite number", &out.lr);
  taker.Number("ema", BelowOne, "0 (no average) or more, below 1", &out.ema);
  taker.Number("gamma", Positive, "a positive, finite number", &out.loss.gamma);
  taker.Word("flip", YesOrNo, "yes or no", &out.flip);
  taker.Word("precision", PrecisionWord, "full, bf16, fp16 or auto", &out.precision);
  taker.Word("layout", LayoutWord, "contiguous, channels_last or auto", &out.layout);
  taker.Word("scaling", ScalingText, "LOW:HIGH with LOW < HIGH, or none", &out.scaling);
  taker.Take("loss", [&](const std::string& text) {
    out.own_loss = text == kOwnLoss;
    if (out.own_loss) return absl::OkStatus();
    const auto space = network::ParseLossSpace(text);
    if (!space.ok() || *space == network::LossSpace::kZ) {
      return Wrong("loss", text, "one of output, x0, epsilon, v");
    }
    out.loss.space = *space;
    return absl::OkStatus();
  });
  taker.Word(
      "weighting", [](const std::string& text) { return network::ParseWeighting(text); },
      "one of uniform, snr, truncated-snr, min-snr-gamma", &out.loss.weighting);
  MP_RETURN_IF_ERROR(taker.status());
  if (out.loss.weighting != network::Weighting::kMinSnrGamma && texts.count("gamma") != 0) {
    return Wrong("gamma", texts.at("gamma"), "--weighting min-snr-gamma beside it");
  }
  // A weighting is stated for x0, and is then the same in every space (adapters/network/loss.h).
  if (out.own_loss && out.loss.weighting != network::Weighting::kUniform) {
    out.own_loss = false;
    out.loss.space = network::LossSpace::kX0;
  }
  TextMap recipe = taker.rest();
  for (const auto& [name, text] : recipe) {
    if (!IsRecipeOption(name) || name == "draws" || name == "student") {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, ": is no option of a teacher's training; leave it out"));
    }
  }
  SettleRecipe(out.iterations, &recipe);
  MP_ASSIGN_OR_RETURN(out.recipe, Recipe::Parse(recipe));
  MP_RETURN_IF_ERROR(out.recipe.Validate(out.iterations, 1));
  return out;
}

std::map<std::string, std::string> Options::Texts() const {
  std::map<std::string, std::string> out = DecidingTexts();
  for (const auto& [name, member] : kTold) out[name] = absl::StrCat(this->*member);
  out["layout"] = layout;
  return out;
}

std::map<std::string, std::string> Options::DecidingTexts() const {
  std::map<std::string, std::string> out = recipe.Options();
  out.erase("draws");
  out.erase("student");
  out["lr"] = ShortestText(lr);
  out["iterations"] = absl::StrCat(iterations);
  out["batch"] = absl::StrCat(batch);
  out["ema"] = ShortestText(ema);
  out["loss"] = own_loss ? kOwnLoss : std::string(network::ToString(loss.space));
  out["weighting"] = std::string(network::ToString(loss.weighting));
  if (loss.weighting == network::Weighting::kMinSnrGamma) out["gamma"] = ShortestText(loss.gamma);
  out["flip"] = flip ? "yes" : "no";
  out["precision"] = precision;
  // Said where it is not as it always was.
  if (layout != kContiguous) out["layout"] = layout;
  out["seed"] = absl::StrCat(seed);
  if (!scaling.empty()) out["scaling"] = scaling;
  return out;
}

double KeptByAverage(double ema, std::int64_t update) {
  const auto u = static_cast<double>(update);
  return std::min(ema, (1 + u) / (10 + u));
}

}  // namespace mergeplan::denoising
