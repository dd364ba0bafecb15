#include "plugins/host/plan_call.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/plan/costs.h"
#include "plugins/host/border.h"
#include "plugins/host/host.h"

namespace mergeplan {
namespace border {
namespace {

std::vector<std::int32_t> Pairs(const std::vector<Range>& ranges) {
  std::vector<std::int32_t> out;
  out.reserve(2 * ranges.size());
  for (const Range& range : ranges) {
    out.push_back(range.first);
    out.push_back(range.last);
  }
  return out;
}

}  // namespace

absl::Status CheckThread(std::thread::id owner) {
  if (std::this_thread::get_id() == owner) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "called from another thread than the one that entered the plugin; only log, progress and "
      "cancelled may be");
}

absl::StatusOr<std::vector<Range>> ReadRanges(const char* what, const std::int32_t* pairs,
                                              std::int32_t count, std::int32_t least,
                                              std::int32_t most) {
  if (count < least || count > most) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": found ", count, ", expected ", least, " to ", most));
  }
  if (pairs == nullptr && count > 0) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": the list is NULL"));
  }
  std::vector<Range> out;
  out.reserve(static_cast<size_t>(count));
  for (size_t k = 0; k < static_cast<size_t>(count); ++k) {
    out.push_back({pairs[2 * k], pairs[2 * k + 1]});
  }
  return out;
}

PlanCollector::PlanCollector(int teacher_steps)
    : teacher_steps_(teacher_steps), thread_(std::this_thread::get_id()) {
  sink_ = {};
  sink_.struct_size = sizeof(sink_);
  sink_.context = this;
  sink_.add_merge = [](void* context, std::int32_t first, std::int32_t last,
                       const std::int32_t* children, std::int32_t child_count,
                       mergeplan_error* error) -> std::int32_t {
    auto* self = static_cast<PlanCollector*>(context);
    return Serve(error,
                 [&] { return self->Keep(self->AddMerge(first, last, children, child_count)); });
  };
  sink_.set_blocks = [](void* context, const std::int32_t* ranges, std::int32_t count,
                        mergeplan_error* error) -> std::int32_t {
    auto* self = static_cast<PlanCollector*>(context);
    return Serve(error, [&] { return self->Keep(self->SetBlocks(ranges, count)); });
  };
}

absl::Status PlanCollector::Keep(const absl::Status& status) {
  // A call from another thread must not touch what this one uses.
  if (CheckThread(thread_).ok() && first_error_.ok()) first_error_ = status;
  return status;
}

absl::Status PlanCollector::AddMerge(int first, int last, const std::int32_t* children,
                                     std::int32_t count) {
  MP_RETURN_IF_ERROR(CheckThread(thread_));
  // A plan over T steps has at most T-1 merges and 2T-2 children: a plugin that adds merges for
  // ever is stopped here.
  if (merges_.size() + 1 >= static_cast<size_t>(teacher_steps_)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("merge [", first, ", ", last, "]: more merges than ", teacher_steps_ - 1,
                     ", the most that ", teacher_steps_, " steps can have"));
  }
  const std::string what = absl::StrCat("merge [", first, ", ", last, "]: children");
  MP_ASSIGN_OR_RETURN(std::vector<Range> ranges,
                      ReadRanges(what.c_str(), children, count, 2, teacher_steps_));
  child_count_ += ranges.size();
  if (child_count_ > 2 * static_cast<size_t>(teacher_steps_)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, ": more in all than a plan over ", teacher_steps_, " steps can have"));
  }
  merges_.push_back({{first, last}, std::move(ranges)});
  return absl::OkStatus();
}

absl::Status PlanCollector::SetBlocks(const std::int32_t* ranges, std::int32_t count) {
  MP_RETURN_IF_ERROR(CheckThread(thread_));
  if (!blocks_.empty()) return absl::FailedPreconditionError("the blocks are set twice");
  MP_ASSIGN_OR_RETURN(blocks_, ReadRanges("blocks", ranges, count, 1, teacher_steps_));
  return absl::OkStatus();
}

