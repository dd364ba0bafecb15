#include "adapters/calibrate/measurements.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/data/npz.h"

namespace mergeplan::calibrate {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;

Json Pair(Range range) { return Json::array({range.first, range.last}); }

Json ToJson(const PilotResult& r) {
  Json trained = Json::array();
  for (const Range& range : r.pilot.trained) trained.push_back(Pair(range));
  return {{"range", Pair(r.pilot.range)},
          {"trained", std::move(trained)},
          {"replicate", r.pilot.replicate},
          {"held_out", r.pilot.held_out},
          {"start", r.start},
          {"updates", r.updates},
          {"error", r.error},
          {"standard_error", r.standard_error},
          {"teacher", r.teacher},
          {"teacher_error", r.teacher_error},
          {"teacher_calls", r.teacher_calls},
          {"seconds", r.seconds},
          {"peak_memory", r.peak_memory}};
}

// nlohmann throws where a key is missing or of another type; the caller catches.
Range RangeOf(const Json& json) { return {json.at(0).get<int>(), json.at(1).get<int>()}; }

PilotResult PilotOf(const Json& json) {
  PilotResult r;
  r.pilot.range = RangeOf(json.at("range"));
  for (const Json& range : json.at("trained")) r.pilot.trained.push_back(RangeOf(range));
  json.at("replicate").get_to(r.pilot.replicate);
  json.at("held_out").get_to(r.pilot.held_out);
  json.at("start").get_to(r.start);
  json.at("updates").get_to(r.updates);
  json.at("error").get_to(r.error);
  json.at("standard_error").get_to(r.standard_error);
  json.at("teacher").get_to(r.teacher);
  json.at("teacher_error").get_to(r.teacher_error);
  json.at("teacher_calls").get_to(r.teacher_calls);
  json.at("seconds").get_to(r.seconds);
  json.at("peak_memory").get_to(r.peak_memory);
  return r;
}

bool IsWhole(const PilotResult& r) {
  if (r.updates.empty() || r.updates.front() < 1) return false;
  if (r.error.size() != r.updates.size() || r.standard_error.size() != r.updates.size()) {
    return false;
  }
  return std::is_sorted(r.updates.begin(), r.updates.end());
}

Measurements MeasurementsOf(const Json& json) {
  Measurements m;
  json.at("fingerprint").get_to(m.fingerprint);
  json.at("teacher_steps").get_to(m.teacher_steps);
  json.at("data_scale").get_to(m.data_scale);
  json.at("dimensions").get_to(m.dimensions);
  json.at("variances").get_to(m.variances);
  json.at("probe_calls").get_to(m.probe_calls);
  json.at("probe_seconds").get_to(m.probe_seconds);
  for (const Json& d : json.at("distances")) {
    m.distances.push_back({d.at(0).get<int>(), d.at(1).get<int>(), d.at(2).get<int>(),
                           d.at(3).get<double>(), d.at(4).get<double>()});
  }
  for (const Json& g : json.at("gains")) {
    m.gains.push_back({g.at("level").get<int>(), g.at("last").get<int>(),
                       g.at("trained").get<bool>(), g.at("squared").get<std::vector<double>>()});
  }
  for (const Json& pilot : json.at("pilots")) m.pilots.push_back(PilotOf(pilot));
  if (json.contains("chosen")) json.at("chosen").get_to(m.chosen);
  return m;
}

}  // namespace

std::string Pilot::ToString() const {
  std::string out = absl::StrCat("[", range.first, ", ", range.last, "]");
  for (std::size_t k = 0; k < trained.size(); ++k) {
    absl::StrAppend(&out, k == 0 ? " over [" : ", [", trained[k].first, ", ", trained[k].last, "]");
  }
  return out;
}

const PilotResult* FindPilot(const Measurements& m, const Pilot& pilot) {
  for (const PilotResult& result : m.pilots) {
    if (result.pilot.SameTraining(pilot)) return &result;
  }
  return nullptr;
}

