// What the entry gives, and the schema of the parameters.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <set>
#include <thread>

#include "plugins/conformance/checks.h"
#include "plugins/conformance/execute_call.h"

namespace mergeplan_conformance {
namespace {

constexpr std::size_t kOldestPlugin = MERGEPLAN_CONFORMANCE_1_0(mergeplan_plugin, get_extension);
constexpr std::size_t kOldestSpec = MERGEPLAN_CONFORMANCE_1_0(mergeplan_parameter_spec, maximum);

// The entry, when at least its first fields can be read.
const mergeplan_plugin* Readable(const Subject& subject) {
  const mergeplan_plugin* plugin = nullptr;
  try {
    plugin = subject.entry();
  } catch (...) {
    return nullptr;
  }
  return plugin != nullptr && plugin->struct_size >= kOldestPlugin ? plugin : nullptr;
}

// NOLINTBEGIN(bugprone-macro-parentheses): `plugin` is a name.
#define MERGEPLAN_CONFORMANCE_ENTRY(plugin, subject)                  \
  const mergeplan_plugin* const readable = Readable(subject);         \
  if (readable == nullptr)                                            \
    GTEST_SKIP() << "the entry cannot be read, see Entry.StaticData " \
                    "and Entry.Size";                                 \
  const mergeplan_plugin& plugin = *readable
// NOLINTEND(bugprone-macro-parentheses)

bool IsName(const char* text) {
  if (text == nullptr) return false;
  const std::string_view name(text);
  return !name.empty() && name.size() <= 64 && name[0] >= 'a' && name[0] <= 'z' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
         });
}

// All bytes and texts that the entry reaches.
std::string Everything(const mergeplan_plugin& plugin) {
  std::string bytes(reinterpret_cast<const char*>(&plugin), kOldestPlugin);
  const auto add = [&](const char* text) {
    if (text != nullptr) bytes.append(text, std::strlen(text) + 1);
  };
  for (const char* text : {plugin.name, plugin.version, plugin.description}) add(text);
  for (std::int32_t k = 0; k < plugin.parameter_count && plugin.parameters != nullptr; ++k) {
    const mergeplan_parameter_spec* spec = plugin.parameters[k];
    if (spec == nullptr || spec->struct_size < kOldestSpec) continue;
    bytes.append(reinterpret_cast<const char*>(spec), kOldestSpec);
    for (const char* text : {spec->name, spec->default_value, spec->help}) add(text);
  }
  return bytes;
}

void StaticData(const Subject& subject) {
  const mergeplan_plugin* first = nullptr;
  ASSERT_NO_THROW(first = subject.entry()) << "mergeplan_plugin_entry() threw an exception";
  ASSERT_NE(first, nullptr) << "mergeplan_plugin_entry() returned NULL, expected the plugin";
  const mergeplan_plugin* plugin = Readable(subject);
  if (plugin == nullptr) return;
  const std::string before = Everything(*plugin);
  const mergeplan_plugin* elsewhere = nullptr;
  std::thread([&] { elsewhere = subject.entry(); }).join();
  EXPECT_EQ(subject.entry(), first) << "mergeplan_plugin_entry() returned another address";
  EXPECT_EQ(elsewhere, first) << "mergeplan_plugin_entry() returned another address in a thread";
  if (const mergeplan_plugin* usable = Usable(subject); usable != nullptr) {
    for (const std::int32_t steps : {1, 4, 9}) CallPlan(*usable, Ask(subject, *usable, steps, 1));
    CallExecute(*usable, Halves(4), Values(*usable, subject.parameters));
  }
  EXPECT_EQ(Everything(*subject.entry()), before)
      << "what mergeplan_plugin_entry() returns has changed between calls";
}

