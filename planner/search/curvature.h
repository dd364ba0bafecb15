#pragma once

#include <functional>

#include "planner/operators/model.h"
#include "planner/search/shape.h"

namespace mergeplan::search {

// Bounds on the second derivative of a whole plan's value by the variance lambda.
struct Curvature {
  double least = 0, largest = 0;
};

// Over all plans of the shape with so many blocks and all lambda in [low, high]
// (0 <= low <= high, in the coordinates of the schedule).
//
// Every part's value, first and second derivative are enclosed in intervals, from single steps
// upwards, by interval arithmetic on the recursion
//   product   V = u w            V' = u'w + uw'          V'' = u''w + 2u'w' + uw''
//   merge     V = (1-g) P + g c  V' = (1-g) P' + g c' + (-g')(P - c)
//                                V'' = (1-g) P'' + g c'' + 2(-g')(P' - c') - g''(P - c)
// where over [low, high] the ends of a step's value (which increases and is concave), of gamma
// (which falls and is convex) and of constant starts (as steps) and of their derivatives are at the
// ends of the interval. The union over all ways to make a part encloses what any plan has there.
// Of no use where `stop` said true on the way.
// Rounding: widened by 1e-9 of the largest magnitude at the end. O(T^3 + N T^2).
Curvature BoundCurvature(const Model& model, double low, double high, Shape shape, int blocks,
                         const std::function<bool()>& stop = nullptr);

}  // namespace mergeplan::search
