#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/report/arcs.h"
#include "planner/report/svg.h"
#include "planner/report/text.h"

namespace mergeplan {
namespace {

// What leaves a cell, as bits; the sum picks the character.
enum : unsigned char { kUp = 1, kDown = 2, kLeft = 4, kRight = 8 };

const char* BoxCharacter(unsigned char sides) {
  static constexpr const char* kBox[16] = {" ", "╵", "╷", "│", "╴", "╯", "╮", "┤",
                                           "╶", "╰", "╭", "├", "─", "┴", "┬", "┼"};
  return kBox[sides & 15];
}

const char* AsciiCharacter(unsigned char sides) {
  if (sides == 0) return " ";
  if ((sides & (kLeft | kRight)) == 0) return "|";
  return (sides & (kUp | kDown)) == 0 ? "-" : "+";
}

class TextCanvas {
 public:
  TextCanvas(int rows, int columns)
      : columns_(columns), cells_(static_cast<size_t>(rows) * columns, 0) {}
  unsigned char& At(int row, int column) {
    return cells_[static_cast<size_t>(row) * columns_ + column];
  }

  std::string Row(int row, bool ascii) {
    std::string out;
    for (int column = 0; column < columns_; ++column) {
      const unsigned char sides = At(row, column);
      out += ascii ? AsciiCharacter(sides) : BoxCharacter(sides);
    }
    return out;
  }

 private:
  int columns_;
  std::vector<unsigned char> cells_;
};

std::string WithoutTrailingBlanks(std::string line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

std::string Wrapped(const std::string& text, int columns) {
  std::string out, line;
  int width = 0;
  const std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  for (std::string word : words) {
    int length = CodePoints(word);
    // A word that fits no line is cut; plans in brackets have such words.
    while (length > columns && width == 0) {
      absl::StrAppend(&out, word.substr(0, columns), "\n");
      word = word.substr(columns);
      length = CodePoints(word);
    }
    if (width > 0 && width + 1 + length > columns) {
      absl::StrAppend(&out, line, "\n");
      line.clear();
      width = 0;
    }
    absl::StrAppend(&line, width > 0 ? " " : "", word);
    width += length + (width > 0 ? 1 : 0);
  }
  if (!line.empty()) absl::StrAppend(&out, line, "\n");
  return out;
}

}  // namespace

std::string ArcPlotText(const Plan& plan, int columns, const ArcText& options) {
  columns = std::clamp(columns, 24, 400);
  const int steps = std::max(plan.teacher_steps(), 1);
  const int rounds = plan.rounds();
  const int rows = std::min(rounds, std::max(options.max_rows, 1));
  const int gutter = std::max(5, CodePoints(absl::StrCat(rounds))) + 1;  // "round"
  // A whole number of columns per step where there is room, at most eight.
  const int room = columns - gutter - 1;
  const int per_step = std::min(room / steps, 8);
  const int last = per_step >= 1 ? per_step * steps : room;
  const auto column = [&](int level) {
    return per_step >= 1 ? per_step * level
                         : static_cast<int>(static_cast<double>(level) * room / steps + 0.5);
  };
  // Row 0 is on top: the last round. The line of levels is row `rows`.
  const auto row = [&](int round) {
    return rows - 1 - static_cast<int>(static_cast<long long>(round - 1) * rows / rounds);
  };

  TextCanvas canvas(rows + 1, last + 1);
  int too_short = 0;
  for (const Merge& merge : plan.merges()) {
    const int a = column(merge.first - 1), b = column(merge.last), y = row(merge.round);
    if (a >= b) {
      ++too_short;
      continue;
    }
    canvas.At(y, a) |= kRight | kDown;
    canvas.At(y, b) |= kLeft | kDown;
    for (int x = a + 1; x < b; ++x) canvas.At(y, x) |= kLeft | kRight;
    for (int below = y + 1; below < rows; ++below) {
      canvas.At(below, a) |= kUp | kDown;
      canvas.At(below, b) |= kUp | kDown;
    }
    canvas.At(rows, a) |= kUp;
    canvas.At(rows, b) |= kUp;
    if (merge.children.size() >= 3 && per_step >= 2) {
      for (size_t k = 0; k + 1 < merge.children.size(); ++k) {
        canvas.At(y, column(plan.range(merge.children[k]).last)) |= kDown;
      }
    }
  }
  for (int x = 0; x <= last; ++x) {
    canvas.At(rows, x) |= (x > 0 ? kLeft : 0) | (x < last ? kRight : 0);
  }

  std::string out;
  const auto line = [&](const std::string& label, const std::string& text) {
    const std::string blanks(std::max(0, gutter - 1 - CodePoints(label)), ' ');
    absl::StrAppend(&out, WithoutTrailingBlanks(absl::StrCat(blanks, label, " ", text)), "\n");
  };
  if (rows > 0) line("round", "");
  for (int y = 0; y < rows; ++y) {
    // The last round that is drawn on this row.
    int round = rounds - static_cast<int>(static_cast<long long>(y) * rounds / rows);
    while (row(round) > y) ++round;
    while (round < rounds && row(round + 1) == y) ++round;
    line(absl::StrCat(round), canvas.Row(y, options.ascii));
  }
  line("level", canvas.Row(rows, options.ascii));

  std::string labels(last + 1, ' ');
  const auto put = [&](int level) {
    const std::string text = absl::StrCat(level);
    const int start = std::clamp(column(level) - static_cast<int>(text.size()) / 2, 0,
                                 std::max(0, last + 1 - static_cast<int>(text.size())));
    // A blank on either side, else the label is left out.
    for (int x = start - 1; x <= start + static_cast<int>(text.size()); ++x) {
      if (x >= 0 && x <= last && labels[x] != ' ') return;
    }
    if (labels.size() < start + text.size()) labels.resize(start + text.size(), ' ');
    labels.replace(start, text.size(), text);
  };
  put(steps);
  put(0);
  for (double tick : Scale::Linear(0, steps, 0, 1).Ticks(8)) {
    if (tick == static_cast<int>(tick)) put(static_cast<int>(tick));
  }
  line("", labels);

  out += "\n";
  out += Wrapped("Level 0 is clean, the last is noise. " + DescribePlan(plan), columns);
  if (rounds > rows) {
    out += Wrapped(absl::StrCat("The ", rounds, " rounds share ", Count(rows, "row"),
                                "; each is labelled with its last."),
                   columns);
  }
  if (too_short > 0) {
    out += Wrapped(absl::StrCat(Count(too_short, "merge"), " shorter than a column ",
                                too_short == 1 ? "is" : "are", " not drawn."),
                   columns);
  }
  return out;
}

}  // namespace mergeplan