void EntrySize(const Subject& subject) {
  const mergeplan_plugin* plugin = nullptr;
  try {
    plugin = subject.entry();
  } catch (...) {
    GTEST_SKIP() << "the entry threw, see Entry.StaticData";
  }
  if (plugin == nullptr) GTEST_SKIP() << "the entry is NULL, see Entry.StaticData";
  ASSERT_GE(plugin->struct_size, MERGEPLAN_CONFORMANCE_1_0(mergeplan_plugin, abi_minor))
      << "mergeplan_plugin.struct_size is too small to say which ABI the plugin is for";
  if (plugin->abi_major != MERGEPLAN_ABI_MAJOR) GTEST_SKIP() << "another ABI, see Entry.Version";
  ASSERT_GE(plugin->struct_size, kOldestPlugin) << "expected sizeof(mergeplan_plugin)";
  if (plugin->abi_minor == MERGEPLAN_ABI_MINOR) {
    EXPECT_EQ(plugin->struct_size, sizeof(mergeplan_plugin))
        << "expected sizeof(mergeplan_plugin) of ABI " << MERGEPLAN_ABI_MAJOR << "."
        << MERGEPLAN_ABI_MINOR;
  }
}

void EntryVersion(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_ENTRY(plugin, subject);
  EXPECT_EQ(plugin.abi_major, MERGEPLAN_ABI_MAJOR) << "expected MERGEPLAN_ABI_MAJOR";
  EXPECT_LE(plugin.abi_minor_needed, plugin.abi_minor)
      << "needs a later minor than that of the header it was built against";
}

void EntryFunctions(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_ENTRY(plugin, subject);
  EXPECT_TRUE(plugin.plan != nullptr) << "plan is NULL";
  EXPECT_TRUE(plugin.execute != nullptr) << "execute is NULL";
}

void EntryTexts(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_ENTRY(plugin, subject);
  EXPECT_TRUE(IsName(plugin.name))
      << "name is " << Quoted(plugin.name) << ", expected a-z, then a-z 0-9 - _, 64 at most";
  EXPECT_EQ(LineProblem(plugin.version), "") << "version";
  EXPECT_STRNE(plugin.version, "") << "version is empty";
  EXPECT_EQ(LineProblem(plugin.description), "") << "description";
}

void EntryTeacherNeeds(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_ENTRY(plugin, subject);
  if (plugin.abi_minor > MERGEPLAN_ABI_MINOR) GTEST_SKIP() << "of a later minor than this suite";
  constexpr std::uint64_t kKnown = 2 * MERGEPLAN_TEACHER_HAS_SPECTRUM - 1;
  EXPECT_EQ(plugin.teacher_needs & ~kKnown, 0U)
      << "teacher_needs has bits that mergeplan_teacher_trait does not name";
  EXPECT_EQ(plugin.reserved, 0) << "reserved";
}

void EntryExtension(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_ENTRY(plugin, subject);
  if (plugin.get_extension == nullptr) return;
  for (const char* name : {"mergeplan-conformance/no-such-extension", ""}) {
    EXPECT_EQ(plugin.get_extension(name), nullptr)
        << "get_extension(\"" << name << "\"), a name that no header defines";
  }
}

// ---- parameters

// Can the list be read? Parameters.List says why not.
bool ListReads(const mergeplan_plugin& plugin) {
  if (plugin.parameter_count < 0) return false;
  if (plugin.parameter_count > 0 && plugin.parameters == nullptr) return false;
  for (std::int32_t k = 0; k < plugin.parameter_count; ++k) {
    const mergeplan_parameter_spec* spec = plugin.parameters[k];
    if (spec == nullptr || spec->struct_size < kOldestSpec ||
        spec->type < MERGEPLAN_PARAMETER_INTEGER || spec->type > MERGEPLAN_PARAMETER_TEXT) {
      return false;
    }
  }
  return true;
}

#define MERGEPLAN_CONFORMANCE_SPECS(plugin, subject) \
  MERGEPLAN_CONFORMANCE_ENTRY(plugin, subject);      \
  if (!ListReads(plugin)) GTEST_SKIP() << "the list cannot be read, see Parameters.List"

std::string NameOf(const mergeplan_parameter_spec& spec) {
  return "parameter " + Quoted(spec.name);
}

bool IsNumber(const mergeplan_parameter_spec& spec) {
  return spec.type == MERGEPLAN_PARAMETER_INTEGER || spec.type == MERGEPLAN_PARAMETER_REAL;
}

