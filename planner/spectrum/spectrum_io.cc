#include <toml++/toml.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/file.h"
#include "planner/base/file_kind.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"
#include "planner/data/npz.h"
#include "planner/spectrum/spectrum.h"
#include "planner/spectrum/spectrum_check.h"

namespace mergeplan {
namespace {

constexpr std::int64_t kFormat = 1;
constexpr char kKind[] = "spectrum";

absl::Status Invalid(const std::string& what) { return absl::InvalidArgumentError(what); }

// ---- Writing.

// The shortest text that reads back as the same number, and as a float.
std::string Number(double value) {
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string Quoted(const std::string& text) {
  std::ostringstream out;
  out << toml::toml_formatter(toml::value<std::string>(text), toml::format_flags::none);
  return out.str();
}

std::string BasisText(const Basis& basis, bool has_covariance) {
  return absl::StrCat(
      "\n[basis.", basis.name, "]\nregime = ", Quoted(std::string(ToString(basis.regime))),
      "\nfraction_above_one = ", Number(basis.fraction_above_one),
      has_covariance ? absl::StrCat("\noff_diagonal_energy = ", Number(basis.off_diagonal_energy))
                     : "",
      "\ninterval = ", Quoted(basis.interval), "\n");
}

std::string FileName(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

std::string TomlText(const Spectrum& spectrum, const std::string& arrays, const std::string& hash) {
  std::string text = absl::StrCat(
      "# What `mergeplan analyze` found out about a data set. The arrays stand in the .npz named "
      "at the end, which\n"
      "# must stay beside this file. Everything is in data units: x = stored value * multiply + "
      "add.\n"
      "# Regimes: low = every variance <= 1, high = every variance > 1, else mixed.\n"
      "format = ",
      kFormat, "\nkind = \"", kKind, "\"\n\n[data]\nsource = ", Quoted(spectrum.source),
      "\nsha256 = ", Quoted(spectrum.source_sha256), "\nshape = [",
      absl::StrJoin(spectrum.shape, ", "), "]\nsamples = ", spectrum.samples,
      "\nskipped = ", spectrum.skipped, "\n");
  for (const SpectrumPart& part : spectrum.parts) {
    absl::StrAppend(&text, "[[data.part]]\nsource = ", Quoted(part.source),
                    "\nsha256 = ", Quoted(part.sha256), "\narray = ", Quoted(part.array),
                    "\nof = ", part.of, "\nevery = ", part.every ? "true" : "false",
                    "\nnumbers = ", Quoted(PartNumbersText(part)), "\n");
  }
  absl::StrAppend(&text, "\n[scaling]\ntext = ", Quoted(spectrum.scaling.text),
                  "\nmultiply = ", Number(spectrum.scaling.multiply),
                  "\nadd = ", Number(spectrum.scaling.add), "\n");
  absl::StrAppend(&text, "\n[basis]\nrecommended = ", Quoted(spectrum.recommended_basis),
                  "\nreason = ", Quoted(spectrum.recommended_basis_reason),
                  "\nconfidence = ", Number(spectrum.confidence), "\n");
  for (const Basis* basis : spectrum.Bases()) {
    text += BasisText(*basis, spectrum.has_covariance());
  }
  if (spectrum.has_leading()) text += BasisText(spectrum.leading, false);
  if (spectrum.shrinkage_rule != "none") {
    absl::StrAppend(&text, "\n[shrinkage]\nrule = ", Quoted(spectrum.shrinkage_rule),
                    "\nintensity = ", Number(spectrum.shrinkage), "\n");
  }
  absl::StrAppend(&text, "\n[arrays]\nfile = ", Quoted(FileName(arrays)),
                  "\nsha256 = ", Quoted(hash), "\n");
  return text;
}

void AddBasis(NpzWriter& npz, const Basis& basis) {
  const std::int64_t d = static_cast<std::int64_t>(basis.variances.size());
  npz.Add(basis.name + "_variances", {d}, basis.variances);
  npz.Add(basis.name + "_variances_low", {d}, basis.variances_low);
  npz.Add(basis.name + "_variances_high", {d}, basis.variances_high);
  if (basis.kurtosis.empty()) return;
  npz.Add(basis.name + "_skewness", {d}, basis.skewness);
  npz.Add(basis.name + "_kurtosis", {d}, basis.kurtosis);
}

// ---- Reading.

// One table of the file. Every key is asked for once; what was not asked for is unknown.
class Table {
 public:
  Table(const std::string& path, const toml::table& table, std::string prefix)
      : path_(path), table_(table), prefix_(std::move(prefix)) {}

  absl::StatusOr<std::string> String(const std::string& key) {
    return Get<std::string>(key, "a string");
  }
  absl::StatusOr<std::int64_t> Integer(const std::string& key) {
    return Get<std::int64_t>(key, "an integer");
  }
  absl::StatusOr<double> Float(const std::string& key) {
    asked_.insert(key);
    const toml::node* node = table_.get(key);
    if (node != nullptr && node->is_number()) return *node->value<double>();
    return Wrong(key, "a number");
  }
  absl::StatusOr<std::vector<std::int64_t>> Integers(const std::string& key) {
    asked_.insert(key);
    const toml::array* array = table_[key].as_array();
    if (array == nullptr) return Wrong(key, "a list of integers");
    std::vector<std::int64_t> values;
    for (const toml::node& node : *array) {
      if (!node.is_integer()) return Wrong(key, "a list of integers");
      values.push_back(*node.value<std::int64_t>());
    }
    return values;
  }
  bool Has(const std::string& key) const { return table_.contains(key); }
  absl::StatusOr<Table> Sub(const std::string& key) {
    asked_.insert(key);
    const toml::table* sub = table_[key].as_table();
    if (sub == nullptr) return Wrong(key, "a table");
    return Table(path_, *sub, absl::StrCat(prefix_, key, "."));
  }
  absl::StatusOr<std::vector<Table>> Subs(const std::string& key) {
    asked_.insert(key);
    const toml::array* array = table_[key].as_array();
    if (array == nullptr) return Wrong(key, "a list of tables");
    std::vector<Table> out;
    for (const toml::node& node : *array) {
      if (!node.is_table()) return Wrong(key, "a list of tables");
      out.emplace_back(path_, *node.as_table(), absl::StrCat(prefix_, key, "."));
    }
    return out;
  }
  absl::StatusOr<bool> Bool(const std::string& key) { return Get<bool>(key, "true or false"); }
  // An error for the first key that was not asked for.
  absl::Status Finish() const {
    for (const auto& [key, node] : table_) {
      if (!asked_.contains(std::string(key.str()))) {
        return Invalid(absl::StrCat(path_, ":", node.source().begin.line, ": unknown key ", prefix_,
                                    std::string(key.str()), "; expected one of ",
                                    absl::StrJoin(asked_, ", ")));
      }
    }
    return absl::OkStatus();
  }

 private:
  template <typename T>
  absl::StatusOr<T> Get(const std::string& key, const char* expected) {
    asked_.insert(key);
    const toml::node* node = table_.get(key);
    if (node != nullptr && node->is<T>()) return *node->value_exact<T>();
    return Wrong(key, expected);
  }
  absl::Status Wrong(const std::string& key, const char* expected) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) {
      return Invalid(
          absl::StrCat(path_, ": key ", prefix_, key, " is missing; expected ", expected));
    }
    std::ostringstream type;
    type << node->type();
    return Invalid(absl::StrCat(path_, ":", node->source().begin.line, ": key ", prefix_, key,
                                " is of type ", type.str(), "; expected ", expected));
  }

  const std::string& path_;
  const toml::table& table_;
  std::string prefix_;
  std::set<std::string> asked_;
};

absl::Status ReadBasis(Table& bases, const std::string& path, const std::string& name,
                       Basis& basis) {
  MP_ASSIGN_OR_RETURN(Table table, bases.Sub(name));
  basis.name = name;
  MP_ASSIGN_OR_RETURN(const std::string regime, table.String("regime"));
  MP_ASSIGN_OR_RETURN(basis.fraction_above_one, table.Float("fraction_above_one"));
  // Left out where the covariance was not computed, and of leading directions.
  if (name == "dct" || name == "pca" || table.Has("off_diagonal_energy")) {
    MP_ASSIGN_OR_RETURN(basis.off_diagonal_energy, table.Float("off_diagonal_energy"));
  }
  MP_ASSIGN_OR_RETURN(basis.interval, table.String("interval"));
  MP_RETURN_IF_ERROR(table.Finish());
  for (const Regime candidate : {Regime::kLow, Regime::kHigh, Regime::kMixed}) {
    if (regime == ToString(candidate)) {
      basis.regime = candidate;
      return absl::OkStatus();
    }
  }
  return Invalid(absl::StrCat(path, ": key basis.", name, ".regime is \"", regime,
                              "\"; expected low, high or mixed"));
}

absl::Status ReadPart(Table& table, const std::string& path, SpectrumPart& part) {
  MP_ASSIGN_OR_RETURN(part.source, table.String("source"));
  MP_ASSIGN_OR_RETURN(part.sha256, table.String("sha256"));
  MP_ASSIGN_OR_RETURN(part.array, table.String("array"));
  MP_ASSIGN_OR_RETURN(const std::int64_t of, table.Integer("of"));
  MP_ASSIGN_OR_RETURN(part.every, table.Bool("every"));
  MP_ASSIGN_OR_RETURN(const std::string numbers, table.String("numbers"));
  MP_RETURN_IF_ERROR(table.Finish());
  if (of < 1 || of > kMostParts) {
    return Invalid(absl::StrCat(path, ": key data.part.of is ", of, "; expected 1..", kMostParts));
  }
  part.of = static_cast<int>(of);
  auto parsed = ParsePartNumbers(numbers, part.of);
  if (!parsed.ok()) {
    return Invalid(absl::StrCat(path, ": key data.part.numbers: ", parsed.status().message()));
  }
  part.numbers = *std::move(parsed);
  return absl::OkStatus();
}

// Reads one array, which must have the shape d, or d x d (or, for the mean, which comes first and
// says what d is, any length).
absl::Status ReadArray(const std::string& path, const std::string& name,
                       const std::vector<std::int64_t>& shape, std::vector<double>& values) {
  absl::StatusOr<NpyArray> array = ReadNpzArray(path, name);
  if (!array.ok()) return absl::DataLossError(array.status().message());
  const bool fits = shape.empty() ? array->shape.size() == 1 : array->shape == shape;
  if (!fits) {
    return absl::DataLossError(
        absl::StrCat(path, ": array ", name, " has the shape [", absl::StrJoin(array->shape, ", "),
                     "]; expected ",
                     shape.empty() ? std::string("one dimension")
                                   : absl::StrCat("[", absl::StrJoin(shape, ", "), "]")));
  }
  values = std::move(array->values);
  return absl::OkStatus();
}

absl::Status ReadBasisArrays(const std::string& path, const std::vector<std::string>& names,
                             std::int64_t d, Basis& basis) {
  for (const auto& [name, values] : {std::pair{basis.name + "_skewness", &basis.skewness},
                                     {basis.name + "_kurtosis", &basis.kurtosis}}) {
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    MP_RETURN_IF_ERROR(ReadArray(path, name, {d}, *values));
  }
  MP_RETURN_IF_ERROR(ReadArray(path, basis.name + "_variances", {d}, basis.variances));
  MP_RETURN_IF_ERROR(ReadArray(path, basis.name + "_variances_low", {d}, basis.variances_low));
  return ReadArray(path, basis.name + "_variances_high", {d}, basis.variances_high);
}

absl::Status ReadArrays(const std::string& path, const std::string& file, const std::string& hash,
                        Spectrum& spectrum) {
  if (file.empty() || file != FileName(file) || file == "." || file == "..") {
    return Invalid(absl::StrCat(path, ": key arrays.file is \"", file,
                                "\"; expected the name of a file in the same folder"));
  }
  const std::string arrays = path.substr(0, path.size() - FileName(path).size()) + file;
  const absl::StatusOr<std::string> found = Sha256OfFile(arrays);
  if (!found.ok()) {
    return absl::DataLossError(
        absl::StrCat(path, ": its arrays cannot be read: ", found.status().message(),
                     "; keep both files together, or run mergeplan analyze again"));
  }
  if (*found != hash) {
    return absl::DataLossError(absl::StrCat(path, ": its arrays in ", arrays,
                                            " have changed (sha256 ", *found, ", expected ", hash,
                                            "); run mergeplan analyze again"));
  }
  MP_RETURN_IF_ERROR(ReadArray(arrays, "mean", {}, spectrum.mean));
  const std::int64_t d = spectrum.dimensions();
  const absl::StatusOr<std::vector<std::string>> names = NpzNames(arrays);
  if (!names.ok()) return absl::DataLossError(names.status().message());
  const bool only_diagonal = spectrum.dct.name.empty() && spectrum.pca.name.empty();
  if (!only_diagonal || std::find(names->begin(), names->end(), "covariance") != names->end()) {
    MP_RETURN_IF_ERROR(ReadArray(arrays, "covariance", {d, d}, spectrum.covariance));
  }
  for (Basis* basis : {&spectrum.diagonal, &spectrum.dct, &spectrum.pca}) {
    if (!basis->name.empty()) MP_RETURN_IF_ERROR(ReadBasisArrays(arrays, *names, d, *basis));
  }
  if (!spectrum.pca.name.empty()) {
    MP_RETURN_IF_ERROR(ReadArray(arrays, "vectors", {d, d}, spectrum.vectors));
  }
  if (!spectrum.leading.name.empty()) {
    MP_RETURN_IF_ERROR(ReadArray(arrays, "leading_errors", {}, spectrum.leading_errors));
    const std::int64_t k = static_cast<std::int64_t>(spectrum.leading_errors.size());
    MP_RETURN_IF_ERROR(ReadBasisArrays(arrays, *names, k, spectrum.leading));
    MP_RETURN_IF_ERROR(ReadArray(arrays, "leading_vectors", {k, d}, spectrum.leading_vectors));
  }
  return absl::OkStatus();
}

absl::StatusOr<Spectrum> FromToml(const toml::table& root, const std::string& path) {
  const std::string other = OtherKind(kKind, root["kind"].value<std::string>().value_or(""),
                                      [&](std::string_view key) { return root.contains(key); });
  if (!other.empty()) return Invalid(absl::StrCat(path, ": ", other));
  Table top(path, root, "");
  MP_ASSIGN_OR_RETURN(const std::int64_t format, top.Integer("format"));
  if (format != kFormat) {
    return Invalid(absl::StrCat(path, ": key format is ", format, "; this program reads format ",
                                kFormat, ", run mergeplan analyze again"));
  }
  MP_ASSIGN_OR_RETURN(const std::string kind, top.String("kind"));
  if (kind != kKind) {
    return Invalid(absl::StrCat(path, ": key kind is \"", kind, "\"; expected \"", kKind, "\""));
  }
  Spectrum spectrum;
  MP_ASSIGN_OR_RETURN(Table data, top.Sub("data"));
  MP_ASSIGN_OR_RETURN(spectrum.source, data.String("source"));
  MP_ASSIGN_OR_RETURN(spectrum.source_sha256, data.String("sha256"));
  MP_ASSIGN_OR_RETURN(spectrum.shape, data.Integers("shape"));
  MP_ASSIGN_OR_RETURN(spectrum.samples, data.Integer("samples"));
  MP_ASSIGN_OR_RETURN(spectrum.skipped, data.Integer("skipped"));
  if (data.Has("part")) {
    MP_ASSIGN_OR_RETURN(std::vector<Table> parts, data.Subs("part"));
    for (Table& table : parts) {
      MP_RETURN_IF_ERROR(ReadPart(table, path, spectrum.parts.emplace_back()));
    }
  }
  MP_RETURN_IF_ERROR(data.Finish());

  MP_ASSIGN_OR_RETURN(Table scaling, top.Sub("scaling"));
  MP_ASSIGN_OR_RETURN(spectrum.scaling.text, scaling.String("text"));
  MP_ASSIGN_OR_RETURN(spectrum.scaling.multiply, scaling.Float("multiply"));
  MP_ASSIGN_OR_RETURN(spectrum.scaling.add, scaling.Float("add"));
  MP_RETURN_IF_ERROR(scaling.Finish());

  MP_ASSIGN_OR_RETURN(Table bases, top.Sub("basis"));
  MP_ASSIGN_OR_RETURN(spectrum.recommended_basis, bases.String("recommended"));
  MP_ASSIGN_OR_RETURN(spectrum.recommended_basis_reason, bases.String("reason"));
  MP_ASSIGN_OR_RETURN(spectrum.confidence, bases.Float("confidence"));
  MP_RETURN_IF_ERROR(ReadBasis(bases, path, "diagonal", spectrum.diagonal));
  if (bases.Has("dct")) MP_RETURN_IF_ERROR(ReadBasis(bases, path, "dct", spectrum.dct));
  if (bases.Has("pca")) MP_RETURN_IF_ERROR(ReadBasis(bases, path, "pca", spectrum.pca));
  if (bases.Has("leading")) {
    MP_RETURN_IF_ERROR(ReadBasis(bases, path, "leading", spectrum.leading));
  }
  MP_RETURN_IF_ERROR(bases.Finish());

  if (top.Has("shrinkage")) {
    MP_ASSIGN_OR_RETURN(Table shrinkage, top.Sub("shrinkage"));
    MP_ASSIGN_OR_RETURN(spectrum.shrinkage_rule, shrinkage.String("rule"));
    MP_ASSIGN_OR_RETURN(spectrum.shrinkage, shrinkage.Float("intensity"));
    MP_RETURN_IF_ERROR(shrinkage.Finish());
  }

  MP_ASSIGN_OR_RETURN(Table arrays, top.Sub("arrays"));
  MP_ASSIGN_OR_RETURN(const std::string file, arrays.String("file"));
  MP_ASSIGN_OR_RETURN(const std::string hash, arrays.String("sha256"));
  MP_RETURN_IF_ERROR(arrays.Finish());
  MP_RETURN_IF_ERROR(top.Finish());

  MP_RETURN_IF_ERROR(ReadArrays(path, file, hash, spectrum));
  if (spectrum.has_covariance() && !root["basis"]["diagonal"]["off_diagonal_energy"]) {
    return Invalid(absl::StrCat(path,
                                ": key basis.diagonal.off_diagonal_energy is missing; expected a "
                                "share between 0 and 1, since the file has a covariance: run "
                                "mergeplan analyze again"));
  }
  if (const absl::Status status = CheckSpectrum(spectrum); !status.ok()) {
    return Invalid(absl::StrCat(path, ": ", status.message()));
  }
  return spectrum;
}

}  // namespace

namespace {

// Nobody's own arrays are replaced: a file with the name of ours is ours where it holds what
// WriteSpectrum puts there and nothing else.
absl::Status CheckReplaceable(const std::string& arrays, const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(arrays, error)) return absl::OkStatus();
  std::set<std::string> known = {"mean", "covariance", "vectors", "leading_vectors",
                                 "leading_errors"};
  for (const char* basis : {"diagonal", "dct", "pca", "leading"}) {
    for (const char* what :
         {"_variances", "_variances_low", "_variances_high", "_skewness", "_kurtosis"}) {
      known.insert(absl::StrCat(basis, what));
    }
  }
  const absl::StatusOr<std::vector<std::string>> found = NpzNames(arrays);
  std::string why;
  if (!found.ok()) {
    why = "cannot be read as an .npz";
  } else {
    for (const std::string& name : *found) {
      if (!known.contains(name)) why = absl::StrCat("holds the array ", name);
    }
    if (std::find(found->begin(), found->end(), "diagonal_variances") == found->end()) {
      why = "holds no array diagonal_variances";
    }
  }
  if (why.empty()) return absl::OkStatus();
  return Invalid(absl::StrCat(path, ": cannot be written, its arrays belong into ", arrays,
                              ", which is there and not a spectrum's (it ", why,
                              "); give another name, or move that file away"));
}

}  // namespace

