#pragma once

#include <cstddef>

#include "planner/mixture/step_tables.h"

// The inner loops of mixture steps, on tiles: kTileRows rows side by side, coordinate j of row b at
// [j * kTileRows + b], so that every loop runs over rows. A row's result does not depend on the
// rows beside it. For this folder only.
namespace mergeplan::mixture {

inline constexpr std::size_t kTileRows = 16;

// Numbers of scratch that every function below needs.
std::size_t TileScratch(const StepTables& step);

// out = sum_k r_k(z) (A_k z + b_k). `out` is d x kTileRows and must not overlap z.
void StepTile(const StepTables& step, const double* z, double* out, double* scratch);

// The weights r_k(z) and log densities; r is K x kTileRows, top and sum are kTileRows each: the
// log density is top + log(sum).
void WeightTile(const StepTables& step, const double* z, double* r, double* top, double* sum,
                double* scratch);

// The step as above, and the derivative of the step along `direction`, both d x kTileRows. Nothing
// overlaps.
void DerivativeTile(const StepTables& step, const double* z, const double* direction, double* out,
                    double* derivative, double* scratch);

}  // namespace mergeplan::mixture
