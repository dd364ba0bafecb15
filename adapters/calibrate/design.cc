#include "adapters/calibrate/design.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "planner/base/status_macros.h"

namespace mergeplan::calibrate {
namespace {

// Up to so many steps everything that costs no training is measured everywhere.
constexpr int kAllSteps = 16;
constexpr int kLevels = 12;
constexpr std::int64_t kFewestUpdates = 16;
constexpr int kCheckpoints = 9;

// `count` numbers from `first` to `last`, evenly, both among them.
std::vector<int> Spread(int first, int last, int count) {
  std::set<int> out;
  if (last < first) return {};
  if (last - first + 1 <= count) count = last - first + 1;
  for (int k = 0; k < count; ++k) {
    out.insert(count == 1 ? first
                          : first + static_cast<int>(std::lround(static_cast<double>(last - first) *
                                                                 k / (count - 1))));
  }
  return {out.begin(), out.end()};
}

std::vector<std::int64_t> Checkpoints(std::int64_t updates) {
  std::set<std::int64_t> out{updates};
  const double ratio = std::pow(static_cast<double>(updates), 1.0 / (kCheckpoints - 1));
  for (int k = 0; k < kCheckpoints; ++k) {
    out.insert(std::clamp<std::int64_t>(std::llround(std::pow(ratio, k)), 1, updates));
  }
  return {out.begin(), out.end()};
}

class PilotList {
 public:
  void Add(Range range, std::vector<Range> trained, bool held_out) {
    if (range.last <= range.first) return;
    const Pilot pilot{range, std::move(trained), 0, held_out};
    const auto same = [&](const Pilot& p) { return p.SameTraining(pilot); };
    if (std::none_of(pilots.begin(), pilots.end(), same)) pilots.push_back(pilot);
  }

