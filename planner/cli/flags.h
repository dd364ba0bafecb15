#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace mergeplan::cli {

// Options that take a number and say what they expect, with the number that was found: CLI11 itself
// takes any number that its type holds and calls every other one "could not convert". A value
// outside is refused while the line is parsed, so that 0 can stand for "not given" afterwards.

// Whole numbers least..most.
CLI::Option* AddInteger(CLI::App& app, const std::string& names, int& value, int least,
                        const std::string& help, int most = std::numeric_limits<int>::max());
CLI::Option* AddInteger(CLI::App& app, const std::string& names, std::int64_t& value,
                        std::int64_t least, const std::string& help,
                        std::int64_t most = std::numeric_limits<std::int64_t>::max());

// A list of them, separated by commas.
CLI::Option* AddIntegers(CLI::App& app, const std::string& names, std::vector<int>& values,
                         int least, const std::string& help,
                         int most = std::numeric_limits<int>::max());

// Which real numbers an option takes; never NaN.
enum class Real {
  kPositive,      // 0 < x < infinity
  kNonNegative,   // 0 <= x < infinity
  kInside,        // 0 < x < 1
  kShare,         // 0 <= x < 1
  kPositiveTime,  // 0 < x <= infinity
};
CLI::Option* AddReal(CLI::App& app, const std::string& names, double& value, Real which,
                     const std::string& help);

// Was the option on the command line? False where `app` is null: flags that were never bound.
bool Given(const CLI::App* app, const std::string& name);

// Misuse for the first of `names` that was given: "NAME: has no effect WHY; leave it out".
absl::Status RefuseGiven(const CLI::App* app, std::initializer_list<const char*> names,
                         std::string_view why);

// Misuse for the first option or argument of a parsed command whose value is the empty text: a
// shell variable that is not set should not be taken for an option that was left out.
absl::Status RefuseEmpty(const CLI::App& app);

}  // namespace mergeplan::cli