absl::Status WriteMeasurements(const Measurements& m, const std::string& path) {
  Json json = {{"format", kFormat},
               {"kind", "calibration"},
               {"fingerprint", m.fingerprint},
               {"teacher_steps", m.teacher_steps},
               {"data_scale", m.data_scale},
               {"dimensions", m.dimensions},
               {"variances", m.variances},
               {"probe_calls", m.probe_calls},
               {"probe_seconds", m.probe_seconds},
               {"distances", Json::array()},
               {"gains", Json::array()},
               {"pilots", Json::array()}};
  for (const Distance& d : m.distances) {
    json["distances"].push_back(Json::array({d.first, d.start, d.last, d.mean, d.standard_error}));
  }
  for (const GainProbe& g : m.gains) {
    json["gains"].push_back(
        {{"level", g.level}, {"last", g.last}, {"trained", g.trained}, {"squared", g.squared}});
  }
  for (const PilotResult& r : m.pilots) json["pilots"].push_back(ToJson(r));
  if (!m.chosen.empty()) json["chosen"] = m.chosen;
  return WriteFileAtomically(path, json.dump() + "\n");
}

absl::StatusOr<Measurements> ReadMeasurements(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const auto damaged = [&](const std::string& what) {
    return absl::DataLossError(
        absl::StrCat(path, ": ", what,
                     ", expected what calibrate wrote there; leave out --resume to begin anew"));
  };
  try {
    const Json json = Json::parse(text);
    if (json.at("kind") != "calibration" || json.at("format") != kFormat) {
      return damaged("is of another kind or format");
    }
    Measurements m = MeasurementsOf(json);
    if (m.teacher_steps < 1) return damaged("teacher_steps is below 1");
    for (const PilotResult& r : m.pilots) {
      if (!IsWhole(r)) return damaged("the pilot " + r.pilot.ToString() + " is not whole");
    }
    return m;
  } catch (const Json::exception& error) {
    return damaged(absl::StrCat("cannot be read (", error.what(), ")"));
  }
}

absl::StatusOr<std::string> MeasurementsNpz(const Measurements& m) {
  NpzWriter npz;
  const auto add = [&](const char* name, const std::vector<double>& values, std::int64_t columns) {
    const std::int64_t rows = static_cast<std::int64_t>(values.size()) / columns;
    npz.Add(name, {rows, columns}, values);
  };
  std::vector<double> distance, gain, pilot, curve;
  for (const Distance& d : m.distances) {
    distance.insert(distance.end(), {double(d.first), double(d.start), double(d.last),
                                     std::sqrt(d.mean) * m.data_scale,
                                     d.mean > 0 ? d.standard_error / d.mean / 2 : 0.0});
  }
  for (const GainProbe& g : m.gains) {
    for (std::size_t i = 0; i < g.squared.size(); ++i) {
      gain.insert(gain.end(), {double(i + 1), double(g.level), double(g.last),
                               g.trained ? 1.0 : 0.0, std::sqrt(g.squared[i])});
    }
  }
  for (std::size_t k = 0; k < m.pilots.size(); ++k) {
    const PilotResult& r = m.pilots[k];
    pilot.insert(
        pilot.end(),
        {double(r.pilot.range.first), double(r.pilot.start()), double(r.pilot.range.last),
         double(r.pilot.trained.size()), double(r.pilot.replicate), r.pilot.held_out ? 1.0 : 0.0,
         std::sqrt(r.start) * m.data_scale, std::sqrt(r.teacher) * m.data_scale});
    for (std::size_t u = 0; u < r.updates.size(); ++u) {
      curve.insert(curve.end(),
                   {double(k), double(r.updates[u]), std::sqrt(r.error[u]) * m.data_scale});
    }
  }
  add("distance", distance, 5);  // first, start, last, g, relative standard error
  add("gain", gain, 5);          // first, level, last of the probe, trained, Lambda
  add("pilot", pilot, 8);  // first, start, last, trained children, replicate, held out, g, error
  add("curve", curve, 3);  // pilot, updates, error
  npz.Add("variances", {static_cast<std::int64_t>(m.variances.size())}, m.variances);
  return npz.Bytes();
}

}  // namespace mergeplan::calibrate
