#include "plugins/conformance/plan_call.h"

#include <cmath>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

namespace mergeplan_conformance {
namespace {

class PlanHostCall {
 public:
  PlanHostCall(const Question& question, const PlanHost& host, PlanOutcome* outcome)
      : question_(question), host_(host), outcome_(outcome), thread_(std::this_thread::get_id()) {
    outcome_->tree.teacher_steps = question.teacher_steps;
  }

  mergeplan_plan_sink Sink() {
    mergeplan_plan_sink sink = {};
    sink.struct_size = sizeof(sink);
    sink.context = this;
    sink.add_merge = [](void* c, std::int32_t first, std::int32_t last,
                        const std::int32_t* children, std::int32_t count, mergeplan_error* error) {
      return Self(c)->AddMerge({first, last}, children, count, error);
    };
    sink.set_blocks = [](void* c, const std::int32_t* ranges, std::int32_t count,
                         mergeplan_error* error) {
      return Self(c)->SetBlocks(ranges, count, error);
    };
    return sink;
  }

  mergeplan_planner Planner() {
    mergeplan_planner planner = {};
    planner.struct_size = sizeof(planner);
    planner.context = this;
    planner.solve = [](void* c, const mergeplan_solve_options* options,
                       const mergeplan_plan_sink* sink, mergeplan_solution* solution,
                       mergeplan_error* error) {
      return Self(c)->Solve(options, sink, solution, error);
    };
    planner.evaluate_tree = [](void* c, const mergeplan_merge* const* merges, std::int32_t count,
                               const std::int32_t* blocks, std::int32_t block_count,
                               double* objective, mergeplan_error* error) {
      return Self(c)->Evaluate(merges, count, blocks, block_count, objective, error);
    };
    planner.parse_plan = [](void* c, const char* path, const mergeplan_plan_sink* sink,
                            mergeplan_error* error) { return Self(c)->Parse(path, sink, error); };
    planner.log = [](void* c, std::int32_t, const char* text) { Self(c)->Log(text); };
    planner.cancelled = [](void* c) -> std::int32_t { return Self(c)->host_.cancelled ? 1 : 0; };
    planner.get_extension = [](void* c, const char* name) -> const void* {
      if (name == nullptr) Self(c)->Break("planner.get_extension: name is NULL");
      return nullptr;
    };
    return planner;
  }

 private:
  static PlanHostCall* Self(void* context) { return static_cast<PlanHostCall*>(context); }

  void Break(const std::string& rule) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (outcome_->border.empty()) outcome_->border = rule;
  }

  // Is the call from where it may come, with an error that can be filled?
  bool MayCall(const char* function, mergeplan_error* error) {
    if (error != nullptr &&
        (error->struct_size < MERGEPLAN_CONFORMANCE_1_0(mergeplan_error, text) ||
         (error->text == nullptr && error->capacity > 0))) {
      Break(std::string(function) + ": the plugin's error is none: struct_size " +
            std::to_string(error->struct_size) + ", capacity " + std::to_string(error->capacity) +
            (error->text == nullptr ? ", text NULL" : ""));
    }
    if (std::this_thread::get_id() == thread_) return true;
    Break(std::string(function) + ": called from another thread than plan()");
    return false;
  }
  static std::int32_t WrongThread(mergeplan_error* error) {
    return Say(error, MERGEPLAN_FAILED_PRECONDITION, "called from another thread");
  }

  // A plan that cannot be one, found by the sink itself.
  std::int32_t Invalid(const std::string& why, mergeplan_error* error) {
    if (outcome_->invalid.empty()) outcome_->invalid = why;
    return Say(error, MERGEPLAN_INVALID_ARGUMENT, why);
  }

  bool SinkFails() {
    const bool fails = outcome_->sink_calls++ == host_.failing_call;
    outcome_->sink_failed = outcome_->sink_failed || fails;
    return fails;
  }

  std::int32_t AddMerge(Range range, const std::int32_t* children, std::int32_t count,
                        mergeplan_error* error) {
    if (!MayCall("sink.add_merge", error)) return WrongThread(error);
    if (SinkFails()) return Say(error, kSinkCode, "the sink of the conformance suite is full");
    const std::string name = "merge " + ToString(range) + ": ";
    if (outcome_->tree.merges.size() + 1 >= static_cast<std::size_t>(question_.teacher_steps)) {
      return Invalid(
          name + "more merges than " + std::to_string(question_.teacher_steps) + " steps can have",
          error);
    }
    if (count < 2 || count > question_.teacher_steps || children == nullptr) {
      return Invalid(name + "has " + std::to_string(count) + " children" +
                         (children == nullptr ? ", the list is NULL" : ""),
                     error);
    }
    outcome_->tree.merges.push_back({range, ReadRanges(children, count)});
    return MERGEPLAN_OK;
  }

