#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "planner/device/blocks.h"

namespace mergeplan::device {

// Runs body(at) for every thread of a launch on the processor, as a number that counts from 0.
template <class Body>
absl::Status Emulate(std::int64_t threads, const Body& body) {
  Blocks(static_cast<std::size_t>(threads),
         [&](std::size_t at) { body(static_cast<std::int64_t>(at)); });
  return absl::OkStatus();
}

}  // namespace mergeplan::device
