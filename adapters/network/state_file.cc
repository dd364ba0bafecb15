#include "adapters/network/state_file.h"

#include <ATen/ops/tensor.h>

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/network/tensor_file.h"
#include "adapters/network/try.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

constexpr char kFormat[] = "mergeplan network state 1";
constexpr int kColumns = 17;

at::Tensor Numbers(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }

std::vector<double> ToRow(const StudentRecord& r) {
  return {r.trained ? 1.0 : 0.0,
          static_cast<double>(r.landing),
          static_cast<double>(r.snapshot),
          r.initial_loss,
          r.final_loss,
          static_cast<double>(r.updates),
          static_cast<double>(r.teacher_calls),
          r.seconds,
          r.own.mean,
          r.own.standard_error,
          static_cast<double>(r.own.rows),
          r.teacher.mean,
          r.teacher.standard_error,
          static_cast<double>(r.teacher.rows),
          static_cast<double>(r.skipped),
          r.stopped_early ? 1.0 : 0.0,
          static_cast<double>(r.peak_memory)};
}

std::int64_t Whole(double value) {
  return std::abs(value) < 0x1p62 ? static_cast<std::int64_t>(value) : -1;
}

StudentRecord FromRow(const double* row) {
  StudentRecord r;
  r.trained = row[0] != 0;
  r.landing = static_cast<int>(Whole(row[1]));
  r.snapshot = Whole(row[2]);
  r.initial_loss = row[3];
  r.final_loss = row[4];
  r.updates = Whole(row[5]);
  r.teacher_calls = Whole(row[6]);
  r.seconds = row[7];
  r.own = {row[8], row[9], Whole(row[10])};
  r.teacher = {row[11], row[12], Whole(row[13])};
  r.skipped = Whole(row[14]);
  r.stopped_early = row[15] != 0;
  r.peak_memory = Whole(row[16]);
  return r;
}

// Looks tensors up by name; the first that is missing or of another kind is kept as the error.
class Reader {
 public:
  Reader(const TensorFile& file, std::string path) : file_(file), path_(std::move(path)) {}

  std::vector<double> Values(const std::string& name) {
    const at::Tensor* found = file_.Find(name);
    if (found == nullptr || found->scalar_type() != at::kDouble || found->dim() != 1) {
      Damage(name);
      return {};
    }
    const auto* begin = found->const_data_ptr<double>();
    return {begin, begin + found->numel()};
  }
  std::vector<double> Values(const std::string& name, std::size_t count) {
    std::vector<double> values = Values(name);
    if (status_.ok() && values.size() != count) Damage(name);
    values.resize(count);
    return values;
  }
  bool Has(const std::string& name) const { return file_.Find(name) != nullptr; }
  std::vector<at::Tensor> List(const std::string& prefix) const {
    std::vector<at::Tensor> out;
    while (const at::Tensor* tensor = file_.Find(absl::StrCat(prefix, out.size()))) {
      out.push_back(*tensor);
    }
    return out;
  }
  void Damage(const std::string& name) {
    if (!status_.ok()) return;
    status_ = absl::DataLossError(
        absl::StrCat(path_, ": the tensor ", name, " is missing or of another shape or type"));
  }
  const absl::Status& status() const { return status_; }

 private:
  const TensorFile& file_;
  std::string path_;
  absl::Status status_;
};

void AddList(const std::string& prefix, const std::vector<at::Tensor>& tensors, TensorFile* file) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    file->tensors.emplace_back(absl::StrCat(prefix, i), tensors[i]);
  }
}

void AddActive(const std::string& prefix, const ActiveTraining& active, TensorFile* file) {
  const auto add = [&](const std::string& name, const std::vector<double>& values) {
    file->tensors.emplace_back(prefix + name, Numbers(values));
  };
  const TrainerState& s = active.state;
  add("merges", {active.merges.begin(), active.merges.end()});
  add("initial_losses", active.initial_losses);
  add("seconds", {active.seconds});
  add("counts", {static_cast<double>(s.updates), static_cast<double>(s.skipped),
                 static_cast<double>(s.good), static_cast<double>(s.optimizer.steps)});
  add("scale", {s.scale});
  add("calls", {s.calls.begin(), s.calls.end()});
  for (std::size_t k = 0; k < s.losses.size(); ++k) add(absl::StrCat("losses.", k), s.losses[k]);
  AddList(prefix + "parameter.", s.parameters, file);
  AddList(prefix + "first.", s.optimizer.first, file);
  AddList(prefix + "second.", s.optimizer.second, file);
  AddList(prefix + "average.", s.optimizer.average, file);
}

