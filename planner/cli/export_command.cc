#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/answer/student_levels.h"
#include "planner/base/file.h"
#include "planner/base/shortest.h"
#include "planner/base/status_macros.h"
#include "planner/cli/command.h"
#include "planner/plan/io/document.h"

namespace mergeplan::cli {
namespace {

struct ExportFlags {
  std::string plan;
  std::string format;
  std::string schedule;
  std::string output;
};

// "999, 749, 499.5": what a field for a list of numbers takes.
std::string List(const std::vector<double>& numbers) {
  std::string out;
  for (const double x : numbers) absl::StrAppend(&out, out.empty() ? "" : ", ", ShortestText(x));
  return out + "\n";
}

absl::StatusOr<std::string> Exported(const PlanDocument& document, const ExportFlags& flags) {
  MP_ASSIGN_OR_RETURN(const Schedule schedule, ScheduleBehind(document, flags.schedule));
  if (flags.format == "diffusers") {
    return StockScheduler(document.plan, schedule,
                          flags.schedule.empty() ? document.schedule_spec : flags.schedule);
  }
  absl::StatusOr<std::vector<double>> numbers = flags.format == "timesteps"
                                                    ? StudentTimesteps(document.plan, schedule)
                                                    : StudentSigmas(document.plan, schedule);
  MP_RETURN_IF_ERROR(numbers.status());
  return List(*numbers);
}

absl::Status RunExport(const ExportFlags& flags) {
  if (flags.format != "timesteps" && flags.format != "sigmas" && flags.format != "diffusers") {
    return Misuse(absl::StrCat("--format: unknown word \"", flags.format,
                               "\", expected timesteps, sigmas or diffusers"));
  }
  MP_RETURN_IF_ERROR(CheckOutput(flags.output, {flags.plan, flags.schedule}));
  MP_ASSIGN_OR_RETURN(const PlanDocument document, ReadPlan(flags.plan));  // names the file itself
  absl::StatusOr<std::string> text = Exported(document, flags);
  if (!text.ok()) {
    return absl::Status(text.status().code(),
                        absl::StrCat(flags.plan, ": ", std::string(text.status().message())));
  }
  if (!flags.output.empty()) return WriteFileAtomically(flags.output, *text);
  std::printf("%s", text->c_str());
  return absl::OkStatus();
}

}  // namespace

Command MakeExport(CLI::App& top) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App* app = top.add_subcommand("export", "The student's steps as other samplers want them");
  app->footer(
      "example: mergeplan export plan.toml --format sigmas\n"
      "timesteps: N numbers for a network's scheduler, noisiest first. sigmas: N + 1 numbers for "
      "k-diffusion, ComfyUI and stable-diffusion.cpp (flow matching: the share of noise). "
      "diffusers: JSON with a stock scheduler's config and what its set_timesteps is given.");
  app->add_option("PLAN", flags->plan, "plan file (.toml or .json)")->required();
  app->add_option("--format", flags->format, "timesteps, sigmas or diffusers")
      ->required()
      ->type_name("FORMAT");
  app->add_option("--schedule", flags->schedule,
                  "where the plan's schedule is now (default: where it was when the plan was made)")
      ->type_name("SCHEDULE");
  app->add_option("-o,--output", flags->output, "file to write")->type_name("FILE");
  return {app, [flags] { return Report("export", RunExport(*flags)); }};
}

}  // namespace mergeplan::cli
