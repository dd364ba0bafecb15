#include "planner/data/pickle.h"

#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"
#include "planner/data/stream.h"

namespace mergeplan {
namespace {

constexpr std::size_t kMostValues = 1'000'000;
constexpr std::size_t kMostNameBytes = std::size_t{64} << 20;  // of all tensors together
constexpr int kDeepest = 32;

struct Value;
// Into the machine's pool, which owns all values: containers may hold each other, or themselves, so
// nothing else could free them, and freeing a deep nest one inside the other would use up the
// stack.
using Ref = Value*;

// What may lie on the machine's stack.
struct Value {
  enum class Kind {
    kMark,
    kNone,
    kNumber,
    kText,
    kGlobal,
    kTuple,
    kList,
    kDict,
    kTensor,
    kStorage
  };
  Kind kind = Kind::kNone;
  std::int64_t number = 0;
  std::string text;        // kText; "module name" of kGlobal
  std::vector<Ref> items;  // kTuple, kList, kStorage; keys and values in turn of kDict
  TorchTensor tensor;      // kTensor
};
using Kind = Value::Kind;

class Machine {
 public:
  Machine(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  absl::StatusOr<Ref> Run() {
    while (true) {
      if (++steps_ > kMostValues) return Wrong("more instructions than any file of tensors has");
      MP_ASSIGN_OR_RETURN(const std::string_view code, Take(1));
      const unsigned char op = static_cast<unsigned char>(code[0]);
      if (op == '.') {
        if (stack_.size() != 1) return Wrong("a stack that is not one value at the end");
        return stack_.back();
      }
      MP_RETURN_IF_ERROR(Step(op));
    }
  }

 private:
  absl::Status Wrong(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(
        where_, ": its pickle has ", what, " (byte ", at_,
        "), expected tensors only: save the tensor itself, torch.save(latents, FILE)"));
  }
  absl::StatusOr<std::string_view> Take(std::size_t size) {
    if (bytes_.size() - at_ < size) return Wrong("no end");
    const std::string_view out = bytes_.substr(at_, size);
    at_ += size;
    return out;
  }
  absl::StatusOr<std::int64_t> Integer(std::size_t size, bool is_signed) {
    MP_ASSIGN_OR_RETURN(const std::string_view raw, Take(size));
    if (size > 8) return Wrong("an integer of more than 8 bytes");
    std::uint64_t value = 0;
    for (std::size_t k = size; k-- > 0;) value = value << 8 | static_cast<unsigned char>(raw[k]);
    if (is_signed && size > 0 && size < 8 && (value >> (8 * size - 1)) != 0) {
      value |= ~std::uint64_t{0} << (8 * size);
    }
    return static_cast<std::int64_t>(value);
  }
  absl::StatusOr<std::string> Line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) return Wrong("a line without end");
    std::string out(bytes_.substr(at_, end - at_));
    at_ = end + 1;
    return out;
  }

