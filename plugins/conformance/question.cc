#include "plugins/conformance/question.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

namespace mergeplan_conformance {
namespace {

std::atomic<std::int32_t> g_calls_behind{0};

// Its arguments, whatever they are, lie in registers or on the caller's side of the stack.
std::int32_t CountCall() {
  ++g_calls_behind;
  return MERGEPLAN_OK;
}

constexpr unsigned char kBehind = 0xCD;

template <typename Number>
void AddBytes(const std::vector<Number>& list, std::string* bytes) {
  // The list's elements are what is meant, pointers too. NOLINTNEXTLINE(bugprone-sizeof-expression)
  bytes->append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(Number));
}

std::uint32_t SizeOf(Size size, std::size_t ours, std::size_t oldest, std::size_t larger) {
  return static_cast<std::uint32_t>(size == Size::kOurs     ? ours
                                    : size == Size::kOldest ? oldest
                                                            : larger);
}

}  // namespace

std::int32_t CallsBehindTables() { return g_calls_behind; }

void FillBehindTable(unsigned char* bytes, std::size_t size) {
  std::int32_t (*const trap)() = CountCall;
  for (std::size_t k = 0; k + sizeof(trap) <= size; k += sizeof(trap)) {
    std::memcpy(bytes + k, &trap, sizeof(trap));
  }
}

std::string Question::ToString() const {
  static const char* const kInits[] = {"child", "teacher", "jump", "child-jump"};
  static const char* const kReferences[] = {"surrogate", "teacher", "data"};
  std::string text = "T = " + std::to_string(teacher_steps) +
                     ", N = " + std::to_string(student_steps) +
                     ", d = " + std::to_string(dimensions);
  if (weights) text += " with weights";
  text += budget_kind == MERGEPLAN_BUDGET_SGD ? ", sgd" : ", flow";
  text += std::string(", init ") + kInits[init] + ", reference " + kReferences[reference];
  text += space == MERGEPLAN_SPACE_BINARY ? ", binary" : ", n-ary";
  for (const auto& [name, value] : parameters) text += ", " + name + " = " + Quoted(value.c_str());
  return text;
}

std::map<std::string, std::string> Values(const mergeplan_plugin& plugin,
                                          const std::map<std::string, std::string>& given) {
  std::map<std::string, std::string> values;
  for (std::int32_t k = 0; k < plugin.parameter_count && plugin.parameters != nullptr; ++k) {
    const mergeplan_parameter_spec* spec = plugin.parameters[k];
    if (spec == nullptr || spec->name == nullptr || spec->default_value == nullptr) continue;
    values[spec->name] = spec->default_value;
  }
  for (const auto& [name, value] : given) values[name] = value;
  return values;
}

ParameterView::ParameterView(const std::map<std::string, std::string>& values, bool backwards,
                             Size size)
    : values_(values) {
  blocks_.resize(values_.size());
  std::size_t k = 0;
  for (const auto& [name, value] : values_) {
    Block& block = blocks_[k++];
    std::memset(&block, kBehind, sizeof(block));
    block.parameter.struct_size =
        SizeOf(size, sizeof(mergeplan_parameter),
               MERGEPLAN_CONFORMANCE_1_0(mergeplan_parameter, value), sizeof(block));
    block.parameter.name = name.c_str();
    block.parameter.value = value.c_str();
    pointers_.push_back(&block.parameter);
  }
  if (backwards) std::reverse(pointers_.begin(), pointers_.end());
}

std::string ParameterView::Bytes() const {
  std::string bytes;
  AddBytes(blocks_, &bytes);
  AddBytes(pointers_, &bytes);
  for (const auto& [name, value] : values_) {
    bytes.append(name.c_str(), name.size() + 1);
    bytes.append(value.c_str(), value.size() + 1);
  }
  return bytes;
}

QuestionView::QuestionView(const Question& question)
    : parameters_(question.parameters, question.backwards, question.size) {
  const std::int32_t steps = question.teacher_steps;
  constexpr double kHalfPi = 1.5707963267948966;
  for (std::int32_t t = 0; t <= steps; ++t) {
    alpha_.push_back(t == steps ? 0 : std::cos(kHalfPi * t / steps));
    sigma_.push_back(t == 0 ? 0 : std::sin(kHalfPi * t / steps));
  }
  for (std::int32_t k = 1; k <= question.dimensions; ++k) {
    variances_.push_back(1.5 / k);
    weights_.push_back(0.25 * k);
  }
  std::memset(&block_, kBehind, sizeof(block_));
  mergeplan_plan_request& request = block_.request;
  request = {};
  request.struct_size =
      SizeOf(question.size, sizeof(request),
             MERGEPLAN_CONFORMANCE_1_0(mergeplan_plan_request, time_limit_seconds), sizeof(block_));
  request.teacher_steps = steps;
  request.student_steps = question.student_steps;
  request.dimensions = question.dimensions;
  request.alpha = alpha_.data();
  request.sigma = sigma_.data();
  request.data_scale = 1;
  request.variances = question.dimensions > 0 ? variances_.data() : nullptr;
  request.weights = question.weights ? weights_.data() : nullptr;
  request.budget_kind = question.budget_kind;
  request.batch = 64;
  request.train_time = 1.6;
  request.lr = 0.005;
  request.feature_norm = 1;
  request.iterations = 320;
  request.init = question.init;
  request.reference = question.reference;
  request.space = question.space;
  request.parameter_count = parameters_.count();
  request.parameters = parameters_.data();
  request.gap = 0.001;
  request.time_limit_seconds = 30;
  // A host of 1.0 has anything there.
  if (question.size == Size::kOldest) {
    std::memset(reinterpret_cast<unsigned char*>(&block_) + request.struct_size, kBehind,
                sizeof(request) - request.struct_size);
  }
}

std::string QuestionView::Bytes() const {
  std::string bytes(reinterpret_cast<const char*>(&block_), sizeof(block_));
  AddBytes(alpha_, &bytes);
  AddBytes(sigma_, &bytes);
  AddBytes(variances_, &bytes);
  AddBytes(weights_, &bytes);
  return bytes + parameters_.Bytes();
}

}  // namespace mergeplan_conformance
