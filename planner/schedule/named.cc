#include "planner/schedule/named.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/status_macros.h"
#include "planner/schedule/beta_tables.h"
#include "planner/schedule/sigmas.h"

namespace mergeplan {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr int kTableSteps = 1000;  // of the schedules that sample a table of betas

struct Parameter {
  std::string_view key;
  double value;  // the default, then what the user gave
  double least;  // exclusive
  double largest;
};

struct Name {
  std::string_view name;
  std::string_view help;
  std::string_view betas;  // the table that it samples, if any
  std::vector<Parameter> parameters;
};

std::vector<Name> Names() {
  const std::vector<Parameter> sd = {{"beta_start", 0.00085, 0, 1}, {"beta_end", 0.012, 0, 1}};
  const std::vector<Parameter> ddpm = {{"beta_start", 0.0001, 0, 1}, {"beta_end", 0.02, 0, 1}};
  return {
      {"cosine", "alpha = cos(pi t / 2T), sigma = sin(pi t / 2T)", "", {}},
      {"ddpm-linear", "betas on a line, 1000 training steps, T <= 1000", "linear", ddpm},
      {"ddpm-scaled-linear", "square roots of the betas on a line (Stable Diffusion)",
       "scaled_linear", sd},
      {"ddpm-cosine", "alpha_bar a squared cosine, betas at most 0.999", "squaredcos_cap_v2", {}},
      {"sigmoid", "betas on a sigmoid", "sigmoid", ddpm},
      {"flow",
       "sigma = shift t / (T + (shift - 1) t), alpha = 1 - sigma",
       "",
       {{"shift", 1, 0, 1e6}}},
      {"edm",
       "sigmas of Karras et al. 2022",
       "",
       {{"sigma_min", 0.002, 0, 1e9},
        {"sigma_max", 80, 0, 1e9},
        {"rho", 7, 0, 1000},
        {"sigma_data", 0.5, 0, 1e9}}},
  };
}

double Value(const Name& name, std::string_view key) {
  for (const Parameter& p : name.parameters) {
    if (p.key == key) return p.value;
  }
  return kNone;
}

absl::Status SetParameter(Name& name, const SpecParameter& given) {
  std::vector<std::string> known;
  for (Parameter& p : name.parameters) {
    known.emplace_back(p.key);
    if (p.key != given.first) continue;
    double value = 0;
    if (!absl::SimpleAtod(given.second, &value) || !(value > p.least) || !(value <= p.largest)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("schedule %s: %s is \"%s\", expected a number above %g and at most %g",
                          std::string(name.name), given.first, given.second, p.least, p.largest));
    }
    p.value = value;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("schedule ", std::string(name.name), ": unknown parameter \"", given.first,
                   "\", expected ", known.empty() ? "none" : absl::StrJoin(known, ", ")));
}

void Append(Schedule& s, double alpha, double sigma, double scale, double timestep) {
  s.alpha.push_back(alpha);
  s.sigma.push_back(sigma);
  s.level_scale.push_back(scale);
  if (!s.timesteps.empty()) s.timesteps.push_back(timestep);
}

// Level k is entry floor(1000 k / T + 1/2) - 1 of the table.
absl::Status FillTable(const Name& name, int steps, Schedule& s) {
  if (steps > kTableSteps) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "schedule %s: teacher steps are %d, expected at most the %d steps of its table",
        std::string(name.name), steps, kTableSteps));
  }
  MP_ASSIGN_OR_RETURN(const std::vector<double> betas,
                      MakeBetas(name.betas, Value(name, "beta_start"), Value(name, "beta_end"),
                                kTableSteps, TablePrecision::kDouble));
  const std::vector<double> table = CumulativeAlphas(betas, TablePrecision::kDouble);
  s.timesteps.push_back(kNone);
  for (int k = 1; k <= steps; ++k) {
    const int index = (2 * kTableSteps * k + steps) / (2 * steps) - 1;
    Append(s, std::sqrt(table[index]), std::sqrt(1 - table[index]), 1, index);
  }
  return absl::OkStatus();
}

