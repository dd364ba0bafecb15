#include "planner/mixture/mixture_io.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/file.h"
#include "planner/base/file_kind.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"
#include "planner/data/npz.h"
#include "planner/runs/table_reader.h"

namespace mergeplan {
namespace {

constexpr std::int64_t kFormat = 1;

std::string FileName(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

std::string Quoted(const std::string& text) {
  std::ostringstream out;
  out << toml::toml_formatter(toml::value<std::string>(text), toml::format_flags::none);
  return out.str();
}

// An array of the file: its name, shape and where its numbers stand.
struct Array {
  const char* name;
  std::vector<std::int64_t> shape;
  std::vector<double> MixtureSpec::*values;
};

std::vector<Array> ArraysOf(const MixtureSpec& spec) {
  const std::int64_t K = spec.components, d = spec.dimensions, r = spec.rank;
  std::vector<Array> arrays = {{"weights", {K}, &MixtureSpec::weights},
                               {"means", {K, d}, &MixtureSpec::means}};
  switch (spec.kind) {
    case CovarianceKind::kDiagonal:
      arrays.push_back({"variances", {K, d}, &MixtureSpec::variances});
      break;
    case CovarianceKind::kLowRank:
      arrays.push_back({"factors", {K, d, r}, &MixtureSpec::factors});
      arrays.push_back({"variances", {K, d}, &MixtureSpec::variances});
      break;
    case CovarianceKind::kFull:
      arrays.push_back({"covariances", {K, d, d}, &MixtureSpec::covariances});
      break;
  }
  return arrays;
}

absl::Status ReadArray(const std::string& path, const Array& array, MixtureSpec& spec) {
  absl::StatusOr<NpyArray> found = ReadNpzArray(path, array.name);
  if (!found.ok()) return absl::DataLossError(found.status().message());
  if (!found->dtype.ends_with("f4") && !found->dtype.ends_with("f8")) {
    return absl::DataLossError(absl::StrCat(path, ": array ", array.name, " is of type ",
                                            found->dtype, "; expected float32 or float64"));
  }
  if (found->shape != array.shape) {
    return absl::DataLossError(absl::StrCat(path, ": array ", array.name, " has the shape [",
                                            absl::StrJoin(found->shape, ", "), "]; expected [",
                                            absl::StrJoin(array.shape, ", "), "]"));
  }
  spec.*array.values = std::move(found->values);
  return absl::OkStatus();
}

absl::Status ReadArrays(const std::string& path, const std::string& file, const std::string& hash,
                        MixtureSpec& spec) {
  if (file.empty() || file != FileName(file) || file == "." || file == "..") {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": key 'arrays.file': is \"", file,
                     "\", expected the name of a file in the same folder"));
  }
  const std::string arrays = path.substr(0, path.size() - FileName(path).size()) + file;
  const absl::StatusOr<std::string> found = Sha256OfFile(arrays);
  if (!found.ok()) {
    return absl::DataLossError(
        absl::StrCat(path, ": its arrays cannot be read: ", found.status().message(),
                     "; keep both files together"));
  }
  if (*found != hash) {
    return absl::DataLossError(absl::StrCat(path, ": its arrays in ", arrays,
                                            " have changed (sha256 ", *found, ", expected ", hash,
                                            "); write both files together"));
  }
  const std::vector<Array> expected = ArraysOf(spec);
  const absl::StatusOr<std::vector<std::string>> names = NpzNames(arrays);
  if (!names.ok()) return absl::DataLossError(names.status().message());
  for (const std::string& name : *names) {
    if (std::none_of(expected.begin(), expected.end(),
                     [&](const Array& array) { return name == array.name; })) {
      return absl::DataLossError(absl::StrCat(
          arrays, ": unknown array ", name, "; expected ",
          absl::StrJoin(expected, ", ",
                        [](std::string* out, const Array& array) { *out += array.name; }),
          " for ", std::string(ToString(spec.kind)), " covariances"));
    }
  }
  for (const Array& array : expected) MP_RETURN_IF_ERROR(ReadArray(arrays, array, spec));
  return absl::OkStatus();
}

absl::Status ReadKind(TableReader& top, MixtureSpec& spec) {
  std::string word;
  MP_RETURN_IF_ERROR(top.Text("covariance", &word));
  for (const CovarianceKind kind :
       {CovarianceKind::kDiagonal, CovarianceKind::kLowRank, CovarianceKind::kFull}) {
    if (word != ToString(kind)) continue;
    spec.kind = kind;
    if (kind != CovarianceKind::kLowRank) return absl::OkStatus();
    std::int64_t rank = 0;
    MP_RETURN_IF_ERROR(top.Integer("rank", 1, spec.dimensions, &rank));
    spec.rank = static_cast<int>(rank);
    return absl::OkStatus();
  }
  return top.Error("covariance", absl::StrCat("is \"", word,
                                              "\", expected \"diagonal\", \"low-rank\" or "
                                              "\"full\""));
}

}  // namespace

