// Plugin::Execute: the runtime's table, and the rules that a plugin must keep while it trains.
#include <cmath>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "plugins/host/border.h"
#include "plugins/host/host.h"
#include "plugins/host/plan_call.h"

namespace mergeplan {
namespace border {
namespace {

// A plan as the border wants it.
class PlanView {
 public:
  explicit PlanView(const Plan& plan) : plan_{} {
    const std::vector<MergeSpec> specs = plan.Specs();
    size_t pairs = 0;
    for (const MergeSpec& spec : specs) pairs += spec.children.size();
    children_.reserve(2 * pairs);  // pointers into it must stay
    merges_.reserve(specs.size());
    for (size_t k = 0; k < specs.size(); ++k) {
      const size_t begin = children_.size();
      for (const Range& child : specs[k].children) {
        children_.push_back(child.first);
        children_.push_back(child.last);
      }
      mergeplan_merge merge = {};
      merge.struct_size = sizeof(merge);
      merge.first = specs[k].range.first;
      merge.last = specs[k].range.last;
      merge.round = plan.merges()[k].round;
      merge.child_count = static_cast<std::int32_t>(specs[k].children.size());
      merge.children = children_.data() + begin;
      merges_.push_back(merge);
    }
    for (const mergeplan_merge& merge : merges_) pointers_.push_back(&merge);
    for (const Range& block : plan.BlockRanges()) {
      blocks_.push_back(block.first);
      blocks_.push_back(block.last);
    }
    plan_.struct_size = sizeof(plan_);
    plan_.teacher_steps = plan.teacher_steps();
    plan_.student_steps = plan.student_steps();
    plan_.merge_count = plan.size();
    plan_.merges = pointers_.data();
    plan_.blocks = blocks_.data();
  }
  PlanView(const PlanView&) = delete;
  PlanView& operator=(const PlanView&) = delete;

  const mergeplan_plan* get() const { return &plan_; }

 private:
  std::vector<std::int32_t> children_, blocks_;
  std::vector<mergeplan_merge> merges_;
  std::vector<const mergeplan_merge*> pointers_;
  mergeplan_plan plan_;
};

std::string Text(Range range) { return absl::StrCat("[", range.first, ", ", range.last, "]"); }

absl::Status CheckResult(const mergeplan_train_result* result) {
  if (result == nullptr) return absl::OkStatus();
  return CheckSize("mergeplan_train_result", result->struct_size,
                   MERGEPLAN_SIZE_1_0(mergeplan_train_result, seconds));
}

void Fill(const TrainResult& from, mergeplan_train_result* to) {
  if (to == nullptr) return;
  to->restored = from.restored ? 1 : 0;
  to->updates = from.updates;
  to->initial_loss = from.initial_loss;
  to->final_loss = from.final_loss;
  to->seconds = from.seconds;
}

// One execute(): what has been trained, what is held, and whether the rules are kept.
class Execution {
 public:
  Execution(const Plan& plan, RuntimeInterface& runtime, const std::string& plugin)
      : plan_(plan),
        runtime_(runtime),
        plugin_(plugin),
        thread_(std::this_thread::get_id()),
        trained_(static_cast<size_t>(plan.size()), false) {
    for (int k = 0; k < plan.size(); ++k) {
      const Range range = plan.merges()[k].range();
      index_[{range.first, range.last}] = k;
    }
  }

  mergeplan_runtime Table();

  // The first failure that the plugin was told of.
  const absl::Status& first_error() const { return first_error_; }
  int Untrained() const {
    for (int k = 0; k < plan_.size(); ++k) {
      if (!trained_[k]) return k;
    }
    return -1;
  }
  int TrainedCount() const {
    int count = 0;
    for (const bool trained : trained_) count += trained ? 1 : 0;
    return count;
  }
  // Gives back what the plugin forgot; called after it has returned.
  absl::Status ReleaseAll() noexcept {
    absl::Status first;
    for (const auto& [id, merge] : held_) {
      try {
        const absl::Status status = runtime_.Release(merge);
        if (first.ok()) first = status;
      } catch (const std::exception& e) {
        if (first.ok()) first = absl::InternalError(e.what());
      } catch (...) {
        if (first.ok()) first = absl::InternalError("an exception that is no std::exception");
      }
    }
    held_.clear();
    return first;
  }
  void Log(LogLevel level, const std::string& text) {
    runtime_.Log(level, absl::StrCat(plugin_, ": ", text));
  }

 private:
  static Execution* Self(void* context) { return static_cast<Execution*>(context); }

  absl::Status Keep(const absl::Status& status) {
    if (CheckThread(thread_).ok() && first_error_.ok()) first_error_ = status;
    return status;
  }