void FillFlow(const Name& name, int steps, Schedule& s) {
  const double shift = Value(name, "shift");
  for (int t = 1; t <= steps; ++t) {
    // (1 - sigma) : sigma = (T - t) : shift t, free of cancellation and exact at the noisy end.
    const double data = steps - t;
    const double noise = shift * t;
    const double norm = std::hypot(data, noise);
    Append(s, data / norm, noise / norm, norm / (data + noise), kNone);
  }
}

absl::Status FillEdm(const Name& name, int steps, Schedule& s) {
  const double sigma_min = Value(name, "sigma_min");
  const double sigma_max = Value(name, "sigma_max");
  if (sigma_min >= sigma_max) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "schedule edm: sigma_min is %g and sigma_max %g, expected sigma_min < sigma_max", sigma_min,
        sigma_max));
  }
  s.data_scale = Value(name, "sigma_data");
  s.level_scale[0] = s.data_scale;
  std::vector<double> sigmas = KarrasSigmas(sigma_max, sigma_min, Value(name, "rho"), steps);
  std::reverse(sigmas.begin(), sigmas.end());
  for (const double sigma : sigmas) {
    const double norm = std::hypot(s.data_scale, sigma);
    Append(s, s.data_scale / norm, sigma / norm, norm, kNone);
  }
  return absl::OkStatus();
}

}  // namespace

bool IsScheduleName(std::string_view name) {
  for (const Name& known : Names()) {
    if (known.name == name) return true;
  }
  return false;
}

std::vector<std::string> ScheduleNames() {
  std::vector<std::string> lines;
  for (const Name& name : Names()) {
    std::string line(name.name);
    for (size_t i = 0; i < name.parameters.size(); ++i) {
      absl::StrAppend(&line, i == 0 ? ":" : ",", std::string(name.parameters[i].key), "=",
                      name.parameters[i].value);
    }
    lines.push_back(absl::StrCat(line, "  ", std::string(name.help)));
  }
  return lines;
}

absl::StatusOr<Schedule> NamedSchedule(const std::string& name,
                                       const std::vector<SpecParameter>& parameters,
                                       int teacher_steps) {
  std::vector<Name> names = Names();
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const Name& n) { return n.name == name; });
  if (found == names.end()) {
    return absl::InvalidArgumentError(absl::StrCat("schedule: unknown name \"", name, "\""));
  }
  for (const SpecParameter& p : parameters) MP_RETURN_IF_ERROR(SetParameter(*found, p));

  if (name == "cosine") return CosineSchedule(teacher_steps);
  Schedule s;
  s.spec = s.name = name;
  Append(s, 1, 0, 1, kNone);
  if (!found->betas.empty()) {
    MP_RETURN_IF_ERROR(FillTable(*found, teacher_steps, s));
  } else if (name == "flow") {
    FillFlow(*found, teacher_steps, s);
  } else {
    MP_RETURN_IF_ERROR(FillEdm(*found, teacher_steps, s));
  }
  return s;
}

absl::StatusOr<std::vector<SpecParameter>> ParseParameters(std::string_view text,
                                                           const std::string& spec) {
  std::vector<SpecParameter> parameters;
  if (text.empty()) return parameters;
  for (absl::string_view part : absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    const std::vector<std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (pair.size() != 2 || pair[0].empty() || pair[1].empty()) {
      return absl::InvalidArgumentError(absl::StrCat("schedule \"", spec, "\": found \"", part,
                                                     "\", expected key=value,key=value,…"));
    }
    for (const SpecParameter& p : parameters) {
      if (p.first == pair[0]) {
        return absl::InvalidArgumentError(absl::StrCat("schedule \"", spec, "\": \"", pair[0],
                                                       "\" is given twice, expected once"));
      }
    }
    parameters.emplace_back(pair[0], pair[1]);
  }
  return parameters;
}

}  // namespace mergeplan
