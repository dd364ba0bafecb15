// mergeplan-plugins: lists, shows and checks strategy plugins. `mergeplan plugins` runs it as a
// child process, since the planner does not see plugins.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "planner/base/finished.h"
#include "plugins/host/check.h"
#include "plugins/host/host.h"
#include "plugins/host/probe.h"

namespace mergeplan {
namespace {

using Json = nlohmann::ordered_json;

// A number as the schema means it: integers without a point.
Json Bound(const ParameterSpec& spec, double value) {
  constexpr double kLargest = 9.2e18;
  if (spec.type == ParameterType::kInteger && std::abs(value) < kLargest) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

Json DefaultValue(const ParameterSpec& spec) {
  const std::string& text = *spec.default_value;
  switch (spec.type) {
    case ParameterType::kInteger:
      return std::stoll(text);
    case ParameterType::kReal:
      return std::stod(text);
    case ParameterType::kFlag:
      return text == "true";
    case ParameterType::kText:
      break;
  }
  return text;
}

Json ToJson(const PluginListing& listing) {
  Json out;
  out["name"] = listing.name;
  out["usable"] = listing.status.ok();
  out["error"] = listing.status.ok() ? Json() : Json(std::string(listing.status.message()));
  out["manifest"] = listing.manifest_path;
  if (!listing.manifest) return out;
  const Manifest& manifest = *listing.manifest;
  out["version"] = manifest.version;
  out["description"] = manifest.description;
  out["library"] = manifest.library;
  out["abi"] = absl::StrCat(manifest.abi_major, ".", manifest.abi_minor_needed);
  out["teacher_needs"] = TeacherTraitNames(manifest.teacher_needs);
  out["parameters"] = Json::array();
  for (const ParameterSpec& spec : manifest.parameters) {
    Json parameter;
    parameter["name"] = spec.name;
    parameter["type"] = std::string(ToString(spec.type));
    if (spec.default_value) parameter["default"] = DefaultValue(spec);
    if (spec.minimum) parameter["minimum"] = Bound(spec, *spec.minimum);
    if (spec.maximum) parameter["maximum"] = Bound(spec, *spec.maximum);
    parameter["help"] = spec.help;
    out["parameters"].push_back(parameter);
  }
  return out;
}

// Paths may hold any bytes; what is no UTF-8 is replaced.
std::string Dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

void PrintLine(const PluginListing& listing) {
  const std::string text = listing.status.ok()
                               ? listing.manifest->description
                               : absl::StrCat("unusable: ", listing.status.message());
  std::cout << absl::StrFormat("%-14s %-8s %s\n", listing.name,
                               listing.manifest ? listing.manifest->version : "-", text);
}

void PrintAll(const PluginListing& listing) {
  const Manifest& manifest = *listing.manifest;
  const std::vector<std::string> needs = TeacherTraitNames(manifest.teacher_needs);
  std::cout << manifest.name << " " << manifest.version << ": " << manifest.description << "\n"
            << "  manifest       " << manifest.path << "\n"
            << "  library        " << manifest.library << "\n"
            << "  ABI            " << manifest.abi_major << "." << manifest.abi_minor_needed
            << " or newer\n"
            << "  teacher needs  " << (needs.empty() ? "nothing" : absl::StrJoin(needs, ", "))
            << "\n";
  for (const std::string& line : ParameterLines(manifest)) {
    std::cout << "  parameter      " << line << "\n";
  }
}

int List(const std::vector<std::string>& folders, bool json) {
  const std::vector<PluginListing> listings = ListPlugins(folders);
  if (json) {
    Json out;
    out["search_path"] = PluginSearchPath(folders);
    out["plugins"] = Json::array();
    for (const PluginListing& listing : listings) out["plugins"].push_back(ToJson(listing));
    std::cout << Dump(out) << "\n";
    return 0;
  }
  for (const PluginListing& listing : listings) PrintLine(listing);
  if (listings.empty()) {
    std::cerr << "no plugins found; give their folder by --plugin-dir or MERGEPLAN_PLUGIN_PATH\n";
  }
  return 0;
}

int Show(const std::string& name, const std::vector<std::string>& folders, bool json) {
  const auto manifest = FindManifest(name, folders);
  const absl::Status status = manifest.ok() ? CheckLoads(*manifest) : manifest.status();
  if (!status.ok()) {
    std::cerr << "mergeplan plugins: " << status.message() << "\n";
    // A name that no plugin has.
    return absl::IsNotFound(manifest.status()) && name.find('/') == std::string::npos ? 2 : 1;
  }
  const PluginListing listing{manifest->path, manifest->name, absl::OkStatus(), *manifest};
  if (json) {
    std::cout << Dump(ToJson(listing)) << "\n";
  } else {
    PrintAll(listing);
  }
  return 0;
}

Json ToJson(const CheckReport& report) {
  Json out;
  out["name"] = report.name;
  out["library"] = report.library;
  for (const auto outcome : {CheckResult::Outcome::kPassed, CheckResult::Outcome::kFailed,
                             CheckResult::Outcome::kSkipped}) {
    out[std::string(ToString(outcome))] = report.Count(outcome);
  }
  out["checks"] = Json::array();
  for (const CheckResult& result : report.results) {
    out["checks"].push_back({{"name", result.name},
                             {"rule", result.rule},
                             {"result", std::string(ToString(result.outcome))},
                             {"text", result.text}});
  }
  return out;
}

void PrintResult(const CheckResult& result) {
  std::cout << absl::StrFormat("%-8s %s", std::string(ToString(result.outcome)), result.name);
  if (result.outcome == CheckResult::Outcome::kFailed) {
    std::cout << ": expected that " << result.rule << "; found: " << result.text;
  } else if (!result.text.empty()) {
    std::cout << ": " << result.text;
  }
  std::cout << std::endl;  // as it comes, however long the next one takes
}

int Check(const std::string& name, CheckOptions options, const std::vector<std::string>& pairs,
          bool json) {
  for (const std::string& pair : pairs) {
    const size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos) {
      std::cerr << "mergeplan plugins: --param " << pair << ": expected NAME=VALUE\n";
      return 2;
    }
    if (!options.parameters.emplace(pair.substr(0, equals), pair.substr(equals + 1)).second) {
      std::cerr << "mergeplan plugins: --param " << pair << ": the name is given twice\n";
      return 2;
    }
  }
  if (!(options.seconds > 0 && options.seconds <= 1e6)) {
    std::cerr << "mergeplan plugins: --seconds " << options.seconds
              << ": expected a number above 0, 1000000 or less\n";
    return 2;
  }
  // Loading has a deadline of its own; it is no longer than this one.
  if (options.seconds < LoadSeconds()) {
    ::setenv("MERGEPLAN_PLUGIN_LOAD_SECONDS", absl::StrCat(options.seconds).c_str(), 1);
  }
  const auto report = CheckPlugin(name, options, [&](const CheckResult& result) {
    if (!json) PrintResult(result);
  });
  if (!report.ok()) {
    std::cerr << "mergeplan plugins: " << report.status().message() << "\n";
    const bool misuse =
        absl::IsNotFound(report.status()) || absl::IsInvalidArgument(report.status());
    return misuse ? 2 : 1;
  }
  const int failed = report->Count(CheckResult::Outcome::kFailed);
  if (json) {
    std::cout << Dump(ToJson(*report)) << "\n";
  } else {
    std::cout << report->name << ": " << report->Count(CheckResult::Outcome::kPassed) << " passed, "
              << failed << " failed, " << report->Count(CheckResult::Outcome::kSkipped)
              << " skipped\n";
  }
  return failed == 0 ? 0 : 1;
}

int Main(int argc, char** argv) {
  CLI::App app("Lists, shows and checks the strategy plugins that mergeplan finds.",
               "mergeplan plugins");
  app.require_subcommand(1);
  std::vector<std::string> folders;
  bool json = false;
  std::string name;
  const auto common = [&](CLI::App* command) {
    command->add_flag("--json", json, "print JSON");
    command->add_option("--plugin-dir", folders, "a folder to search first; may be repeated")
        ->type_name("FOLDER")
        ->allow_extra_args(false);
    return command;
  };
  CLI::App* list = common(app.add_subcommand("list", "every plugin, and why one cannot be used"));
  list->footer("Example: mergeplan plugins list --json");
  CLI::App* show = common(app.add_subcommand("show", "one plugin with its parameters"));
  show->add_option("NAME", name, "name, or path of a library or manifest")->required();
  show->footer("Example: mergeplan plugins show progressive");
  CheckOptions options;
  std::vector<std::string> parameters;
  CLI::App* check = common(app.add_subcommand(
      "check", "does a plugin keep every rule of mergeplan_plugin.h? Exit code 1 if not"));
  check->add_option("NAME", name, "name, or path of a library or manifest")->required();
  check->add_option("--seconds", options.seconds,
                    "how long a group of checks may take, and the loading [60]");
  check
      ->add_option("--param", parameters,
                   "NAME=VALUE, in place of a parameter's default; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  check->footer("Example: mergeplan plugins check ./mine.so --seconds 10");
  if (argc < 2) {
    std::cerr << "mergeplan plugins: no command, expected list, show or check; see --help\n";
    return 2;
  }
  const std::string_view command = argv[1];
  if (command.substr(0, 1) != "-" && command != "list" && command != "show" && command != "check") {
    std::cerr << "mergeplan plugins: unknown command \"" << argv[1]
              << "\", expected list, show or check; see --help\n";
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(e);
    std::cerr << "mergeplan plugins: " << e.what() << "; see --help\n";
    return 2;
  }
  if (!list->parsed() && name.empty()) {
    std::cerr << "mergeplan plugins: NAME: is empty, expected a name or a path\n";
    return 2;
  }
  if (std::find(folders.begin(), folders.end(), "") != folders.end()) {
    std::cerr << "mergeplan plugins: --plugin-dir: is empty, expected a folder; leave it out or "
                 "give one\n";
    return 2;
  }
  if (check->parsed()) {
    options.folders = folders;
    return Check(name, options, parameters, json);
  }
  return list->parsed() ? List(folders, json) : Show(name, folders, json);
}

}  // namespace
}  // namespace mergeplan

int main(int argc, char** argv) {
  int code = 1;
  try {
    code = mergeplan::Main(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "mergeplan plugins: " << e.what() << "\n";
  }
  std::cout.flush();
  if (!std::cout || std::fflush(stdout) != 0) {
    std::cerr << "mergeplan plugins: the output could not be written to stdout\n";
    if (code == 0) code = 1;
  }
  mergeplan::TellFinished();
  return code;
}
