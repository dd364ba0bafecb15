#include "adapters/experts/level.h"

#include <algorithm>
#include <limits>

#include "adapters/experts/dense.h"

namespace mergeplan::experts {

template <typename T>
LevelNetwork<T>::LevelNetwork(const NetworkShape& shape, double time) : shape_(shape) {
  SetTime(time);
  const std::size_t d = shape.dimensions, E = shape.experts, H = shape.hidden;
  const std::size_t padded = (E + kExpertBlock - 1) / kExpertBlock * kExpertBlock;
  hidden_.resize(H);
  w1_.resize(H * d);
  w2_.assign(H * padded, T{0});
  b2_.assign(padded, -std::numeric_limits<T>::infinity());
  expert_.resize(shape.outputs());
  expert_hidden_.resize(H);
  pull_.resize(H);
  scaled_.resize(SumLayout::Of(d, E, H).count);
}

template <typename T>
void LevelNetwork<T>::SetTime(double time) {
  const std::vector<double> embedding = Embedding(shape_.embedding, time);
  embedding_.assign(embedding.begin(), embedding.end());
}

template <typename T>
void LevelNetwork<T>::Prepare(const T* parameters) {
  const std::size_t d = shape_.dimensions, E = shape_.experts, H = shape_.hidden;
  const std::size_t M = shape_.embedding, padded = b2_.size();
  const T* w1 = parameters + shape_.gate_w1();
  Multiply(w1 + d, H, M, d + M, embedding_.data(), parameters + shape_.gate_b1(), hidden_.data());
  for (std::size_t h = 0; h < H; ++h) {
    std::copy_n(w1 + h * (d + M), d, w1_.data() + h * d);
  }
  const T* w2 = parameters + shape_.gate_w2();
  for (std::size_t e = 0; e < E; ++e) {
    for (std::size_t h = 0; h < H; ++h) w2_[h * padded + e] = w2[e * H + h];
    b2_[e] = parameters[shape_.gate_b2() + static_cast<std::int64_t>(e)];
  }
  Multiply(parameters + shape_.expert_w1(), H, M, M, embedding_.data(),
           parameters + shape_.expert_b1(), expert_hidden_.data());
  // Not a maximum: a NaN has to pass.
  for (T& unit : expert_hidden_) unit = unit < 0 ? T{0} : unit;
  Multiply(parameters + shape_.expert_w2(), expert_.size(), H, H, expert_hidden_.data(),
           parameters + shape_.expert_b2(), expert_.data());
  for (std::size_t e = 0; e < E; ++e) {
    for (std::size_t i = 0; i < d; ++i) expert_[e * (d * d + d) + i * d + i] += 1;
  }
}

template <typename T>
LevelTables<T> LevelNetwork<T>::tables() const {
  LevelTables<T> tables;
  tables.d = shape_.dimensions;
  tables.E = shape_.experts;
  tables.H = shape_.hidden;
  tables.padded = b2_.size();
  tables.hidden = hidden_.data();
  tables.w1 = w1_.data();
  tables.w2 = w2_.data();
  tables.b2 = b2_.data();
  tables.expert = expert_.data();
  return tables;
}

template <typename T>
void LevelNetwork<T>::AddGradient(const T* parameters, const T* sums, T scale, T* gradient) {
  const std::size_t d = shape_.dimensions, E = shape_.experts, H = shape_.hidden;
  const std::size_t M = shape_.embedding, padded = b2_.size();
  const SumLayout at = SumLayout::Of(d, E, H);
  for (std::size_t i = 0; i < at.count; ++i) scaled_[i] = scale * sums[i];

  const T* hidden = scaled_.data() + at.hidden;
  T* w1 = gradient + shape_.gate_w1();
  AddOuter(hidden, embedding_.data(), H, M, d + M, w1 + d);
  for (std::size_t h = 0; h < H; ++h) Add(scaled_.data() + at.w1 + h * d, d, w1 + h * (d + M));
  Add(hidden, H, gradient + shape_.gate_b1());
  T* w2 = gradient + shape_.gate_w2();
  for (std::size_t e = 0; e < E; ++e) {
    for (std::size_t h = 0; h < H; ++h) w2[e * H + h] += scaled_[at.w2 + h * padded + e];
  }
  Add(scaled_.data() + at.b2, E, gradient + shape_.gate_b2());

  const T* expert = scaled_.data() + at.expert;
  const std::size_t outputs = expert_.size();
  AddOuter(expert, expert_hidden_.data(), outputs, H, H, gradient + shape_.expert_w2());
  Add(expert, outputs, gradient + shape_.expert_b2());
  MultiplyTransposed(parameters + shape_.expert_w2(), outputs, H, H, expert, pull_.data());
  for (std::size_t h = 0; h < H; ++h) pull_[h] = expert_hidden_[h] > 0 ? pull_[h] : T{0};
  AddOuter(pull_.data(), embedding_.data(), H, M, M, gradient + shape_.expert_w1());
  Add(pull_.data(), H, gradient + shape_.expert_b1());
}

template class LevelNetwork<float>;
template class LevelNetwork<double>;

}  // namespace mergeplan::experts
