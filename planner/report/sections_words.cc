#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/report/html.h"
#include "planner/report/sections.h"
#include "planner/report/text.h"

namespace mergeplan {
namespace {

std::string InitWords(Init init) {
  switch (init) {
    case Init::kChild:
      return "from the operator learnt at its noisiest level, as it is";
    case Init::kTeacher:
      return "from the teacher’s single step";
    case Init::kJump:
      return "from the teacher’s estimate of the clean data, used for the whole jump";
    case Init::kChildJump:
      break;
  }
  return "from the estimate of the clean data that its noisiest child implies, used for the whole "
         "jump";
}

std::string Path(const std::string& path) {
  return path.empty() ? "" : absl::StrCat("<span class=\"path\">", Escape(path), "</span>");
}

std::string Hash(const std::string& hash) {
  return hash.empty() ? ""
                      : absl::StrCat(" <span class=\"soft\">(SHA-256 ", Path(hash), ")</span>");
}

std::string BasisWords(const std::string& basis) {
  if (basis == "pca") return "principal axes (pca)";
  if (basis == "dct") return "cosine transform (dct)";
  if (basis == "diagonal") return "as stored (diagonal)";
  return Escape(basis);
}

}  // namespace

std::string AssumptionSection(const ReportInput& input, const ReportFacts& facts) {
  std::string out = "<section>\n<h2>Assumptions</h2>\n<dl>\n";
  if (facts.plan != nullptr) {
    const PlanDocument& plan = *facts.plan;
    out += Definition("Model",
                      "linear students of a Gaussian teacher, every dimension by itself; "
                      "what stops real networks besides, capacity and optimisation, is "
                      "not in it");
    out += Definition("Schedule",
                      absl::StrCat("<code>", Escape(plan.schedule_spec), "</code>, ",
                                   Count(plan.plan.teacher_steps(), "teacher step"), " to ",
                                   Count(plan.plan.student_steps(), "student step")));
    out += Definition("Start of a merge", absl::StrCat("<code>", std::string(ToString(plan.init)),
                                                       "</code>: ", InitWords(plan.init)));
    out += Definition("Reference", absl::StrCat("<code>", std::string(ToString(plan.reference)),
                                                "</code>: what V is compared with"));
    out += Definition("Budget", Escape(plan.budget.ToString()));
    out += Definition("Basis", BasisWords(plan.basis));
    if (plan.data_scale != 1) {
      out += Definition("Data scale", absl::StrCat("data is divided by ",
                                                   NumberHtml(plan.data_scale), " for planning"));
    }
    out += Definition("Weights", plan.weights.empty() ? "all 1" : "given, one per dimension");
    for (const StrategyResult& s : input.strategies) {
      std::vector<std::string> other;
      if (s.document.init != plan.init) {
        other.push_back(
            absl::StrCat("start <code>", std::string(ToString(s.document.init)), "</code>"));
      }
      if (!(s.document.budget == plan.budget)) {
        other.push_back(absl::StrCat("budget ", Escape(s.document.budget.ToString())));
      }
      if (!other.empty()) {
        out += Definition(absl::StrCat(s.name, " differs"), Listed(other));
      }
    }
  }
  if (const Spectrum* spectrum = input.spectrum; spectrum != nullptr) {
    std::string shape;
    for (std::int64_t n : spectrum->shape) absl::StrAppend(&shape, shape.empty() ? "" : " × ", n);
    out += Definition("Data", absl::StrCat(Path(spectrum->source), Hash(spectrum->source_sha256)));
    out += Definition(
        "Samples",
        absl::StrCat(Grouped(spectrum->samples), shape.empty() ? "" : " of shape ", shape,
                     spectrum->skipped > 0 ? absl::StrCat(", ", Grouped(spectrum->skipped),
                                                          " not finite and left out")
                                           : ""));
    out +=
        Definition("Scaling", absl::StrCat("<code>", Escape(spectrum->scaling.text),
                                           "</code>: x = ", NumberHtml(spectrum->scaling.multiply),
                                           " · stored", spectrum->scaling.add < 0 ? " − " : " + ",
                                           NumberHtml(std::abs(spectrum->scaling.add))));
  }
  out += Definition("Seed of the samples", absl::StrCat(input.seed));
  out += "</dl>\n";
  if (!input.notes.empty()) {
    out += "<ul>\n";
    for (const std::string& note : input.notes) {
      absl::StrAppend(&out, "<li>", Escape(note), "</li>\n");
    }
    out += "</ul>\n";
  }
  return absl::StrCat(out, "</section>\n");
}

std::string CertificateSection(const ReportInput& input) {
  if (input.plan == nullptr || input.plan->status.empty()) return "";
  const PlanDocument& plan = *input.plan;
  std::string words;
  if (plan.status == "optimal") {
    words =
        "The plan is proven to be optimal: no plan of its space has a smaller error, up to the "
        "rounding of the arithmetic.";
  } else if (plan.lower_bound > 0) {
    words = absl::StrCat("No plan of its space has an error below ", NumberHtml(plan.lower_bound),
                         ": the plan is at most ", Percent(plan.gap()),
                         " of its own error away from the best.");
  } else {
    words = "The plan is the best that was found; nothing is proven about how far the best is.";
  }
  if (plan.status == "time_limit") words += " The search ended at its time limit.";
  if (plan.status == "interrupted") words += " The search was interrupted.";
  return absl::StrCat(
      "<section>\n<h2>Certificate</h2>\n<p>", words, "</p>\n",
      plan.guarantee.empty() ? "" : absl::StrCat("<p>", Escape(plan.guarantee), "</p>\n"), "<dl>\n",
      Definition("Status", absl::StrCat("<code>", Escape(plan.status), "</code>")),
      Definition("Error of the plan", NumberHtml(plan.objective)),
      Definition("Lower bound", NumberHtml(plan.lower_bound)),
      Definition("Gap", Percent(plan.gap())),
      Definition("Rounding tolerance", NumberHtml(plan.tolerance, 2)),
      Definition("Space", plan.space == Space::kNary
                              ? "merges of any number of parts (nary)"
                              : "merges of two parts, or of single steps at once (binary)"),
      Definition("Error against the surrogate", NumberOrDash(plan.objective_surrogate)),
      Definition("Error against the teacher", NumberHtml(plan.objective_teacher)),
      Definition("Search", absl::StrCat(NumberHtml(plan.seconds, 3), " s")), "</dl>\n</section>\n");
}

std::string SourceSection(const ReportInput& input) {
  std::string out = "<section>\n<h2>Where this comes from</h2>\n";
  if (!input.commands.empty()) {
    out += "<pre>";
    for (const std::string& command : input.commands) absl::StrAppend(&out, Escape(command), "\n");
    out += "</pre>\n";
  }
  std::string paths = absl::StrCat(Definition("Spectrum", Path(input.spectrum_path)),
                                   Definition("Plan", Path(input.plan_path)));
  for (const StrategyResult& s : input.strategies) {
    paths += Definition(absl::StrCat("Run of ", s.name), Path(s.run_folder));
  }
  if (!paths.empty()) absl::StrAppend(&out, "<dl>\n", paths, "</dl>\n");
  if (input.commands.empty() && paths.empty()) return "";
  return absl::StrCat(out, "</section>\n");
}

}  // namespace mergeplan