  std::int32_t SetBlocks(const std::int32_t* ranges, std::int32_t count, mergeplan_error* error) {
    if (!MayCall("sink.set_blocks", error)) return WrongThread(error);
    if (SinkFails()) return Say(error, kSinkCode, "the sink of the conformance suite is full");
    if (!outcome_->tree.blocks.empty()) {
      Break("sink.set_blocks: the blocks were set twice");
      return Say(error, MERGEPLAN_FAILED_PRECONDITION, "the blocks are set twice");
    }
    if (count < 1 || count > question_.teacher_steps || ranges == nullptr) {
      return Invalid("blocks: found " + std::to_string(count) +
                         (ranges == nullptr ? ", the list is NULL" : ""),
                     error);
    }
    outcome_->tree.blocks = ReadRanges(ranges, count);
    return MERGEPLAN_OK;
  }

  static std::vector<Range> ReadRanges(const std::int32_t* pairs, std::int32_t count) {
    std::vector<Range> out(static_cast<std::size_t>(count));
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = {pairs[2 * k], pairs[2 * k + 1]};
    return out;
  }

  // What every service of the planner checks first; 0 where it goes on.
  std::int32_t BeginService(const char* function, mergeplan_error* error) {
    if (!MayCall(function, error)) return WrongThread(error);
    ++outcome_->planner_calls;
    if (host_.planner_fails) {
      return Say(error, kPlannerCode, "the planner of the conformance suite was told to fail");
    }
    return MERGEPLAN_OK;
  }

  std::int32_t NoSpectrum(mergeplan_error* error) {
    return Say(error, MERGEPLAN_FAILED_PRECONDITION, "the data's spectrum is not known");
  }

  // A plan of the suite's, into a sink that may be the plugin's own.
  static std::int32_t Send(const Tree& tree, const mergeplan_plan_sink& sink,
                           mergeplan_error* error) {
    const auto pairs = [](const std::vector<Range>& ranges) { return &ranges.data()->first; };
    for (const Merge& merge : tree.merges) {
      const std::int32_t code =
          sink.add_merge(sink.context, merge.range.first, merge.range.last, pairs(merge.children),
                         static_cast<std::int32_t>(merge.children.size()), error);
      if (code != MERGEPLAN_OK) return code;
    }
    return sink.set_blocks(sink.context, pairs(tree.blocks),
                           static_cast<std::int32_t>(tree.blocks.size()), error);
  }

  // Empty for a sink that can be used.
  static std::string SinkProblem(const mergeplan_plan_sink* sink) {
    if (sink == nullptr) return "sink is NULL";
    if (sink->struct_size < MERGEPLAN_CONFORMANCE_1_0(mergeplan_plan_sink, set_blocks)) {
      return "mergeplan_plan_sink: struct_size is " + std::to_string(sink->struct_size);
    }
    if (sink->add_merge == nullptr || sink->set_blocks == nullptr)
      return "sink: a function is NULL";
    return "";
  }

