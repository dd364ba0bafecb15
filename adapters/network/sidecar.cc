#include <toml++/toml.h>

#include <cmath>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/network/signature.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/npz.h"
#include "planner/runs/table_reader.h"
#include "planner/schedule/schedule.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::network {
namespace {

std::string Beside(const std::string& path, const std::string& file) {
  if (!file.empty() && file.front() == '/') return file;
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? file : path.substr(0, slash + 1) + file;
}

// What TableReader has no function for; the key is taken out of `table` first.
class Optional {
 public:
  Optional(std::string file, toml::table& table, std::string prefix)
      : file_(std::move(file)), table_(table), prefix_(std::move(prefix)) {}

  absl::Status Text(const char* key, std::string* out) {
    return Take<std::string>(key, "a text", out);
  }
  absl::Status Number(const char* key, double* out) { return Take<double>(key, "a number", out); }
  bool Has(const char* key) const { return table_.contains(key); }

  template <typename Element>
  absl::Status Array(const char* key, const char* expected, std::vector<Element>* out) {
    if (!table_.contains(key)) return absl::OkStatus();
    const toml::array* array = table_[key].as_array();
    std::vector<Element> found;
    bool good = array != nullptr;
    for (std::size_t i = 0; good && i < array->size(); ++i) {
      const auto value = (*array)[i].value_exact<Element>();
      good = value.has_value();
      if (good) found.push_back(*value);
    }
    if (!good) return Error(key, absl::StrCat("expected ", expected));
    *out = std::move(found);
    table_.erase(key);
    return absl::OkStatus();
  }

  absl::Status Error(const char* key, const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(file_, ": key '", prefix_, key, "': ", what));
  }

 private:
  template <typename Value>
  absl::Status Take(const char* key, const char* expected, Value* out) {
    if (!table_.contains(key)) return absl::OkStatus();
    const auto value = table_[key].value<Value>();
    if (!value || table_[key].is_table() || table_[key].is_array()) {
      return Error(key, absl::StrCat("expected ", expected));
    }
    *out = *value;
    table_.erase(key);
    return absl::OkStatus();
  }

  std::string file_;
  toml::table& table_;
  std::string prefix_;
};

absl::Status NothingElse(const std::string& path, const toml::table& table,
                         const std::string& prefix) {
  if (table.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": unknown key '", prefix, std::string(table.begin()->first.str()), "'"));
}

absl::Status ReadTable(const std::string& path, toml::table& table, TimeKind time,
                       TrainingTable* out) {
  Optional keys(path, table, "schedule.");
  std::string name, config, arrays;
  MP_RETURN_IF_ERROR(keys.Text("name", &name));
  MP_RETURN_IF_ERROR(keys.Text("config", &config));
  MP_RETURN_IF_ERROR(keys.Text("arrays", &arrays));
  if ((name.empty() ? 0 : 1) + (config.empty() ? 0 : 1) + (arrays.empty() ? 0 : 1) != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": key 'schedule': expected one of name, config (a scheduler_config.json) or arrays "
        "(an .npz)"));
  }
  double steps = 0;
  MP_RETURN_IF_ERROR(keys.Number("steps", &steps));
  if (arrays.empty()) {
    MP_RETURN_IF_ERROR(NothingElse(path, table, "schedule."));
    out->steps = steps != 0 ? steps : 1000;
    if (!(out->steps >= 1 && out->steps <= 100000) || out->steps != std::floor(out->steps)) {
      return keys.Error("steps", absl::StrCat("is ", steps,
                                              ", expected how many steps the network "
                                              "was trained with, a whole number up to 100000"));
    }
    const std::string spec = name.empty() ? Beside(path, config) : name;
    absl::StatusOr<TrainingTable> levels = TableOfSchedule(spec, static_cast<int>(out->steps));
    if (!levels.ok()) {
      return keys.Error(name.empty() ? "config" : "name", std::string(levels.status().message()));
    }
    *out = *std::move(levels);
    return absl::OkStatus();
  }
  arrays = Beside(path, arrays);
  std::string alpha = "alpha", sigma = "sigma", times = "time", timesteps;
  MP_RETURN_IF_ERROR(keys.Text("alpha", &alpha));
  MP_RETURN_IF_ERROR(keys.Text("sigma", &sigma));
  MP_RETURN_IF_ERROR(keys.Text("time", &times));
  MP_RETURN_IF_ERROR(keys.Text("timesteps", &timesteps));
  double first = 0;
  MP_RETURN_IF_ERROR(keys.Number("first", &first));
  MP_RETURN_IF_ERROR(NothingElse(path, table, "schedule."));
  const auto read = [&](const std::string& array, std::vector<double>* into) -> absl::Status {
    absl::StatusOr<NpyArray> read_array = ReadNpzArray(arrays, array);
    if (!read_array.ok()) {
      return keys.Error("arrays", std::string(read_array.status().message()));
    }
    NpyArray found = *std::move(read_array);
    if (found.shape.size() != 1) {
      return keys.Error("arrays", absl::StrCat(arrays, ": array ", array, " has ",
                                               found.shape.size(), " axes, expected 1"));
    }
    *into = std::move(found.values);
    return absl::OkStatus();
  };
  MP_RETURN_IF_ERROR(read(alpha, &out->alpha));
  MP_RETURN_IF_ERROR(read(sigma, &out->sigma));
  if (time == TimeKind::kTable) MP_RETURN_IF_ERROR(read(times, &out->time));
  if (!timesteps.empty()) MP_RETURN_IF_ERROR(read(timesteps, &out->timestep));
  for (std::size_t s = 0; timesteps.empty() && s < out->alpha.size(); ++s) {
    out->timestep.push_back(first + static_cast<double>(s));
  }
  out->steps = steps != 0 || out->timestep.empty() ? steps : out->timestep.back();
  return absl::OkStatus();
}