absl::StatusOr<Plan> PlanCollector::Finish() const {
  MP_RETURN_IF_ERROR(first_error_);
  if (blocks_.empty()) {
    return absl::InvalidArgumentError("gave no blocks, expected one call of set_blocks");
  }
  absl::StatusOr<Plan> plan = Plan::Create(teacher_steps_, merges_, blocks_);
  if (!plan.ok()) {
    return absl::Status(plan.status().code(),
                        absl::StrCat("gave no valid plan: ", plan.status().message()));
  }
  return plan;
}

absl::Status Send(const Plan& plan, const mergeplan_plan_sink* sink) {
  if (sink == nullptr) return absl::InvalidArgumentError("sink is NULL");
  MP_RETURN_IF_ERROR(CheckSize("mergeplan_plan_sink", sink->struct_size,
                               MERGEPLAN_SIZE_1_0(mergeplan_plan_sink, set_blocks)));
  if (sink->add_merge == nullptr || sink->set_blocks == nullptr) {
    return absl::InvalidArgumentError("sink: a function is NULL");
  }
  for (const MergeSpec& merge : plan.Specs()) {
    const std::vector<std::int32_t> children = Pairs(merge.children);
    ErrorBuffer error;
    MP_RETURN_IF_ERROR(error.Take(
        sink->add_merge(sink->context, merge.range.first, merge.range.last, children.data(),
                        static_cast<std::int32_t>(merge.children.size()), error.get())));
  }
  const std::vector<std::int32_t> blocks = Pairs(plan.BlockRanges());
  ErrorBuffer error;
  return error.Take(sink->set_blocks(sink->context, blocks.data(),
                                     static_cast<std::int32_t>(plan.student_steps()), error.get()));
}

namespace {

// ---- the planner's table

struct PlannerContext {
  const PlanRequest* request;
  PlannerServices* services;
  const std::string* plugin;
  std::thread::id thread;
};

template <typename Enum>
absl::Status ReadEnum(const char* what, std::int32_t value, Enum last, std::optional<Enum>* out) {
  if (value < 0 || value > static_cast<std::int32_t>(last)) {
    return absl::InvalidArgumentError(absl::StrCat("options.", what, ": found ", value,
                                                   ", expected 0 to ", static_cast<int>(last)));
  }
  *out = static_cast<Enum>(value);
  return absl::OkStatus();
}

absl::Status ReadLimit(const char* what, std::int32_t value, std::optional<int>* out) {
  if (value < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("options.", what, ": found ", value, ", expected 0 (any number) or more"));
  }
  *out = value;
  return absl::OkStatus();
}

absl::StatusOr<SolveOverrides> ReadOverrides(const mergeplan_solve_options* options,
                                             int teacher_steps) {
  SolveOverrides out;
  if (options == nullptr) return out;
  MP_RETURN_IF_ERROR(CheckSize("mergeplan_solve_options", options->struct_size,
                               MERGEPLAN_SIZE_1_0(mergeplan_solve_options, time_limit_seconds)));
  constexpr std::uint32_t kKnown = 2 * MERGEPLAN_SOLVE_MAX_ROUNDS - 1;
  if ((options->fields & ~kKnown) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("options.fields: found ", options->fields,
                                                   ", expected no bits above ", kKnown));
  }
  if ((options->fields & MERGEPLAN_SOLVE_STUDENT_STEPS) != 0) {
    if (options->student_steps < 1 || options->student_steps > teacher_steps) {
      return absl::InvalidArgumentError(absl::StrCat("options.student_steps: found ",
                                                     options->student_steps, ", expected 1 to ",
                                                     teacher_steps));
    }
    out.student_steps = options->student_steps;
  }
  if ((options->fields & MERGEPLAN_SOLVE_INIT) != 0) {
    MP_RETURN_IF_ERROR(ReadEnum("init", options->init, Init::kChildJump, &out.init));
  }
  if ((options->fields & MERGEPLAN_SOLVE_REFERENCE) != 0) {
    MP_RETURN_IF_ERROR(ReadEnum("reference", options->reference, Reference::kData, &out.reference));
  }
  if ((options->fields & MERGEPLAN_SOLVE_SPACE) != 0) {
    MP_RETURN_IF_ERROR(ReadEnum("space", options->space, Space::kBinary, &out.space));
  }
  if ((options->fields & MERGEPLAN_SOLVE_GAP) != 0) {
    if (!(std::isfinite(options->gap) && options->gap >= 0)) {
      return absl::InvalidArgumentError(absl::StrCat("options.gap: found ", options->gap,
                                                     ", expected a finite number, 0 or more"));
    }
    out.gap = options->gap;
  }
  if ((options->fields & MERGEPLAN_SOLVE_TIME_LIMIT) != 0) {
    if (!(std::isfinite(options->time_limit_seconds) && options->time_limit_seconds > 0)) {
      return absl::InvalidArgumentError(absl::StrCat("options.time_limit_seconds: found ",
                                                     options->time_limit_seconds,
                                                     ", expected a finite number above 0"));
    }
    out.time_limit_seconds = options->time_limit_seconds;
  }
  if ((options->fields & MERGEPLAN_SOLVE_MAX_MERGES) != 0) {
    MP_RETURN_IF_ERROR(CheckSize("mergeplan_solve_options", options->struct_size,
                                 MERGEPLAN_SIZE_1_0(mergeplan_solve_options, max_merges)));
    MP_RETURN_IF_ERROR(ReadLimit("max_merges", options->max_merges, &out.max_merges));
  }
  if ((options->fields & MERGEPLAN_SOLVE_MAX_ROUNDS) != 0) {
    MP_RETURN_IF_ERROR(CheckSize("mergeplan_solve_options", options->struct_size,
                                 MERGEPLAN_SIZE_1_0(mergeplan_solve_options, max_rounds)));
    MP_RETURN_IF_ERROR(ReadLimit("max_rounds", options->max_rounds, &out.max_rounds));
  }
  return out;
}