  std::string OptionsProblem(const mergeplan_solve_options& options) const {
    if (options.struct_size <
        MERGEPLAN_CONFORMANCE_1_0(mergeplan_solve_options, time_limit_seconds)) {
      return "mergeplan_solve_options: struct_size is " + std::to_string(options.struct_size);
    }
    const auto has = [&](std::uint32_t field) { return (options.fields & field) != 0; };
    // A host of 1.0 knows fewer.
    const std::uint32_t last = question_.size == Size::kOldest
                                   ? std::uint32_t{MERGEPLAN_SOLVE_TIME_LIMIT}
                                   : std::uint32_t{MERGEPLAN_SOLVE_MAX_ROUNDS};
    if ((options.fields & ~(2 * last - 1)) != 0) {
      return "options.fields has bits that this host does not know";
    }
    if ((has(MERGEPLAN_SOLVE_MAX_MERGES) || has(MERGEPLAN_SOLVE_MAX_ROUNDS)) &&
        options.struct_size < MERGEPLAN_CONFORMANCE_1_0(mergeplan_solve_options, max_rounds)) {
      return "options.fields asks for limits that lie outside of struct_size";
    }
    if ((has(MERGEPLAN_SOLVE_MAX_MERGES) && options.max_merges < 0) ||
        (has(MERGEPLAN_SOLVE_MAX_ROUNDS) && options.max_rounds < 0)) {
      return "options: max_merges or max_rounds is negative";
    }
    if (has(MERGEPLAN_SOLVE_STUDENT_STEPS) &&
        (options.student_steps < 1 || options.student_steps > question_.teacher_steps)) {
      return "options.student_steps is " + std::to_string(options.student_steps);
    }
    const auto outside = [](std::int32_t value, std::int32_t last) {
      return value < 0 || value > last;
    };
    if ((has(MERGEPLAN_SOLVE_INIT) && outside(options.init, MERGEPLAN_INIT_CHILD_JUMP)) ||
        (has(MERGEPLAN_SOLVE_REFERENCE) && outside(options.reference, MERGEPLAN_REFERENCE_DATA)) ||
        (has(MERGEPLAN_SOLVE_SPACE) && outside(options.space, MERGEPLAN_SPACE_BINARY))) {
      return "options: init, reference or space is no value of its enum";
    }
    if ((has(MERGEPLAN_SOLVE_GAP) && !(std::isfinite(options.gap) && options.gap >= 0)) ||
        (has(MERGEPLAN_SOLVE_TIME_LIMIT) &&
         !(std::isfinite(options.time_limit_seconds) && options.time_limit_seconds > 0))) {
      return "options: gap or time_limit_seconds is out of range";
    }
    return "";
  }

  std::int32_t Solve(const mergeplan_solve_options* options, const mergeplan_plan_sink* sink,
                     mergeplan_solution* solution, mergeplan_error* error) {
    std::int32_t code = BeginService("planner.solve", error);
    if (code != MERGEPLAN_OK) return code;
    std::string wrong = SinkProblem(sink);
    if (wrong.empty() && options != nullptr) wrong = OptionsProblem(*options);
    if (wrong.empty() && solution != nullptr &&
        solution->struct_size < MERGEPLAN_CONFORMANCE_1_0(mergeplan_solution, lower_bound)) {
      wrong = "mergeplan_solution: struct_size is " + std::to_string(solution->struct_size);
    }
    if (!wrong.empty()) {
      Break("planner.solve: " + wrong);
      return Say(error, MERGEPLAN_INVALID_ARGUMENT, wrong);
    }
    if (question_.dimensions == 0) return NoSpectrum(error);
    std::int32_t blocks = question_.student_steps;
    if (options != nullptr && (options->fields & MERGEPLAN_SOLVE_STUDENT_STEPS) != 0) {
      blocks = options->student_steps;
    }
    const Tree best = Random(question_.teacher_steps, blocks, 7);
    code = Send(best, *sink, error);
    if (code != MERGEPLAN_OK) return code;
    if (solution != nullptr) {
      solution->status = MERGEPLAN_SOLVE_WITHIN_GAP;
      solution->objective = Predict(best);
      solution->lower_bound = solution->objective * (1 - 0.001);
    }
    return MERGEPLAN_OK;
  }

  std::int32_t Evaluate(const mergeplan_merge* const* merges, std::int32_t count,
                        const std::int32_t* blocks, std::int32_t block_count, double* objective,
                        mergeplan_error* error) {
    const std::int32_t code = BeginService("planner.evaluate_tree", error);
    if (code != MERGEPLAN_OK) return code;
    const auto refuse = [&](const std::string& why) {
      Break("planner.evaluate_tree: " + why);
      return Say(error, MERGEPLAN_INVALID_ARGUMENT, why);
    };
    const std::int32_t steps = question_.teacher_steps;
    if (objective == nullptr) return refuse("objective is NULL");
    if (count < 0 || (count > 0 && merges == nullptr)) return refuse("merges is no list");
    if (block_count < 1 || blocks == nullptr) return refuse("blocks is no list");
    if (count >= steps || block_count > steps) {
      return Say(error, MERGEPLAN_INVALID_ARGUMENT, "more merges or blocks than steps");
    }
    evaluated_.teacher_steps = steps;
    evaluated_.merges.resize(static_cast<std::size_t>(count));
    for (std::size_t k = 0; k < evaluated_.merges.size(); ++k) {
      const mergeplan_merge* merge = merges[k];
      if (merge == nullptr) return refuse("an entry of merges is NULL");
      if (merge->struct_size < MERGEPLAN_CONFORMANCE_1_0(mergeplan_merge, children)) {
        return refuse("mergeplan_merge: struct_size is " + std::to_string(merge->struct_size));
      }
      if (merge->child_count < 2 || merge->child_count > steps || merge->children == nullptr) {
        return Say(error, MERGEPLAN_INVALID_ARGUMENT, "a merge without a list of children");
      }
      Merge& out = evaluated_.merges[k];
      out.range = {merge->first, merge->last};
      out.children.resize(static_cast<std::size_t>(merge->child_count));
      for (std::size_t c = 0; c < out.children.size(); ++c) {
        out.children[c] = {merge->children[2 * c], merge->children[2 * c + 1]};
      }
    }
    evaluated_.blocks = ReadRanges(blocks, block_count);
    const std::string wrong = checker_.Check(evaluated_);
    if (!wrong.empty()) return Say(error, MERGEPLAN_INVALID_ARGUMENT, wrong);
    if (question_.dimensions == 0) return NoSpectrum(error);
    *objective = Predict(evaluated_);
    return MERGEPLAN_OK;
  }

