#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/file.h"
#include "planner/base/memory.h"
#include "planner/base/status_macros.h"
#include "planner/cli/calibration_results.h"
#include "planner/cli/command.h"
#include "planner/cli/flags.h"
#include "planner/cli/run_results.h"
#include "planner/cli/spectrum_input.h"
#include "planner/operators/law.h"
#include "planner/plan/io/evaluate.h"
#include "planner/report/calibration_page.h"
#include "planner/report/report.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan::cli {
namespace {

constexpr int kMostLawDraws = 1'000'000'000;

struct ReportFlags {
  std::vector<std::string> runs;
  std::string output;
  std::string plan;
  std::string spectrum;
  std::string title;
  std::int64_t seed = 1;
  int draws = 10000;
  int threads = 0;
  bool json = false;
};

// Tests every run against the exact law of its plan: Holm at 1 % over all dimensions of all
// strategies.
absl::Status TestAgainstLaw(const ReportFlags& flags, std::vector<RunResults>& runs) {
  if (flags.draws == 0) return absl::OkStatus();
  struct Family {
    std::optional<LawTest> test;
    int merges = 0;
  };
  constexpr double kLevel = 0.01;
  std::vector<std::vector<double>> p_values(runs.size());
  std::vector<double> all;
  // Runs that share model and arithmetic share the draws.
  std::vector<bool> done(runs.size(), false);
  for (size_t first = 0; first < runs.size(); ++first) {
    const PlanDocument& document = runs[first].result.document;
    if (done[first] || !runs[first].result.has_law) continue;
    std::vector<size_t> group;
    int merges = 0;
    for (size_t k = first; k < runs.size(); ++k) {
      const PlanDocument& other = runs[k].result.document;
      if (done[k] || !runs[k].result.has_law || other.budget != document.budget ||
          other.variances != document.variances || other.alpha != document.alpha ||
          other.sigma != document.sigma || other.init != document.init ||
          other.reference != document.reference || other.weights != document.weights ||
          runs[k].dtype != runs[first].dtype) {
        continue;
      }
      group.push_back(k);
      done[k] = true;
      merges = std::max(merges, other.plan.size());
    }
    MP_ASSIGN_OR_RETURN(const Model model, ModelOf(document));
    LawTestOptions options;
    options.draws = flags.draws;
    options.seed = static_cast<std::uint64_t>(flags.seed);
    options.rounding = runs[first].dtype == "float32" ? kRoundingFloat32 : kRoundingFloat64;
    options.threads = flags.threads > 0 ? flags.threads : 2;
    // For every draw 64 bytes a merge, and the values of up to 256 dimensions at a time.
    const double bytes = 64.0 * merges + 8.0 * std::min(256, document.dimensions());
    absl::Status memory = CheckMemory(absl::StrCat(flags.draws, " draws of ", merges, " merges"),
                                      bytes * flags.draws);
    if (!memory.ok()) {
      return absl::Status(memory.code(), absl::StrCat("--draws: ", std::string(memory.message()),
                                                      "; give fewer draws (the default is 10000)"));
    }
    MP_ASSIGN_OR_RETURN(const LawTest test, LawTest::Create(model, merges, options));
    for (size_t k : group) {
      MP_ASSIGN_OR_RETURN(p_values[k],
                          test.PValues(runs[k].result.document.plan, runs[k].result.value));
      all.insert(all.end(), p_values[k].begin(), p_values[k].end());
    }
  }
  const std::vector<bool> rejected = HolmReject(all, kLevel);
  size_t at = 0;
  for (size_t k = 0; k < runs.size(); ++k) {
    if (p_values[k].empty()) continue;
    LawVerdict verdict;
    verdict.level = kLevel;
    verdict.hypotheses = static_cast<std::int64_t>(all.size());
    verdict.draws = flags.draws;
    for (double p : p_values[k]) {
      verdict.smallest_p = std::min(verdict.smallest_p, p);
      verdict.rejected += rejected[at++] ? 1 : 0;
    }
    // Holm's adjusted value of the least p of this strategy: (m - rank + 1) p, made monotone.
    std::vector<double> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    double adjusted = 0;
    for (size_t r = 0; r < sorted.size() && sorted[r] <= verdict.smallest_p; ++r) {
      adjusted = std::max(adjusted, static_cast<double>(sorted.size() - r) * sorted[r]);
    }
    verdict.adjusted_p = std::min(1.0, adjusted);
    runs[k].result.law_test = verdict;
  }
  return absl::OkStatus();
}

std::string LawWord(const StrategyResult& result) {
  if (!result.law_test) return "not tested";
  if (result.law_test->rejected == 0)
    return absl::StrFormat("agrees (p = %.2g)", result.law_test->adjusted_p);
  return absl::StrFormat("rejected in %d dimensions (p = %.2g)", result.law_test->rejected,
                         result.law_test->adjusted_p);
}

void PrintTable(const std::vector<RunResults>& runs) {
  std::printf("%-14s %15s %15s %15s  %s\n", "strategy", "predicted error", "with SGD noise",
              "achieved error", "law of SGD");
  for (const RunResults& run : runs) {
    const StrategyResult& r = run.result;
    const auto figure = [](double value) {
      return std::isnan(value) ? std::string("-") : absl::StrFormat("%.6g", value);
    };
    std::printf("%-14s %15s %15s %15.6g  %s\n", r.name.c_str(),
                figure(r.predicted_objective).c_str(), figure(r.predicted_with_noise).c_str(),
                r.achieved_objective, LawWord(r).c_str());
  }
}

void PrintJson(const std::vector<RunResults>& runs, const std::string& output) {
  nlohmann::ordered_json strategies = nlohmann::ordered_json::array();
  for (const RunResults& run : runs) {
    const StrategyResult& r = run.result;
    nlohmann::ordered_json row = {{"strategy", r.name},
                                  {"run", r.run_folder},
                                  {"predicted_error", r.predicted_objective},
                                  {"predicted_error_with_noise", r.predicted_with_noise},
                                  {"achieved_error", r.achieved_objective},
                                  {"achieved_error_teacher", r.achieved_objective_teacher},
                                  {"merges_trained", r.document.plan.size()},
                                  {"seconds", r.seconds}};
    if (r.law_test) {
      row["law_test"] = {
          {"draws", r.law_test->draws},           {"hypotheses", r.law_test->hypotheses},
          {"level", r.law_test->level},           {"smallest_p", r.law_test->smallest_p},
          {"adjusted_p", r.law_test->adjusted_p}, {"rejected", r.law_test->rejected}};
    }
    strategies.push_back(std::move(row));
  }
  const nlohmann::ordered_json out = {{"strategies", strategies}, {"report", output}};
  std::printf("%s\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

// The page of a calibration, which stands alone.
absl::Status ReportCalibration(const ReportFlags& flags, const std::string& path) {
  if (flags.runs.size() > 1) {
    return Misuse(absl::StrCat("RUN ", path,
                               ": is a calibration, whose page holds nothing else; give it alone"));
  }
  for (const auto& [option, text] :
       {std::pair{"--plan", &flags.plan}, {"--spectrum", &flags.spectrum}}) {
    if (text->empty()) continue;
    return Misuse(
        absl::StrCat(option, ": is of runs, ", path, " is a calibration; leave the option out"));
  }
  MP_RETURN_IF_ERROR(CheckOutput(flags.output, {path, AnswerFileOf(path)}));
  MP_ASSIGN_OR_RETURN(CalibrationPage page, ReadCalibration(path));
  page.title = flags.title.empty() ? "Calibration report" : flags.title;
  MP_ASSIGN_OR_RETURN(const std::string html, RenderCalibration(page));
  MP_RETURN_IF_ERROR(WriteFileAtomically(flags.output, html));
  if (flags.json) {
    const nlohmann::ordered_json out = {{"calibration", path},
                                        {"pilots", page.pilots.size()},
                                        {"held_out", page.judged_merges},
                                        {"factor", page.factor},
                                        {"linear_factor", page.linear_factor},
                                        {"report", flags.output}};
    std::printf("%s\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return absl::OkStatus();
  }
  std::printf(
      "%d pilots, %d merges held out: typically off by a factor of %.3g, the linear model "
      "by %.3g\n\nreport: %s\n",
      static_cast<int>(page.pilots.size()), page.judged_merges, page.factor, page.linear_factor,
      flags.output.c_str());
  return absl::OkStatus();
}

absl::Status RunReport(const ReportFlags& flags) {
  for (const std::string& run : flags.runs) {
    if (IsCalibration(run)) return ReportCalibration(flags, run);
  }
  if (flags.draws != 0 && flags.draws < 1000) {
    return Misuse(
        absl::StrCat("--draws: ", flags.draws, ", expected 1000 or more, or 0 for no test"));
  }
  for (size_t k = 0; k < flags.runs.size(); ++k) {
    for (size_t first = 0; first < k; ++first) {
      std::error_code ec;
      if (flags.runs[k] != flags.runs[first] &&
          !std::filesystem::equivalent(flags.runs[k], flags.runs[first], ec)) {
        continue;
      }
      return Misuse(absl::StrCat("RUN ", flags.runs[k], ": is the same folder as ",
                                 flags.runs[first],
                                 ", expected different runs; leave one of them out"));
    }
  }
  for (const std::string& run : flags.runs) MP_RETURN_IF_ERROR(CheckNoFile(run));
  std::vector<std::string> inputs = {flags.plan, flags.spectrum};
  for (const std::string& run : flags.runs) {
    for (const char* file :
         {"/run.toml", "/plan.toml", "/result.toml", "/result.npz", "/checkpoint.npz"}) {
      inputs.push_back(run + file);
    }
  }
  MP_RETURN_IF_ERROR(CheckOutput(flags.output, inputs));
  std::vector<RunResults> runs;
  for (const std::string& folder : flags.runs) {
    MP_ASSIGN_OR_RETURN(RunResults run, ReadRunResults(folder));
    runs.push_back(std::move(run));
  }
  MP_RETURN_IF_ERROR(TestAgainstLaw(flags, runs));

  ReportInput input;
  input.title = flags.title.empty() ? "Distillation report" : flags.title;
  input.seed = static_cast<std::uint64_t>(flags.seed);
  // The spectrum that the runs' teachers were made of, unless another is named.
  std::optional<Spectrum> spectrum;
  input.spectrum_path = flags.spectrum.empty() ? runs.front().teacher_file : flags.spectrum;
  absl::StatusOr<Spectrum> read = ReadSpectrumOrMixture(input.spectrum_path);
  if (read.ok()) {
    spectrum = *std::move(read);
    input.spectrum = &*spectrum;
  } else if (!flags.spectrum.empty()) {
    return read.status();
  } else {
    input.notes.push_back(absl::StrCat("The spectrum could not be read (",
                                       std::string(read.status().message()),
                                       "), so that its pictures are left out."));
  }
  if (std::any_of(runs.begin(), runs.end(), [](const RunResults& r) { return !r.result.linear; })) {
    input.notes.emplace_back(
        "The students of a mixture are no linear operators: predictions and budgets are those of "
        "linear students of the Gaussian with the mixture's moments, which know nothing of modes; "
        "achieved errors are means of |student - teacher|² over drawn rows, ± 1.96 standard "
        "errors.");
  }
  std::optional<PlanDocument> plan;
  if (!flags.plan.empty()) {
    MP_ASSIGN_OR_RETURN(plan, ReadPlan(flags.plan));
    input.plan_path = flags.plan;
  } else {
    // The plan of least predicted error among the runs; runs without one come last.
    const auto predicted = [](const RunResults& run) {
      const double error = run.result.predicted_objective;
      return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    };
    const auto best = std::min_element(
        runs.begin(), runs.end(),
        [&](const RunResults& x, const RunResults& y) { return predicted(x) < predicted(y); });
    plan = best->result.document;
    input.plan_path = best->result.run_folder + "/plan.toml";
  }
  input.plan = &*plan;
  for (const RunResults& run : runs) input.strategies.push_back(run.result);
  MP_ASSIGN_OR_RETURN(const std::string html, RenderHtml(input));
  MP_RETURN_IF_ERROR(WriteFileAtomically(flags.output, html));
  if (flags.json) {
    PrintJson(runs, flags.output);
  } else {
    PrintTable(runs);
    std::printf("\nreport: %s\n", flags.output.c_str());
  }
  return absl::OkStatus();
}

}  // namespace

Command MakeReport(CLI::App& top) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* app = top.add_subcommand(
      "report", "One HTML page about runs: spectrum, plan, predicted against achieved");
  app->footer("example: mergeplan report runs/vanilla runs/boot runs/dp_custom -o report.html");
  app->add_option("RUN", flags->runs,
                  "folders of finished runs, or the measured model of one calibration")
      ->required();
  app->add_option("-o,--output", flags->output, "page to write")->required()->type_name("FILE");
  app->add_option("--plan", flags->plan, "plan to draw (default: the run of least predicted error)")
      ->type_name("FILE");
  app->add_option("--spectrum", flags->spectrum,
                  "spectrum to draw (default: the one of the first run)")
      ->type_name("FILE");
  app->add_option("--title", flags->title, "headline of the page")->type_name("TEXT");
  AddInteger(*app, "--seed", flags->seed, 0, "of the sample images and of the law test (default 1)")
      ->type_name("N");
  AddInteger(*app, "--draws", flags->draws, 0,
             "draws of the law that achieved values are tested against (default 10000, 0: no test)",
             kMostLawDraws)
      ->type_name("N");
  AddInteger(*app, "--threads", flags->threads, 0, "threads to use (default, 0: 2)")
      ->type_name("N");
  app->add_flag("--json", flags->json, "print the table as JSON");
  return {app, [flags] { return Report("report", RunReport(*flags)); }};
}

}  // namespace mergeplan::cli