void ParametersList(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_ENTRY(plugin, subject);
  ASSERT_GE(plugin.parameter_count, 0) << "parameter_count";
  ASSERT_TRUE(plugin.parameter_count == 0 || plugin.parameters != nullptr) << "parameters is NULL";
  for (std::int32_t k = 0; k < plugin.parameter_count; ++k) {
    const mergeplan_parameter_spec* spec = plugin.parameters[k];
    ASSERT_NE(spec, nullptr) << "parameters[" << k << "]";
    ASSERT_GE(spec->struct_size, kOldestSpec) << "parameters[" << k << "]->struct_size";
    EXPECT_TRUE(spec->type >= MERGEPLAN_PARAMETER_INTEGER && spec->type <= MERGEPLAN_PARAMETER_TEXT)
        << NameOf(*spec) << ": type is " << spec->type;
  }
}

void ParametersNames(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_SPECS(plugin, subject);
  std::set<std::string> seen;
  for (std::int32_t k = 0; k < plugin.parameter_count; ++k) {
    const mergeplan_parameter_spec& spec = *plugin.parameters[k];
    EXPECT_TRUE(IsName(spec.name)) << NameOf(spec) << ": expected a-z, then a-z 0-9 - _";
    if (spec.name != nullptr) {
      EXPECT_TRUE(seen.insert(spec.name).second) << NameOf(spec) << " is there twice";
    }
    EXPECT_EQ(LineProblem(spec.help), "") << NameOf(spec) << ": help";
  }
}

void ParametersBounds(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_SPECS(plugin, subject);
  for (std::int32_t k = 0; k < plugin.parameter_count; ++k) {
    const mergeplan_parameter_spec& spec = *plugin.parameters[k];
    const bool low = spec.has_minimum != 0;
    const bool high = spec.has_maximum != 0;
    EXPECT_TRUE(IsNumber(spec) || (!low && !high))
        << NameOf(spec) << ": only integers and reals have bounds";
    EXPECT_TRUE((!low || std::isfinite(spec.minimum)) && (!high || std::isfinite(spec.maximum)))
        << NameOf(spec) << ": a bound is not finite";
    if (low && high) {
      EXPECT_LE(spec.minimum, spec.maximum) << NameOf(spec);
    }
  }
}

// What is wrong with the default, or empty.
std::string DefaultProblem(const mergeplan_parameter_spec& spec) {
  const std::string_view text(spec.default_value);
  const char* end = text.data() + text.size();
  double number = 0;
  switch (spec.type) {
    case MERGEPLAN_PARAMETER_INTEGER: {
      std::int64_t integer = 0;
      const auto [stop, failure] = std::from_chars(text.data(), end, integer);
      if (failure != std::errc() || stop != end) return "is no integer";
      number = static_cast<double>(integer);
      break;
    }
    case MERGEPLAN_PARAMETER_REAL: {
      const auto [stop, failure] = std::from_chars(text.data(), end, number);
      if (failure != std::errc() || stop != end || !std::isfinite(number)) {
        return "is no finite number";
      }
      break;
    }
    case MERGEPLAN_PARAMETER_FLAG:
      return text == "true" || text == "false" ? "" : "is neither true nor false";
    default:
      return IsUtf8(text) ? "" : "is no UTF-8";
  }
  if (spec.has_minimum != 0 && number < spec.minimum) return "is below the minimum";
  return spec.has_maximum != 0 && number > spec.maximum ? "is above the maximum" : "";
}

void ParametersDefaults(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_SPECS(plugin, subject);
  for (std::int32_t k = 0; k < plugin.parameter_count; ++k) {
    const mergeplan_parameter_spec& spec = *plugin.parameters[k];
    if (spec.default_value == nullptr) continue;
    EXPECT_EQ(DefaultProblem(spec), "")
        << NameOf(spec) << ": default " << Quoted(spec.default_value);
  }
}

std::string Decimal(double value, std::int32_t type) {
  if (type == MERGEPLAN_PARAMETER_INTEGER) {
    return std::to_string(static_cast<std::int64_t>(value));
  }
  char digits[64];
  const auto [end, failure] = std::to_chars(digits, digits + sizeof(digits), value);
  return failure == std::errc() ? std::string(digits, end) : "0";
}

