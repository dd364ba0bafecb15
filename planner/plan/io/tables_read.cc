#include "planner/plan/io/tables_read.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/plan/plan.h"

namespace mergeplan::plan_io {
namespace {

constexpr std::string_view kOthers[] = {
    "schedule", "alpha",      "sigma", "data_scale",   "variances", "input_sha256", "basis",
    "lr",       "iterations", "batch", "feature_norm", "init",      "reference",    "train_time"};

class TablesReader {
 public:
  TablesReader(const NodeReader& read, const Node& root, const StoredArrays& arrays)
      : read_(read), root_(root), arrays_(arrays) {}

  absl::StatusOr<std::optional<ModelTables>> Run() {
    if (!Has("A")) {
      for (const std::string_view key : {"gamma", "p", "q", "target"}) {
        if (!Has(key)) continue;
        return read_.Error(root_.Find(key), key,
                           "stands without A; give the table A, or leave it out");
      }
      return std::optional<ModelTables>();
    }
    for (const std::string_view key : kOthers) {
      if (!Has(key)) continue;
      return read_.Error(
          root_.Find(key), key,
          "stands beside A: a plan of bare tables has no schedule, variances, budget, start or "
          "reference; leave it out");
    }
    ModelTables out;
    MP_RETURN_IF_ERROR(Table("A", &out, &out.a));
    if (!Has("gamma")) {
      return read_.Error(
          nullptr, "gamma",
          "the key is missing; give what merges keep of their start, a row per level");
    }
    MP_RETURN_IF_ERROR(Table("gamma", &out, &out.gamma));
    if (Has("p")) MP_RETURN_IF_ERROR(Table("p", &out, &out.p));
    if (Has("q")) MP_RETURN_IF_ERROR(Table("q", &out, &out.q));
    MP_RETURN_IF_ERROR(List("target", &out.tau));
    MP_RETURN_IF_ERROR(List("weights", &out.weights));
    if (!Has("target")) {
      out.tau.assign(static_cast<size_t>(out.dimensions), 1.0);
      for (size_t at = 0; at < out.a.size(); ++at) {
        out.tau[at % static_cast<size_t>(out.dimensions)] *= out.a[at];
      }
    }
    // Without this a faulty number would be reported as one of the certificate.
    if (const absl::Status s = CheckTableNumbers(out); !s.ok()) {
      return read_.Error(nullptr, "", std::string(s.message()));
    }
    return std::optional(std::move(out));
  }

 private:
  bool Has(std::string_view key) const {
    return root_.Find(key) != nullptr || arrays_.contains(std::string(key));
  }

  // Where the array stands: in the file or (nullptr) in the .npz.
  absl::StatusOr<const Node*> Place(std::string_view key) const {
    const Node* node = root_.Find(key);
    if (node != nullptr && arrays_.contains(std::string(key))) {
      return read_.Error(node, key, "stands here and in the .npz that [arrays] names; keep one");
    }
    return node;
  }

  // A T x d table; the first one says T and d.
  absl::Status Table(std::string_view key, ModelTables* tables, std::vector<double>* out) const {
    MP_ASSIGN_OR_RETURN(const Node* node, Place(key));
    std::int64_t rows = 0, columns = 0;
    if (node == nullptr) {
      const NpyArray& stored = arrays_.find(std::string(key))->second;
      rows = stored.shape[0];
      columns = stored.shape[1];
      *out = stored.values;
    } else {
      MP_RETURN_IF_ERROR(read_.ExpectList(*node, key));
      for (const Node& row : *node->list()) {
        const std::string name = absl::StrCat(std::string(key), "[", rows, "]");
        MP_ASSIGN_OR_RETURN(const std::vector<double> numbers, read_.Numbers(row, name));
        const auto size = static_cast<std::int64_t>(numbers.size());
        if (rows++ == 0) columns = size;
        if (size != columns) {
          return read_.Error(&row, name,
                             absl::StrCat("has ", size, " numbers, expected ", columns,
                                          ", one per coordinate as in the row of level 1"));
        }
        out->insert(out->end(), numbers.begin(), numbers.end());
      }
    }
    const bool first = tables->steps == 0;
    if (first && (rows < 1 || rows > kMaxTeacherSteps || columns < 1)) {
      return read_.Error(node, key,
                         absl::StrCat("has ", rows, " rows and ", columns, " columns, expected 1..",
                                      kMaxTeacherSteps, " rows (levels) and 1 or more columns"));
    }
    if (first) {
      tables->steps = static_cast<int>(rows);
      tables->dimensions = static_cast<int>(columns);
    }
    if (rows == tables->steps && columns == tables->dimensions) return absl::OkStatus();
    return read_.Error(node, key,
                       absl::StrCat("has ", rows, " rows and ", columns, " columns, expected ",
                                    tables->steps, " and ", tables->dimensions, " as A has"));
  }

  absl::Status List(std::string_view key, std::vector<double>* out) const {
    if (!Has(key)) return absl::OkStatus();
    MP_ASSIGN_OR_RETURN(const Node* node, Place(key));
    if (node == nullptr) {
      *out = arrays_.find(std::string(key))->second.values;
      return absl::OkStatus();
    }
    MP_ASSIGN_OR_RETURN(*out, read_.Numbers(*node, key));
    return absl::OkStatus();
  }

  const NodeReader& read_;
  const Node& root_;
  const StoredArrays& arrays_;
};

}  // namespace

absl::StatusOr<std::optional<ModelTables>> ReadTables(const NodeReader& read, const Node& root,
                                                      const StoredArrays& arrays) {
  return TablesReader(read, root, arrays).Run();
}

}  // namespace mergeplan::plan_io
