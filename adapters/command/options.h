#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "adapters/runtime/arguments.h"

namespace mergeplan {

// What the command lines of this program are made of.

// CLI11 throws on an option that makes no sense; everything it takes is an optional of this kind.
template <typename T>
CLI::Option* Add(CLI::App* command, const std::string& name, std::optional<T>& value,
                 const std::string& help) {
  return command->add_option(name, value, help);
}

// A number with what is `expected` of it: what CLI11 itself says of a number that it cannot read is
// only that it cannot.
CLI::Validator Real(bool (*holds)(double), const std::string& expected);

// Larger numbers have no exact place in files, and CLI11 would clamp what does not fit.
inline constexpr std::int64_t kLargest = std::int64_t{1} << 53;

// What is asked of every strategy alike: teacher, schedule, budget, how is trained, where.
void AddQuestion(CLI::App* command, DistillArguments& a);

}  // namespace mergeplan