  absl::StatusOr<int> Find(int first, int last) const {
    const auto found = index_.find({first, last});
    if (found == index_.end()) {
      return absl::NotFoundError(
          absl::StrCat("merge ", Text({first, last}), ": the plan has no such merge"));
    }
    return found->second;
  }

  absl::Status CheckTrainable(int merge) const {
    const Range range = plan_.merges()[merge].range();
    if (trained_[merge]) {
      return absl::AlreadyExistsError(absl::StrCat("merge ", Text(range), " is trained already"));
    }
    for (const int child : plan_.merges()[merge].children) {
      if (!plan_.is_step(child) && !trained_[child - plan_.teacher_steps()]) {
        return absl::FailedPreconditionError(absl::StrCat("merge ", Text(range), ": its child ",
                                                          Text(plan_.range(child)),
                                                          " is not trained yet"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status TrainMerge(int first, int last, mergeplan_train_result* result) {
    MP_RETURN_IF_ERROR(CheckThread(thread_));
    MP_RETURN_IF_ERROR(CheckResult(result));
    MP_ASSIGN_OR_RETURN(const int merge, Find(first, last));
    MP_RETURN_IF_ERROR(CheckTrainable(merge));
    MP_ASSIGN_OR_RETURN(const TrainResult got, runtime_.TrainMerge(merge));
    trained_[merge] = true;
    Fill(got, result);
    return absl::OkStatus();
  }

  absl::Status TrainRound(const std::int32_t* pairs, std::int32_t count,
                          mergeplan_train_result* const* results) {
    MP_RETURN_IF_ERROR(CheckThread(thread_));
    MP_ASSIGN_OR_RETURN(const std::vector<Range> ranges,
                        ReadRanges("merges of a round", pairs, count, 1, plan_.size()));
    std::vector<int> merges;
    std::vector<bool> seen(static_cast<size_t>(plan_.size()), false);
    for (size_t k = 0; k < ranges.size(); ++k) {
      if (results != nullptr) MP_RETURN_IF_ERROR(CheckResult(results[k]));
      MP_ASSIGN_OR_RETURN(const int merge, Find(ranges[k].first, ranges[k].last));
      // A merge that contains another of the round has an untrained child, so this finds it too.
      MP_RETURN_IF_ERROR(CheckTrainable(merge));
      if (seen[merge]) {
        return absl::InvalidArgumentError(
            absl::StrCat("merge ", Text(ranges[k]), ": twice in one round"));
      }
      seen[merge] = true;
      merges.push_back(merge);
    }
    MP_ASSIGN_OR_RETURN(const std::vector<TrainResult> got, runtime_.TrainRound(merges));
    if (got.size() != merges.size()) {
      return absl::InternalError(
          absl::StrCat("the runtime gave ", got.size(), " results for ", merges.size(), " merges"));
    }
    for (size_t k = 0; k < merges.size(); ++k) {
      trained_[merges[k]] = true;
      if (results != nullptr) Fill(got[k], results[k]);
    }
    return absl::OkStatus();
  }

  absl::Status Evaluate(mergeplan_evaluation* evaluation) {
    MP_RETURN_IF_ERROR(CheckThread(thread_));
    if (evaluation == nullptr) return absl::InvalidArgumentError("evaluation is NULL");
    MP_RETURN_IF_ERROR(CheckSize("mergeplan_evaluation", evaluation->struct_size,
                                 MERGEPLAN_SIZE_1_0(mergeplan_evaluation, achieved)));
    MP_ASSIGN_OR_RETURN(const EvaluationResult got, runtime_.Evaluate());
    evaluation->merges_trained = got.merges_trained;
    evaluation->predicted = got.predicted;
    evaluation->achieved = got.achieved;
    if (MERGEPLAN_HAS(mergeplan_evaluation, evaluation, achieved_teacher)) {
      evaluation->achieved_teacher = got.achieved_teacher;
    }
    return absl::OkStatus();
  }

  absl::Status Snapshot(int first, int last, std::uint64_t* snapshot) {
    MP_RETURN_IF_ERROR(CheckThread(thread_));
    if (snapshot == nullptr) return absl::InvalidArgumentError("snapshot is NULL");
    MP_ASSIGN_OR_RETURN(const int merge, Find(first, last));
    if (!trained_[merge]) {
      return absl::FailedPreconditionError(
          absl::StrCat("merge ", Text({first, last}), " is not trained yet"));
    }
    MP_RETURN_IF_ERROR(runtime_.Snapshot(merge));
    held_[++last_snapshot_] = merge;
    *snapshot = last_snapshot_;
    return absl::OkStatus();
  }

  absl::Status Release(std::uint64_t snapshot) {
    MP_RETURN_IF_ERROR(CheckThread(thread_));
    const auto found = held_.find(snapshot);
    if (found == held_.end()) {
      return absl::NotFoundError(absl::StrCat("snapshot ", snapshot, " is not held"));
    }
    const int merge = found->second;
    held_.erase(found);
    return runtime_.Release(merge);
  }

  absl::Status Checkpoint() {
    MP_RETURN_IF_ERROR(CheckThread(thread_));
    return runtime_.Checkpoint();
  }

  const Plan& plan_;
  RuntimeInterface& runtime_;
  const std::string& plugin_;
  std::thread::id thread_;
  std::map<std::pair<int, int>, int> index_;
  std::vector<bool> trained_;
  std::map<std::uint64_t, int> held_;
  std::uint64_t last_snapshot_ = 0;
  absl::Status first_error_;
};

mergeplan_runtime Execution::Table() {
  mergeplan_runtime table = {};
  table.struct_size = sizeof(table);
  table.context = this;
  table.train_merge = [](void* c, std::int32_t first, std::int32_t last,
                         mergeplan_train_result* result, mergeplan_error* error) {
    return Serve(error, [&] { return Self(c)->Keep(Self(c)->TrainMerge(first, last, result)); });
  };
  table.train_round = [](void* c, const std::int32_t* ranges, std::int32_t count,
                         mergeplan_train_result* const* results, mergeplan_error* error) {
    return Serve(error, [&] { return Self(c)->Keep(Self(c)->TrainRound(ranges, count, results)); });
  };
  table.evaluate = [](void* c, mergeplan_evaluation* evaluation, mergeplan_error* error) {
    return Serve(error, [&] { return Self(c)->Keep(Self(c)->Evaluate(evaluation)); });
  };
  table.snapshot = [](void* c, std::int32_t first, std::int32_t last, std::uint64_t* snapshot,
                      mergeplan_error* error) {
    return Serve(error, [&] { return Self(c)->Keep(Self(c)->Snapshot(first, last, snapshot)); });
  };
  table.release = [](void* c, std::uint64_t snapshot, mergeplan_error* error) {
    return Serve(error, [&] { return Self(c)->Keep(Self(c)->Release(snapshot)); });
  };
  table.checkpoint = [](void* c, mergeplan_error* error) {
    return Serve(error, [&] { return Self(c)->Keep(Self(c)->Checkpoint()); });
  };
  table.log = [](void* c, std::int32_t level, const char* text) {
    ServeQuietly(0, [&] {
      Self(c)->Log(ToLogLevel(level), OneLine(text));
      return 0;
    });
  };
  table.progress = [](void* c, double fraction, const char* what) {
    ServeQuietly(0, [&] {
      if (fraction >= 0 && fraction <= 1) Self(c)->runtime_.Progress(fraction, OneLine(what));
      return 0;
    });
  };
  table.cancelled = [](void* c) -> std::int32_t {
    return ServeQuietly(0, [&] { return Self(c)->runtime_.Cancelled() ? 1 : 0; });
  };
  table.get_extension = [](void*, const char*) -> const void* { return nullptr; };
  return table;
}

}  // namespace
}  // namespace border

absl::Status Plugin::Execute(const Plan& plan, RuntimeInterface& runtime,
                             const std::map<std::string, std::string>& given) const {
  MP_ASSIGN_OR_RETURN(const auto values, CheckParameters(manifest_, given));
  const border::ParameterList parameters(values);
  const border::PlanView view(plan);
  border::Execution execution(plan, runtime, manifest_.name);
  const mergeplan_runtime table = execution.Table();
  mergeplan_execute_request request = {};
  request.struct_size = sizeof(request);
  request.parameter_count = parameters.count();
  request.plan = view.get();
  request.parameters = parameters.data();

  border::ErrorBuffer error;
  const absl::Status said = border::CatchThrown(
      [&] { return error.Take(entry_->execute(&request, &table, error.get())); });
  const absl::Status released = execution.ReleaseAll();
  if (!said.ok()) return Annotate(said, "execute");

  const absl::Status& hidden = execution.first_error();
  if (const int merge = execution.Untrained(); merge >= 0) {
    const std::string why =
        hidden.ok() ? "" : absl::StrCat("; it was told before: ", std::string(hidden.message()));
    return Annotate(
        absl::FailedPreconditionError(absl::StrCat(
            "said that it was done, but trained ", execution.TrainedCount(), " of ", plan.size(),
            " merges; ", border::Text(plan.merges()[merge].range()), " is missing", why)),
        "execute");
  }
  if (!hidden.ok()) {
    border::ServeQuietly(0, [&] {
      execution.Log(LogLevel::kWarning,
                    absl::StrCat("went on after an error: ", std::string(hidden.message())));
      return 0;
    });
  }
  return Annotate(released, "release");
}

}  // namespace mergeplan
