#include "tests/planner/report/example.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/operators/canonical.h"
#include "planner/operators/law.h"
#include "planner/operators/model.h"

namespace mergeplan {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "example: %s\n", std::string(value.status().message()).c_str());
    std::abort();
  }
  return *std::move(value);
}

// Brightness that fades towards the rim, correlated over a third of the picture.
Matrix PictureCovariance(const std::vector<std::int64_t>& shape, std::vector<double>& mean) {
  const int channels = shape.size() == 3 ? static_cast<int>(shape[0]) : 1;
  const int height = static_cast<int>(shape[shape.size() - (shape.size() > 1 ? 2 : 1)]);
  const int width = shape.size() > 1 ? static_cast<int>(shape.back()) : 1;
  const int d = channels * height * width;
  const double length = std::max(height, width) / 5.0 + 0.5;
  Matrix covariance(d, d);
  mean.resize(d);
  const auto place = [&](int k) {
    const int inside = k % (height * width);
    return std::array<double, 3>{static_cast<double>(k / (height * width)),
                                 static_cast<double>(inside / width),
                                 static_cast<double>(inside % width)};
  };
  const auto amplitude = [&](int k) {
    const auto [c, y, x] = place(k);
    const double u = (y + 0.5) / height - 0.5, v = (x + 0.5) / width - 0.5;
    return 0.72 * std::exp(-3 * (u * u + v * v)) + 0.02 * c;
  };
  for (int i = 0; i < d; ++i) {
    mean[i] = 1.6 * amplitude(i) - 1;
    const auto [ci, yi, xi] = place(i);
    for (int j = 0; j < d; ++j) {
      const auto [cj, yj, xj] = place(j);
      const double distance = std::hypot(yi - yj, xi - xj) / length + (ci == cj ? 0 : 0.3);
      covariance(i, j) = amplitude(i) * amplitude(j) * std::exp(-distance);
    }
  }
  return covariance;
}

Basis MakeBasis(const std::string& name, const std::vector<double>& variances, std::int64_t samples,
                double off_diagonal) {
  Basis basis;
  basis.name = name;
  basis.variances = variances;
  const double relative = 1.96 * std::sqrt(2.0 / static_cast<double>(samples));
  int above = 0;
  for (double v : variances) {
    basis.variances_low.push_back(v * (1 - relative));
    basis.variances_high.push_back(v * (1 + relative));
    above += v > 1;
  }
  const int d = static_cast<int>(variances.size());
  basis.fraction_above_one = static_cast<double>(above) / d;
  basis.off_diagonal_energy = off_diagonal;
  basis.regime = above == 0 ? Regime::kLow : above == d ? Regime::kHigh : Regime::kMixed;
  return basis;
}

std::vector<double> ToVector(const Eigen::VectorXd& v) { return {v.begin(), v.end()}; }

Spectrum MakeSpectrum(const ExampleOptions& options) {
  Spectrum spectrum;
  spectrum.source = "pictures/train-images-idx3-ubyte.gz";
  spectrum.source_sha256 = std::string(64, 'a');
  spectrum.shape = options.shape;
  spectrum.samples = 1500;
  spectrum.scaling.text = options.scaling;
  if (options.scaling != "none") {
    spectrum.scaling.multiply = 2.0 / 255;
    spectrum.scaling.add = -1;
  }
  Matrix covariance = PictureCovariance(options.shape, spectrum.mean);
  const int d = spectrum.dimensions();
  if (!options.variances.empty()) {
    covariance = Eigen::Map<const Eigen::VectorXd>(options.variances.data(), d).asDiagonal();
  }
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(covariance);
  const Matrix vectors = solver.eigenvectors().rowwise().reverse().transpose();
  const Eigen::VectorXd values = solver.eigenvalues().reverse().cwiseMax(0.0);
  spectrum.covariance.assign(covariance.data(), covariance.data() + covariance.size());
  spectrum.vectors.assign(vectors.data(), vectors.data() + vectors.size());
  const double total = covariance.squaredNorm();
  const double off = total - covariance.diagonal().squaredNorm();
  spectrum.diagonal =
      MakeBasis("diagonal", ToVector(covariance.diagonal()), spectrum.samples, off / total);
  spectrum.pca = MakeBasis("pca", ToVector(values), spectrum.samples, 3e-31);
  spectrum.recommended_basis = "pca";
  spectrum.recommended_basis_reason =
      "The covariance is far from diagonal as stored, and the principal axes make it diagonal.";
  return spectrum;
}

}  // namespace

Plan HybridPlan(int teacher_steps, int blocks) {
  PlanBuilder builder(teacher_steps);
  std::vector<Range> tops;
  for (const Range& block : EqualBlocks(teacher_steps, blocks)) {
    if (block.single()) {
      tops.push_back(block);
      continue;
    }
    const int middle = (block.first + block.last) / 2;
    Range rest = PlanBuilder::Step(block.last);
    if (middle + 1 < block.last) {
      std::vector<Range> steps;
      for (int t = middle + 1; t <= block.last; ++t) steps.push_back(PlanBuilder::Step(t));
      rest = builder.Merge(std::move(steps));
    }
    for (int t = rest.first - 1; t >= block.first; --t) {
      rest = builder.Merge({PlanBuilder::Step(t), rest});
    }
    tops.push_back(rest);
  }
  return Must(builder.Finish(tops));
}

