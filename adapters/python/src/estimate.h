#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "adapters/python/src/spectrum_value.h"

namespace mergeplan::python {

// The arguments of Spectrum.from_latents and from_moments.
struct EstimateArguments {
  std::string basis, name;
  std::optional<std::string> scale;
  bool skip_nonfinite = false, second_pass = true;  // second_pass: the data can be read again
  double confidence = 0.95, off_diagonal = 0.01;
  int threads = 0;
  std::string shrink;
  int bootstrap = 0;
  std::uint64_t seed = 1;
  std::optional<int> directions = std::nullopt;
  bool diagonal_only = false;
};

// All raise: ValueError where an argument or the data is wrong, what the data's own code raises,
// KeyboardInterrupt. The interpreter's lock is free while they compute.

// `open` gives an iterator over arrays each time that it is called; `progress` may be None.
SpectrumValue FromArrays(const nanobind::callable& open, const EstimateArguments& arguments,
                         const nanobind::object& progress);
SpectrumValue FromMoments(const nanobind::object& moments, const EstimateArguments& arguments);
SpectrumValue Merge(const std::vector<const SpectrumValue*>& parts);

}  // namespace mergeplan::python