  // No model: a number above 0 that depends on every merge, and does not fall on ties.
  double Predict(const Tree& tree) const {
    if (host_.predictions_nan) return std::numeric_limits<double>::quiet_NaN();
    double sum = 0;
    for (const Merge& merge : tree.merges) {
      const double width = merge.range.last - merge.range.first + 1;
      sum += width * width / (merge.range.first + 1.0) / static_cast<double>(merge.children.size());
    }
    return sum * question_.dimensions;
  }

  std::int32_t Parse(const char* path, const mergeplan_plan_sink* sink, mergeplan_error* error) {
    const std::int32_t code = BeginService("planner.parse_plan", error);
    if (code != MERGEPLAN_OK) return code;
    const std::string wrong = path == nullptr ? "path is NULL" : SinkProblem(sink);
    if (!wrong.empty()) {
      Break("planner.parse_plan: " + wrong);
      return Say(error, MERGEPLAN_INVALID_ARGUMENT, wrong);
    }
    return Say(error, MERGEPLAN_NOT_FOUND,
               Quoted(path) + ": the conformance suite has no plan files");
  }

  void Log(const char* text) {
    const std::string problem = LineProblem(text);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!problem.empty() && outcome_->log.empty()) outcome_->log = "a line for the user " + problem;
  }

  const Question& question_;
  const PlanHost& host_;
  PlanOutcome* outcome_;
  std::thread::id thread_;
  std::mutex mutex_;
  TreeChecker checker_;
  Tree evaluated_;
};

}  // namespace

std::string PlanOutcome::Answer() const {
  if (threw) return "an exception";
  return code == MERGEPLAN_OK ? tree.Canonical() : "code " + std::to_string(code);
}

PlanOutcome CallPlan(const mergeplan_plugin& plugin, const Question& question,
                     const PlanHost& host) {
  PlanOutcome outcome;
  outcome.question = question.ToString();
  const QuestionView view(question);
  const std::string before = view.Bytes();
  PlanHostCall call(question, host, &outcome);
  const Resized<mergeplan_plan_sink> sink(
      call.Sink(), question.size, MERGEPLAN_CONFORMANCE_1_0(mergeplan_plan_sink, set_blocks));
  const Resized<mergeplan_planner> planner(
      call.Planner(), question.size, MERGEPLAN_CONFORMANCE_1_0(mergeplan_planner, get_extension));
  ErrorFence error(host.error);
  BeforeCall("plan() asked for " + outcome.question);
  try {
    outcome.code = plugin.plan(view.get(), planner.get(), sink.get(), error.get());
  } catch (const std::exception& e) {
    outcome.threw = true;
    outcome.thrown = Quoted(e.what());
  } catch (...) {
    outcome.threw = true;
    outcome.thrown = "of a type that is no std::exception";
  }
  outcome.text = error.text();
  outcome.trespass = error.Trespass();
  if (view.Bytes() != before) outcome.changed = "the request was changed";
  if (outcome.threw) return outcome;
  outcome.told = error.Told(outcome.code);
  if (outcome.code == MERGEPLAN_OK && outcome.invalid.empty() && !outcome.sink_failed) {
    TreeChecker checker;
    outcome.invalid = checker.Check(outcome.tree);
    const auto blocks = static_cast<std::int32_t>(outcome.tree.blocks.size());
    if (outcome.tree.blocks.empty()) outcome.invalid = "no blocks were set";
    if (outcome.invalid.empty() && blocks != question.student_steps) {
      outcome.invalid = "gave " + std::to_string(blocks) + " blocks";
    }
  }
  return outcome;
}

}  // namespace mergeplan_conformance