// Values that the schema allows, the bounds among them.
std::vector<std::string> Allowed(const mergeplan_parameter_spec& spec) {
  if (spec.type == MERGEPLAN_PARAMETER_FLAG) return {"true", "false"};
  if (spec.type == MERGEPLAN_PARAMETER_TEXT) {
    return {
        "", "x", "no/such file.toml", "1-2,3-4", "\xC3\xBC \xE7\x8C\xAB", std::string(20000, 'y')};
  }
  const bool integer = spec.type == MERGEPLAN_PARAMETER_INTEGER;
  const double low = spec.has_minimum != 0 ? spec.minimum : (integer ? -9.2e18 : -1e300);
  const double high = spec.has_maximum != 0 ? spec.maximum : (integer ? 9.2e18 : 1e300);
  std::vector<std::string> out = {Decimal(low, spec.type), Decimal(high, spec.type)};
  for (const double between : {0.0, 1.0, 3.0, low / 2 + high / 2}) {
    if (between >= low && between <= high) out.push_back(Decimal(between, spec.type));
  }
  return out;
}

void ParametersEachValue(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_SPECS(plugin, subject);
  MERGEPLAN_CONFORMANCE_PLUGIN(callable, subject);
  // What goes wrong with the defaults already is for other checks to say.
  const PlanOutcome usual = CallPlan(callable, Ask(subject, callable, 17, 1));
  Findings findings;
  for (std::int32_t k = 0; k < plugin.parameter_count; ++k) {
    const mergeplan_parameter_spec& spec = *plugin.parameters[k];
    if (spec.name == nullptr) continue;
    for (const std::string& value : Allowed(spec)) {
      Question question = Ask(subject, callable, 17, 1);
      question.parameters[spec.name] = value;
      const PlanOutcome outcome = CallPlan(callable, question);
      if (usual.invalid.empty()) findings.Add(outcome.question, outcome.invalid);
      if (usual.told.empty()) findings.Add(outcome.question, outcome.told);
      if (outcome.threw && !usual.threw) {
        findings.Add(outcome.question, "threw an exception: " + outcome.thrown);
      }
    }
  }
}

void ParametersAnyOrder(const Subject& subject) {
  MERGEPLAN_CONFORMANCE_PLUGIN(plugin, subject);
  if (!Repeats(subject, plugin)) GTEST_SKIP() << "answers differ, see Plan.SameRequestSamePlan";
  Question question = Ask(subject, plugin, 17, 2);
  const std::string answer = CallPlan(plugin, question).Answer();
  question.backwards = true;
  EXPECT_EQ(CallPlan(plugin, question).Answer(), answer)
      << "another answer to the same parameters in the opposite order";
}

}  // namespace

std::vector<Check> EntryChecks() {
  const char* const group = "Entry";
  return {
      {{group, "StaticData",
        "mergeplan_plugin_entry() returns the same static data at every call, never NULL"},
       StaticData},
      {{group, "Size", "mergeplan_plugin.struct_size is sizeof the struct as its header has it"},
       EntrySize},
      {{group, "Version", "abi_major is the header's, and abi_minor_needed not above abi_minor"},
       EntryVersion},
      {{group, "Functions", "plan and execute are there"}, EntryFunctions},
      {{group, "Texts", "name, version and description are texts in one line"}, EntryTexts},
      {{group, "TeacherNeeds", "teacher_needs has known bits only, reserved is 0"},
       EntryTeacherNeeds},
      {{group, "Extension", "get_extension knows no name that no header defines"}, EntryExtension},
  };
}

std::vector<Check> ParameterChecks() {
  const char* const group = "Parameters";
  return {
      {{group, "List", "the parameters are a list of structs with sizes and known types"},
       ParametersList},
      {{group, "Names", "every parameter has a name of its own and a help in one line"},
       ParametersNames},
      {{group, "Bounds", "bounds are finite, in order, and only on numbers"}, ParametersBounds},
      {{group, "Defaults", "defaults are values that the schema allows"}, ParametersDefaults},
      {{group, "EachValue",
        "every value that the schema allows leads to a valid plan or to an error that says why"},
       ParametersEachValue},
      {{group, "AnyOrder", "the order of the parameters does not matter"}, ParametersAnyOrder},
  };
}

}  // namespace mergeplan_conformance
