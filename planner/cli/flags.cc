#include "planner/cli/flags.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/cli/command.h"

namespace mergeplan::cli {
namespace {

// "--teacher-steps,-T" -> "--teacher-steps"
std::string FirstName(const std::string& names) { return names.substr(0, names.find(',')); }

std::string WithoutSign(const std::string& text) {
  const bool sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  return text.substr(sign ? 1 : 0);
}

bool IsWhole(const std::string& text) {
  const std::string digits = WithoutSign(text);
  return !digits.empty() && std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit);
}

// Throws what CLI11 reports.
template <typename T>
T WholeOf(const std::string& name, const std::string& text, T least, T most) {
  T number = 0;
  // What has only digits and is no T lies outside.
  if (absl::SimpleAtoi(text, &number) && number >= least && number <= most) return number;
  throw CLI::ValidationError(
      name, absl::StrCat("\"", text, "\" is ", IsWhole(text) ? "out of range" : "no whole number",
                         ", expected one from ", least, " to ", most));
}

template <typename T>
CLI::Option* AddWhole(CLI::App& app, const std::string& names, T& value, T least,
                      const std::string& help, T most) {
  const std::string name = FirstName(names);
  return app.add_option_function<std::string>(
      names,
      [&value, name, least, most](const std::string& text) {
        value = WholeOf(name, text, least, most);
      },
      help);
}

struct RealWords {
  bool (*holds)(double);
  const char* words;
};
RealWords WordsOf(Real which) {
  switch (which) {
    case Real::kPositive:
      return {[](double x) { return x > 0 && std::isfinite(x); }, "a positive, finite number"};
    case Real::kNonNegative:
      return {[](double x) { return x >= 0 && std::isfinite(x); }, "a finite number, 0 or more"};
    case Real::kInside:
      return {[](double x) { return x > 0 && x < 1; }, "a number between 0 and 1"};
    case Real::kShare:
      return {[](double x) { return x >= 0 && x < 1; }, "a number from 0 to below 1"};
    case Real::kPositiveTime:
      break;
  }
  return {[](double x) { return x > 0; }, "a positive number of seconds, or inf"};
}

}  // namespace

CLI::Option* AddInteger(CLI::App& app, const std::string& names, int& value, int least,
                        const std::string& help, int most) {
  return AddWhole(app, names, value, least, help, most);
}

CLI::Option* AddInteger(CLI::App& app, const std::string& names, std::int64_t& value,
                        std::int64_t least, const std::string& help, std::int64_t most) {
  return AddWhole(app, names, value, least, help, most);
}

CLI::Option* AddIntegers(CLI::App& app, const std::string& names, std::vector<int>& values,
                         int least, const std::string& help, int most) {
  const std::string name = FirstName(names);
  return app.add_option_function<std::string>(
      names,
      [&values, name, least, most](const std::string& text) {
        values.clear();
        const std::vector<std::string> pieces = absl::StrSplit(text, ',');
        for (const std::string& piece : pieces) values.push_back(WholeOf(name, piece, least, most));
      },
      help);
}

CLI::Option* AddReal(CLI::App& app, const std::string& names, double& value, Real which,
                     const std::string& help) {
  const std::string name = FirstName(names);
  const RealWords rule = WordsOf(which);
  return app.add_option_function<std::string>(
      names,
      [&value, name, rule](const std::string& text) {
        double number = 0;
        const bool is_number = absl::SimpleAtod(text, &number);
        if (!is_number || !rule.holds(number)) {
          throw CLI::ValidationError(
              name, absl::StrCat("\"", text, "\" is ", is_number ? "out of range" : "no number",
                                 ", expected ", rule.words));
        }
        value = number;
      },
      help);
}

bool Given(const CLI::App* app, const std::string& name) {
  const CLI::Option* option = app == nullptr ? nullptr : app->get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

absl::Status RefuseGiven(const CLI::App* app, std::initializer_list<const char*> names,
                         std::string_view why) {
  for (const char* name : names) {
    if (!Given(app, name)) continue;
    return Misuse(absl::StrCat(name, ": has no effect ", std::string(why), "; leave it out"));
  }
  return absl::OkStatus();
}

absl::Status RefuseEmpty(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& text : option->results()) {
      if (!text.empty()) continue;
      return Misuse(absl::StrCat(option->get_name(), ": is empty, expected ",
                                 option->get_type_name().empty() || option->get_positional()
                                     ? "a value"
                                     : option->get_type_name(),
                                 "; give one", option->get_required() ? "" : " or leave it out"));
    }
  }
  return absl::OkStatus();
}

}  // namespace mergeplan::cli
