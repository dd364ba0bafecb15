#include "adapters/linear/recipe.h"

#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "adapters/linear/embedding.h"
#include "planner/base/shortest.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

template <typename Word>
using Words = std::vector<std::pair<Word, const char*>>;

const Words<Draws>& DrawsWords() {
  static const Words<Draws> words = {
      {Draws::kSamples, "samples"}, {Draws::kChi2, "chi2"}, {Draws::kFixed, "fixed"}};
  return words;
}
const Words<OptimizerKind>& OptimizerWords() {
  static const Words<OptimizerKind> words = {{OptimizerKind::kSgd, "sgd"},
                                             {OptimizerKind::kAdam, "adam"},
                                             {OptimizerKind::kAdamW, "adamw"}};
  return words;
}
const Words<RateSchedule>& RateWords() {
  static const Words<RateSchedule> words = {{RateSchedule::kConstant, "constant"},
                                            {RateSchedule::kLinear, "linear"},
                                            {RateSchedule::kCosine, "cosine"}};
  return words;
}
const Words<StudentKind>& StudentWords() {
  static const Words<StudentKind> words = {{StudentKind::kStep, "step"},
                                           {StudentKind::kEmbedding, "embedding"}};
  return words;
}

template <typename Word>
std::string NameOf(const Words<Word>& words, Word word) {
  for (const auto& [value, name] : words) {
    if (value == word) return name;
  }
  return "";
}

absl::Status Wrong(const std::string& option, const std::string& found,
                   const std::string& expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("--", option, " ", found, ": expected ", expected));
}

template <typename Word>
absl::Status ParseWord(const std::string& option, const std::string& text, const Words<Word>& words,
                       Word* out) {
  for (const auto& [value, name] : words) {
    if (text == name) {
      *out = value;
      return absl::OkStatus();
    }
  }
  return Wrong(
      option, text,
      absl::StrCat("one of ", absl::StrJoin(words, ", ", [](std::string* s, const auto& w) {
                     absl::StrAppend(s, w.second);
                   })));
}

absl::Status ParseNumber(const std::string& option, const std::string& text, bool (*holds)(double),
                         const char* expected, double* out) {
  if (!absl::SimpleAtod(text, out) || !holds(*out)) return Wrong(option, text, expected);
  return absl::OkStatus();
}

template <typename Integer>
absl::Status ParseInteger(const std::string& option, const std::string& text, Integer least,
                          Integer* out) {
  if (!absl::SimpleAtoi(text, out) || *out < least) {
    return Wrong(option, text, absl::StrCat("a whole number, ", least, " or more"));
  }
  return absl::OkStatus();
}

bool BelowOne(double x) { return x >= 0 && x < 1; }
bool InsideOne(double x) { return x > 0 && x < 1; }
bool Positive(double x) { return x > 0 && std::isfinite(x); }
bool NotNegative(double x) { return x >= 0 && std::isfinite(x); }

using Setter =
    std::function<absl::Status(const std::string& option, const std::string& text, Recipe* recipe)>;

const std::map<std::string, Setter>& Setters() {
  const auto number = [](double Recipe::*member, bool (*holds)(double), const char* expected) {
    return [=](const std::string& option, const std::string& text, Recipe* r) {
      return ParseNumber(option, text, holds, expected, &(r->*member));
    };
  };
  static const std::map<std::string, Setter> setters = {
      {"draws", [](const std::string& option, const std::string& text,
                   Recipe* r) { return ParseWord(option, text, DrawsWords(), &r->draws); }},
      {"student", [](const std::string& option, const std::string& text,
                     Recipe* r) { return ParseWord(option, text, StudentWords(), &r->student); }},
      {"optimizer",
       [](const std::string& option, const std::string& text, Recipe* r) {
         return ParseWord(option, text, OptimizerWords(), &r->optimizer);
       }},
      {"lr-schedule",
       [](const std::string& option, const std::string& text, Recipe* r) {
         return ParseWord(option, text, RateWords(), &r->rate_schedule);
       }},
      {"momentum", number(&Recipe::momentum, BelowOne, "0 or more, below 1")},
      {"beta1", number(&Recipe::beta1, BelowOne, "0 or more, below 1")},
      {"beta2", number(&Recipe::beta2, BelowOne, "0 or more, below 1")},
      {"eps", number(&Recipe::eps, Positive, "a positive, finite number")},
      {"weight-decay",
       number(&Recipe::weight_decay, NotNegative, "0 or a positive, finite number")},
      {"clip-norm", number(&Recipe::clip_norm, Positive, "a positive, finite number")},
      {"ema", number(&Recipe::ema, InsideOne, "a number above 0 and below 1")},
      {"warmup", [](const std::string& option, const std::string& text,
                    Recipe* r) { return ParseInteger<std::int64_t>(option, text, 0, &r->warmup); }},
      {"accumulate", [](const std::string& option, const std::string& text,
                        Recipe* r) { return ParseInteger<int>(option, text, 1, &r->accumulate); }},
  };
  return setters;
}

}  // namespace