std::string SpectrumArraysPath(const std::string& path) {
  constexpr std::string_view kEnding = ".toml";
  const bool toml = FileName(path).size() > kEnding.size() && path.ends_with(kEnding);
  return path.substr(0, path.size() - (toml ? kEnding.size() : 0)) + ".npz";
}

absl::Status WriteSpectrum(const Spectrum& spectrum, const std::string& path) {
  if (const absl::Status status = CheckSpectrum(spectrum); !status.ok()) {
    return Invalid(absl::StrCat(path, ": cannot be written, ", status.message()));
  }
  const std::int64_t d = spectrum.dimensions();
  NpzWriter npz;
  npz.Add("mean", {d}, spectrum.mean);
  if (spectrum.has_covariance()) npz.Add("covariance", {d, d}, spectrum.covariance);
  for (const Basis* basis : spectrum.Bases()) AddBasis(npz, *basis);
  if (spectrum.has_pca()) npz.Add("vectors", {d, d}, spectrum.vectors);
  if (spectrum.has_leading()) {
    const std::int64_t k = static_cast<std::int64_t>(spectrum.leading.variances.size());
    AddBasis(npz, spectrum.leading);
    npz.Add("leading_errors", {k}, spectrum.leading_errors);
    npz.Add("leading_vectors", {k, d}, spectrum.leading_vectors);
  }
  const std::string arrays = SpectrumArraysPath(path);
  if (!IsUtf8(FileName(arrays))) {
    return Invalid(
        absl::StrCat(path,
                     ": cannot be written, its name is not UTF-8 and the file, which is, "
                     "names the one with its arrays; give another name"));
  }
  MP_RETURN_IF_ERROR(CheckReplaceable(arrays, path));
  MP_RETURN_IF_ERROR(npz.Write(arrays));
  MP_ASSIGN_OR_RETURN(const std::string hash, Sha256OfFile(arrays));
  return WriteFileAtomically(path, TomlText(spectrum, arrays, hash));
}

absl::StatusOr<Spectrum> ReadSpectrum(const std::string& path) {
  MP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return Invalid(absl::StrCat(path, ":", error.source().begin.line, ":",
                                error.source().begin.column, ": ", std::string(error.description()),
                                "; expected a TOML file"));
  }
  return FromToml(root, path);
}

}  // namespace mergeplan
