#include "plugins/host/check.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/status_macros.h"
#include "plugins/host/border.h"
#include "plugins/host/host.h"
#include "plugins/host/suite_process.h"

namespace mergeplan {
namespace {

namespace fs = std::filesystem;
using Outcome = CheckResult::Outcome;

constexpr char kManifestReads[] = "Manifest.Reads";
constexpr char kManifestFits[] = "Manifest.FitsThisHost";
constexpr char kLibraryLoads[] = "Library.Loads";
constexpr char kFirst[] = "Entry.StaticData";
constexpr char kNoLibrary[] = "not run: the library cannot be loaded and asked for its entry";
constexpr int kCannotLoad = 3;  // the exit status of mergeplan-plugin-conformance

// A check of the suite.
struct Known {
  std::string name;
  std::string rule;
};
std::string GroupOf(const std::string& name) { return name.substr(0, name.find('.')); }

// The program stands beside the one that runs.
absl::StatusOr<std::string> SuiteProgram() {
  std::error_code failure;
  const fs::path self = fs::read_symlink("/proc/self/exe", failure);
  const std::string path = (self.parent_path() / "mergeplan-plugin-conformance").string();
  if (failure || ::access(path.c_str(), X_OK) != 0) {
    return absl::UnavailableError(
        absl::StrCat(path, ": cannot be run (", std::strerror(errno),
                     "); it holds the checks and comes with every build"));
  }
  return path;
}

absl::StatusOr<std::vector<Known>> ListChecks(const std::string& program) {
  // Our own program, without any plugin in it.
  const std::string command = absl::StrCat("'", program, "' --list");
  std::string text;
  if (FILE* pipe = ::popen(command.c_str(), "r"); pipe != nullptr) {
    std::array<char, 4096> bytes;
    while (const size_t n = std::fread(bytes.data(), 1, bytes.size(), pipe)) {
      text.append(bytes.data(), n);
    }
    ::pclose(pipe);
  }
  std::vector<Known> known;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> words =
        absl::StrSplit(line, absl::MaxSplits('\t', 1));
    known.push_back({words.first, words.second});
  }
  if (known.empty()) return absl::UnavailableError(absl::StrCat(program, ": lists no checks"));
  return known;
}

class Checker {
 public:
  Checker(const CheckOptions& options, const std::function<void(const CheckResult&)>& tell,
          CheckReport* report)
      : options_(options), tell_(tell), report_(report) {}

  void Add(const Known& check, Outcome outcome, const std::string& text = "") {
    report_->results.push_back({check.name, check.rule, outcome, border::OneLine(text)});
    if (tell_) tell_(report_->results.back());
  }

  // One result for a status; is it OK?
  bool Judge(const Known& check, const absl::Status& status) {
    Add(check, status.ok() ? Outcome::kPassed : Outcome::kFailed, std::string(status.message()));
    return status.ok();
  }

  // Runs the checks of one group. False when the library cannot be loaded at all.
  absl::StatusOr<bool> RunGroup(const std::string& program, std::vector<Known> checks) {
    const std::string group = GroupOf(checks.front().name);
    const auto begin = std::chrono::steady_clock::now();
    while (!checks.empty()) {
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
      const double seconds = std::max(options_.seconds - spent.count(), 0.0);
      std::vector<std::string> names;
      names.reserve(checks.size());
      for (const Known& check : checks) names.push_back(check.name);
      std::vector<std::string> arguments = {
          report_->library, absl::StrCat("--gtest_filter=", absl::StrJoin(names, ":"))};
      for (const auto& [name, value] : options_.parameters) {
        arguments.emplace_back("--param");
        arguments.push_back(absl::StrCat(name, "=", value));
      }
      running_.reset();
      problems_.clear();
      at_.clear();
      const size_t before = checks.size();
      MP_ASSIGN_OR_RETURN(const SuiteRun run,
                          RunSuite(program, arguments, seconds,
                                   [&](const std::string& line) { OnEvent(line, &checks); }));
      const bool nothing_ran = checks.size() == before && !running_;
      if (nothing_ran) return NothingRan(run, checks);
      if (running_) {
        // The check during which the process ended.
        const Known check = *running_;
        Add(check, Outcome::kFailed,
            absl::StrCat(End(run), at_.empty() ? "" : absl::StrCat(" in ", at_), Problems()));
        Remove(check.name, &checks);
        // The first check calls nothing but the entry: where that ends the process, all do.
        if (check.name == kFirst) {
          for (const Known& other : checks) {
            Add(other, Outcome::kSkipped, kNoLibrary);
          }
          return false;
        }
        if (run.end != SuiteRun::End::kDeadline) continue;
      } else if (checks.empty() && run.end == SuiteRun::End::kExited && run.number <= 1) {
        return true;
      } else if (checks.empty()) {
        Add({absl::StrCat(group, ".AtExit"), "nothing happens when the process ends"},
            Outcome::kFailed, absl::StrCat("after the last check of the group: ", End(run)));
        return true;
      } else if (run.end != SuiteRun::End::kDeadline) {
        Add(checks.front(), Outcome::kFailed, absl::StrCat("before it began: ", End(run)));
        checks.erase(checks.begin());
        continue;
      }
      for (const Known& check : checks) {
        Add(check, Outcome::kSkipped, "not run: the time of its group was spent; see --seconds");
      }
      return true;
    }
    return true;
  }

