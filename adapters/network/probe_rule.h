#pragma once

#include <optional>
#include <vector>

namespace mergeplan::network {

// Which of several ways to do the same work is the fastest on this machine, after a few goes at
// each. The rule alone: whoever asks holds the clock.
//
// The ways go in turns, so that they meet the same machine; the first go of each warms up, and the
// fastest of the others counts. A way is dropped whose warm-up took more than `hopeless_start`
// times the shortest one so far, or of whose later goes, two at least, the fastest took more than
// `hopeless` times the fastest so far: one slow go may be another program's. Once `seconds` have
// been spent no other turn begins; where that is after the warm-ups, those count.
class ProbeRule {
 public:
  struct Limits {
    int goes = 5;  // timed ones of each
    double hopeless_start = 4, hopeless = 1.5;
    double gain = 0.05;  // by which the first way must be beaten
    double seconds = 20;
  };

  explicit ProbeRule(int ways) : ProbeRule(ways, Limits()) {}
  ProbeRule(int ways, const Limits& limits) : limits_(limits), ways_(ways) {}

  // Which one is to go; none: enough is known.
  std::optional<int> Next() const;
  // What the go of Next() took, or that it failed.
  void Took(double seconds);
  void Failed();

  // The fastest; the first one where no other saves `gain` of its time. Not before Next() has none;
  // none where all have failed.
  std::optional<int> Chosen() const;
  // What counts; none where it has failed.
  std::optional<double> Seconds(int way) const;
  bool dropped(int way) const { return ways_[way].dropped; }

 private:
  struct Way {
    std::optional<double> start, best;
    int goes = 0;  // the warm-up among them
    bool dropped = false, failed = false;
  };
  bool Goes(const Way& way) const;

  Limits limits_;
  std::vector<Way> ways_;
  double spent_ = 0;
};

}  // namespace mergeplan::network
