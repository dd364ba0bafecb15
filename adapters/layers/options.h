#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace mergeplan::layers {

// Takes the options of a config.json one by one, each with its type and range. The first fault
// stays; Finish also finds what nobody asked for.
class Options {
 public:
  Options(const nlohmann::json& json, std::string path) : json_(json), path_(std::move(path)) {}

  void Fail(const std::string& key, const std::string& what) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(path_, ": ", key, what));
  }
  void Expect(const std::string& key, const std::string& expected) {
    Fail(key, absl::StrCat(" is ", json_.contains(key) ? json_.at(key).dump() : "not there",
                           ", expected ", expected));
  }
  bool ok() const { return status_.ok(); }

  // Null where the key is missing or null; `known` remembers that it was asked for.
  const nlohmann::json* Find(const std::string& key) {
    known_.insert(key);
    const auto at = json_.find(key);
    return at == json_.end() || at->is_null() ? nullptr : &*at;
  }
  bool IsNull(const std::string& key) const {
    return json_.contains(key) && json_.at(key).is_null();
  }

  void Bool(const std::string& key, bool& out) {
    const nlohmann::json* value = NotNull(key);
    if (value == nullptr) return;
    if (!value->is_boolean()) return Expect(key, "true or false");
    out = value->get<bool>();
  }
  // Python writes 1 and 1.0 for the same number.
  void Number(const std::string& key, double low, double high, double& out) {
    const nlohmann::json* value = NotNull(key);
    if (value == nullptr) return;
    const double number = value->is_number() ? value->get<double>() : NAN;
    if (!(number >= low && number <= high)) {
      return Expect(key, absl::StrCat("a number from ", low, " to ", high));
    }
    out = number;
  }
  void Count(const std::string& key, std::int64_t low, std::int64_t high, std::int64_t& out) {
    const nlohmann::json* value = NotNull(key);
    if (value != nullptr) CountOf(key, *value, low, high, out);
  }
  void OptionalCount(const std::string& key, std::int64_t low, std::int64_t high,
                     std::optional<std::int64_t>& out) {
    const nlohmann::json* value = Find(key);
    if (IsNull(key)) out.reset();
    std::int64_t number = 0;
    if (value != nullptr && CountOf(key, *value, low, high, number)) out = number;
  }
  void Counts(const std::string& key, std::int64_t low, std::int64_t high,
              std::vector<std::int64_t>& out) {
    const nlohmann::json* value = NotNull(key);
    if (value == nullptr) return;
    if (!value->is_array() || value->empty()) return Expect(key, "a list of whole numbers");
    out.clear();
    for (const nlohmann::json& element : *value) {
      if (!CountOf(key, element, low, high, out.emplace_back())) return;
    }
  }
  // One of the words; their place in the list.
  std::optional<size_t> Word(const std::string& key, const std::vector<std::string>& words) {
    const nlohmann::json* value = NotNull(key);
    if (value == nullptr) return std::nullopt;
    return WordOf(key, *value, words);
  }
  std::optional<size_t> WordOf(const std::string& key, const nlohmann::json& value,
                               const std::vector<std::string>& words) {
    std::string list;
    for (size_t k = 0; k < words.size(); ++k) {
      if (value == words[k]) return k;
      absl::StrAppend(&list, k == 0 ? "" : k + 1 < words.size() ? ", " : " or ", words[k]);
    }
    Fail(key, absl::StrCat(" is ", value.dump(), ", expected ", list));
    return std::nullopt;
  }

  // In any case of letters; swish is silu.
  void Activation(const std::string& key, std::string& out) {
    const nlohmann::json* value = NotNull(key);
    if (value == nullptr) return;
    nlohmann::json lower = *value;
    if (value->is_string()) lower = absl::AsciiStrToLower(value->get<std::string>());
    const std::vector<std::string> words = {"silu", "swish", "mish", "gelu", "relu"};
    if (const auto k = WordOf(key, lower, words)) out = *k == 1 ? "silu" : words[*k];
  }

  absl::Status Finish(const std::string& class_name) {
    if (!status_.ok()) return status_;
    for (const auto& [key, value] : json_.items()) {
      if (!key.empty() && key[0] == '_') continue;
      if (known_.count(key) > 0) continue;
      std::string list;
      for (const std::string& k : known_) absl::StrAppend(&list, list.empty() ? "" : ", ", k);
      return absl::InvalidArgumentError(absl::StrCat(path_, ": ", key, " is no option of ",
                                                     class_name, ", expected some of ", list));
    }
    return absl::OkStatus();
  }

 private:
  const nlohmann::json* NotNull(const std::string& key) {
    const nlohmann::json* value = Find(key);
    if (IsNull(key)) Expect(key, "a value");
    return value;
  }
  bool CountOf(const std::string& key, const nlohmann::json& value, std::int64_t low,
               std::int64_t high, std::int64_t& out) {
    const double number = value.is_number() ? value.get<double>() : NAN;
    if (!(number >= static_cast<double>(low) && number <= static_cast<double>(high) &&
          number == std::floor(number))) {
      Fail(key, absl::StrCat(" is ", value.dump(), ", expected a whole number from ", low, " to ",
                             high));
      return false;
    }
    out = static_cast<std::int64_t>(number);
    return true;
  }

  const nlohmann::json& json_;
  std::string path_;
  std::set<std::string> known_;
  absl::Status status_;
};

}  // namespace mergeplan::layers