std::int32_t ServeSolve(void* context, const mergeplan_solve_options* options,
                        const mergeplan_plan_sink* sink, mergeplan_solution* solution,
                        mergeplan_error* error) {
  const auto* self = static_cast<const PlannerContext*>(context);
  return Serve(error, [&]() -> absl::Status {
    MP_RETURN_IF_ERROR(CheckThread(self->thread));
    MP_ASSIGN_OR_RETURN(const SolveOverrides overrides,
                        ReadOverrides(options, self->request->schedule.steps()));
    if (solution != nullptr) {
      MP_RETURN_IF_ERROR(CheckSize("mergeplan_solution", solution->struct_size,
                                   MERGEPLAN_SIZE_1_0(mergeplan_solution, lower_bound)));
    }
    MP_ASSIGN_OR_RETURN(const Solution found, self->services->Solve(*self->request, overrides));
    MP_RETURN_IF_ERROR(Send(found.plan, sink));
    if (solution != nullptr) {
      solution->status = static_cast<std::int32_t>(found.outcome);
      solution->objective = found.objective;
      solution->lower_bound = found.lower_bound;
    }
    return absl::OkStatus();
  });
}

std::int32_t ServeEvaluateTree(void* context, const mergeplan_merge* const* merges,
                               std::int32_t merge_count, const std::int32_t* blocks,
                               std::int32_t block_count, double* objective,
                               mergeplan_error* error) {
  const auto* self = static_cast<const PlannerContext*>(context);
  return Serve(error, [&]() -> absl::Status {
    MP_RETURN_IF_ERROR(CheckThread(self->thread));
    const int teacher_steps = self->request->schedule.steps();
    if (objective == nullptr) return absl::InvalidArgumentError("objective is NULL");
    if (merge_count < 0 || merge_count >= teacher_steps || (merge_count > 0 && !merges)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "merges: found ", merge_count, ", expected a list of 0 to ", teacher_steps - 1));
    }
    PlanCollector collector(teacher_steps);
    ErrorBuffer why;
    for (std::int32_t k = 0; k < merge_count; ++k) {
      if (merges[k] == nullptr) return absl::InvalidArgumentError("merges: an entry is NULL");
      MP_RETURN_IF_ERROR(CheckSize("mergeplan_merge", merges[k]->struct_size,
                                   MERGEPLAN_SIZE_1_0(mergeplan_merge, children)));
      MP_RETURN_IF_ERROR(why.Take(
          collector.sink()->add_merge(collector.sink()->context, merges[k]->first, merges[k]->last,
                                      merges[k]->children, merges[k]->child_count, why.get())));
    }
    MP_RETURN_IF_ERROR(why.Take(
        collector.sink()->set_blocks(collector.sink()->context, blocks, block_count, why.get())));
    MP_ASSIGN_OR_RETURN(const Plan plan, collector.Finish());
    MP_ASSIGN_OR_RETURN(*objective, self->services->EvaluateTree(*self->request, plan));
    return absl::OkStatus();
  });
}

