// Writes report pages and arc plots to look at: report_gallery FOLDER.

#include <cstdio>
#include <string>

#include "planner/base/file.h"
#include "planner/operators/canonical.h"
#include "planner/report/arcs.h"
#include "planner/report/calibration_page.h"
#include "tests/planner/report/calibration_example.h"
#include "tests/planner/report/example.h"

namespace mergeplan {
namespace {

bool Write(const std::string& path, const std::string& bytes) {
  const absl::Status status = WriteFileAtomically(path, bytes);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  std::printf("%s %zu bytes\n", path.c_str(), bytes.size());
  return status.ok();
}

bool Page(const std::string& path, const ExampleOptions& options) {
  const Example example(options);
  const absl::StatusOr<std::string> html = RenderHtml(example.input);
  if (!html.ok()) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), std::string(html.status().message()).c_str());
    return false;
  }
  return Write(path, *html);
}

int Main(const std::string& folder) {
  if (!MakeDirectories(folder).ok()) return 1;
  bool ok = Page(folder + "/t32.html", {.shape = {28, 28}, .teacher_steps = 32});
  ok &= Page(folder + "/t1000.html", {.shape = {16, 16}, .teacher_steps = 1000});
  ok &= Page(folder + "/colour.html",
             {.shape = {3, 12, 12}, .teacher_steps = 32, .student_steps = 4, .data_scale = 0.5});
  ok &= Page(folder + "/one.html", {.shape = {1}, .teacher_steps = 8});
  ok &= Page(folder + "/lines.html", {.shape = {40}, .teacher_steps = 32, .scaling = "none"});
  const absl::StatusOr<std::string> calibration = RenderCalibration(MakeCalibration());
  ok &= calibration.ok() && Write(folder + "/calibration.html", *calibration);
  ok &= Page(folder + "/untrained.html", {.teacher_steps = 32, .strategies = {}});
  for (const int steps : {8, 32, 1000}) {
    for (const int blocks : {1, 4}) {
      const std::string suffix = std::to_string(steps) + "_" + std::to_string(blocks);
      const Plan plan = HybridPlan(steps, blocks);
      ok &= Write(folder + "/hybrid_" + suffix + ".svg", ArcPlotSvg(plan));
      ok &= Write(folder + "/hybrid_" + suffix + ".txt", ArcPlotText(plan, 80));
      for (Strategy strategy : kStrategies) {
        const Plan canonical = *CanonicalPlan(strategy, steps, blocks);
        const std::string name = folder + "/" + std::string(ToString(strategy)) + "_" + suffix;
        ok &= Write(name + ".svg", ArcPlotSvg(canonical));
        ok &= Write(name + ".txt", ArcPlotText(canonical, 80));
      }
    }
  }
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace mergeplan

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: report_gallery FOLDER\n");
    return 2;
  }
  return mergeplan::Main(argv[1]);
}
