#include "planner/plan/io/stored_arrays.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"

namespace mergeplan::plan_io {
namespace {

constexpr std::string_view kArraysKeys[] = {"file", "sha256", "names"};
constexpr std::string_view kArrayNames[] = {
    "alpha", "sigma", "variances", "weights", "value", "tau", "A", "gamma", "p", "q", "target"};
constexpr std::string_view kTables[] = {"A", "gamma", "p", "q"};

}  // namespace

absl::StatusOr<StoredArrays> ReadStoredArrays(const NodeReader& read, const Node& root) {
  StoredArrays arrays;
  const Node* table = root.Find("arrays");
  if (table == nullptr) return arrays;
  MP_RETURN_IF_ERROR(read.ExpectTable(*table, "arrays"));
  MP_RETURN_IF_ERROR(read.CheckKeys(*table, "arrays", kArraysKeys));
  MP_ASSIGN_OR_RETURN(const Node* file, read.Require(*table, "arrays", "file"));
  MP_ASSIGN_OR_RETURN(const Node* sha256, read.Require(*table, "arrays", "sha256"));
  MP_ASSIGN_OR_RETURN(const Node* names, read.Require(*table, "arrays", "names"));
  MP_ASSIGN_OR_RETURN(const std::string name, read.String(*file, "arrays.file"));
  MP_ASSIGN_OR_RETURN(const std::string expected, read.String(*sha256, "arrays.sha256"));
  MP_RETURN_IF_ERROR(read.ExpectList(*names, "arrays.names"));

  const std::string npz = (std::filesystem::path(read.file()).parent_path() / name).string();
  const auto found = Sha256OfFile(npz);
  if (!found.ok()) {
    const absl::Status error =
        read.Error(file, "arrays.file", std::string(found.status().message()));
    return absl::Status(found.status().code(), error.message());
  }
  if (*found != expected) {
    const absl::Status error = read.Error(
        sha256, "arrays.sha256",
        absl::StrCat("is ", expected, ", but ", npz, " has ", *found,
                     "; it is another plan's, or was changed: bring back the one written with "
                     "this file"));
    return absl::DataLossError(error.message());
  }
  for (const Node& item : *names->list()) {
    MP_ASSIGN_OR_RETURN(std::string key, read.String(item, "arrays.names"));
    if (std::find(std::begin(kArrayNames), std::end(kArrayNames), key) == std::end(kArrayNames)) {
      return read.Error(&item, "arrays.names",
                        absl::StrCat("unknown array \"", key, "\", expected alpha, sigma, ",
                                     "variances, weights, value, tau, A, gamma, p, q or target"));
    }
    auto array = ReadNpzArray(npz, key);
    if (!array.ok()) {
      const absl::Status error =
          read.Error(&item, "arrays.names", std::string(array.status().message()));
      return absl::Status(array.status().code(), error.message());
    }
    const size_t axes =
        std::find(std::begin(kTables), std::end(kTables), key) == std::end(kTables) ? 1 : 2;
    if (array->shape.size() != axes) {
      return read.Error(&item, "arrays.names",
                        absl::StrCat(npz, " holds ", key, " with ", array->shape.size(),
                                     " axes, expected ", axes == 1 ? "one" : "two"));
    }
    arrays[std::move(key)] = *std::move(array);
  }
  return arrays;
}

}  // namespace mergeplan::plan_io
