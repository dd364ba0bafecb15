// The step as LibTorch's tensor operations over [merges, batch, d]: for CUDA, and on the CPU to
// check our own loops against. SGD on samples.
#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapters/cases/make_trainer.h"
#include "adapters/linear/batch_sums.h"
#include "adapters/noise/noise.h"
#include "planner/base/status_macros.h"
#include "planner/runs/curve_updates.h"

namespace mergeplan {
namespace {

// How many updates are queued on a device before the host looks at the result.
constexpr std::int64_t kDeviceUpdates = 32;

// About as many numbers as one draw should have: enough to hide the cost of a call.
constexpr std::int64_t kDrawSize = 8192;
constexpr std::int64_t kMaxUpdatesPerDraw = 64;

// A generator of the device's own for one merge.
at::Generator DeviceGenerator(std::uint64_t seed, Range range, const Device& device) {
  std::seed_seq name{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                     static_cast<std::uint32_t>(range.first),
                     static_cast<std::uint32_t>(range.last), std::uint32_t{0x6d706c6e}};
  std::uint32_t words[2];
  name.generate(words, words + 2);
  at::Generator generator =
      at::globalContext().getAcceleratorHooksInterface(at::kCUDA).getNewGenerator(
          static_cast<c10::DeviceIndex>(device.index));
  generator.set_current_seed(static_cast<std::uint64_t>(words[0]) << 32 | words[1]);
  return generator;
}

class TensorTrainer : public Trainer {
 public:
  TensorTrainer(std::vector<MergeTask> tasks, const TrainerOptions& options,
                const Device& on_device_of)
      : options_(options),
        device_(on_device_of),
        merges_(static_cast<std::int64_t>(tasks.size())),
        d_(static_cast<std::int64_t>(tasks.front().start.size())),
        updates_per_draw_(device_.cuda ? 1
                                       : std::clamp<std::int64_t>(kDrawSize / (options.batch * d_),
                                                                  1, kMaxUpdatesPerDraw)),
        curve_updates_(CurveUpdates(options.updates)) {
    const c10::InferenceMode no_autograd;
    const at::Device device =
        device_.cuda ? at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device_.index))
                     : at::Device(at::kCPU);
    const auto number = options.dtype == DType::kFloat32 ? at::kFloat : at::kDouble;
    const at::TensorOptions on_host = at::TensorOptions().dtype(at::kDouble);
    at::Tensor a = at::empty({merges_, 1, d_}, on_host);
    at::Tensor p = at::empty_like(a);
    at::Tensor scale = at::empty_like(a);
    for (std::int64_t i = 0; i < merges_; ++i) {
      const MergeTask& task = tasks[i];
      std::copy(task.start.begin(), task.start.end(), a.mutable_data_ptr<double>() + i * d_);
      std::copy(task.target.begin(), task.target.end(), p.mutable_data_ptr<double>() + i * d_);
      std::copy(task.scale.begin(), task.scale.end(), scale.mutable_data_ptr<double>() + i * d_);
      MergeTask name;
      name.range = task.range;
      tasks_.push_back(std::move(name));
    }
    const at::TensorOptions on_device = at::TensorOptions().dtype(number).device(device);
    a_ = a.to(on_device);
    p_ = p.to(on_device);
    scale_ = scale.to(on_device);
    noise_ =
        at::empty({merges_, updates_per_draw_, options.batch, d_}, on_device.dtype(at::kFloat));
    z_ = at::empty({merges_, options.batch, d_}, on_device);
    error_ = at::empty_like(z_);
    product_ = at::empty_like(z_);
    gradient_ = at::empty_like(a_);
    curve_ = at::zeros({merges_, static_cast<std::int64_t>(curve_updates_.size())},
                       on_device.dtype(at::kDouble));
    if (device_.cuda) {
      for (const MergeTask& task : tasks) {
        generators_.push_back(DeviceGenerator(task.seed, task.range, device_));
      }
    } else {
      for (const MergeTask& task : tasks) {
        streams_.emplace_back(task.seed, task.range.first, task.range.last, kSamplesLane);
      }
    }
  }

  bool done() const override { return updates_ == options_.updates; }
  std::int64_t updates() const override { return updates_; }

  absl::Status Advance() override {
    try {
      const c10::InferenceMode no_autograd;
      const std::int64_t draws = device_.cuda ? kDeviceUpdates : 1;
      for (std::int64_t i = 0; i < draws && !done(); ++i) Draw();
      const at::Tensor finite = at::isfinite(a_).all(/*dim=*/2).to(at::kCPU);
      for (std::int64_t i = 0; i < merges_; ++i) {
        if (!finite[i].item<bool>()) return NotFinite(tasks_[i], updates_, options_);
      }
    } catch (const std::exception& error) {
      return absl::InternalError(absl::StrCat("training step: ", error.what()));
    }
    return absl::OkStatus();
  }