bool IsRecipeOption(const std::string& name) { return Setters().count(name) != 0; }

absl::StatusOr<Recipe> Recipe::Parse(const std::map<std::string, std::string>& options) {
  Recipe recipe;
  for (const auto& [option, text] : options) {
    const auto setter = Setters().find(option);
    if (setter == Setters().end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", option, ": unknown option of a training"));
    }
    MP_RETURN_IF_ERROR(setter->second(option, text, &recipe));
  }
  // Options of another optimizer are mistakes, not to be passed over.
  const bool sgd = recipe.optimizer == OptimizerKind::kSgd;
  for (const char* option : {"beta1", "beta2", "eps"}) {
    if (sgd && options.count(option) != 0) {
      return Wrong(option, options.at(option), "--optimizer adam or adamw beside it; sgd has none");
    }
  }
  if (!sgd && options.count("momentum") != 0) {
    return Wrong("momentum", options.at("momentum"),
                 "--optimizer sgd beside it; adam and adamw have --beta1");
  }
  if (recipe.optimizer == OptimizerKind::kAdamW && options.count("weight-decay") == 0) {
    recipe.weight_decay = 0.01;
  }
  if (recipe.optimizer == OptimizerKind::kAdam && recipe.student == StudentKind::kEmbedding &&
      recipe.weight_decay != 0) {
    return Wrong(
        "weight-decay", options.at("weight-decay"),
        "0 for --optimizer adam --student embedding; use --optimizer adamw, whose decay is "
        "not part of the gradient");
  }
  return recipe;
}

std::map<std::string, std::string> Recipe::Options() const {
  std::map<std::string, std::string> out = {{"draws", NameOf(DrawsWords(), draws)},
                                            {"student", NameOf(StudentWords(), student)},
                                            {"optimizer", NameOf(OptimizerWords(), optimizer)},
                                            {"lr-schedule", NameOf(RateWords(), rate_schedule)},
                                            {"warmup", absl::StrCat(warmup)},
                                            {"accumulate", absl::StrCat(accumulate)},
                                            {"weight-decay", ShortestText(weight_decay)}};
  if (optimizer == OptimizerKind::kSgd) {
    out["momentum"] = ShortestText(momentum);
  } else {
    out["beta1"] = ShortestText(beta1);
    out["beta2"] = ShortestText(beta2);
    out["eps"] = ShortestText(eps);
  }
  if (clip_norm > 0) out["clip-norm"] = ShortestText(clip_norm);
  if (ema > 0) out["ema"] = ShortestText(ema);
  return out;
}

absl::Status Recipe::Validate(std::int64_t updates, double feature_norm) const {
  if (warmup > updates) {
    return Wrong("warmup", absl::StrCat(warmup),
                 absl::StrCat("at most the number of updates, ", updates));
  }
  if (student == StudentKind::kEmbedding && feature_norm != kEmbeddingNorm) {
    return Wrong("feature-norm", ShortestText(feature_norm),
                 absl::StrCat(kEmbeddingNorm,
                              ", the squared norm of the embedding, for --student "
                              "embedding"));
  }
  return absl::OkStatus();
}

double Recipe::RateFactor(std::int64_t update, std::int64_t updates) const {
  if (update < warmup) return static_cast<double>(update + 1) / static_cast<double>(warmup);
  if (rate_schedule == RateSchedule::kConstant) return 1;
  const double way = static_cast<double>(update - warmup) / static_cast<double>(updates - warmup);
  if (rate_schedule == RateSchedule::kLinear) return 1 - way;
  return (1 + std::cos(3.14159265358979323846 * way)) / 2;
}

}  // namespace mergeplan