  std::vector<Pilot> pilots;
};

// The merges of single steps that are fitted: the corners and ends that the tables need.
void AddFitted(int T, int block, int middle, PilotList& list) {
  std::set<int> spans{2, T, block, middle};
  for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
    if (*span < 2) continue;
    list.Add({T - *span + 1, T}, {}, /*held_out=*/false);
    list.Add({1, *span}, {}, /*held_out=*/false);
  }
  // One between, near the clean end, where merges differ most from their neighbours.
  const int place = 1 + std::max(1, static_cast<int>(std::lround((T - middle) / 4.0)));
  if (place + middle - 1 < T) list.Add({place, place + middle - 1}, {}, /*held_out=*/false);
}

// Merges over merges in the noisiest block. The first one starts from a child that has nearly all
// of it, as the last merge of BOOT does, so that its start is near: it says which part of what is
// left belongs to the merge and which to its start. The others judge.
void AddChains(const DesignQuestion& q, int block, int middle, PilotList& list) {
  const int T = q.teacher_steps, first = T - block + 1;
  if (block < 3) return;
  const Range whole{first, T}, most{first + std::max(1, (block + 4) / 8), T};
  list.Add(most, {}, /*held_out=*/true);
  list.Add(whole, {most}, /*held_out=*/!q.starts_from_child);
  const int half = first + block / 2 - 1;
  const Range clean{first, half}, noisy{half + 1, T}, start{first, first + middle - 1};
  for (const Range& child : {noisy, clean, start}) list.Add(child, {}, /*held_out=*/true);
  // One that stands for a child must have a merge's length.
  const auto over = [&](std::vector<Range> children) {
    std::erase_if(children, [](const Range& r) { return r.single(); });
    if (!children.empty()) list.Add(whole, std::move(children), /*held_out=*/true);
  };
  over({noisy});
  over({clean, noisy});
  over({start});
  // A merge between the measured places.
  const int place = (T - middle) / 2 + 1;
  list.Add({place, place + middle - 1}, {}, /*held_out=*/true);
}

std::string Limit(const Spend& spend) {
  return absl::StrFormat("%d updates, %.4g teacher calls, about %.3g minutes", spend.updates,
                         static_cast<double>(spend.calls), spend.seconds / 60);
}

bool Fits(const Spend& spend, const SpendLimits& limits) {
  return (!limits.updates || spend.updates <= *limits.updates) &&
         (!limits.calls || spend.calls <= *limits.calls) &&
         (!limits.minutes || spend.seconds <= 60 * *limits.minutes);
}

// Merges that judge, but for those that one over two halves needs.
bool LeaveOutOneJudge(std::vector<Pilot>& pilots) {
  int held_out_chains = 0;
  for (const Pilot& p : pilots) held_out_chains += p.held_out && !p.trained.empty() ? 1 : 0;
  // From the end; the last chain stays.
  for (auto p = pilots.rbegin(); p != pilots.rend(); ++p) {
    if (!p->held_out || (!p->trained.empty() && held_out_chains == 1)) continue;
    const bool needed = std::any_of(pilots.begin(), pilots.end(), [&](const Pilot& other) {
      return std::find(other.trained.begin(), other.trained.end(), p->range) != other.trained.end();
    });
    if (needed && p->trained.empty()) continue;
    pilots.erase(std::next(p).base());
    return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<SpendLimits> SpendLimits::Parse(const std::string& text) {
  SpendLimits out;
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  for (const std::string& part : parts) {
    const std::vector<std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    double number = 0;
    const bool positive =
        pair.size() == 2 && absl::SimpleAtod(pair[1], &number) && number > 0 && number < 9e15;
    if (!positive || (pair[0] != "updates" && pair[0] != "calls" && pair[0] != "minutes")) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", part,
                       "\": expected updates=K, calls=C or minutes=M with a positive number, "
                       "separated by commas"));
    }
    const bool given = pair[0] == "updates" ? out.updates.has_value()
                       : pair[0] == "calls" ? out.calls.has_value()
                                            : out.minutes.has_value();
    if (given) {
      return absl::InvalidArgumentError(absl::StrCat("\"", pair[0], "\" stands there twice"));
    }
    if (pair[0] == "updates") out.updates = static_cast<std::int64_t>(number);
    if (pair[0] == "calls") out.calls = static_cast<std::int64_t>(number);
    if (pair[0] == "minutes") out.minutes = number;
  }
  return out;
}

std::vector<int> StartDepths(int steps, int teacher_steps) {
  const int most = steps - 2;
  std::set<int> out{0, std::max(0, most)};
  for (int depth = 1; depth < most; depth = teacher_steps <= kAllSteps ? depth + 1 : 2 * depth) {
    out.insert(depth);
  }
  return {out.begin(), out.end()};
}

Spend SpendOf(const DesignQuestion& q, const Design& design, const Speed& speed) {
  const int T = q.teacher_steps;
  Spend out;
  for (const int end : design.ends) {
    out.calls += q.held_out_rows * (end + 1 + (q.rollout ? T - end : 0));
  }
  out.calls += q.pool_rows * T;
  // Errors from up to three merges that end above a level are carried down from it, each with the
  // trajectory that it belongs to (MeasureGains).
  const std::int64_t gain_rows = std::min(q.held_out_rows, kGainRows);
  const int middle = std::max(3, static_cast<int>(std::lround(std::sqrt(T))));
  for (const int level : design.levels) {
    const std::set<int> ends{std::min(level + 2, T), std::min(level + middle, T), T};
    std::int64_t steps = 0;
    for (const int last : ends) {
      if (last >= level + 2) steps += last - level + 2 * level;
    }
    out.calls += gain_rows * (steps > 0 ? steps : 2 * level);
  }
  out.seconds += static_cast<double>(out.calls) * speed.call;
  if (q.fit_updates > 0) {
    out.updates += q.fit_updates;
    out.calls += q.fit_updates * q.rows;
    if (speed.update) out.seconds += static_cast<double>(q.fit_updates) * speed.update(1);
  }
  for (const Pilot& p : design.pilots) {
    int steps = p.range.last - p.range.first + 1, jumps = 0;
    for (const Range& child : p.trained) {
      steps -= child.last - child.first + 1;
      ++jumps;
    }
    const int rolled = q.rollout ? T - p.range.last : 0;
    const std::int64_t u = design.pilot_updates;
    out.updates += u;
    out.calls += u * q.rows * (steps + rolled);
    if (speed.update) out.seconds += static_cast<double>(u) * speed.update(steps + jumps + rolled);
    const auto measured = static_cast<double>(design.checkpoints.size() + 2 + steps + jumps);
    out.seconds += measured * static_cast<double>(q.held_out_rows) * speed.call;
  }
  return out;
}

