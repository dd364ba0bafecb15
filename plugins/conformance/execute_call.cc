#include "plugins/conformance/execute_call.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "plugins/conformance/question.h"

namespace mergeplan_conformance {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class ExecuteHostCall {
 public:
  ExecuteHostCall(const Tree& tree, const ExecuteHost& host, ExecuteOutcome* outcome)
      : host_(host), outcome_(outcome), thread_(std::this_thread::get_id()) {
    for (const Merge& merge : tree.merges) merges_[merge.range] = &merge;
    stop_ = host.stop_after == 0;
  }

  mergeplan_runtime Runtime() {
    mergeplan_runtime table = {};
    table.struct_size = sizeof(table);
    table.context = this;
    table.train_merge = [](void* c, std::int32_t first, std::int32_t last,
                           mergeplan_train_result* result, mergeplan_error* error) {
      const Range range = {first, last};
      return Self(c)->Train("runtime.train_merge", {range}, &result, error);
    };
    table.train_round = [](void* c, const std::int32_t* ranges, std::int32_t count,
                           mergeplan_train_result* const* results, mergeplan_error* error) {
      return Self(c)->TrainRound(ranges, count, results, error);
    };
    table.evaluate = [](void* c, mergeplan_evaluation* evaluation, mergeplan_error* error) {
      return Self(c)->Evaluate(evaluation, error);
    };
    table.snapshot = [](void* c, std::int32_t first, std::int32_t last, std::uint64_t* snapshot,
                        mergeplan_error* error) {
      return Self(c)->Snapshot({first, last}, snapshot, error);
    };
    table.release = [](void* c, std::uint64_t snapshot, mergeplan_error* error) {
      return Self(c)->Release(snapshot, error);
    };
    table.checkpoint = [](void* c, mergeplan_error* error) {
      return Self(c)->MayCall("runtime.checkpoint", error) ? MERGEPLAN_OK : WrongThread(error);
    };
    table.log = [](void* c, std::int32_t, const char* text) { Self(c)->Log(text); };
    table.progress = [](void* c, double fraction, const char* what) {
      Self(c)->Progress(fraction, what);
    };
    table.cancelled = [](void* c) -> std::int32_t { return Self(c)->stop_ ? 1 : 0; };
    table.get_extension = [](void* c, const char* name) -> const void* {
      if (name == nullptr) Self(c)->Break("runtime.get_extension: name is NULL");
      return nullptr;
    };
    return table;
  }

  void Finish() {
    outcome_->trained = static_cast<int>(trained_.size());
    outcome_->merges = static_cast<int>(merges_.size());
    outcome_->held = static_cast<int>(held_.size());
    for (const auto& [range, merge] : merges_) {
      if (outcome_->missing.empty() && trained_.count(range) == 0) {
        outcome_->missing = ToString(range);
      }
    }
  }

 private:
  static ExecuteHostCall* Self(void* context) { return static_cast<ExecuteHostCall*>(context); }

  void Note(std::string* rule, const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (rule->empty()) *rule = text;
  }
  void Break(const std::string& text) { Note(&outcome_->border, text); }

  bool MayCall(const char* function, mergeplan_error* error) {
    if (error != nullptr &&
        (error->struct_size < MERGEPLAN_CONFORMANCE_1_0(mergeplan_error, text) ||
         (error->text == nullptr && error->capacity > 0))) {
      Break(std::string(function) + ": the plugin's error is none: struct_size " +
            std::to_string(error->struct_size) + ", capacity " + std::to_string(error->capacity));
    }
    if (std::this_thread::get_id() == thread_) return true;
    Break(std::string(function) + ": called from another thread than execute()");
    return false;
  }
  static std::int32_t WrongThread(mergeplan_error* error) {
    return Say(error, MERGEPLAN_FAILED_PRECONDITION, "called from another thread");
  }

  std::int32_t TrainRound(const std::int32_t* pairs, std::int32_t count,
                          mergeplan_train_result* const* results, mergeplan_error* error) {
    if (count < 1 || pairs == nullptr || count > static_cast<std::int32_t>(merges_.size())) {
      const std::string text = "a round of " + std::to_string(count) + " merges" +
                               (pairs == nullptr ? ", the list is NULL" : "");
      Break("runtime.train_round: " + text);
      return Say(error, MERGEPLAN_INVALID_ARGUMENT, text);
    }
    std::vector<Range> ranges(static_cast<std::size_t>(count));
    for (std::size_t k = 0; k < ranges.size(); ++k) ranges[k] = {pairs[2 * k], pairs[2 * k + 1]};
    return Train("runtime.train_round", ranges, results, error);
  }