  TrainerState Save() const override {
    TrainerState state;
    state.updates = updates_;
    state.parameters = Numbers(a_);
    for (const at::Generator& generator : generators_) {
      const at::Tensor bytes = generator.get_state();
      const auto* begin = bytes.const_data_ptr<std::uint8_t>();
      state.generators.emplace_back(begin, begin + bytes.numel());
    }
    state.curve = Numbers(curve_);
    return state;
  }

  absl::Status Restore(const TrainerState& state) override {
    MP_RETURN_IF_ERROR(
        CheckState(state, merges_, d_, options_, static_cast<std::int64_t>(generators_.size())));
    try {
      const c10::InferenceMode no_autograd;
      for (size_t s = 0; s < generators_.size(); ++s) {
        const std::vector<std::uint8_t>& bytes = state.generators[s];
        at::Tensor tensor = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
        std::copy(bytes.begin(), bytes.end(), tensor.mutable_data_ptr<std::uint8_t>());
        generators_[s].set_state(tensor);
      }
      SetNumbers(a_, state.parameters);
      SetNumbers(curve_, state.curve);
    } catch (const std::exception& error) {
      return absl::DataLossError(absl::StrCat("training state: ", error.what()));
    }
    updates_ = state.updates;
    curve_next_ = std::lower_bound(curve_updates_.begin(), curve_updates_.end(), updates_) -
                  curve_updates_.begin();
    return absl::OkStatus();
  }

 private:
  static std::vector<double> Numbers(const at::Tensor& tensor) {
    const at::Tensor host = tensor.to(at::kCPU, at::kDouble).contiguous();
    const auto* begin = host.const_data_ptr<double>();
    return {begin, begin + host.numel()};
  }
  static void SetNumbers(at::Tensor& tensor, const std::vector<double>& values) {
    at::Tensor host = at::empty(tensor.sizes(), at::TensorOptions().dtype(at::kDouble));
    std::copy(values.begin(), values.end(), host.mutable_data_ptr<double>());
    tensor.copy_(host);
  }

  // One draw of noise and the updates that it is for.
  void Draw() {
    const std::int64_t count = std::min(updates_per_draw_, options_.updates - updates_);
    for (size_t i = 0; i < generators_.size(); ++i) {
      noise_.select(0, static_cast<std::int64_t>(i)).normal_(0, 1, generators_[i]);
    }
    const std::int64_t size = options_.batch * d_;
    host_noise_.resize(count * size);
    for (size_t i = 0; i < streams_.size(); ++i) {
      streams_[i].FillAt(static_cast<std::uint64_t>(updates_ * size), host_noise_.data(),
                         count * size);
      noise_.select(0, static_cast<std::int64_t>(i))
          .narrow(0, 0, count)
          .copy_(at::from_blob(host_noise_.data(), {count, options_.batch, d_}, at::kFloat));
    }
    for (std::int64_t u = 0; u < count; ++u) Step(noise_.select(1, u));
  }

  // One update of all merges from standard normal numbers [merges, batch, d].
  void Step(const at::Tensor& noise) {
    z_.copy_(noise).mul_(scale_);
    at::mul_out(error_, z_, a_);
    at::mul_out(product_, z_, p_);
    error_.sub_(product_);
    const auto points = static_cast<std::int64_t>(curve_updates_.size());
    if (curve_next_ < points && curve_updates_[curve_next_] == updates_) {
      at::mul_out(product_, error_, error_);
      curve_.select(1, curve_next_).copy_(product_.sum({1, 2}).div_(options_.batch));
      ++curve_next_;
    }
    at::mul_out(product_, error_, z_);
    at::sum_out(gradient_, product_, {1}, /*keepdim=*/true);
    const double rate = options_.lr * options_.recipe.RateFactor(updates_, options_.updates);
    a_.sub_(gradient_, 2 * rate * options_.feature_norm / options_.batch);
    ++updates_;
  }

  const TrainerOptions options_;
  const Device device_;
  const std::int64_t merges_, d_, updates_per_draw_;
  const std::vector<std::int64_t> curve_updates_;
  std::vector<MergeTask> tasks_;           // ranges only
  std::vector<NoiseStream> streams_;       // CPU: one per merge
  std::vector<at::Generator> generators_;  // CUDA: one per merge
  std::vector<float> host_noise_;          // CPU: what one merge has drawn
  at::Tensor a_, p_, scale_, gradient_;    // [merges, 1, d]
  at::Tensor noise_;                       // [merges, updates_per_draw, batch, d], float32
  at::Tensor z_, error_, product_;         // [merges, batch, d]
  at::Tensor curve_;                       // [merges, points], float64
  std::int64_t updates_ = 0;
  std::int64_t curve_next_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> MakeTensorTrainer(std::vector<MergeTask> tasks,
                                                           const TrainerOptions& options,
                                                           const Device& device) {
  try {
    return std::make_unique<TensorTrainer>(std::move(tasks), options, device);
  } catch (const std::exception& error) {  // out of memory, device lost
    return absl::ResourceExhaustedError(
        absl::StrCat("training on ", device.ToString(), ": ", error.what()));
  }
}

}  // namespace mergeplan
