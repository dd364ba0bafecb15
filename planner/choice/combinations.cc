#include "planner/choice/combinations.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/base/status_macros.h"

namespace mergeplan {
namespace {

bool Exists(const std::string& path) {
  std::error_code ec;
  return std::filesystem::exists(path, ec);
}

// "key=value", which no schedule is called.
bool IsParameter(const std::string& piece) {
  const std::size_t equals = piece.find('=');
  return equals != std::string::npos && equals < piece.find(':') && !Exists(piece);
}

bool NearestIsCertain(const ComparedCombinations& all, Reference reference) {
  if (all.best < 0 || reference != Reference::kData) return false;
  const SearchResult& best = all.rows[static_cast<std::size_t>(all.best)].result;
  for (std::size_t k = 0; k < all.rows.size(); ++k) {
    if (static_cast<int>(k) == all.best) continue;
    if (!(best.objective + best.tolerance < all.rows[k].result.lower_bound)) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> SplitSchedules(const std::string& text) {
  if (Exists(text)) return {text};
  std::vector<std::string> out;
  const std::vector<std::string> pieces = absl::StrSplit(text, ',');
  for (const std::string& piece : pieces) {
    if (!out.empty() && IsParameter(piece)) {
      absl::StrAppend(&out.back(), ",", piece);
    } else {
      out.push_back(piece);
    }
  }
  return out;
}

bool ComparedCombinations::stopped() const {
  for (const Combination& row : rows) {
    if (row.result.status == SearchStatus::kTimeLimit ||
        row.result.status == SearchStatus::kInterrupted) {
      return true;
    }
  }
  return false;
}

std::optional<double> ErrorAgainstData(const Model& model, absl::Span<const double> value) {
  if (!model.has_schedule()) return std::nullopt;
  const double alpha = model.schedule().alpha.back(), sigma = model.schedule().sigma.back();
  if (std::abs(alpha * alpha + sigma * sigma - 1) > 0.01) return std::nullopt;
  return model.Objective(value, Reference::kData);
}

absl::StatusOr<ComparedCombinations> SolveCombinations(int count, const MakeModel& make_model,
                                                       SearchOptions options,
                                                       const std::function<void(int)>& starts) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const auto seconds = [begin] {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  const double limit = options.time_limit_seconds;
  ComparedCombinations out;
  Reference reference = Reference::kSurrogate;
  for (int k = 0; k < count; ++k) {
    if (starts) starts(k);
    MP_ASSIGN_OR_RETURN(const Model model, make_model(k));
    reference = model.reference();
    // Where nothing is left, simple plans are compared all the same.
    options.time_limit_seconds = std::max((limit - seconds()) / (count - k), 1e-3);
    MP_ASSIGN_OR_RETURN(SearchResult result, Solve(model, options));
    Combination row;
    row.teacher_steps = model.steps();
    row.schedule = model.schedule().spec;
    row.notes = model.schedule().notes;
    row.costs = CostsOf(result.plan);
    const std::vector<double> value = model.Value(result.plan);
    row.objective_teacher = model.Objective(value, Reference::kTeacher);
    row.objective_data = ErrorAgainstData(model, value);
    row.teacher_data = ErrorAgainstData(model, model.tau(Reference::kTeacher));
    row.result = std::move(result);
    if (row.objective_data &&
        (out.best < 0 ||
         *row.objective_data < *out.rows[static_cast<std::size_t>(out.best)].objective_data)) {
      out.best = k;
    }
    out.rows.push_back(std::move(row));
  }
  out.certain = NearestIsCertain(out, reference);
  out.seconds = seconds();
  return out;
}

}  // namespace mergeplan