  // Why a merge cannot be trained: OK, or the code that the header states for it.
  std::int32_t Judge(const char* function, const Range& range, const std::set<Range>& round,
                     std::string* why) {
    const auto found = merges_.find(range);
    if (found == merges_.end()) {
      *why = "merge " + ToString(range) + ": the plan has no such merge";
      Break(std::string(function) + ": " + *why);
      return MERGEPLAN_NOT_FOUND;
    }
    if (trained_.count(range) > 0 || round.count(range) > 0) {
      *why = "merge " + ToString(range) + " is trained already";
      Note(&outcome_->twice, std::string(function) + ": " + *why);
      return MERGEPLAN_ALREADY_EXISTS;
    }
    for (const Range& child : found->second->children) {
      if (child.first == child.last || trained_.count(child) > 0) continue;
      *why = "merge " + ToString(range) + ": its child " + ToString(child) + " is not trained yet";
      Note(&outcome_->order, std::string(function) + ": " + *why);
      return MERGEPLAN_FAILED_PRECONDITION;
    }
    return MERGEPLAN_OK;
  }

  std::int32_t Train(const char* function, const std::vector<Range>& ranges,
                     mergeplan_train_result* const* results, mergeplan_error* error) {
    if (!MayCall(function, error)) return WrongThread(error);
    if (stop_) ++outcome_->calls_after_stop;
    if (outcome_->calls++ == host_.failing_call) {
      return Say(error, host_.failing_code, "the training was told to fail");
    }
    std::set<Range> round;
    for (std::size_t k = 0; k < ranges.size(); ++k) {
      const mergeplan_train_result* result = results == nullptr ? nullptr : results[k];
      if (result != nullptr &&
          result->struct_size < MERGEPLAN_CONFORMANCE_1_0(mergeplan_train_result, seconds)) {
        const std::string text =
            "mergeplan_train_result: struct_size is " + std::to_string(result->struct_size);
        Break(std::string(function) + ": " + text);
        return Say(error, MERGEPLAN_INVALID_ARGUMENT, text);
      }
      std::string why;
      const std::int32_t code = Judge(function, ranges[k], round, &why);
      if (code != MERGEPLAN_OK) return Say(error, code, why);
      round.insert(ranges[k]);
    }
    for (std::size_t k = 0; k < ranges.size(); ++k) {
      trained_.insert(ranges[k]);
      if (results != nullptr) Fill(results[k]);
    }
    if (host_.stop_after >= 0 && static_cast<int>(trained_.size()) >= host_.stop_after) {
      stop_ = true;
    }
    return MERGEPLAN_OK;
  }

  void Fill(mergeplan_train_result* result) const {
    if (result == nullptr) return;
    result->restored = host_.restored ? 1 : 0;
    result->updates = host_.restored ? 0 : 320;
    result->initial_loss = host_.results_nan ? kNan : 2;
    result->final_loss = host_.results_nan ? kNan : 0.5;
    result->seconds = host_.results_nan ? kNan : 0.125;
  }

  std::int32_t Evaluate(mergeplan_evaluation* evaluation, mergeplan_error* error) {
    if (!MayCall("runtime.evaluate", error)) return WrongThread(error);
    if (evaluation == nullptr ||
        evaluation->struct_size < MERGEPLAN_CONFORMANCE_1_0(mergeplan_evaluation, achieved)) {
      const std::string text = evaluation == nullptr ? "evaluation is NULL"
                                                     : "mergeplan_evaluation: struct_size is " +
                                                           std::to_string(evaluation->struct_size);
      Break("runtime.evaluate: " + text);
      return Say(error, MERGEPLAN_INVALID_ARGUMENT, text);
    }
    evaluation->merges_trained = static_cast<std::int32_t>(trained_.size());
    evaluation->predicted = host_.results_nan ? kNan : 0.25;
    evaluation->achieved = host_.results_nan ? kNan : 0.5;
    // A host of 1.0 does not know the field.
    if (host_.size != Size::kOldest &&
        MERGEPLAN_HAS(mergeplan_evaluation, evaluation, achieved_teacher)) {
      evaluation->achieved_teacher = host_.results_nan ? kNan : 0.75;
    }
    return MERGEPLAN_OK;
  }

