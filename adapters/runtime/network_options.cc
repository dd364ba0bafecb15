#include "adapters/runtime/network_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/shortest.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 53;

absl::Status Wrong(const std::string& option, const std::string& text,
                   const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat("--", option, " ", text, ": expected ", expected));
}

struct Whole {
  const char* name;
  std::int64_t NetworkOptions::*member;
  std::int64_t least;
};
constexpr Whole kWholes[] = {{"iterations", &NetworkOptions::iterations, 1},
                             {"total-updates", &NetworkOptions::total_updates, 1},
                             {"fit-iterations", &NetworkOptions::fit_updates, -1},
                             {"pool-rows", &NetworkOptions::pool_rows, 0},
                             {"held-out-rows", &NetworkOptions::held_out_rows, 2}};

struct Number {
  const char* name;
  double NetworkOptions::*member;
  double least, below;  // least <= it < below; `open`: least < it
  bool open;
};
constexpr Number kNumbers[] = {{"lr", &NetworkOptions::lr, 0, INFINITY, true},
                               {"gain-bound", &NetworkOptions::gain_bound, 0, 1, false},
                               {"gamma", &NetworkOptions::gamma, 0, INFINITY, true}};

struct Word {
  const char* name;
  std::string NetworkOptions::*member;
  std::array<const char*, 4> words;  // null: no more
};
constexpr Word kWords[] = {
    {"loss", &NetworkOptions::loss, {"z", "x0", "epsilon", "v"}},
    {"weighting", &NetworkOptions::weighting, {"uniform", "snr", "truncated-snr", "min-snr-gamma"}},
    {"precision", &NetworkOptions::precision, {"full", "bf16", "fp16", kAuto}},
    {"layout", &NetworkOptions::layout, {"contiguous", "channels_last", kAuto, nullptr}},
    {"inputs", &NetworkOptions::inputs, {"data", "analytic", "rollout", nullptr}}};

struct Choice {
  const char* name;
  bool NetworkOptions::*member;
  const char *yes, *no;
};
constexpr Choice kChoices[] = {
    {"weights", &NetworkOptions::shared, "shared", "separate"},
    {"deterministic", &NetworkOptions::deterministic, "yes", "no"},
    {"gradient-checkpointing", &NetworkOptions::checkpointing, "yes", "no"},
    {"cuda-graph", &NetworkOptions::cuda_graph, "yes", "no"}};

template <typename Options>
const auto* Find(const Options& options, const std::string& name) {
  const auto* found = std::find_if(std::begin(options), std::end(options),
                                   [&](const auto& option) { return name == option.name; });
  return found == std::end(options) ? nullptr : found;
}

absl::Status Set(const std::string& name, const std::string& text, NetworkOptions* out) {
  if (const Whole* whole = Find(kWholes, name)) {
    std::int64_t value = 0;
    if (!absl::SimpleAtoi(text, &value) || value < whole->least || value > kMost) {
      return Wrong(
          name, text,
          absl::StrCat("an integer from ", std::max<std::int64_t>(0, whole->least), " on"));
    }
    out->*whole->member = value;
    return absl::OkStatus();
  }
  if (const Number* number = Find(kNumbers, name)) {
    double value = 0;
    if (!absl::SimpleAtod(text, &value) || !(value >= number->least) || !(value < number->below) ||
        (number->open && value == number->least)) {
      return Wrong(
          name, text,
          absl::StrCat("a number ", number->open ? "above " : "from ", number->least,
                       std::isfinite(number->below) ? absl::StrCat(", below ", number->below)
                                                    : std::string()));
    }
    out->*number->member = value;
    return absl::OkStatus();
  }
  if (const Word* word = Find(kWords, name)) {
    std::vector<std::string> words;
    for (const char* known : word->words) {
      if (known != nullptr) words.emplace_back(known);
    }
    if (std::find(words.begin(), words.end(), text) == words.end()) {
      return Wrong(name, text, absl::StrCat("one of ", absl::StrJoin(words, ", ")));
    }
    out->*word->member = text;
    return absl::OkStatus();
  }
  if (const Choice* choice = Find(kChoices, name)) {
    if (text != choice->yes && text != choice->no) {
      return Wrong(name, text, absl::StrCat(choice->yes, " or ", choice->no));
    }
    out->*choice->member = text == choice->yes;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--", name, ": network students have no such option; leave it out"));
}

// What of Recipe means nothing here.
bool IsOfLinearStudents(const std::string& name) { return name == "draws" || name == "student"; }

}  // namespace

bool IsNetworkOption(const std::string& name) {
  if (name == "iterations" || name == "lr" || name == "fit-iterations") return false;
  return Find(kWholes, name) != nullptr || Find(kNumbers, name) != nullptr ||
         Find(kWords, name) != nullptr || Find(kChoices, name) != nullptr;
}

absl::StatusOr<NetworkOptions> NetworkOptions::Parse(
    const std::map<std::string, std::string>& texts) {
  NetworkOptions out;
  std::map<std::string, std::string> recipe = {{"optimizer", "adam"}};
  for (const auto& [name, text] : texts) {
    if (IsRecipeOption(name) && !IsOfLinearStudents(name)) {
      recipe[name] = text;
    } else {
      MP_RETURN_IF_ERROR(Set(name, text, &out));
    }
  }
  MP_ASSIGN_OR_RETURN(out.recipe, Recipe::Parse(recipe));
  if (texts.contains("gamma") && out.weighting != "min-snr-gamma") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--gamma ", texts.at("gamma"), ": is of --weighting min-snr-gamma, the weighting is ",
        out.weighting, "; leave one of them out"));
  }
  if (out.total_updates > 0 && texts.contains("iterations")) {
    // Both would be two budgets.
    return absl::InvalidArgumentError(absl::StrCat("--total-updates ", out.total_updates,
                                                   " and --iterations ", out.iterations,
                                                   ": give one of them"));
  }
  return out;
}

std::map<std::string, std::string> NetworkOptions::Texts() const {
  std::map<std::string, std::string> texts = recipe.Options();
  texts.erase("draws");
  texts.erase("student");
  for (const Whole& option : kWholes) texts[option.name] = absl::StrCat(this->*option.member);
  for (const Number& option : kNumbers) texts[option.name] = ShortestText(this->*option.member);
  for (const Word& option : kWords) texts[option.name] = this->*option.member;
  for (const Choice& option : kChoices) {
    texts[option.name] = this->*option.member ? option.yes : option.no;
  }
  // What is not used is not said.
  texts.erase(total_updates > 0 ? "iterations" : "total-updates");
  if (weighting != "min-snr-gamma") texts.erase("gamma");
  if (inputs.empty()) texts.erase("inputs");
  return texts;
}

absl::StatusOr<std::map<std::string, std::string>> NetworkTexts(const DistillArguments& arguments) {
  std::map<std::string, std::string> texts = arguments.training;
  if (arguments.iterations) texts["iterations"] = absl::StrCat(*arguments.iterations);
  if (arguments.lr) texts["lr"] = ShortestText(*arguments.lr);
  if (arguments.experts.fit_iterations) {
    texts["fit-iterations"] = absl::StrCat(*arguments.experts.fit_iterations);
  }
  if (arguments.experts.experts || arguments.experts.hidden) {
    return Misuse(absl::StrCat(arguments.experts.experts ? "--experts" : "--hidden",
                               ": is of affine mixtures of experts, the students are networks; "
                               "leave the option out"));
  }
  MP_RETURN_IF_ERROR(AsMisuse(NetworkOptions::Parse(texts).status()));
  return texts;
}

}  // namespace mergeplan
