#include "adapters/network/probe.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/network/probe_rule.h"
#include "adapters/network/trainable.h"
#include "adapters/network/try.h"
#include "adapters/noise/noise.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// One forward and backward pass; its time.
absl::StatusOr<double> Pass(Module& module, const Signature& signature, const at::Tensor& z,
                            Precision precision) {
  return Try("the probe", [&]() -> absl::StatusOr<double> {
    const double begin = Now();
    // Any time will do: it decides no work.
    const at::Tensor time = at::full(
        {z.size(0)}, 1, signature.integer_time ? z.options().dtype(at::kLong) : z.options());
    absl::StatusOr<at::Tensor> out = [&] {
      const Autocast autocast(precision, z.device().type());
      // Nor does any class.
      return module.Forward(z, time,
                            signature.classes > 0
                                ? at::zeros({z.size(0)}, at::TensorOptions().dtype(at::kLong))
                                : at::Tensor());
    }();
    MP_RETURN_IF_ERROR(out.status());
    out->to(z.scalar_type()).square().mean().backward();
    // A device works on behind the program: reading one number waits for all of it.
    MP_ASSIGN_OR_RETURN(const std::vector<at::Tensor> parameters, TrainableParameters(module));
    double sum = 0;
    for (const at::Tensor& parameter : parameters) {
      at::Tensor leaf = parameter;
      if (leaf.grad().defined() && sum == 0) sum = leaf.grad().sum().item<double>();
      leaf.mutable_grad() = at::Tensor();
    }
    return Now() - begin;
  });
}

}  // namespace

std::string ToString(const Arithmetic& arithmetic) {
  return absl::StrCat(std::string(ToString(arithmetic.layout)), " ",
                      std::string(ToString(arithmetic.precision)));
}

std::vector<Arithmetic> Choices(const Module& module, const std::string& dtype,
                                std::optional<Layout> layout, std::optional<Precision> precision) {
  std::vector<Layout> layouts = {layout.value_or(Layout::kContiguous)};
  if (!layout && HasKernels(module)) layouts.push_back(Layout::kChannelsLast);
  std::vector<Precision> precisions = {precision.value_or(Precision::kFull)};
  if (!precision && dtype == "float32") precisions.push_back(Precision::kBfloat16);
  std::vector<Arithmetic> out;
  for (const Precision p : precisions) {
    for (const Layout l : layouts) out.push_back({l, p});
  }
  return out;
}

absl::StatusOr<std::vector<Arithmetic>> Choices(const Module& module, const std::string& dtype,
                                                const std::string& layout,
                                                const std::string& precision) {
  std::optional<Layout> l;
  std::optional<Precision> p;
  if (layout != "auto") {
    MP_ASSIGN_OR_RETURN(l, ParseLayout(layout));
  }
  if (precision != "auto") {
    MP_ASSIGN_OR_RETURN(p, ParsePrecision(precision));
  }
  return Choices(module, dtype, l, p);
}

absl::StatusOr<Probed> Probe(const Module& module, const Signature& signature, at::Device device,
                             std::int64_t rows, const std::vector<Arithmetic>& choices,
                             const std::function<bool()>& stop) {
  Probed out;
  out.chosen = choices.front();
  if (choices.size() == 1) {
    out.text = absl::StrCat(ToString(choices.front()), " (there is nothing else to choose)");
    return out;
  }
  MP_ASSIGN_OR_RETURN(const std::unique_ptr<Module> copy, module.Clone());
  at::Tensor z;
  MP_RETURN_IF_ERROR(Try("the probe", [&] {
    std::vector<std::int64_t> shape = signature.shape;
    shape.insert(shape.begin(), rows);
    z = at::empty(shape, at::TensorOptions().dtype(at::kFloat));
    NoiseStream(0, 0, 0, 0).Fill(z.mutable_data_ptr<float>(), z.numel());
    z = z.to(device, signature.dtype == "float64" ? at::kDouble : at::kFloat);
    return absl::OkStatus();
  }));
  ProbeRule rule(static_cast<int>(choices.size()));
  std::vector<absl::Status> faults(choices.size());
  while (const std::optional<int> next = rule.Next()) {
    if (stop && stop())
      return absl::CancelledError(
          "stopped by a signal in the probe of layout and precision, before the training began; "
          "nothing "
          "was written, run the same command again");
    const Arithmetic& way = choices[*next];
    MP_RETURN_IF_ERROR(SetLayout(*copy, way.layout));
    const absl::StatusOr<double> seconds = Pass(*copy, signature, z, way.precision);
    if (seconds.ok()) {
      rule.Took(*seconds);
    } else {
      faults[*next] = seconds.status();
      rule.Failed();
    }
  }
  const std::optional<int> chosen = rule.Chosen();
  if (!chosen) return faults.front();
  out.chosen = choices[*chosen];
  for (std::size_t k = 0; k < choices.size(); ++k) {
    const int way = static_cast<int>(k);
    const std::optional<double> seconds = rule.Seconds(way);
    absl::StrAppend(&out.text, k == 0 ? "" : ", ", ToString(choices[k]), " ",
                    seconds ? absl::StrFormat("%.3g s", *seconds)
                            : absl::StrCat("fails (", std::string(faults[k].message()), ")"),
                    rule.dropped(way) ? " (dropped)" : "");
  }
  return out;
}

}  // namespace mergeplan::network