  Ref Push(Kind kind) {
    pool_.emplace_back().kind = kind;
    stack_.push_back(&pool_.back());
    return stack_.back();
  }
  absl::Status PushText(std::int64_t size) {
    if (size < 0) return Wrong("a text of negative length");
    MP_ASSIGN_OR_RETURN(const std::string_view text, Take(static_cast<std::size_t>(size)));
    Push(Kind::kText)->text = std::string(text);
    return absl::OkStatus();
  }
  absl::StatusOr<Ref> Pop() {
    if (stack_.empty()) return Wrong("an instruction without operand");
    const Ref out = stack_.back();
    stack_.pop_back();
    return out;
  }
  absl::StatusOr<std::vector<Ref>> PopToMark() {
    std::size_t mark = stack_.size();
    while (mark > 0 && stack_[mark - 1]->kind != Kind::kMark) --mark;
    if (mark == 0) return Wrong("an end without beginning");
    std::vector<Ref> out(stack_.begin() + static_cast<std::ptrdiff_t>(mark), stack_.end());
    stack_.resize(mark - 1);
    return out;
  }
  absl::StatusOr<std::vector<Ref>> PopSome(std::size_t count) {
    if (stack_.size() < count) return Wrong("an instruction without operands");
    std::vector<Ref> out(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return out;
  }
  absl::Status PushTuple(absl::StatusOr<std::vector<Ref>> items) {
    MP_RETURN_IF_ERROR(items.status());
    Push(Kind::kTuple)->items = *std::move(items);
    return absl::OkStatus();
  }
  absl::Status AddTo(Kind kind, absl::StatusOr<std::vector<Ref>> items) {
    MP_RETURN_IF_ERROR(items.status());
    if (stack_.empty() || stack_.back()->kind != kind ||
        (kind == Kind::kDict && items->size() % 2 != 0)) {
      return Wrong("items for what is neither list nor dictionary");
    }
    std::vector<Ref>& into = stack_.back()->items;
    into.insert(into.end(), items->begin(), items->end());
    return absl::OkStatus();
  }
  absl::Status Remember(std::int64_t slot) {
    if (stack_.empty()) return Wrong("nothing to remember");
    memo_[slot] = stack_.back();
    return absl::OkStatus();
  }
  absl::Status Recall(std::int64_t slot) {
    const auto found = memo_.find(slot);
    if (found == memo_.end()) return Wrong("a reference to nothing");
    stack_.push_back(found->second);
    return absl::OkStatus();
  }
  absl::Status Named(const std::string& module, const std::string& name) {
    const std::string full = absl::StrCat(module, " ", name);
    const bool storage = module == "torch" && absl::EndsWith(name, "Storage");
    if (full != "torch._utils _rebuild_tensor_v2" && full != "torch._utils _rebuild_parameter" &&
        full != "collections OrderedDict" && !storage) {
      return Wrong(absl::StrCat("the name ", Printable(module, 60), ".", Printable(name, 60)));
    }
    Push(Kind::kGlobal)->text = full;
    return absl::OkStatus();
  }

  absl::Status Call() {
    MP_ASSIGN_OR_RETURN(const Ref arguments, Pop());
    MP_ASSIGN_OR_RETURN(const Ref function, Pop());
    if (function->kind != Kind::kGlobal || arguments->kind != Kind::kTuple) {
      return Wrong("a call of something else than a known function");
    }
    const std::vector<Ref>& a = arguments->items;
    if (function->text == "collections OrderedDict") {
      Push(Kind::kDict);
      return absl::OkStatus();
    }
    if (function->text == "torch._utils _rebuild_parameter") {
      if (a.empty() || a[0]->kind != Kind::kTensor) return Wrong("a parameter without tensor");
      stack_.push_back(a[0]);
      return absl::OkStatus();
    }
    if (function->text != "torch._utils _rebuild_tensor_v2") return Wrong("a call of a storage");
    if (a.size() < 4 || a[0]->kind != Kind::kStorage || a[1]->kind != Kind::kNumber ||
        a[2]->kind != Kind::kTuple || a[3]->kind != Kind::kTuple) {
      return Wrong("a tensor whose description is of another form");
    }
    // ("storage", type, name, device, size)
    const std::vector<Ref>& s = a[0]->items;
    if (s.size() != 5 || s[1]->kind != Kind::kGlobal || s[2]->kind != Kind::kText ||
        s[4]->kind != Kind::kNumber) {
      return Wrong("a storage whose description is of another form");
    }
    TorchTensor tensor;
    tensor.storage_type = s[1]->text.substr(s[1]->text.find(' ') + 1);
    tensor.storage = s[2]->text;
    tensor.storage_size = s[4]->number;
    tensor.offset = a[1]->number;
    for (const auto& [from, into] :
         {std::pair{a[2], &tensor.shape}, std::pair{a[3], &tensor.strides}}) {
      for (const Ref& item : from->items) {
        if (item->kind != Kind::kNumber) return Wrong("an extent that is no number");
        into->push_back(item->number);
      }
    }
    Push(Kind::kTensor)->tensor = std::move(tensor);
    return absl::OkStatus();
  }

  absl::Status PushNumber(absl::StatusOr<std::int64_t> number) {
    MP_RETURN_IF_ERROR(number.status());
    Push(Kind::kNumber)->number = *number;
    return absl::OkStatus();
  }

  absl::Status Step(unsigned char op) {
    switch (op) {
      case 0x80:  // PROTO
        return Take(1).status();
      case 0x95:  // FRAME
        return Take(8).status();
      case '(':
        Push(Kind::kMark);
        return absl::OkStatus();
      case 'N':
        Push(Kind::kNone);
        return absl::OkStatus();
      case 0x88:  // NEWTRUE
      case 0x89:  // NEWFALSE
        return PushNumber(std::int64_t{op == 0x88});
      case 'K':
        return PushNumber(Integer(1, false));
      case 'M':
        return PushNumber(Integer(2, false));
      case 'J':
        return PushNumber(Integer(4, true));
      case 0x8a: {  // LONG1
        MP_ASSIGN_OR_RETURN(const std::int64_t size, Integer(1, false));
        return PushNumber(Integer(static_cast<std::size_t>(size), true));
      }
      case 'G': {  // a float: beside tensors, of no interest
        MP_RETURN_IF_ERROR(Take(8).status());
        Push(Kind::kNone);
        return absl::OkStatus();
      }
      case 0x8c: {  // SHORT_BINUNICODE
        MP_ASSIGN_OR_RETURN(const std::int64_t size, Integer(1, false));
        return PushText(size);
      }
      case 'X': {
        MP_ASSIGN_OR_RETURN(const std::int64_t size, Integer(4, false));
        return PushText(size);
      }
      case 'c': {
        MP_ASSIGN_OR_RETURN(const std::string module, Line());
        MP_ASSIGN_OR_RETURN(const std::string name, Line());
        return Named(module, name);
      }
      case 0x93: {  // STACK_GLOBAL
        MP_ASSIGN_OR_RETURN(const Ref name, Pop());
        MP_ASSIGN_OR_RETURN(const Ref module, Pop());
        return Named(module->text, name->text);
      }
      case 'q': {
        MP_ASSIGN_OR_RETURN(const std::int64_t slot, Integer(1, false));
        return Remember(slot);
      }
      case 'r': {
        MP_ASSIGN_OR_RETURN(const std::int64_t slot, Integer(4, false));
        return Remember(slot);
      }
      case 0x94:  // MEMOIZE
        return Remember(static_cast<std::int64_t>(memo_.size()));
      case 'h': {
        MP_ASSIGN_OR_RETURN(const std::int64_t slot, Integer(1, false));
        return Recall(slot);
      }
      case 'j': {
        MP_ASSIGN_OR_RETURN(const std::int64_t slot, Integer(4, false));
        return Recall(slot);
      }
      case ')':
        Push(Kind::kTuple);
        return absl::OkStatus();
      case ']':
        Push(Kind::kList);
        return absl::OkStatus();
      case '}':
        Push(Kind::kDict);
        return absl::OkStatus();
      case 't':
        return PushTuple(PopToMark());
      case 0x85:
      case 0x86:
      case 0x87:
        return PushTuple(PopSome(op - 0x84u));
      case 'a':
        return AddTo(Kind::kList, PopSome(1));
      case 'e':
        return AddTo(Kind::kList, PopToMark());
      case 's':
        return AddTo(Kind::kDict, PopSome(2));
      case 'u':
        return AddTo(Kind::kDict, PopToMark());
      case 'Q': {
        MP_ASSIGN_OR_RETURN(const Ref id, Pop());
        if (id->kind != Kind::kTuple || id->items.empty() || id->items[0]->text != "storage") {
          return Wrong("a reference to something else than a storage");
        }
        Push(Kind::kStorage)->items = id->items;
        return absl::OkStatus();
      }
      case 'R':
        return Call();
      default:
        return Wrong(absl::StrCat("the instruction 0x", absl::Hex(op, absl::kZeroPad2)));
    }
  }

  std::string_view bytes_;
  const std::string& where_;
  std::size_t at_ = 0, steps_ = 0;
  std::deque<Value> pool_;  // never moved, so that pointers stay
  std::vector<Ref> stack_;
  std::map<std::int64_t, Ref> memo_;
};

// The tensors below a value. Containers may hold themselves, or one another many times over, hence
// the limits.
class Collector {
 public:
  explicit Collector(const std::string& where) : where_(where) {}

