#include "adapters/experts/cuda/tables.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/mixture/draw.h"
#include "planner/runs/curve_updates.h"

namespace mergeplan::experts_device {
namespace {

using experts::LevelTables;

absl::Status CopyStep(Memories& memories, mixture::StepTables* s) {
  const auto K = static_cast<Size>(s->K), d = static_cast<Size>(s->d), r = static_cast<Size>(s->r);
  const Size axes = s->kind == CovarianceKind::kFull ? d : r;
  const bool low_rank = s->kind == CovarianceKind::kLowRank;
  const std::pair<const double**, Size> arrays[] = {{&s->log_weight, K},
                                                    {&s->centre, K * d},
                                                    {&s->target, K * d},
                                                    {&s->inverse, K * d},
                                                    {&s->gain, K * d},
                                                    {&s->axes, K * axes * d},
                                                    {&s->axes_transposed, K * axes * d},
                                                    {&s->root, low_rank ? K * d : 0},
                                                    {&s->inverse_root, low_rank ? K * d : 0},
                                                    {&s->pull, K * r},
                                                    {&s->share, K * r}};
  for (const auto& [array, count] : arrays) {
    MP_ASSIGN_OR_RETURN(*array, memories.Copy(*array, count));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status CopyStudent(Memories& memories, LevelTables<T>* s) {
  const auto d = static_cast<Size>(s->d), E = static_cast<Size>(s->E), H = static_cast<Size>(s->H);
  const auto padded = static_cast<Size>(s->padded);
  const std::pair<const T**, Size> arrays[] = {{&s->hidden, H},
                                               {&s->w1, H * d},
                                               {&s->w2, H * padded},
                                               {&s->b2, padded},
                                               {&s->expert, E * (d * d + d)}};
  for (const auto& [array, count] : arrays) {
    MP_ASSIGN_OR_RETURN(*array, memories.Copy(*array, count));
  }
  return absl::OkStatus();
}

// Makes links of what operators are made of, the arrays copied.
template <typename T>
class Linker : public experts::OperatorVisitor {
 public:
  explicit Linker(Memories& memories) : memories_(memories) {}

  void Teacher(const MixtureTrajectory& teacher, int first, int last) override {
    for (int t = last; t >= first; --t) {
      Link<T> link;
      link.step = teacher.Step(t).tables();
      status_.Update(CopyStep(memories_, &link.step));
      links.push_back(link);
    }
  }
  void Student(const LevelTables<float>& tables) override { Take(tables); }
  void Student(const LevelTables<double>& tables) override { Take(tables); }

  const absl::Status& status() const { return status_; }
  std::vector<Link<T>> links;

 private:
  void Take(const LevelTables<T>& tables) {
    Link<T> link;
    link.is_student = 1;
    link.student = tables;
    status_.Update(CopyStudent(memories_, &link.student));
    links.push_back(link);
  }
  template <typename Other>
  void Take(const LevelTables<Other>&) {
    status_.Update(absl::InvalidArgumentError(
        "a frozen student in a target computes in other numbers than the student in training; "
        "expected one precision for all"));
  }

  Memories& memories_;
  absl::Status status_;
};

absl::Status CopyLaw(Memories& memories, mixture::DrawTables* t) {
  const auto K = static_cast<Size>(t->K), d = static_cast<Size>(t->d), r = static_cast<Size>(t->r);
  MP_ASSIGN_OR_RETURN(t->below, memories.Copy(t->below, K));
  MP_ASSIGN_OR_RETURN(t->means, memories.Copy(t->means, K * d));
  MP_ASSIGN_OR_RETURN(t->variances, memories.Copy(t->variances, K * d));
  MP_ASSIGN_OR_RETURN(t->axes_transposed, memories.Copy(t->axes_transposed, K * d * d));
  MP_ASSIGN_OR_RETURN(t->factors, memories.Copy(t->factors, K * d * r));
  return absl::OkStatus();
}

template <typename X>
absl::StatusOr<const X*> CopyAll(Memories& memories, const std::vector<X>& from) {
  return memories.Copy(from.data(), static_cast<Size>(from.size()));
}

}  // namespace

Memories::~Memories() {
  if (!backend_.Use().ok()) return;
  for (void* memory : all_) backend_.Release(memory);
}

absl::StatusOr<void*> Memories::Bytes(std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 1);
  absl::StatusOr<void*> memory = backend_.Allocate(bytes);
  if (!memory.ok()) {
    return absl::Status(
        memory.status().code(),
        absl::StrCat(std::string(memory.status().message()), " of ", bytes,
                     " bytes for students in training; use a smaller batch, pool or "
                     "student, or --device cpu"));
  }
  all_.push_back(*memory);
  MP_RETURN_IF_ERROR(backend_.Zero(*memory, bytes));
  return *memory;
}

absl::StatusOr<const void*> Memories::CopyBytes(const void* from, std::size_t bytes) {
  const void*& copy = copies_[{from, bytes}];
  if (copy != nullptr) return copy;
  MP_ASSIGN_OR_RETURN(void* const memory, Bytes(bytes));
  MP_RETURN_IF_ERROR(backend_.Upload(memory, from, bytes));
  copy = memory;
  return copy;
}

template <typename T>
absl::Status FillTables(const std::vector<experts::TrainTask>& tasks, const experts::Inputs& inputs,
                        const experts::TrainerOptions& options, Memories& memories,
                        Training<T>* training) {
  const MixtureTrajectory& teacher = inputs.teacher();
  Linker<T> linker(memories);
  std::vector<TaskTable> table;
  std::vector<Chain> chains;
  for (const experts::TrainTask& task : tasks) {
    table.push_back({task.seed, task.first_level, static_cast<int>(task.targets.size()),
                     static_cast<int>(chains.size())});
    for (const experts::OperatorPointer& target : task.targets) {
      const int begin = static_cast<int>(linker.links.size());
      target->Visit(linker);
      chains.push_back({begin, static_cast<int>(linker.links.size())});
    }
  }
  MP_RETURN_IF_ERROR(linker.status());

  const std::vector<double> sums = WeightSums(teacher.mixture());
  std::vector<T> embedding;
  std::vector<mixture::DrawTables> law;
  for (int t = 0; t <= teacher.steps(); ++t) {
    for (const double x :
         experts::Embedding(options.shape.embedding, static_cast<double>(t) / teacher.steps())) {
      embedding.push_back(static_cast<T>(x));
    }
    mixture::DrawTables at = DrawTablesOf(teacher.mixture(), teacher.level(t), sums);
    MP_RETURN_IF_ERROR(CopyLaw(memories, &at));
    law.push_back(at);
  }
  const std::vector<std::int64_t> points = CurveUpdates(options.updates);
  const std::vector<Size> curve_at(points.begin(), points.end());

  MP_ASSIGN_OR_RETURN(training->task, CopyAll(memories, table));
  MP_ASSIGN_OR_RETURN(training->chains, CopyAll(memories, chains));
  MP_ASSIGN_OR_RETURN(training->links, CopyAll(memories, linker.links));
  MP_ASSIGN_OR_RETURN(training->embedding, CopyAll(memories, embedding));
  MP_ASSIGN_OR_RETURN(training->law, CopyAll(memories, law));
  MP_ASSIGN_OR_RETURN(training->curve_at, CopyAll(memories, curve_at));
  training->curve_points = static_cast<Size>(curve_at.size());
  if (inputs.data() == nullptr) return absl::OkStatus();
  MP_ASSIGN_OR_RETURN(training->data, CopyAll(memories, *inputs.data()));
  training->data_rows = static_cast<Size>(inputs.data()->size()) / training->d;
  return absl::OkStatus();
}

template absl::Status FillTables(const std::vector<experts::TrainTask>&, const experts::Inputs&,
                                 const experts::TrainerOptions&, Memories&, Training<float>*);
template absl::Status FillTables(const std::vector<experts::TrainTask>&, const experts::Inputs&,
                                 const experts::TrainerOptions&, Memories&, Training<double>*);

}  // namespace mergeplan::experts_device
