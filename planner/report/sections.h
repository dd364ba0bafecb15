#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "planner/report/facts.h"
#include "planner/report/report.h"

namespace mergeplan {

// The sections of the page, in their order, as HTML; empty where there is nothing to show.
std::string ResultsTable(const ReportInput& input, const ReportFacts& facts);
std::string SpectrumSection(const ReportInput& input, const ReportFacts& facts);
absl::StatusOr<std::string> CovarianceSection(const ReportInput& input);
std::string PlanSection(const ReportInput& input, const ReportFacts& facts);
std::string ErrorSection(const ReportInput& input, const ReportFacts& facts);
absl::StatusOr<std::string> SampleSection(const ReportInput& input, const ReportFacts& facts);
std::string AssumptionSection(const ReportInput& input, const ReportFacts& facts);
std::string CertificateSection(const ReportInput& input);
std::string SourceSection(const ReportInput& input);

}  // namespace mergeplan
