#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/cli/answer.h"
#include "planner/cli/command.h"
#include "planner/cli/flags.h"
#include "planner/plan/costs.h"
#include "planner/plan/io/document.h"
#include "planner/report/arcs.h"

namespace mergeplan::cli {
namespace {

struct ShowFlags {
  const CLI::App* app = nullptr;
  std::string plan;
  std::string svg;
  bool ascii = false;
  bool json = false;
};

int TerminalColumns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 100;
}

absl::Status RunShow(const ShowFlags& flags) {
  if (flags.json) {
    MP_RETURN_IF_ERROR(RefuseGiven(flags.app, {"--ascii"}, "with --json, which draws nothing"));
  }
  MP_RETURN_IF_ERROR(CheckOutput(flags.svg, {flags.plan}));
  MP_ASSIGN_OR_RETURN(const PlanDocument document, ReadPlan(flags.plan));
  if (!flags.svg.empty()) {
    MP_RETURN_IF_ERROR(WriteFileAtomically(flags.svg, ArcPlotSvg(document.plan)));
  }
  if (flags.json) {
    std::printf("%s\n", PlanJson(document).c_str());
    return absl::OkStatus();
  }
  ArcText text;
  text.ascii = flags.ascii;
  std::printf("%s\n", ArcPlotText(document.plan, std::max(24, TerminalColumns()), text).c_str());
  std::printf("objective    %.6e, lower bound %.6e, status %s\n", document.objective,
              document.lower_bound, document.status.c_str());
  std::printf("%s\n\n", document.guarantee.c_str());
  std::vector<StrategyFigures> rows = document.strategies;
  rows.push_back({"plan", document.objective, document.objective_equal_total_time,
                  document.plan.size(), CostsOf(document.plan)});
  std::printf("%s", FiguresTable(rows).c_str());
  if (!flags.svg.empty()) std::printf("\npicture written to %s\n", flags.svg.c_str());
  return absl::OkStatus();
}

}  // namespace

Command MakeShow(CLI::App& top) {
  auto flags = std::make_shared<ShowFlags>();
  CLI::App* app = top.add_subcommand("show", "Draw a plan as arcs in the terminal or as a picture");
  flags->app = app;
  app->footer("example: mergeplan show plan.toml --svg plan.svg");
  app->add_option("PLAN", flags->plan, "plan file (.toml or .json)")->required();
  app->add_option("--svg", flags->svg, "picture to write")->type_name("FILE");
  app->add_flag("--ascii", flags->ascii, "draw with + - | only");
  app->add_flag("--json", flags->json, "print the plan as one JSON object");
  return {app, [flags] { return Report("show", RunShow(*flags)); }};
}

}  // namespace mergeplan::cli