absl::StatusOr<Design> MakeDesign(const DesignQuestion& q, const Speed& speed) {
  const int T = q.teacher_steps;
  if (T < 2 || q.student_steps >= T) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is nothing to merge: ", T, " teacher step", T == 1 ? "" : "s", " and ",
                     q.student_steps, " student step", q.student_steps == 1 ? "" : "s",
                     ", expected fewer student steps"));
  }
  Design out;
  out.ends = Spread(2, T, T <= kAllSteps ? T : kLevels);
  out.levels = Spread(1, T - 1, T <= kAllSteps ? T : kLevels);
  const int block = std::max(2, (T + q.student_steps - 1) / q.student_steps);
  const int middle =
      std::clamp(static_cast<int>(std::lround(std::sqrt(block))), 2, std::max(2, block - 1));
  PilotList list;
  AddFitted(T, block, middle, list);
  AddChains(q, block, middle, list);
  std::vector<Pilot> singles = list.pilots;
  out.replicates = std::max(1, q.replicates);
  out.pilot_updates = q.pilot_updates > 0 ? q.pilot_updates : q.iterations;
  const auto assemble = [&] {
    out.pilots = singles;
    for (int replicate = 1; replicate < out.replicates; ++replicate) {
      for (const Pilot& p : singles) {
        if (p.held_out || !p.trained.empty()) continue;
        out.pilots.push_back({p.range, {}, replicate, false});
      }
    }
    out.checkpoints = Checkpoints(out.pilot_updates);
    out.spend = SpendOf(q, out, speed);
    return Fits(out.spend, q.limits);
  };
  const std::string whole = assemble() ? "" : Limit(out.spend);
  if (whole.empty()) return out;
  const auto asked_replicates = out.replicates;
  const auto asked_pilots = singles.size();
  const auto asked_updates = out.pilot_updates;
  bool fits = false;
  while (!fits && out.replicates > 1) {
    --out.replicates;
    fits = assemble();
  }
  while (!fits && LeaveOutOneJudge(singles)) fits = assemble();
  const std::int64_t least =
      std::min(out.pilot_updates, std::max(kFewestUpdates, (q.iterations + 7) / 8));
  while (!fits && out.pilot_updates > least) {
    out.pilot_updates =
        std::max(least, out.pilot_updates - std::max<std::int64_t>(1, out.pilot_updates / 8));
    fits = assemble();
  }
  if (!fits) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the least that fills the model takes ", Limit(out.spend), " (everything: ", whole,
        "), more than the budget; allow more, or ask with fewer --iterations or a smaller "
        "--batch"));
  }
  out.notes.push_back(absl::StrCat("everything would take ", whole, "; within the budget are"));
  if (out.replicates < asked_replicates) {
    out.notes.push_back(absl::StrCat(out.replicates, " training", out.replicates > 1 ? "s" : "",
                                     " of each fitted merge"));
  }
  if (singles.size() < asked_pilots) {
    out.notes.push_back(absl::StrCat(asked_pilots - singles.size(), " fewer merges that judge"));
  }
  if (out.pilot_updates < asked_updates) {
    out.notes.push_back(absl::StrCat(out.pilot_updates, " updates per pilot, so that errors after ",
                                     q.iterations, " are extrapolated"));
  }
  return out;
}

}  // namespace mergeplan::calibrate
