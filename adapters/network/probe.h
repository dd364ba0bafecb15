#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/network/layout.h"
#include "adapters/network/module.h"
#include "adapters/network/precision.h"
#include "adapters/network/signature.h"

namespace mergeplan::network {

// In what layout and with what numbers a network computes.
struct Arithmetic {
  Layout layout = Layout::kContiguous;
  Precision precision = Precision::kFull;

  bool operator==(const Arithmetic&) const = default;
};
std::string ToString(const Arithmetic& arithmetic);  // "channels_last bf16"

// What there is to choose among where something is left open (no value): both layouts of a network
// with kernels, full and bf16 of one of float32. (fp16 needs a scaled loss and has a narrow range:
// it is for who asks for it.) What is chosen by habit comes first.
std::vector<Arithmetic> Choices(const Module& module, const std::string& dtype,
                                std::optional<Layout> layout, std::optional<Precision> precision);
// The same from words: "auto" leaves it open.
absl::StatusOr<std::vector<Arithmetic>> Choices(const Module& module, const std::string& dtype,
                                                const std::string& layout,
                                                const std::string& precision);

struct Probed {
  Arithmetic chosen;
  std::string text;  // "contiguous full 0.121 s, channels_last full 0.182 s (dropped)"
};

// Tries them on a copy of a network by forward and backward passes of `rows` rows of noise, by
// ProbeRule. The network itself, on `device`, stays as it is, and so does every generator. With one
// choice nothing is timed. The first choice's error where all of them fail. CANCELLED where `stop`
// (may be empty) said so between two passes.
absl::StatusOr<Probed> Probe(const Module& module, const Signature& signature, at::Device device,
                             std::int64_t rows, const std::vector<Arithmetic>& choices,
                             const std::function<bool()>& stop = nullptr);

}  // namespace mergeplan::network