 private:
  absl::StatusOr<bool> NothingRan(const SuiteRun& run, const std::vector<Known>& checks) {
    std::string why = run.end == SuiteRun::End::kExited && run.number == kCannotLoad
                          ? run.last_words
                          : absl::StrCat("before any check: ", End(run));
    for (size_t k = 0; k < checks.size(); ++k) {
      // Said once, where the host has not said it already.
      const bool say = k == 0 && report_->Count(Outcome::kFailed) == 0;
      Add(checks[k], say ? Outcome::kFailed : Outcome::kSkipped, say ? why : kNoLibrary);
    }
    return false;
  }

  void OnEvent(const std::string& line, std::vector<Known>* checks) {
    const std::pair<std::string, std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (words.first == "begin") {
      problems_.clear();
      at_.clear();
      for (const Known& check : *checks) {
        if (check.name == words.second) running_ = check;
      }
    } else if (words.first == "at") {
      at_ = words.second;
    } else if (words.first == "problem") {
      problems_.push_back(words.second);
    } else if (words.first == "end" && running_) {
      const Known check = *running_;
      running_.reset();
      const bool failed = absl::EndsWith(words.second, " failed");
      const bool skipped = absl::EndsWith(words.second, " skipped");
      Remove(check.name, checks);
      Add(check,
          failed    ? Outcome::kFailed
          : skipped ? Outcome::kSkipped
                    : Outcome::kPassed,
          absl::StrJoin(problems_, "; "));
    }
  }

  static void Remove(const std::string& name, std::vector<Known>* checks) {
    for (size_t k = 0; k < checks->size(); ++k) {
      if ((*checks)[k].name == name) {
        checks->erase(checks->begin() + static_cast<std::ptrdiff_t>(k));
        return;
      }
    }
  }

  std::string End(const SuiteRun& run) const {
    switch (run.end) {
      case SuiteRun::End::kDeadline:
        return absl::StrCat("was still running after ", options_.seconds, " seconds");
      case SuiteRun::End::kSignalled:
        return absl::StrCat("crashed (signal ", run.number, ", ", ::strsignal(run.number), ")");
      case SuiteRun::End::kExited:
        break;
    }
    return absl::StrCat("ended the process (exit status ", run.number, ")");
  }

  std::string Problems() const {
    return problems_.empty() ? "" : absl::StrCat("; before that: ", absl::StrJoin(problems_, "; "));
  }

  const CheckOptions& options_;
  const std::function<void(const CheckResult&)>& tell_;
  CheckReport* report_;
  std::optional<Known> running_;
  std::vector<std::string> problems_;
  std::string at_;  // what was asked of the plugin last
};

}  // namespace

std::string_view ToString(CheckResult::Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return "passed";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kSkipped:
      break;
  }
  return "skipped";
}

int CheckReport::Count(CheckResult::Outcome outcome) const {
  int count = 0;
  for (const CheckResult& result : results) count += result.outcome == outcome ? 1 : 0;
  return count;
}

absl::StatusOr<CheckReport> CheckPlugin(const std::string& name_or_path,
                                        const CheckOptions& options,
                                        const std::function<void(const CheckResult&)>& tell) {
  MP_ASSIGN_OR_RETURN(const std::string program, SuiteProgram());
  MP_ASSIGN_OR_RETURN(const std::vector<Known> known, ListChecks(program));
  const absl::StatusOr<Manifest> manifest = FindManifest(name_or_path, options.folders);
  CheckReport report;
  std::error_code ignored;
  const bool is_library = absl::EndsWith(name_or_path, ".so") && fs::exists(name_or_path, ignored);
  if (manifest.ok()) {
    report.name = manifest->name;
    report.library = manifest->library;
    MP_RETURN_IF_ERROR(CheckParameters(*manifest, options.parameters).status());
  } else if (absl::IsNotFound(manifest.status()) && !is_library) {
    return manifest.status();
  } else {
    report.name = fs::path(name_or_path).stem().string();
    if (is_library) report.library = name_or_path;
  }

  Checker checker(options, tell, &report);
  checker.Judge({kManifestReads, "the manifest is there, can be read, and names the library"},
                manifest.status());
  const Known fits = {kManifestFits, "the manifest's ABI is one that this host speaks"};
  const Known loads = {kLibraryLoads,
                       "this host can load the library, and it agrees with the manifest"};
  if (manifest.ok()) {
    checker.Judge(fits, CheckAbi(*manifest));
    checker.Judge(loads, CheckLoads(*manifest));
  } else {
    checker.Add(fits, Outcome::kSkipped, "not run: there is no manifest to go by");
    checker.Add(loads, Outcome::kSkipped, "not run: there is no manifest to go by");
  }
  bool loadable = !report.library.empty() && fs::exists(report.library, ignored);
  for (size_t begin = 0; begin < known.size();) {
    std::vector<Known> group;
    for (size_t k = begin; k < known.size() && GroupOf(known[k].name) == GroupOf(known[begin].name);
         ++k) {
      group.push_back(known[k]);
    }
    begin += group.size();
    if (loadable) {
      MP_ASSIGN_OR_RETURN(loadable, checker.RunGroup(program, group));
      continue;
    }
    for (const Known& check : group) {
      checker.Add(check, Outcome::kSkipped, kNoLibrary);
    }
  }
  return report;
}

}  // namespace mergeplan