  absl::Status Collect(const Value& value, const std::string& name, int depth) {
    if (depth > kDeepest) return Wrong(absl::StrCat("more than ", kDeepest, " levels of nesting"));
    bytes_ += name.size();
    if (++visited_ > kMostValues || bytes_ > kMostNameBytes) {
      return Wrong("more entries than any file of tensors has");
    }
    const auto below = [&](const std::string& key) {
      return name.empty() ? key : absl::StrCat(name, ".", key);
    };
    if (value.kind == Kind::kTensor) {
      found_.push_back(value.tensor);
      found_.back().name = name;
    } else if (value.kind == Kind::kDict) {
      for (std::size_t k = 0; k + 1 < value.items.size(); k += 2) {
        const Value& key = *value.items[k];
        const std::string text = key.kind == Kind::kNumber ? absl::StrCat(key.number) : key.text;
        MP_RETURN_IF_ERROR(Collect(*value.items[k + 1], below(text), depth + 1));
      }
    } else if (value.kind == Kind::kList || value.kind == Kind::kTuple) {
      for (std::size_t k = 0; k < value.items.size(); ++k) {
        MP_RETURN_IF_ERROR(Collect(*value.items[k], below(absl::StrCat(k)), depth + 1));
      }
    }
    return absl::OkStatus();
  }
  std::vector<TorchTensor> TakeFound() { return std::move(found_); }

 private:
  absl::Status Wrong(const std::string& what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(where_, ": its pickle has ", what,
                     ", expected a tensor or a dictionary of tensors: save the tensor itself, "
                     "torch.save(latents, FILE)"));
  }

  const std::string& where_;
  std::vector<TorchTensor> found_;
  std::size_t visited_ = 0, bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<TorchTensor>> ReadTensorPickle(std::string_view bytes,
                                                          const std::string& where) {
  Machine machine(bytes, where);
  MP_ASSIGN_OR_RETURN(const Ref top, machine.Run());
  Collector collector(where);
  MP_RETURN_IF_ERROR(collector.Collect(*top, "", 0));
  return collector.TakeFound();
}

}  // namespace mergeplan