Example::Example(const ExampleOptions& options) : spectrum(MakeSpectrum(options)) {
  const int T = options.teacher_steps, N = options.student_steps;
  ModelSpec spec;
  spec.schedule = CosineSchedule(T);
  spec.schedule.data_scale = options.data_scale;
  spec.variances =
      options.basis == "diagonal" ? spectrum.diagonal.variances : spectrum.pca.variances;
  const double largest = *std::max_element(spec.variances.begin(), spec.variances.end());
  spec.budget = Budget::Sgd(
      std::min(0.02, 0.2 / std::max(largest / (options.data_scale * options.data_scale), 1.0)), 320,
      64);
  spec.reference = options.reference;
  const Model model = Must(Model::Create(spec));
  const Model shared =
      Must(model.WithBudget(spec.budget.SharedOver(HybridPlan(T, N).size(), T - N)));

  plan.schedule_spec = "cosine";
  plan.alpha = spec.schedule.alpha;
  plan.sigma = spec.schedule.sigma;
  plan.data_scale = options.data_scale;
  plan.input = "spectrum.toml";
  plan.input_sha256 = std::string(64, 'b');
  plan.basis = options.basis;
  plan.variances = spec.variances;
  plan.budget = spec.budget;
  plan.reference = options.reference;
  plan.plan = HybridPlan(T, N);
  plan.value = model.Value(plan.plan);
  plan.tau.assign(model.tau().begin(), model.tau().end());
  plan.objective = model.Objective(plan.plan);
  plan.objective_surrogate = model.Objective(plan.value, Reference::kSurrogate);
  plan.objective_teacher = model.Objective(plan.value, Reference::kTeacher);
  plan.objective_equal_total_time = shared.Objective(plan.plan);
  plan.lower_bound = 0.994 * plan.objective;
  plan.tolerance = model.Tolerance(plan.value, options.reference);
  plan.status = "within_gap";
  plan.guarantee = "Relaxed frontiers bound every plan from below.";
  plan.seconds = 1.25;
  for (Strategy strategy : kStrategies) {
    const Plan canonical = Must(CanonicalPlan(strategy, T, N));
    const Model equal = Must(model.WithBudget(spec.budget.SharedOver(canonical.size(), T - N)));
    plan.strategies.push_back({std::string(ToString(strategy)), model.Objective(canonical),
                               equal.Objective(canonical), canonical.size()});
  }

  input.title = "Merge schedules for made-up pictures";
  input.spectrum = &spectrum;
  input.plan = &plan;
  input.seed = 7;
  input.spectrum_path = "out/spectrum.toml";
  input.plan_path = "out/plan.toml";
  input.commands = {"mergeplan analyze pictures/train-images-idx3-ubyte.gz -o out/spectrum.toml",
                    "mergeplan plan out/spectrum.toml --teacher-steps 32 --schedule cosine --lr "
                    "0.005 --iterations 320 -o out/plan.toml"};
  std::mt19937_64 bits(11);
  std::normal_distribution<double> normal;
  for (const std::string& name : options.strategies) {
    StrategyResult result;
    result.name = name;
    result.run_folder = absl::StrCat("out/runs/", name);
    result.document = plan;
    const auto strategy = ParseStrategy(name);
    if (strategy.ok()) result.document.plan = Must(CanonicalPlan(*strategy, T, N));
    const Plan& tree = result.document.plan;
    const ValueLaw law = Must(LawOfValue(model, tree));
    result.expected_value = law.mean;
    result.predicted_objective = model.Objective(law.mean, options.reference);
    result.predicted_with_noise = ExpectedObjective(model, law, options.reference);
    double spread2 = 0;
    for (size_t k = 0; k < law.mean.size(); ++k) {
      const double sd = std::sqrt(law.variance[k]);
      result.value_spread.push_back(sd);
      result.value.push_back(law.mean[k] + sd * normal(bits));
      const double weight = model.objective_weights()[k];
      const double off = model.tau()[k] - law.mean[k];
      spread2 += weight * weight * (4 * off * off * sd * sd + 2 * sd * sd * sd * sd);
    }
    result.spread = std::sqrt(spread2);
    result.achieved_objective = model.Objective(result.value, options.reference);
    result.achieved_objective_teacher = model.Objective(result.value, Reference::kTeacher);
    for (const Merge& merge : tree.merges()) {
      const double first = 0.02 * (merge.last - merge.first + 1);
      MergeRecord record;
      record.first = merge.first;
      record.last = merge.last;
      record.round = merge.round;
      record.initial_loss = first;
      record.final_loss = first * 0.031;
      record.updates = 320;
      record.seconds = 0.11;
      record.teacher_calls = 320LL * static_cast<int>(merge.children.size());
      result.merges.push_back(record);
      result.seconds += 0.11;
    }
    result.law_test = LawVerdict{.smallest_p = 0.0004,
                                 .adjusted_p = 0.31,
                                 .level = 0.01,
                                 .hypotheses = static_cast<std::int64_t>(law.mean.size()) * 5,
                                 .rejected = 0,
                                 .draws = 10000};
    input.strategies.push_back(std::move(result));
  }
}

}  // namespace mergeplan