ActiveTraining ReadActive(const std::string& prefix, Reader& in) {
  ActiveTraining active;
  TrainerState& s = active.state;
  for (const double merge : in.Values(prefix + "merges")) {
    active.merges.push_back(static_cast<int>(Whole(merge)));
  }
  active.initial_losses = in.Values(prefix + "initial_losses");
  active.seconds = in.Values(prefix + "seconds", 1)[0];
  const std::vector<double> counts = in.Values(prefix + "counts", 4);
  s.updates = Whole(counts[0]);
  s.skipped = Whole(counts[1]);
  s.good = Whole(counts[2]);
  s.optimizer.steps = Whole(counts[3]);
  s.scale = in.Values(prefix + "scale", 1)[0];
  for (const double calls : in.Values(prefix + "calls")) s.calls.push_back(Whole(calls));
  for (std::size_t k = 0; in.Has(absl::StrCat(prefix, "losses.", k)); ++k) {
    s.losses.push_back(in.Values(absl::StrCat(prefix, "losses.", k)));
  }
  s.parameters = in.List(prefix + "parameter.");
  s.optimizer.first = in.List(prefix + "first.");
  s.optimizer.second = in.List(prefix + "second.");
  s.optimizer.average = in.List(prefix + "average.");
  return active;
}

}  // namespace

absl::Status WriteState(const ExecutorState& state, const std::string& fingerprint,
                        const std::string& path) {
  return Try(path, [&]() -> absl::Status {
    TensorFile file;
    file.metadata = {{"format", kFormat}, {"fingerprint", fingerprint}};
    file.tensors.emplace_back("next_snapshot", Numbers({static_cast<double>(state.next_snapshot)}));
    std::vector<double> records;
    const auto add = [&](const StudentRecord& record) {
      if (!record.curve.empty()) {
        file.tensors.emplace_back(absl::StrCat("curve.", records.size() / kColumns),
                                  Numbers(record.curve));
      }
      const std::vector<double> row = ToRow(record);
      records.insert(records.end(), row.begin(), row.end());
    };
    add(state.fit);
    for (const StudentRecord& record : state.merges) add(record);
    file.tensors.emplace_back("records", Numbers(records).view({-1, kColumns}));
    for (std::size_t a = 0; a < state.active.size(); ++a) {
      AddActive(absl::StrCat("active.", a, "."), state.active[a], &file);
    }
    return WriteTensorFile(file, path);
  });
}

absl::StatusOr<ExecutorState> ReadState(const std::string& fingerprint, const std::string& path) {
  MP_ASSIGN_OR_RETURN(const TensorFile file, ReadTensorFile(path));
  MP_RETURN_IF_ERROR(CheckOrigin(
      file, path, kFormat, fingerprint,
      "belongs to a run with another plan, teacher, student, budget, seed or precision"));
  return Try(path, [&]() -> absl::StatusOr<ExecutorState> {
    Reader in(file, path);
    ExecutorState state;
    state.next_snapshot = Whole(in.Values("next_snapshot", 1)[0]);
    const at::Tensor* records = file.Find("records");
    if (records == nullptr || records->dim() != 2 || records->size(1) != kColumns ||
        records->size(0) < 1 || records->scalar_type() != at::kDouble) {
      in.Damage("records");
      return in.status();
    }
    const auto* rows = records->const_data_ptr<double>();
    for (std::int64_t r = 0; r < records->size(0); ++r) {
      StudentRecord record = FromRow(rows + r * kColumns);
      const std::string curve = absl::StrCat("curve.", r);
      if (in.Has(curve)) record.curve = in.Values(curve);
      if (r == 0) {
        state.fit = std::move(record);
      } else {
        state.merges.push_back(std::move(record));
      }
    }
    for (std::size_t a = 0; in.Has(absl::StrCat("active.", a, ".merges")); ++a) {
      state.active.push_back(ReadActive(absl::StrCat("active.", a, "."), in));
    }
    MP_RETURN_IF_ERROR(in.status());
    return state;
  });
}

}  // namespace mergeplan::network