absl::Status ReadTime(const std::string& path, toml::table& table, Signature* out) {
  Optional keys(path, table, "time.");
  std::string kind, dtype = "float";
  MP_RETURN_IF_ERROR(keys.Text("kind", &kind));
  const absl::StatusOr<TimeKind> parsed = ParseTimeKind(kind);
  if (!parsed.ok()) return keys.Error("kind", std::string(parsed.status().message()));
  out->time = *parsed;
  MP_RETURN_IF_ERROR(keys.Number("scale", &out->time_scale));
  MP_RETURN_IF_ERROR(keys.Number("offset", &out->time_offset));
  MP_RETURN_IF_ERROR(keys.Text("dtype", &dtype));
  if (dtype != "float" && dtype != "int64") {
    return keys.Error("dtype", absl::StrCat("is \"", dtype, "\", expected float or int64"));
  }
  out->integer_time = dtype == "int64";
  return NothingElse(path, table, "time.");
}

}  // namespace

TrainingTable TableOf(const Schedule& all, int steps) {
  // In native coordinates.
  TrainingTable out;
  out.steps = steps;
  for (int t = 1; t <= all.steps(); ++t) {
    out.alpha.push_back(all.level_scale[t] * all.alpha[t] / all.data_scale);
    out.sigma.push_back(all.level_scale[t] * all.sigma[t]);
    out.timestep.push_back(all.timesteps.empty() ? t : all.timesteps[t]);
  }
  return out;
}

absl::StatusOr<TrainingTable> TableOfSchedule(const std::string& spec, int steps) {
  MP_ASSIGN_OR_RETURN(const Schedule all, LoadSchedule(spec, steps));
  return TableOf(all, steps);
}