std::string MixtureArraysPath(const std::string& path) {
  constexpr std::string_view kEnding = ".toml";
  const bool toml = FileName(path).size() > kEnding.size() && path.ends_with(kEnding);
  return path.substr(0, path.size() - (toml ? kEnding.size() : 0)) + ".npz";
}

absl::Status WriteMixture(const GaussianMixture& mixture, const std::string& path) {
  const std::string arrays = MixtureArraysPath(path);
  if (!IsUtf8(FileName(arrays))) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": cannot be written, its name is not UTF-8; give another name"));
  }
  const MixtureSpec& spec = mixture.spec();
  NpzWriter npz;
  for (const Array& array : ArraysOf(spec)) {
    npz.Add(array.name, array.shape, spec.*array.values);
  }
  MP_ASSIGN_OR_RETURN(const std::string bytes, npz.Bytes());
  MP_RETURN_IF_ERROR(WriteFileAtomically(arrays, bytes));
  std::string text = absl::StrCat(
      "# A Gaussian mixture. The arrays stand in the .npz named at the end, which must stay beside "
      "this file.\nformat = ",
      kFormat, "\nkind = \"mixture\"\nname = ", Quoted(spec.name), "\nK = ", spec.components,
      "\nd = ", spec.dimensions, "\ncovariance = \"", std::string(ToString(spec.kind)), "\"\n");
  if (spec.kind == CovarianceKind::kLowRank) absl::StrAppend(&text, "rank = ", spec.rank, "\n");
  absl::StrAppend(&text, "\n[arrays]\nfile = ", Quoted(FileName(arrays)), "\nsha256 = \"",
                  Sha256(bytes), "\"\n");
  return WriteFileAtomically(path, text);
}

absl::StatusOr<GaussianMixture> ReadMixture(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const toml::table root, ParseTomlFile(path));
  const std::string other = OtherKind("mixture", root["kind"].value<std::string>().value_or(""),
                                      [&](std::string_view key) { return root.contains(key); });
  if (!other.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", other));
  TableReader top(path, root);
  std::int64_t format = 0, K = 0, d = 0;
  std::string kind, file, hash;
  MixtureSpec spec;
  MP_RETURN_IF_ERROR(top.Integer("format", kFormat, kFormat, &format));
  MP_RETURN_IF_ERROR(top.Text("kind", &kind));
  if (kind != "mixture") {
    return top.Error("kind", absl::StrCat("is \"", kind, "\", expected \"mixture\""));
  }
  MP_RETURN_IF_ERROR(top.Text("name", &spec.name));
  MP_RETURN_IF_ERROR(top.Integer("K", 1, kMaxMixtureComponents, &K));
  MP_RETURN_IF_ERROR(top.Integer("d", 1, kMaxMixtureDimensions, &d));
  spec.components = static_cast<int>(K);
  spec.dimensions = static_cast<int>(d);
  MP_RETURN_IF_ERROR(ReadKind(top, spec));
  MP_ASSIGN_OR_RETURN(const toml::table* table, top.Table("arrays"));
  MP_RETURN_IF_ERROR(top.NothingElse());
  TableReader arrays(path, *table, "arrays.");
  MP_RETURN_IF_ERROR(arrays.Text("file", &file));
  MP_RETURN_IF_ERROR(arrays.Text("sha256", &hash));
  MP_RETURN_IF_ERROR(arrays.NothingElse());
  MP_RETURN_IF_ERROR(ReadArrays(path, file, hash, spec));
  absl::StatusOr<GaussianMixture> mixture = GaussianMixture::Create(std::move(spec));
  if (!mixture.ok()) {
    return absl::Status(mixture.status().code(),
                        absl::StrCat(path, ": ", mixture.status().message()));
  }
  return mixture;
}

}  // namespace mergeplan
