// Which way of computing is chosen, with made-up times.
#include "adapters/network/probe_rule.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mergeplan::network {
namespace {

// Runs a rule against a clock of its own: way k takes start[k], then each[k], seconds. Returns who
// went, in their order.
std::string Follow(ProbeRule* rule, const std::vector<double>& start,
                   const std::vector<double>& each) {
  std::string order;
  while (const auto next = rule->Next()) {
    const auto way = static_cast<std::size_t>(*next);
    const bool first = order.find(static_cast<char>('0' + *next)) == std::string::npos;
    order += static_cast<char>('0' + *next);
    const double time = first ? start[way] : each[way];
    time < 0 ? rule->Failed() : rule->Took(time);
    if (order.size() > 100) break;
  }
  return order;
}

TEST(ProbeRule, TheFastestIsChosenInTurns) {
  ProbeRule rule(3);
  EXPECT_EQ(Follow(&rule, {1, 1, 1}, {0.3, 0.2, 0.25}), "012012012012012012");
  EXPECT_EQ(rule.Chosen(), 1);
  EXPECT_EQ(rule.Seconds(1), 0.2);
  EXPECT_FALSE(rule.dropped(1));
}

TEST(ProbeRule, TheHabitualStaysUnlessTheGainIsWorthIt) {
  ProbeRule little(2), enough(2);
  Follow(&little, {1, 1}, {1.00, 0.96});
  EXPECT_EQ(little.Chosen(), 0);
  Follow(&enough, {1, 1}, {1.00, 0.94});
  EXPECT_EQ(enough.Chosen(), 1);
  // Of two others the faster one counts, however little it is faster.
  ProbeRule three(3);
  Follow(&three, {1, 1, 1}, {1.00, 0.50, 0.49});
  EXPECT_EQ(three.Chosen(), 2);
}

TEST(ProbeRule, TheHopelessAreDropped) {
  // Ten times slower shows after the warm-up; 1.6 times after two timed goes.
  ProbeRule rule(3);
  EXPECT_EQ(Follow(&rule, {1, 10, 1}, {1, 10, 1.6}), "0120202000");
  EXPECT_EQ(rule.Chosen(), 0);
  EXPECT_TRUE(rule.dropped(1));
  EXPECT_TRUE(rule.dropped(2));
  EXPECT_EQ(rule.Seconds(1), 10);
  // Slower and not hopeless: it may be the machine, so it goes on.
  ProbeRule close(2);
  EXPECT_EQ(Follow(&close, {1, 3}, {1, 1.4}), "010101010101");
  // The first one, too.
  ProbeRule habit(2);
  EXPECT_EQ(Follow(&habit, {1, 1}, {2, 1}),
            "010101"
            "111");
  EXPECT_EQ(habit.Chosen(), 1);
}

TEST(ProbeRule, WhatFailsIsNotChosen) {
  ProbeRule rule(2);
  EXPECT_EQ(Follow(&rule, {1, -1}, {1, 0.1}), "0100000");
  EXPECT_EQ(rule.Chosen(), 0);
  EXPECT_EQ(rule.Seconds(1), std::nullopt);
  ProbeRule first(2);
  Follow(&first, {-1, 1}, {1, 1});
  EXPECT_EQ(first.Chosen(), 1);
  ProbeRule none(2);
  Follow(&none, {-1, -1}, {1, 1});
  EXPECT_EQ(none.Chosen(), std::nullopt);
  ProbeRule later(2);
  EXPECT_EQ(Follow(&later, {1, 1}, {1, -1}),
            "0101"
            "0000");
  EXPECT_EQ(later.Chosen(), 0);
}

TEST(ProbeRule, ItEndsInTime) {
  ProbeRule::Limits limits;
  limits.seconds = 5;
  // The turn that has begun is ended, so that all are compared by as many goes.
  ProbeRule rule(2, limits);
  EXPECT_EQ(Follow(&rule, {1, 1}, {3.5, 3}), "0101");
  EXPECT_EQ(rule.Chosen(), 1);
  // Where the warm-ups took it all they count.
  ProbeRule slow(2, limits);
  EXPECT_EQ(Follow(&slow, {9, 5}, {1, 1}), "01");
  EXPECT_EQ(slow.Chosen(), 1);
}

}  // namespace
}  // namespace mergeplan::network