absl::StatusOr<Sidecar> ReadSidecar(const std::string& path) {
  MP_ASSIGN_OR_RETURN(toml::table table, ParseTomlFile(path));
  Sidecar out;
  Signature& signature = out.signature;
  Optional keys(path, table, "");
  double format = 0;
  MP_RETURN_IF_ERROR(keys.Number("format", &format));
  if (format != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": key 'format': is ", format, ", this version reads 1"));
  }
  MP_RETURN_IF_ERROR(keys.Text("file", &out.file));
  if (out.file.empty()) {
    out.file = path.ends_with(".toml") ? path.substr(0, path.size() - 5) + ".ts" : path + ".ts";
  } else {
    out.file = Beside(path, out.file);
  }
  std::string word;
  MP_RETURN_IF_ERROR(keys.Text("prediction", &word));
  const absl::StatusOr<Prediction> prediction = ParsePrediction(word);
  if (!prediction.ok()) return keys.Error("prediction", std::string(prediction.status().message()));
  signature.prediction = *prediction;
  MP_RETURN_IF_ERROR(keys.Array<std::int64_t>("shape", "whole numbers", &signature.shape));
  MP_RETURN_IF_ERROR(keys.Text("dtype", &signature.dtype));
  MP_RETURN_IF_ERROR(keys.Array<std::string>("arguments", "texts", &signature.arguments));
  double classes = 0;
  MP_RETURN_IF_ERROR(keys.Number("classes", &classes));
  if (classes != std::floor(classes) || !(std::abs(classes) <= 1e9)) {
    return keys.Error("classes", absl::StrCat("is ", classes, ", expected a whole number"));
  }
  signature.classes = static_cast<std::int64_t>(classes);
  std::string input = "native";
  MP_RETURN_IF_ERROR(keys.Text("input", &input));
  if (input != "native" && input != "normalized") {
    return keys.Error("input", absl::StrCat("is \"", input, "\", expected native or normalized"));
  }
  signature.normalized_input = input == "normalized";
  MP_RETURN_IF_ERROR(keys.Number("sigma_data", &signature.sigma_data));
  MP_RETURN_IF_ERROR(keys.Text("scaling", &signature.scaling));
  if (!signature.scaling.empty()) {
    const absl::StatusOr<Scaling> scaling = ParseScaling(signature.scaling);
    if (!scaling.ok()) return keys.Error("scaling", std::string(scaling.status().message()));
  }
  toml::table* time = table["time"].as_table();
  if (time == nullptr) return keys.Error("time", "expected a table with the key kind");
  MP_RETURN_IF_ERROR(ReadTime(path, *time, &signature));
  table.erase("time");
  if (table.contains("schedule")) {
    toml::table* schedule = table["schedule"].as_table();
    if (schedule == nullptr) return keys.Error("schedule", "expected a table");
    signature.table.emplace();
    MP_RETURN_IF_ERROR(ReadTable(path, *schedule, signature.time, &*signature.table));
    table.erase("schedule");
  }
  MP_RETURN_IF_ERROR(NothingElse(path, table, ""));
  MP_RETURN_IF_ERROR(Validate(signature, path));
  return out;
}

absl::Status WriteSidecar(const Signature& signature, const std::string& file,
                          const std::string& path) {
  MP_RETURN_IF_ERROR(Validate(signature, path));
  toml::array shape, arguments;
  for (const std::int64_t extent : signature.shape) shape.push_back(extent);
  for (const std::string& name : signature.arguments) arguments.push_back(name);
  toml::table table{{"format", 1},
                    {"file", file},
                    {"prediction", std::string(ToString(signature.prediction))},
                    {"shape", std::move(shape)},
                    {"dtype", signature.dtype},
                    {"arguments", std::move(arguments)},
                    {"input", signature.normalized_input ? "normalized" : "native"},
                    {"sigma_data", signature.sigma_data}};
  if (!signature.scaling.empty()) table.insert("scaling", signature.scaling);
  if (signature.classes > 0) table.insert("classes", signature.classes);
  table.insert("time", toml::table{{"kind", std::string(ToString(signature.time))},
                                   {"scale", signature.time_scale},
                                   {"offset", signature.time_offset},
                                   {"dtype", signature.integer_time ? "int64" : "float"}});
  if (signature.table) {
    const TrainingTable& levels = *signature.table;
    const std::string stem = path.ends_with(".toml") ? path.substr(0, path.size() - 5) : path;
    const auto n = static_cast<std::int64_t>(levels.alpha.size());
    NpzWriter npz;
    npz.Add("alpha", {n}, levels.alpha);
    npz.Add("sigma", {n}, levels.sigma);
    npz.Add("timestep", {n}, levels.timestep);
    if (!levels.time.empty()) npz.Add("time", {n}, levels.time);
    MP_RETURN_IF_ERROR(npz.Write(stem + ".npz"));
    table.insert("schedule",
                 toml::table{{"arrays", stem.substr(stem.find_last_of('/') + 1) + ".npz"},
                             {"timesteps", "timestep"},
                             {"steps", levels.steps}});
  }
  std::ostringstream text;
  text << toml::toml_formatter(table, toml::toml_formatter::default_flags &
                                          ~toml::format_flags::allow_literal_strings)
       << "\n";
  return WriteFileAtomically(path, text.str());
}

}  // namespace mergeplan::network
