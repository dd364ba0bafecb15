#include "planner/schedule/diffusers_options.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "planner/base/status_macros.h"
#include "planner/schedule/json_text.h"
#include "planner/schedule/sampler_classes.h"

namespace mergeplan {
namespace {

using Json = nlohmann::json;
using O = SamplerOptions;

using Member = std::variant<bool O::*, int O::*, double O::*, std::string O::*,
                            std::optional<double> O::*, std::optional<int> O::*>;

// An option that moves noise levels: where its value goes and what it may be (least and largest
// number, or words).
struct Option {
  std::string_view key;
  Member member;
  double least = 0;
  double largest = 0;
  std::string_view words = "";
};

constexpr double kLargest = 1e9;
constexpr int kLargestTable = 1'000'000;
constexpr double kTiny = 1e-300;

const std::vector<Option>& Options() {
  static const auto* const options = new std::vector<Option>{
      {"num_train_timesteps", &O::num_train_timesteps, 1, kLargestTable},
      {"beta_start", &O::beta_start, kTiny, 1},
      {"beta_end", &O::beta_end, kTiny, 1},
      {"beta_schedule", &O::beta_schedule},
      {"rescale_betas_zero_snr", &O::rescale_betas_zero_snr},
      {"snr_shift_scale", &O::snr_shift_scale, 1e-6, 1e6},
      {"set_alpha_to_one", &O::set_alpha_to_one},
      {"set_alpha_to_zero", &O::set_alpha_to_one},
      {"prediction_type", &O::prediction_type, 0, 0, "epsilon sample v_prediction flow_prediction"},
      {"timestep_spacing", &O::timestep_spacing, 0, 0, "leading linspace trailing"},
      {"steps_offset", &O::steps_offset, 0, kLargestTable},
      {"skip_prk_steps", &O::skip_prk_steps},
      {"original_inference_steps", &O::original_inference_steps, 1, kLargestTable},
      {"lambda_min_clipped", &O::lambda_min_clipped, -std::numeric_limits<double>::infinity(),
       kLargest},
      {"use_karras_sigmas", &O::use_karras_sigmas},
      {"use_exponential_sigmas", &O::use_exponential_sigmas},
      {"use_beta_sigmas", &O::use_beta_sigmas},
      {"use_lu_lambdas", &O::use_lu_lambdas},
      {"use_flow_sigmas", &O::use_flow_sigmas},
      {"flow_shift", &O::flow_shift, 1e-6, 1e6},
      {"sigma_min", &O::sigma_min, kTiny, kLargest},
      {"sigma_max", &O::sigma_max, kTiny, kLargest},
      {"final_sigmas_type", &O::final_sigmas_type, 0, 0, "zero sigma_min"},
      {"interpolation_type", &O::interpolation_type, 0, 0, "linear log_linear"},
      {"timestep_type", &O::timestep_type, 0, 0, "discrete continuous"},
      {"sigma_data", &O::sigma_data, 1e-9, kLargest},
      {"sigma_schedule", &O::sigma_schedule, 0, 0, "karras exponential"},
      {"rho", &O::rho, 0.01, 1000},
      {"shift", &O::shift, 1e-6, 1e6},
      {"use_dynamic_shifting", &O::use_dynamic_shifting},
      {"base_shift", &O::base_shift, -50, 50},
      {"max_shift", &O::max_shift, -50, 50},
      {"base_image_seq_len", &O::base_image_seq_len, 1, kLargest},
      {"max_image_seq_len", &O::max_image_seq_len, 1, kLargest},
      {"shift_terminal", &O::shift_terminal, 0, 1},
      {"time_shift_type", &O::time_shift_type, 0, 0, "exponential linear"},
      {"invert_sigmas", &O::invert_sigmas},
      {"mu", &O::mu, -50, 50},
      {"image_seq_len", &O::image_seq_len, 1, kLargest},
  };
  return *options;
}

const Option* FindOption(std::string_view key) {
  for (const Option& option : Options()) {
    if (option.key == key) return &option;
  }
  return nullptr;
}

// A value for people, cut short.
std::string Shown(const Json& value) {
  std::string text = value.dump();
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

std::string Listed(std::string_view words) {
  return absl::StrReplaceAll(std::string(words), {{" ", ", "}});
}

// The one place that says what is wrong with the value of a key.
absl::Status Wrong(const std::string& path, std::string_view key, const Json& value,
                   const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrFormat("%s: \"%s\" is %s, expected %s", path,
                                                    std::string(key), Shown(value), expected));
}

absl::StatusOr<double> Number(const Json& value, const std::string& path, const Option& option) {
  const bool range = value.is_number() && value.get<double>() >= option.least &&
                     value.get<double>() <= option.largest;
  if (range) return value.get<double>();
  const double least = option.least == kTiny ? 0.0 : option.least;
  return Wrong(path, option.key, value,
               absl::StrFormat("a number %s %g and at most %g",
                               option.least == kTiny ? "above" : "from", least, option.largest));
}

absl::StatusOr<int> Integer(const Json& value, const std::string& path, const Option& option) {
  if (value.is_number() && value.get<double>() == std::floor(value.get<double>()) &&
      value.get<double>() >= option.least && value.get<double>() <= option.largest) {
    return static_cast<int>(value.get<double>());
  }
  return Wrong(path, option.key, value,
               absl::StrFormat("a whole number from %.0f to %.0f", option.least, option.largest));
}

absl::Status Assign(O& o, const Option& option, const Json& value, const std::string& path) {
  if (const auto* m = std::get_if<bool O::*>(&option.member)) {
    if (!value.is_boolean() && !value.is_null()) {
      return Wrong(path, option.key, value, "true or false");
    }
    o.** m = value.is_boolean() && value.get<bool>();
  } else if (const auto* m = std::get_if<int O::*>(&option.member)) {
    MP_ASSIGN_OR_RETURN(o.**m, Integer(value, path, option));
  } else if (const auto* m = std::get_if<double O::*>(&option.member)) {
    MP_ASSIGN_OR_RETURN(o.**m, Number(value, path, option));
  } else if (const auto* m = std::get_if<std::optional<double> O::*>(&option.member)) {
    if (value.is_null()) return absl::OkStatus();
    MP_ASSIGN_OR_RETURN(o.**m, Number(value, path, option));
  } else if (const auto* m = std::get_if<std::optional<int> O::*>(&option.member)) {
    if (value.is_null()) return absl::OkStatus();
    MP_ASSIGN_OR_RETURN(o.**m, Integer(value, path, option));
  } else if (const auto* m = std::get_if<std::string O::*>(&option.member)) {
    const std::string_view words =
        option.key == "beta_schedule" ? o.sampler->beta_schedules : option.words;
    if (!value.is_string() || !HasWord(words, value.get<std::string>())) {
      return Wrong(path, option.key, value,
                   absl::StrCat("one of ", Listed(words), " (", std::string(o.sampler->name), ")"));
    }
    o.** m = value.get<std::string>();
  }
  return absl::OkStatus();
}

absl::Status AssignTrainedBetas(O& o, const Json& value, const std::string& path) {
  if (value.is_null()) return absl::OkStatus();
  if (!value.is_array() || value.empty() || value.size() > kLargestTable) {
    return Wrong(path, "trained_betas", value, "a list of numbers, or null");
  }
  std::vector<double> betas;
  for (size_t i = 0; i < value.size(); ++i) {
    if (!value[i].is_number() || !(value[i].get<double>() > 0) || value[i].get<double>() > 1) {
      return Wrong(path, absl::StrCat("trained_betas[", i, "]"), value[i],
                   "a number above 0 and at most 1");
    }
    betas.push_back(value[i].get<double>());
  }
  o.trained_betas = std::move(betas);
  return absl::OkStatus();
}

// A parameter's text as JSON where it is some, else as a string: "1.15", "true", "trailing".
Json ParameterValue(const std::string& text) {
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? Json(text) : value;
}

absl::StatusOr<const SamplerClass*> FindClass(const Json& config, const std::string& path,
                                              const std::vector<SpecParameter>& parameters) {
  std::string name;
  for (const auto& [key, value] : parameters) {
    if (key == "class") name = value;
  }
  if (name.empty()) {
    const auto it = config.find("_class_name");
    if (it == config.end() || !it->is_string()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": \"_class_name\" is ", it == config.end() ? "missing" : Shown(*it),
                       ", expected the name of a diffusers scheduler"));
    }
    name = it->get<std::string>();
  }
  for (const SamplerClass& c : SamplerClasses()) {
    if (c.name == name) return &c;
  }
  return absl::InvalidArgumentError(absl::StrCat(path, ": unknown class \"", name,
                                                 "\" (_class_name), expected one of ",
                                                 absl::StrJoin(SamplerClassNames(), ", "),
                                                 "; for others give the levels themselves, a file "
                                                 "with the arrays alpha and sigma"));
}

