#include "planner/cli/tables.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/status_macros.h"
#include "planner/cli/command.h"
#include "planner/data/npz.h"
#include "planner/plan/plan.h"

namespace mergeplan::cli {
namespace {

constexpr std::string_view kNames[] = {"A", "gamma", "p", "q", "tau", "weights"};

std::string Shape(const std::vector<std::int64_t>& shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), shape.size() == 1 ? ",)" : ")");
}

absl::StatusOr<NpyArray> Read(const std::string& path, const std::string& name,
                              const std::vector<std::int64_t>& shape) {
  MP_ASSIGN_OR_RETURN(NpyArray array, ReadNpzArray(path, name));
  if (array.shape == shape && static_cast<std::int64_t>(array.values.size()) == array.size()) {
    return array;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": ", name, " has the shape ", Shape(array.shape), " and the type ", array.dtype,
      ", expected numbers of shape ", Shape(shape),
      shape.size() == 1 ? ", one per coordinate" : ", (levels, coordinates) as A has"));
}

}  // namespace

absl::StatusOr<ModelTables> ReadTablesFile(const std::string& path) {
  if (!absl::EndsWith(path, ".npz")) {
    return Misuse(absl::StrCat("--tables: ", path,
                               " does not end in .npz, expected a file of the arrays A and gamma"));
  }
  MP_ASSIGN_OR_RETURN(const std::vector<std::string> names, NpzNames(path));
  const auto has = [&](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const std::string& name : names) {
    if (std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": unknown array \"", name,
                     "\", expected A and gamma, and p, q, tau, weights where wanted"));
  }
  for (const char* name : {"A", "gamma"}) {
    if (has(name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the array ", name,
                     " is missing, expected A and gamma of shape (levels, coordinates)"));
  }
  MP_ASSIGN_OR_RETURN(NpyArray a, ReadNpzArray(path, "A"));
  if (a.shape.size() != 2 || a.shape[0] < 1 || a.shape[0] > kMaxTeacherSteps || a.shape[1] < 1 ||
      a.shape[1] > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": A has the shape ", Shape(a.shape),
                     ", expected (levels, coordinates), a row per step of the teacher"));
  }
  MP_ASSIGN_OR_RETURN(a, Read(path, "A", a.shape));
  ModelTables out;
  out.steps = static_cast<int>(a.shape[0]);
  out.dimensions = static_cast<int>(a.shape[1]);
  MP_ASSIGN_OR_RETURN(NpyArray gamma, Read(path, "gamma", a.shape));
  out.gamma = std::move(gamma.values);
  for (const auto& [name, target] : {std::pair{"p", &out.p}, {"q", &out.q}}) {
    if (!has(name)) continue;
    MP_ASSIGN_OR_RETURN(NpyArray array, Read(path, name, a.shape));
    *target = std::move(array.values);
  }
  for (const auto& [name, target] : {std::pair{"tau", &out.tau}, {"weights", &out.weights}}) {
    if (!has(name)) continue;
    MP_ASSIGN_OR_RETURN(NpyArray array, Read(path, name, {a.shape[1]}));
    *target = std::move(array.values);
  }
  out.a = std::move(a.values);
  return out;
}

}  // namespace mergeplan::cli
