#include "adapters/network/probe_rule.h"

#include <algorithm>

namespace mergeplan::network {

bool ProbeRule::Goes(const Way& way) const {
  if (way.dropped || way.failed || way.goes > limits_.goes) return false;
  if (way.goes == 0 || spent_ < limits_.seconds) return true;
  // A turn that has begun is ended.
  return std::any_of(ways_.begin(), ways_.end(),
                     [&](const Way& other) { return other.goes > way.goes; });
}

std::optional<int> ProbeRule::Next() const {
  std::optional<int> next;
  for (int k = 0; k < static_cast<int>(ways_.size()); ++k) {
    if (Goes(ways_[k]) && (!next || ways_[k].goes < ways_[*next].goes)) next = k;
  }
  return next;
}

void ProbeRule::Took(double seconds) {
  Way& way = ways_[*Next()];
  std::optional<double>& own = way.goes == 0 ? way.start : way.best;
  const auto least = [&](auto member) {
    std::optional<double> out;
    for (const Way& other : ways_) {
      if (other.*member && (!out || *(other.*member) < *out)) out = other.*member;
    }
    return out;
  };
  own = own ? std::min(*own, seconds) : seconds;
  way.dropped = way.goes == 0 ? *own > limits_.hopeless_start * *least(&Way::start)
                              : way.goes >= 2 && *own > limits_.hopeless * *least(&Way::best);
  ++way.goes;
  spent_ += seconds;
}

void ProbeRule::Failed() { ways_[*Next()].failed = true; }

std::optional<double> ProbeRule::Seconds(int way) const {
  const Way& asked = ways_[way];
  if (asked.failed) return std::nullopt;
  return asked.best ? asked.best : asked.start;
}

std::optional<int> ProbeRule::Chosen() const {
  // Warm-ups are compared with warm-ups only.
  const bool timed = std::any_of(ways_.begin(), ways_.end(), [](const Way& way) {
    return way.best.has_value() && !way.failed;
  });
  const auto time = [&](int way) {
    return ways_[way].failed ? std::nullopt : timed ? ways_[way].best : ways_[way].start;
  };
  std::optional<int> best;
  for (int k = 0; k < static_cast<int>(ways_.size()); ++k) {
    if (time(k) && (!best || *time(k) < *time(*best))) best = k;
  }
  if (best && time(0) && *time(*best) > (1 - limits_.gain) * *time(0)) return 0;
  return best;
}

}  // namespace mergeplan::network
