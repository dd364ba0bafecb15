// What is accepted is whole, and reads back as it is.
#include <cmath>
#include <filesystem>

#include "planner/plan/io/document.h"
#include "tests/fuzz/target.h"

namespace mergeplan::fuzz {
namespace {

void Check(const absl::StatusOr<PlanDocument>& document, std::string_view ending) {
  if (!document.ok()) {
    Require(!document.status().message().empty(), "an error with words");
    return;
  }
  Require(document->plan.teacher_steps() >= 1, "a step");
  Require(document->plan.blocks().size() <= static_cast<size_t>(document->plan.teacher_steps()),
          "no more blocks than steps");
  Require(std::isfinite(document->objective), "a finite objective");
  Require(document->lower_bound >= 0 &&
              document->lower_bound <= document->objective + 2 * document->tolerance,
          "a bound that the objective respects");
  const std::string again =
      std::filesystem::path(AsFile("", ending)).parent_path() / ("again" + std::string(ending));
  Require(WritePlan(*document, again).ok(), "that what was read can be written");
  const absl::StatusOr<PlanDocument> second = ReadPlan(again);
  Require(second.ok(), "that what was written can be read");
  Require(second->plan == document->plan && second->alpha == document->alpha &&
              second->sigma == document->sigma && second->variances == document->variances &&
              second->weights == document->weights && second->value == document->value &&
              second->objective == document->objective &&
              second->lower_bound == document->lower_bound && second->status == document->status,
          "the same plan again");
}

void Toml(std::string_view bytes) { Check(ReadPlanToml(AsFile(bytes, ".toml")), ".toml"); }
void Json(std::string_view bytes) { Check(ReadPlanJson(AsFile(bytes, ".json")), ".json"); }

}  // namespace

const Target kPlanToml = {"plan_toml", Toml};
const Target kPlanJson = {"plan_json", Json};

}  // namespace mergeplan::fuzz
