#include <iostream>
#include <utility>

#include "plugins/conformance/checks.h"

namespace mergeplan_conformance {
namespace {

const std::vector<Check>& AllChecks() {
  static const auto* const all = [] {
    auto* out = new std::vector<Check>();
    for (const auto& group :
         {EntryChecks(), ParameterChecks(), PlanChecks(), PlanErrorChecks(), ExecuteChecks(),
          ExecuteErrorChecks(), VersionChecks(), ThreadChecks()}) {
      out->insert(out->end(), group.begin(), group.end());
    }
    return out;
  }();
  return *all;
}

class Case : public ::testing::Test {
 public:
  Case(const Check& check, Subject subject) : check_(check), subject_(std::move(subject)) {}
  void TestBody() override {
    check_.run(subject_);
    if (HasFailure()) std::cout << "The rule: " << check_.info.rule << "\n";
  }

 private:
  const Check& check_;
  Subject subject_;
};

}  // namespace

const std::vector<CheckInfo>& Checks() {
  static const auto* const infos = [] {
    auto* out = new std::vector<CheckInfo>();
    for (const Check& check : AllChecks()) out->push_back(check.info);
    return out;
  }();
  return *infos;
}

void Register(const Subject& subject, const std::string& prefix) {
#ifndef __clang_analyzer__  // which takes GoogleTest's own factory for a leak
  for (const Check& check : AllChecks()) {
    ::testing::RegisterTest(
        (prefix + check.info.group).c_str(), check.info.name, nullptr, nullptr, __FILE__, __LINE__,
        [&check, subject]() -> ::testing::Test* { return new Case(check, subject); });
  }
#else
  static_cast<void>(subject);
  static_cast<void>(prefix);
#endif
}

Registrar::Registrar(const char* prefix, const mergeplan_plugin* (*entry)()) {
  Register({entry, {}}, prefix);
}

const mergeplan_plugin* Usable(const Subject& subject) {
  const mergeplan_plugin* plugin = nullptr;
  try {
    plugin = subject.entry();
  } catch (...) {
    return nullptr;
  }
  if (plugin == nullptr ||
      plugin->struct_size < MERGEPLAN_CONFORMANCE_1_0(mergeplan_plugin, get_extension) ||
      plugin->abi_major != MERGEPLAN_ABI_MAJOR || plugin->plan == nullptr ||
      plugin->execute == nullptr || plugin->parameter_count < 0) {
    return nullptr;
  }
  if (plugin->parameter_count > 0 && plugin->parameters == nullptr) return nullptr;
  for (std::int32_t k = 0; k < plugin->parameter_count; ++k) {
    const mergeplan_parameter_spec* spec = plugin->parameters[k];
    if (spec == nullptr ||
        spec->struct_size < MERGEPLAN_CONFORMANCE_1_0(mergeplan_parameter_spec, maximum)) {
      return nullptr;
    }
  }
  return plugin;
}

Question Ask(const Subject& subject, const mergeplan_plugin& plugin, std::int32_t teacher_steps,
             std::int32_t student_steps) {
  Question question;
  question.teacher_steps = teacher_steps;
  question.student_steps = student_steps;
  question.parameters = Values(plugin, subject.parameters);
  return question;
}

bool Repeats(const Subject& subject, const mergeplan_plugin& plugin) {
  for (const std::int32_t blocks : {1, 5}) {
    const Question question = Ask(subject, plugin, 17, blocks);
    const std::string first = CallPlan(plugin, question).Answer();
    for (int again = 0; again < 3; ++again) {
      if (CallPlan(plugin, question).Answer() != first) return false;
    }
  }
  return true;
}

void Findings::Add(const std::string& where, const std::string& problem) {
  constexpr std::size_t kShown = 5;
  if (problem.empty()) return;
  if (++count_ <= kShown) lines_.push_back(where.empty() ? problem : where + ": " + problem);
}

Findings::~Findings() {
  if (count_ == 0) return;
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  if (count_ > lines_.size()) {
    text += "... and " + std::to_string(count_ - lines_.size()) + " more\n";
  }
  ADD_FAILURE() << text;
}

}  // namespace mergeplan_conformance
