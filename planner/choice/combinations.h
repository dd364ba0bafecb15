#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "planner/operators/model.h"
#include "planner/plan/costs.h"
#include "planner/search/search.h"

namespace mergeplan {

// The schedules of a list such as "cosine,flow:shift=3,config.json": a comma begins another
// schedule unless "key=value" follows, which goes on with the parameters of the one before
// ("edm:rho=7,sigma_max=80" is one). A whole text, or a piece, that is the name of a file is one
// schedule. O(length).
std::vector<std::string> SplitSchedules(const std::string& text);

// The best plan for one schedule and number of teacher steps.
struct Combination {
  int asked_steps = 0;  // 0: the schedule has its own; the model may have fewer (Schedule::notes)
  int teacher_steps = 0;
  std::string schedule;
  std::vector<std::string> notes;
  SearchResult result;
  PlanCosts costs;
  double objective_teacher = 0;  // student against its own teacher
  // Against the data, whose standard deviations are the same for every schedule: of the student and
  // of its teacher. None where a schedule does not end at unit noise, from which sampling starts.
  std::optional<double> objective_data, teacher_data;
};

// How combinations compare.
struct ComparedCombinations {
  std::vector<Combination> rows;
  // The row whose student is nearest to the data; -1 where no row has that figure.
  int best = -1;
  // Every row was planned for the data, and no plan of another row can be better.
  bool certain = false;
  double seconds = 0;

  bool stopped() const;  // some row was stopped early
};

// Makes the model of combination k; called once for each, one model at a time.
using MakeModel = std::function<absl::StatusOr<Model>(int)>;

// Solves `count` problems one after another. The time limit holds for all together; each gets an
// equal share of what is left, so that time which one does not need goes to those after it. Errors
// of make_model and Solve are returned as they are. options.progress is told of every one;
// `starts`, where given, of which one begins.
absl::StatusOr<ComparedCombinations> SolveCombinations(int count, const MakeModel& make_model,
                                                       SearchOptions options,
                                                       const std::function<void(int)>& starts = {});

// sum_k w_k (sqrt(lambda_k) - V_k)^2 in native units, for the value of a student or the teacher's
// product; nothing where the schedule does not end at unit noise (alpha_T^2 + sigma_T^2 within 1 %
// of 1) or the model is of tables.
std::optional<double> ErrorAgainstData(const Model& model, absl::Span<const double> value);

}  // namespace mergeplan
