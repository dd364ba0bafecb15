// The parts of Pass (planner/search/frontier.h) that hand candidates to a device.
#include <algorithm>
#include <utility>

#include "planner/search/cuda/offload.h"
#include "planner/search/frontier.h"

namespace mergeplan::search {
namespace {

device::Part PartOf(const Frontier& frontier) {
  return {frontier.values.data(), static_cast<std::size_t>(frontier.size())};
}

device::Limits LimitsOf(const Counts& counts) { return {counts.merges, counts.rounds}; }

}  // namespace

bool Pass::PairsWorthDevice(const Place& place) const {
  if (options_.offload == nullptr || !options_.offload->usable()) return false;
  // Hardly any interval is worth it, which the largest frontier tells sooner.
  const double largest = largest_;
  if (!options_.offload->WorthPairs((place.j - place.i) * largest * largest, columns_.size())) {
    return false;
  }
  double pairs = 0;
  for (int m = place.i; m < place.j; ++m) {
    pairs += static_cast<double>(LeftOf(place, m).size()) * nodes_[at_(m + 1, place.j)].size();
  }
  return pairs > 0 && options_.offload->WorthPairs(pairs, columns_.size());
}

// The sources of candidates: pairs that meet behind m at m - i, then what is copied from the nodes
// over [i,j], then all steps at once.
device::Setting Pass::SettingOf(const Place& place, const double* a, const double* b,
                                const std::vector<double>& start) const {
  const int i = place.i, j = place.j;
  const bool merge = place.merge;
  device::Setting setting;
  setting.n = columns_.size();
  setting.a = a;
  setting.b = b;
  setting.sign = columns_.sign.data();
  const auto source = [&](int m, const device::Part& left, const device::Part& right) {
    const CandidateRule rule = RuleFor(model_, tables_, i, m, j, merge, start);
    setting.omg = rule.omg;
    setting.g = rule.g;
    setting.start = rule.start;
    setting.offset = rule.offset;
    setting.sources.push_back(
        {left, right, merge ? device::kMerge : device::kProduct, rule.ju, rule.jv, rule.juv});
  };
  for (int m = i; m < j; ++m) {
    if (place.prefix && place.layer == 0) {
      setting.sources.emplace_back();  // nothing is in front of the first block
    } else {
      source(m, PartOf(LeftOf(place, m)), PartOf(nodes_[at_(m + 1, j)]));
    }
  }
  setting.sources.push_back({PartOf(nodes_[at_(i, j)]), {}, device::kCopyLeft});
  if (merge && i < j && bounds_.all_steps.rows() > 0) {
    source(j - 1, {bounds_.all_steps[at_(i, j - 1)], 1}, {tables_.leaf[j - 1], 1});
  }
  return setting;
}

bool Pass::PairsOnDevice(const Place& place, const double* a, const double* b,
                         const std::vector<std::pair<int, int>>& runs,
                         const std::function<void(int, int, int, double)>& look) {
  double pairs = 0;  // that are left: most may have gone with their left entries
  for (const auto& [m, l] : runs) pairs += nodes_[at_(m + 1, place.j)].size();
  if (!options_.offload->WorthPairs(pairs, columns_.size())) return false;
  const std::vector<double> start =
      place.merge ? tables_.ConstantStart(model_, columns_, place.i, place.j) : none_;
  const device::Setting setting = SettingOf(place, a, b, start);
  std::vector<device::LeftEntry> list;
  list.reserve(runs.size());
  for (const auto& [m, l] : runs) list.push_back({m - place.i, l});
  std::vector<device::FoundPair> found;
  if (!options_.offload->Use([&](device::Engine& engine) {
        return engine.Pairs(
            setting, list, options_.threshold, [this] { return Stopped(); }, found);
      })) {
    return false;
  }
  for (const device::FoundPair& pair : found)
    look(runs[pair.run].first, runs[pair.run].second, pair.right, pair.bound);
  return true;
}

bool Pass::SelectOnDevice(const Place& place, const double* a, const double* b,
                          const std::vector<Candidate>& candidates, std::size_t next,
                          const std::vector<double>& kept_squares, Frontier& frontier) {
  const std::size_t n = columns_.size();
  const std::vector<double> start =
      place.merge ? tables_.ConstantStart(model_, columns_, place.i, place.j) : none_;
  const device::Setting setting = SettingOf(place, a, b, start);
  const int copy = place.j - place.i;
  std::vector<device::FilterCandidate> list;
  list.reserve(candidates.size() - next);
  for (std::size_t k = next; k < candidates.size(); ++k) {
    const Origin& origin = candidates[k].origin;
    device::FilterCandidate one = {origin.middle - place.i, origin.left, origin.right,
                                   LimitsOf(candidates[k].counts)};
    if (origin.kind == Origin::kNode) one = {copy, origin.left, 0, one.limits};
    if (origin.kind == Origin::kAllSteps) one = {copy + 1, 0, 0, one.limits};
    // Where nothing is limited, counts are not kept.
    if (!limited()) one.limits = {0, 0};
    list.push_back(one);
  }
  device::Kept kept;
  kept.values = frontier.values;
  kept.limits.resize(frontier.size(), {0, 0});
  if (limited())
    std::transform(frontier.counts.begin(), frontier.counts.end(), kept.limits.begin(), LimitsOf);
  if (options_.slack > 0) {
    kept.shares = kept_squares;
    kept.losses = frontier.losses;
  }
  std::int64_t counted = 0;
  std::size_t bytes = 0;
  const auto proceed = [&](std::size_t looked, std::size_t more, std::int64_t sixteenths) {
    const std::size_t taken =
        more * n * sizeof(double) + (options_.trace ? looked * sizeof(Record) : 0);
    counted += sixteenths;
    candidates_ += sixteenths;
    bytes += taken;
    bytes_ += taken;
    return !Stopped();
  };
  if (!options_.offload->Use([&](device::Engine& engine) {
        return engine.Filter(setting, options_.slack, list, proceed, kept);
      })) {
    candidates_ -= counted;
    bytes_ -= bytes;
    return false;
  }
  frontier.values = std::move(kept.values);
  if (options_.trace) {
    for (std::size_t k = 0; k < kept.stands.size(); ++k)
      frontier.records.push_back({candidates[next + k].origin, static_cast<int>(kept.stands[k])});
  }
  for (const std::size_t k : kept.added) {
    const Candidate& candidate = candidates[next + k];
    frontier.origins.push_back(candidate.origin);
    frontier.losses.push_back(0);
    if (limited()) frontier.counts.push_back(candidate.counts);
  }
  if (options_.slack > 0 && !kept.losses.empty()) frontier.losses = std::move(kept.losses);
  return true;
}

}  // namespace mergeplan::search
