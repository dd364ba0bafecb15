#include "adapters/runtime/noise.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <array>
#include <random>

#include "absl/strings/str_cat.h"

namespace mergeplan {

struct NoiseStream::Impl {
  at::Generator generator;
};

NoiseStream::NoiseStream(std::uint64_t seed, int first, int last, int lane)
    : impl_(std::make_unique<Impl>(Impl{at::detail::createCPUGenerator(seed)})) {
  // torch's own seeding uses 32 bits and fills the state by one recurrence; with many streams
  // beside each other two could meet. So all 624 words come from the whole name.
  std::seed_seq name{static_cast<std::uint32_t>(seed),  static_cast<std::uint32_t>(seed >> 32),
                     static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last),
                     static_cast<std::uint32_t>(lane),  std::uint32_t{0x6d706c6e}};
  at::mt19937_data_pod words{};
  words.seed_ = seed;
  words.left_ = 1;  // the next draw makes a fresh block of numbers
  words.seeded_ = true;
  words.next_ = 0;
  name.generate(words.state_.begin(), words.state_.end());
  at::mt19937 engine;
  engine.set_data(words);
  impl_->generator.get<at::CPUGeneratorImpl>()->set_engine(engine);
}

NoiseStream::~NoiseStream() = default;
NoiseStream::NoiseStream(NoiseStream&&) noexcept = default;
NoiseStream& NoiseStream::operator=(NoiseStream&&) noexcept = default;

void NoiseStream::Fill(float* out, std::int64_t count) {
  const c10::InferenceMode no_autograd;
  at::from_blob(out, {count}, at::kFloat).normal_(0, 1, impl_->generator);
}

std::vector<std::uint8_t> NoiseStream::Save() const {
  const at::Tensor state = impl_->generator.get_state();
  const auto* bytes = state.const_data_ptr<std::uint8_t>();
  return {bytes, bytes + state.numel()};
}

absl::Status NoiseStream::Restore(absl::Span<const std::uint8_t> state) {
  try {
    at::Tensor tensor = at::empty({static_cast<std::int64_t>(state.size())}, at::kByte);
    std::copy(state.begin(), state.end(), tensor.mutable_data_ptr<std::uint8_t>());
    impl_->generator.set_state(tensor);
  } catch (const c10::Error& error) {
    return absl::DataLossError(absl::StrCat("generator state: ", error.what_without_backtrace()));
  }
  return absl::OkStatus();
}

}  // namespace mergeplan