  std::int32_t Snapshot(Range range, std::uint64_t* snapshot, mergeplan_error* error) {
    if (!MayCall("runtime.snapshot", error)) return WrongThread(error);
    if (snapshot == nullptr) {
      Break("runtime.snapshot: snapshot is NULL");
      return Say(error, MERGEPLAN_INVALID_ARGUMENT, "snapshot is NULL");
    }
    if (merges_.count(range) == 0) {
      Break("runtime.snapshot: the plan has no merge " + ToString(range));
      return Say(error, MERGEPLAN_NOT_FOUND, "the plan has no merge " + ToString(range));
    }
    if (trained_.count(range) == 0) {
      Break("runtime.snapshot: merge " + ToString(range) + " is not trained yet");
      return Say(error, MERGEPLAN_FAILED_PRECONDITION,
                 "merge " + ToString(range) + " is not trained yet");
    }
    *snapshot = ++last_snapshot_;
    held_.insert(*snapshot);
    return MERGEPLAN_OK;
  }

  std::int32_t Release(std::uint64_t snapshot, mergeplan_error* error) {
    if (!MayCall("runtime.release", error)) return WrongThread(error);
    if (held_.erase(snapshot) > 0) return MERGEPLAN_OK;
    const std::string text = "snapshot " + std::to_string(snapshot) + " is not held";
    Break("runtime.release: " + text);
    return Say(error, MERGEPLAN_NOT_FOUND, text);
  }

  void Log(const char* text) {
    const std::string problem = LineProblem(text);
    if (!problem.empty()) Note(&outcome_->log, "a line for the user " + problem);
  }

  void Progress(double fraction, const char* what) {
    if (what != nullptr) {
      const std::string problem = LineProblem(what);
      if (!problem.empty()) Note(&outcome_->log, "the text of progress " + problem);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!outcome_->progress.empty()) return;
    if (!(fraction >= 0 && fraction <= 1)) {
      outcome_->progress = "found " + std::to_string(fraction) + ", expected 0 to 1";
    } else if (fraction < fraction_) {
      outcome_->progress =
          "fell from " + std::to_string(fraction_) + " to " + std::to_string(fraction);
    }
    fraction_ = fraction;
  }

  const ExecuteHost& host_;
  ExecuteOutcome* outcome_;
  std::thread::id thread_;
  std::mutex mutex_;
  std::map<Range, const Merge*> merges_;
  std::set<Range> trained_;
  std::set<std::uint64_t> held_;
  std::uint64_t last_snapshot_ = 0;
  double fraction_ = 0;
  std::atomic<bool> stop_{false};
};

}  // namespace

ExecuteOutcome CallExecute(const mergeplan_plugin& plugin, const Tree& tree,
                           const std::map<std::string, std::string>& parameters,
                           const ExecuteHost& host) {
  ExecuteOutcome outcome;
  ExecuteHostCall call(tree, host, &outcome);
  const TreeView plan(tree);
  const ParameterView values(parameters, /*backwards=*/false, host.size);
  struct Block {
    mergeplan_execute_request request;
    unsigned char behind[64];
  } block;
  std::memset(&block, 0xCD, sizeof(block));
  block.request = {};
  block.request.struct_size = static_cast<std::uint32_t>(
      host.size == Size::kOurs ? sizeof(block.request)
      : host.size == Size::kOldest
          ? MERGEPLAN_CONFORMANCE_1_0(mergeplan_execute_request, parameters)
          : sizeof(block));
  block.request.parameter_count = values.count();
  block.request.plan = plan.get();
  block.request.parameters = values.data();
  const auto bytes = [&] {
    return plan.Bytes() + values.Bytes() +
           std::string(reinterpret_cast<const char*>(&block), sizeof(block));
  };
  const std::string before = bytes();
  const Resized<mergeplan_runtime> runtime(
      call.Runtime(), host.size, MERGEPLAN_CONFORMANCE_1_0(mergeplan_runtime, get_extension));
  ErrorFence error(host.error);
  BeforeCall("execute() of a plan with T = " + std::to_string(tree.teacher_steps) +
             ", N = " + std::to_string(tree.blocks.size()) + ", " +
             std::to_string(tree.merges.size()) + " merges");
  try {
    outcome.code = plugin.execute(&block.request, runtime.get(), error.get());
  } catch (const std::exception& e) {
    outcome.threw = true;
    outcome.thrown = Quoted(e.what());
  } catch (...) {
    outcome.threw = true;
    outcome.thrown = "of a type that is no std::exception";
  }
  call.Finish();
  outcome.text = error.text();
  outcome.trespass = error.Trespass();
  if (bytes() != before) outcome.changed = "the plan or the parameters were changed";
  if (!outcome.threw) outcome.told = error.Told(outcome.code);
  return outcome;
}

}  // namespace mergeplan_conformance