std::int32_t ServeParsePlan(void* context, const char* path, const mergeplan_plan_sink* sink,
                            mergeplan_error* error) {
  const auto* self = static_cast<const PlannerContext*>(context);
  return Serve(error, [&]() -> absl::Status {
    MP_RETURN_IF_ERROR(CheckThread(self->thread));
    if (path == nullptr) return absl::InvalidArgumentError("path is NULL");
    MP_ASSIGN_OR_RETURN(const Plan plan, self->services->ParsePlan(*self->request, path));
    return Send(plan, sink);
  });
}

mergeplan_planner PlannerTable(PlannerContext* context) {
  mergeplan_planner table = {};
  table.struct_size = sizeof(table);
  table.context = context;
  table.solve = ServeSolve;
  table.evaluate_tree = ServeEvaluateTree;
  table.parse_plan = ServeParsePlan;
  table.log = [](void* self, std::int32_t level, const char* text) {
    const auto* planner = static_cast<const PlannerContext*>(self);
    ServeQuietly(0, [&] {
      planner->services->Log(ToLogLevel(level),
                             absl::StrCat(*planner->plugin, ": ", OneLine(text)));
      return 0;
    });
  };
  table.cancelled = [](void* self) -> std::int32_t {
    return ServeQuietly(
        0, [&] { return static_cast<const PlannerContext*>(self)->services->Cancelled() ? 1 : 0; });
  };
  table.get_extension = [](void*, const char*) -> const void* { return nullptr; };
  return table;
}

// ---- the request

