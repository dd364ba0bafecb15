#include <cstddef>
#include <exception>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "planner/plan/io/node.h"

namespace mergeplan::plan_io {
namespace {

struct Position {
  int line = 1;          // after the last character that was read
  int column = 0;        // of the last character that was read
  int line_of_last = 1;  // of the last character that was read
};

// Hands the text to the parser and counts lines as it goes.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, Position* position) : at_(at), position_(position) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    Advance();
    return *this;
  }
  Cursor operator++(int) {
    Cursor old = *this;
    Advance();
    return old;
  }
  friend bool operator==(const Cursor& a, const Cursor& b) { return a.at_ == b.at_; }

 private:
  void Advance() {
    if (position_->line != position_->line_of_last) position_->column = 0;
    position_->line_of_last = position_->line;
    ++position_->column;
    if (*at_ == '\n') ++position_->line;
    ++at_;
  }

  const char* at_;
  Position* position_;
};

// Builds the tree. When the parser reports a value, the last character read belongs to it, or (for
// a number) ends it, so that `line_of_last` is the line of the value's end.
class Builder {
 public:
  using number_integer_t = std::int64_t;
  using number_unsigned_t = std::uint64_t;
  using number_float_t = double;
  using string_t = std::string;
  using binary_t = nlohmann::json::binary_t;

  Builder(const Position* position, const std::string& file) : position_(position), file_(file) {}

  bool null() { return Put({}); }
  bool boolean(bool value) { return Put(value); }
  bool number_integer(std::int64_t value) { return Put(value); }
  bool number_unsigned(std::uint64_t value) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return Put(static_cast<double>(value));
    }
    return Put(static_cast<std::int64_t>(value));
  }
  bool number_float(double value, const std::string& /*text*/) { return Put(value); }
  bool string(std::string& value) { return Put(std::move(value)); }
  bool binary(binary_t& /*value*/) { return Fail("binary values are not known here"); }

  bool start_object(std::size_t /*size*/) { return Open(Node::Members{}); }
  bool key(std::string& name) {
    if (!open_.back().keys.insert(name).second) {
      return Fail(absl::StrCat("the key \"", name, "\" is given twice"));
    }
    open_.back().key = std::move(name);
    return true;
  }
  bool end_object() { return Close(); }
  bool start_array(std::size_t /*size*/) { return Open(Node::Items{}); }
  bool end_array() { return Close(); }

  bool parse_error(std::size_t /*position*/, const std::string& /*last_token*/,
                   const nlohmann::json::exception& error) {
    std::string what = error.what();
    // "[json.exception.parse_error.101] parse error at line 3, column 5: syntax error …"
    if (const size_t end = what.find("] "); what.starts_with("[json.") && end != what.npos) {
      what.erase(0, end + 2);
    }
    if (what.starts_with("parse error at")) {
      if (const size_t colon = what.find(": "); colon != what.npos) what.erase(0, colon + 2);
    }
    return Fail(absl::StrCat("no valid JSON: ", what));
  }

  Node TakeRoot() { return std::move(root_); }
  absl::Status status() const { return status_; }

 private:
  struct Level {
    Node node;
    std::string key;  // of the member that comes next
    absl::flat_hash_set<std::string> keys;
  };

  bool Fail(const std::string& message) {
    status_ = absl::InvalidArgumentError(
        absl::StrCat(file_, ":", position_->line_of_last, ":", position_->column, ": ", message));
    return false;
  }
  bool Put(decltype(Node::value) value) {
    Attach({std::move(value), position_->line_of_last});
    return true;
  }
  bool Open(decltype(Node::value) value) {
    if (open_.size() >= static_cast<size_t>(kMaxDepth)) {
      return Fail(absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
    }
    open_.push_back({{std::move(value), position_->line_of_last}, {}, {}});
    return true;
  }
  bool Close() {
    Node done = std::move(open_.back().node);
    open_.pop_back();
    Attach(std::move(done));
    return true;
  }
  void Attach(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (auto* items = std::get_if<Node::Items>(&open_.back().node.value)) {
      items->push_back(std::move(node));
    } else {
      std::get<Node::Members>(open_.back().node.value)
          .push_back({std::move(open_.back().key), std::move(node)});
    }
  }

  const Position* position_;
  const std::string& file_;
  Node root_;
  std::vector<Level> open_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Node> ParseJson(std::string_view text, const std::string& file) {
  Position position;
  Builder builder(&position, file);
  try {
    const bool done = nlohmann::json::sax_parse(
        Cursor(text.data(), &position), Cursor(text.data() + text.size(), &position), &builder);
    if (done) return builder.TakeRoot();
    if (!builder.status().ok()) return builder.status();
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": cannot be read: ", error.what()));
  }
  return absl::InvalidArgumentError(absl::StrCat(file, ": no valid JSON"));
}

}  // namespace mergeplan::plan_io
