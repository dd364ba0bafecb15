#include "tests/oracle/linear_training.h"

#include <algorithm>
#include <cmath>

#include "adapters/linear/embedding.h"
#include "adapters/noise/noise.h"

namespace mergeplan::oracle {
namespace {

double Dot(const double* w, const std::vector<double>& phi) {
  double sum = 0;
  for (size_t i = 0; i < phi.size(); ++i) sum += w[i] * phi[i];
  return sum;
}

}  // namespace

PlainTraining TrainPlainly(const MergeTask& task, const TrainerOptions& options) {
  const Recipe& recipe = options.recipe;
  const auto d = static_cast<std::int64_t>(task.start.size());
  const std::vector<double> phi = recipe.student == StudentKind::kEmbedding
                                      ? SinusoidalEmbedding(task.time)
                                      : std::vector<double>{std::sqrt(options.feature_norm)};
  const auto features = static_cast<std::int64_t>(phi.size());
  const std::int64_t size = d * features;
  // The least weights that give the start: its projection on the feature.
  std::vector<double> w(size);
  const double norm = Dot(phi.data(), phi);
  for (std::int64_t k = 0; k < d; ++k) {
    for (std::int64_t i = 0; i < features; ++i) {
      w[k * features + i] = task.start[k] * phi[i] / norm;
    }
  }
  std::vector<double> average = w, m(size), v(size);
  NoiseStream stream(task.seed, task.range.first, task.range.last, 0);
  std::vector<float> noise(d);
  PlainTraining out;
  for (std::int64_t u = 0; u < options.updates; ++u) {
    if (recipe.draws == Draws::kFixed) stream.Seek(0);
    std::vector<double> gradient(size);
    double loss = 0;
    for (int batch = 0; batch < recipe.accumulate; ++batch) {
      for (int b = 0; b < options.batch; ++b) {
        stream.Fill(noise.data(), d);
        for (std::int64_t k = 0; k < d; ++k) {
          const double z = task.scale[k] * noise[k];
          const double error = Dot(&w[k * features], phi) * z - task.target[k] * z;
          loss += error * error / options.batch / recipe.accumulate;
          for (std::int64_t i = 0; i < features; ++i) {
            gradient[k * features + i] +=
                2 * error * z * phi[i] / options.batch / recipe.accumulate;
          }
        }
      }
    }
    out.curve.push_back(loss);

    if (recipe.clip_norm > 0) {
      double squares = 0;
      for (const double g : gradient) squares += g * g;
      const double factor = std::min(1.0, recipe.clip_norm / (std::sqrt(squares) + 1e-6));
      for (double& g : gradient) g *= factor;
    }
    const double rate = options.lr * recipe.RateFactor(u, options.updates);
    const auto t = static_cast<double>(u + 1);
    for (std::int64_t i = 0; i < size; ++i) {
      if (recipe.optimizer == OptimizerKind::kAdamW) {
        w[i] *= 1 - rate * recipe.weight_decay;
      } else {
        gradient[i] += recipe.weight_decay * w[i];
      }
      if (recipe.optimizer == OptimizerKind::kSgd) {
        m[i] = recipe.momentum * m[i] + gradient[i];
        w[i] -= rate * m[i];
      } else {
        m[i] = recipe.beta1 * m[i] + (1 - recipe.beta1) * gradient[i];
        v[i] = recipe.beta2 * v[i] + (1 - recipe.beta2) * gradient[i] * gradient[i];
        const double mean = m[i] / (1 - std::pow(recipe.beta1, t));
        const double square = v[i] / (1 - std::pow(recipe.beta2, t));
        w[i] -= rate * mean / (std::sqrt(square) + recipe.eps);
      }
      average[i] = recipe.ema * average[i] + (1 - recipe.ema) * w[i];
    }
  }
  for (std::int64_t k = 0; k < d; ++k) {
    out.value.push_back(Dot(&(recipe.ema > 0 ? average : w)[k * features], phi));
  }
  return out;
}

}  // namespace mergeplan::oracle