absl::Status CheckTogether(const O& o, const std::string& path) {
  if (o.use_karras_sigmas + o.use_exponential_sigmas + o.use_beta_sigmas + o.use_lu_lambdas > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": more than one of use_karras_sigmas, use_exponential_sigmas, "
                     "use_beta_sigmas, use_lu_lambdas is true, expected one at most"));
  }
  const bool edm =
      o.sampler->kind == SamplerKind::kEdm || o.sampler->kind == SamplerKind::kConsistency;
  if ((o.sigma_min && o.sigma_max && *o.sigma_min >= *o.sigma_max) ||
      (edm && !(o.sigma_min && o.sigma_max))) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: sigma_min is %g and sigma_max %g, expected sigma_min < sigma_max",
                        path, o.sigma_min.value_or(NAN), o.sigma_max.value_or(NAN)));
  }
  if (o.trained_betas && o.sampler->kind != SamplerKind::kIpndm &&
      o.trained_betas->size() < static_cast<size_t>(o.num_train_timesteps)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: \"trained_betas\" holds %d numbers, expected num_train_timesteps = %d",
                        path, o.trained_betas->size(), o.num_train_timesteps));
  }
  if (o.sampler->name == "DDIMInverseScheduler" && o.timestep_spacing == "linspace") {
    return Wrong(path, "timestep_spacing", "linspace",
                 "one of leading, trailing (DDIMInverseScheduler)");
  }
  if ((o.mu || o.image_seq_len) && !o.use_dynamic_shifting) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", o.mu ? "mu" : "image_seq_len",
                     " was given, but use_dynamic_shifting is false, expected neither or "
                     "use_dynamic_shifting=true"));
  }
  if (o.time_shift_type == "linear" && o.mu && !(*o.mu > 0)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: mu is %g, expected a number above 0 with time_shift_type \"linear\"", path, *o.mu));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> SamplerClassNames() {
  std::vector<std::string> names;
  for (const SamplerClass& c : SamplerClasses()) names.emplace_back(c.name);
  return names;
}

