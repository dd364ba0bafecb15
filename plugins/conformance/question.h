#pragma once

// Inside plugins/conformance only: what plan() is asked.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "mergeplan_plugin.h"
#include "plugins/conformance/text.h"

namespace mergeplan_conformance {

struct Question {
  std::int32_t teacher_steps = 1;
  std::int32_t student_steps = 1;
  std::int32_t dimensions = 5;
  bool weights = false;
  std::int32_t budget_kind = MERGEPLAN_BUDGET_FLOW;
  std::int32_t init = MERGEPLAN_INIT_CHILD;
  std::int32_t reference = MERGEPLAN_REFERENCE_SURROGATE;
  std::int32_t space = MERGEPLAN_SPACE_NARY;
  std::map<std::string, std::string> parameters;
  bool backwards = false;  // the parameters in the opposite order
  Size size = Size::kOurs;

  std::string ToString() const;
};

// The defaults of a plugin's parameters, with `given` in their place.
std::map<std::string, std::string> Values(const mergeplan_plugin& plugin,
                                          const std::map<std::string, std::string>& given);

// Parameters as the border has them.
class ParameterView {
 public:
  ParameterView(const std::map<std::string, std::string>& values, bool backwards, Size size);
  ParameterView(const ParameterView&) = delete;
  ParameterView& operator=(const ParameterView&) = delete;
  std::int32_t count() const { return static_cast<std::int32_t>(pointers_.size()); }
  const mergeplan_parameter* const* data() const { return pointers_.data(); }
  std::string Bytes() const;

 private:
  struct Block {
    mergeplan_parameter parameter;
    unsigned char behind[32];
  };
  std::map<std::string, std::string> values_;
  std::vector<Block> blocks_;
  std::vector<const mergeplan_parameter*> pointers_;
};

// A question as the border has it: a cosine schedule, falling variances.
class QuestionView {
 public:
  explicit QuestionView(const Question& question);
  QuestionView(const QuestionView&) = delete;
  QuestionView& operator=(const QuestionView&) = delete;
  const mergeplan_plan_request* get() const { return &block_.request; }
  // Everything that the pointers reach, to compare.
  std::string Bytes() const;

 private:
  struct Block {
    mergeplan_plan_request request;
    unsigned char behind[128];
  };
  std::vector<double> alpha_, sigma_, variances_, weights_;
  ParameterView parameters_;
  Block block_;
};

// ---- tables of functions

// Put behind a table that is shorter than the plugin's header may have it: counts its calls.
std::int32_t CallsBehindTables();

// A table as a host of another version has it.
template <typename Table>
class Resized {
 public:
  Resized(const Table& table, Size size, std::size_t oldest) {
    Fill(reinterpret_cast<unsigned char*>(&block_), sizeof(block_));
    block_.table = table;
    if (size == Size::kOurs) return;
    if (size == Size::kOldest) {
      // What a later minor appended is not there for a host of 1.0.
      Fill(reinterpret_cast<unsigned char*>(&block_) + oldest, sizeof(block_) - oldest);
    }
    block_.table.struct_size =
        static_cast<std::uint32_t>(size == Size::kOldest ? oldest : sizeof(block_));
  }
  Resized(const Resized&) = delete;
  Resized& operator=(const Resized&) = delete;
  const Table* get() const { return &block_.table; }

 private:
  // With pointers to a function that counts its calls.
  static void Fill(unsigned char* bytes, std::size_t size);
  struct Block {
    Table table;
    unsigned char behind[128];
  };
  Block block_;
};

void FillBehindTable(unsigned char* bytes, std::size_t size);
template <typename Table>
void Resized<Table>::Fill(unsigned char* bytes, std::size_t size) {
  FillBehindTable(bytes, size);
}

}  // namespace mergeplan_conformance
