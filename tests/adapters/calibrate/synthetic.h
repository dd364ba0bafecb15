#pragma once

#include <cmath>
#include <functional>

#include "adapters/calibrate/design.h"
#include "adapters/calibrate/measurements.h"

namespace mergeplan::calibrate::testing {

// A network whose merges are known: what it would be measured as by a design.
struct Law {
  // Native root mean squares.
  std::function<double(int i, int a, int j)> distance;
  std::function<double(double u)> left;  // r, 1 at 0, in squares: r^2 g^2 + f^2
  std::function<double(int i, int j)> floor;
  std::function<double(int i, int m)> gain;
  double data_scale = 1;
};

inline double Square(double x) { return x * x; }

// `noise(k)`: factor of the k-th error that is measured; by default 1.
inline Measurements Measure(
    const Law& law, const Design& design, int T,
    const std::function<double()>& noise = [] { return 1.0; }) {
  Measurements m;
  m.fingerprint = "law";
  m.teacher_steps = T;
  m.data_scale = law.data_scale;
  m.dimensions = 3;
  m.variances = {1, 0.5, 0.25};
  const double scale = 1 / law.data_scale;
  for (const int last : design.ends) {
    for (const int steps : design.ends) {
      if (steps > last) break;
      const int first = last - steps + 1;
      for (const int depth : StartDepths(steps, T)) {
        m.distances.push_back({first, last - depth, last,
                               Square(scale * law.distance(first, last - depth, last)), 0});
      }
    }
  }
  for (const int level : design.levels) {
    GainProbe probe{level, T, false, {}};
    for (int i = 1; i <= level; ++i) probe.squared.push_back(Square(law.gain(i, level)));
    m.gains.push_back(probe);
  }
  for (const Pilot& pilot : design.pilots) {
    PilotResult r;
    r.pilot = pilot;
    const double start = law.distance(pilot.range.first, pilot.start(), pilot.range.last);
    const double floor = law.floor(pilot.range.first, pilot.range.last);
    r.start = Square(scale * start);
    const double factor = noise();
    for (const std::int64_t u : design.checkpoints) {
      r.updates.push_back(u);
      const double left = law.left(static_cast<double>(u));
      r.error.push_back(Square(scale * factor) * (Square(left * start) + Square(floor)));
      r.standard_error.push_back(0);
    }
    double teacher = r.error.back();
    for (const Range& child : pilot.trained) {
      const double left = law.left(static_cast<double>(design.pilot_updates));
      const double gain =
          child.first > pilot.range.first ? law.gain(pilot.range.first, child.first - 1) : 1.0;
      teacher +=
          Square(scale * gain) * (Square(left * law.distance(child.first, child.last, child.last)) +
                                  Square(law.floor(child.first, child.last)));
    }
    r.teacher = teacher;
    m.pilots.push_back(r);
  }
  return m;
}

inline Design DesignFor(int T, int N = 1, std::int64_t updates = 128, int replicates = 1) {
  DesignQuestion q;
  q.teacher_steps = T;
  q.student_steps = N;
  q.iterations = updates;
  q.rows = 8;
  q.held_out_rows = 16;
  q.replicates = replicates;
  return MakeDesign(q, {}).value();
}

}  // namespace mergeplan::calibrate::testing
