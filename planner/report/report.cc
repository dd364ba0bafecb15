#include "planner/report/report.h"

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/report/facts.h"
#include "planner/report/sections.h"
#include "planner/report/style.h"
#include "planner/report/text.h"

namespace mergeplan {

absl::StatusOr<std::string> RenderHtml(const ReportInput& input) {
  MP_ASSIGN_OR_RETURN(const ReportFacts facts, CheckInput(input));
  MP_ASSIGN_OR_RETURN(const std::string covariance, CovarianceSection(input));
  MP_ASSIGN_OR_RETURN(const std::string samples, SampleSection(input, facts));
  const std::string title = Escape(input.title.empty() ? "Distillation report" : input.title);
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n<title>",
      title, "</title>\n<style>", PageCss(), "</style>\n</head>\n<body>\n<main>\n",
      absl::StrCat("<header>\n<h1>", title, "</h1>\n<p class=\"verdict\">", Verdict(input, facts),
                   "</p>\n", VerdictDetails(input, facts), "</header>\n"),
      ResultsTable(input, facts), SpectrumSection(input, facts), covariance,
      PlanSection(input, facts), ErrorSection(input, facts), samples,
      AssumptionSection(input, facts), CertificateSection(input), SourceSection(input),
      "</main>\n</body>\n</html>\n");
}

}  // namespace mergeplan