absl::StatusOr<SamplerOptions> ReadSamplerOptions(const Json& config, const std::string& path,
                                                  const std::vector<SpecParameter>& parameters) {
  if (!config.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": found ", Shown(config), ", expected an object with _class_name"));
  }
  O o;
  MP_ASSIGN_OR_RETURN(o.sampler, FindClass(config, path, parameters));
  ApplyClassDefaults(o);

  // Keys whose values were only the defaults of the class that wrote the file.
  const Json defaults = config.value("_use_default_values", Json::array());
  for (const auto& [key, value] : config.items()) {
    if (key.empty() || key[0] == '_') continue;
    if (defaults.is_array() && std::find(defaults.begin(), defaults.end(), key) != defaults.end()) {
      continue;
    }
    const Option* option = FindOption(key);
    const bool pipeline_key = key == "mu" || key == "image_seq_len";
    if ((option == nullptr || pipeline_key) && key != "trained_betas" && !IsInertOption(key)) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": unknown key \"", key, "\", expected options of diffusers schedulers (",
          std::string(o.sampler->name), "); remove it if it moves no noise level"));
    }
    if (!o.sampler->Takes(key)) continue;
    MP_RETURN_IF_ERROR(key == "trained_betas" ? AssignTrainedBetas(o, value, path)
                                              : Assign(o, *option, value, path));
    if (key == "lambda_min_clipped") o.clips_lambda = o.lambda_min_clipped > -kJsonInfinity;
  }
  for (const auto& [key, text] : parameters) {
    if (key == "class") continue;
    const Option* option = FindOption(key);
    if (option == nullptr || !o.sampler->Takes(key)) {
      std::vector<std::string> known = {"class"};
      for (const Option& k : Options()) {
        if (o.sampler->Takes(k.key)) known.emplace_back(k.key);
      }
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": unknown parameter \"", key, "\", expected one of ",
                       absl::StrJoin(known, ", "), " (", std::string(o.sampler->name), ")"));
    }
    MP_RETURN_IF_ERROR(Assign(o, *option, ParameterValue(text), path));
    if (key == "lambda_min_clipped") o.clips_lambda = o.lambda_min_clipped > -kJsonInfinity;
  }
  if (o.sampler->kind == SamplerKind::kEdm && o.prediction_type == "flow_prediction") {
    return Wrong(path, "prediction_type", o.prediction_type,
                 "one of epsilon, sample, v_prediction");
  }
  MP_RETURN_IF_ERROR(CheckTogether(o, path));
  return o;
}

}  // namespace mergeplan