absl::Status CheckList(const char* what, const std::vector<double>& values, size_t expected) {
  if (values.size() != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": found ", values.size(), " values, expected ", expected));
  }
  for (size_t k = 0; k < values.size(); ++k) {
    if (!(std::isfinite(values[k]) && values[k] >= 0)) {
      return absl::InvalidArgumentError(absl::StrCat(what, "[", k, "]: found ", values[k],
                                                     ", expected a finite number, 0 or more"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRequest(const PlanRequest& request) {
  MP_RETURN_IF_ERROR(ValidateSchedule(request.schedule));
  const int teacher_steps = request.schedule.steps();
  if (request.student_steps < 1 || request.student_steps > teacher_steps) {
    return absl::InvalidArgumentError(absl::StrCat("student steps: found ", request.student_steps,
                                                   ", expected 1 to ", teacher_steps));
  }
  if (request.variances.size() > static_cast<size_t>(std::numeric_limits<std::int32_t>::max())) {
    return absl::InvalidArgumentError("variances: more than 2147483647 values");
  }
  MP_RETURN_IF_ERROR(CheckList("variances", request.variances, request.variances.size()));
  if (!request.weights.empty()) {
    MP_RETURN_IF_ERROR(CheckList("weights", request.weights, request.variances.size()));
  }
  if (!(std::isfinite(request.schedule.data_scale) && request.schedule.data_scale > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data scale: found ", request.schedule.data_scale, ", expected a finite number above 0"));
  }
  if (request.max_merges < 0 || request.max_rounds < 0) {
    return absl::InvalidArgumentError(absl::StrCat("limits: found ", request.max_merges,
                                                   " merges, ", request.max_rounds,
                                                   " rounds, expected 0 (any number) or more"));
  }
  // Whether the rate is small enough depends on the spectrum; the planner checks that.
  MP_RETURN_IF_ERROR(request.budget.Validate(0));
  if (!(std::isfinite(request.gap) && request.gap >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("gap: found ", request.gap, ", expected a finite number, 0 or more"));
  }
  if (!(std::isfinite(request.time_limit_seconds) && request.time_limit_seconds > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("time limit: found ", request.time_limit_seconds,
                                                   ", expected a finite number above 0"));
  }
  return absl::OkStatus();
}

// Also of plugins that were built before there were limits: they cannot know of them.
absl::Status CheckLimits(const PlanRequest& request, const Plan& plan) {
  const int rounds = CostsOf(plan).rounds;
  if (request.max_merges > 0 && plan.size() > request.max_merges) {
    return absl::FailedPreconditionError(absl::StrCat("gave ", plan.size(),
                                                      " merges, expected at most ",
                                                      request.max_merges, ", as was asked for"));
  }
  if (request.max_rounds > 0 && rounds > request.max_rounds) {
    return absl::FailedPreconditionError(absl::StrCat("gave ", rounds, " rounds, expected at most ",
                                                      request.max_rounds, ", as was asked for"));
  }
  return absl::OkStatus();
}

}  // namespace

ParameterList::ParameterList(const std::map<std::string, std::string>& values) {
  values_.reserve(values.size());
  for (const auto& [name, value] : values) {
    values_.push_back({sizeof(mergeplan_parameter), name.c_str(), value.c_str()});
  }
  for (const mergeplan_parameter& value : values_) pointers_.push_back(&value);
}

LogLevel ToLogLevel(std::int32_t level) {
  if (level < MERGEPLAN_LOG_INFO || level > MERGEPLAN_LOG_ERROR) return LogLevel::kInfo;
  return static_cast<LogLevel>(level);
}

}  // namespace border

absl::Status Plugin::Annotate(const absl::Status& status, std::string_view call) const {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("plugin ", name(), ": ", std::string(call), ": ",
                                                  status.message()));
}

absl::StatusOr<Plan> Plugin::MakePlan(const PlanRequest& request, PlannerServices& services) const {
  MP_RETURN_IF_ERROR(Annotate(border::CheckRequest(request), "request"));
  MP_ASSIGN_OR_RETURN(const auto values, CheckParameters(manifest_, request.parameters));
  const border::ParameterList parameters(values);
  const int teacher_steps = request.schedule.steps();
  const bool known = !request.variances.empty();

  mergeplan_plan_request question = {};
  question.struct_size = sizeof(question);
  question.teacher_steps = teacher_steps;
  question.student_steps = request.student_steps;
  question.dimensions = static_cast<std::int32_t>(request.variances.size());
  question.alpha = request.schedule.alpha.data();
  question.sigma = request.schedule.sigma.data();
  question.data_scale = request.schedule.data_scale;
  question.variances = known ? request.variances.data() : nullptr;
  question.weights = known && !request.weights.empty() ? request.weights.data() : nullptr;
  question.budget_kind = request.budget.sgd ? MERGEPLAN_BUDGET_SGD : MERGEPLAN_BUDGET_FLOW;
  question.batch = request.budget.batch;
  question.train_time = request.budget.train_time;
  question.lr = request.budget.lr;
  question.feature_norm = request.budget.feature_norm;
  question.iterations = request.budget.iterations;
  question.init = static_cast<std::int32_t>(request.init);
  question.reference = static_cast<std::int32_t>(request.reference);
  question.space = static_cast<std::int32_t>(request.space);
  question.parameter_count = parameters.count();
  question.parameters = parameters.data();
  question.gap = request.gap;
  question.time_limit_seconds = request.time_limit_seconds;
  question.max_merges = request.max_merges;
  question.max_rounds = request.max_rounds;

  border::PlannerContext context{&request, &services, &manifest_.name, std::this_thread::get_id()};
  const mergeplan_planner planner = border::PlannerTable(&context);
  border::PlanCollector collector(teacher_steps);
  border::ErrorBuffer error;
  MP_RETURN_IF_ERROR(Annotate(border::CatchThrown([&] {
                                return error.Take(entry_->plan(&question, &planner,
                                                               collector.sink(), error.get()));
                              }),
                              "plan"));
  absl::StatusOr<Plan> plan = collector.Finish();
  if (!plan.ok()) return Annotate(plan.status(), "plan");
  if (plan->student_steps() != request.student_steps) {
    return Annotate(
        absl::InvalidArgumentError(absl::StrCat("gave ", plan->student_steps(),
                                                " blocks, expected ", request.student_steps)),
        "plan");
  }
  MP_RETURN_IF_ERROR(Annotate(border::CheckLimits(request, *plan), "plan"));
  return plan;
}

}  // namespace mergeplan
