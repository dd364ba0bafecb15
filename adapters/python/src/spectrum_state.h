#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "adapters/python/src/arrays.h"
#include "adapters/python/src/spectrum_value.h"

namespace mergeplan::python {

// What pickle keeps of a basis, of leading directions (the basis, errors, vectors, share) and of a
// spectrum, as tuples that nanobind turns into Python's.
using BasisState =
    std::tuple<std::string, std::vector<double>, std::vector<double>, std::vector<double>, double,
               std::string, std::vector<double>, std::vector<double>>;
using LeadingState = std::tuple<BasisState, std::vector<double>, NumpyArray, double>;
using DataState =
    std::tuple<std::string, std::string, std::vector<std::int64_t>, std::int64_t, std::int64_t,
               std::string, double, std::string, double, NumpyArray, NumpyArray, NumpyArray,
               std::vector<BasisState>, std::string, std::string, std::optional<LeadingState>>;
using SpectrumState =
    std::tuple<std::string, std::optional<std::vector<double>>, std::optional<DataState>>;

LeadingState StateOf(const LeadingDirections& leading);
LeadingDirections FromState(LeadingState state);
SpectrumState StateOf(const SpectrumValue& value);
// ValueError where the state is none of a spectrum.
SpectrumValue FromState(SpectrumState state);

}  // namespace mergeplan::python
