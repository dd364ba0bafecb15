// Against the reference data: whole networks with gradients, and a distillation step by step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "adapters/model/compare.h"
#include "adapters/model/npz_tensors.h"
#include "planner/schedule/diffusers_config.h"
#include "tests/adapters/unet/support.h"

namespace mergeplan {
namespace {

using model::NpzTensors;
using testing::Relative;
using testing::SharedDiffusers;

TEST(UNetReference, OutputsAndGradientsAreThoseOfDiffusers) {
  const std::string root = SharedDiffusers("unets");
  SKIP_WITHOUT_DIFFUSERS(root, "unets");
  for (const char* name : {"plain", "attn", "ddpm-like", "class-cond"}) {
    SCOPED_TRACE(name);
    const std::string folder = root + "/" + name;
    auto net = unet::UNet2d::Load(folder);
    ASSERT_TRUE(net.ok()) << net.status();
    const auto differences = model::CompareUNet(**net, folder + "/io.npz");
    ASSERT_TRUE(differences.ok()) << differences.status();
    EXPECT_EQ(differences->size(), 6U);
    for (const model::Difference& d : *differences) {
      EXPECT_TRUE(d.Within(d.dtype == "float64" ? 1e-13 : 1e-5))
          << d.dtype << " " << d.what << " " << d.relative;
      EXPECT_GT(d.largest, 1e-3) << d.what;
    }
  }
}

// Misreadings must be seen: eps moves the output least.
TEST(UNetReference, AMisreadOptionIsBeyondTheTolerance) {
  const std::string folder = SharedDiffusers("unets/plain");
  SKIP_WITHOUT_DIFFUSERS(folder, "unets/plain");
  const auto source = unet::UNet2d::Load(folder);
  ASSERT_TRUE(source.ok()) << source.status();
  for (const auto& [key, value] : {std::pair<const char*, nlohmann::json>("norm_eps", 1e-6),
                                   {"flip_sin_to_cos", false},
                                   {"attention_head_dim", 4}}) {
    nlohmann::json json = (*source)->config().source;
    json[key] = value;
    const auto net = testing::MakeUNet(json);
    for (size_t k = 0; k < net->Parameters().size(); ++k) {
      net->Parameters()[k].second.detach().copy_((*source)->Parameters()[k].second.detach());
    }
    const auto differences = model::CompareUNet(*net, folder + "/io.npz");
    ASSERT_TRUE(differences.ok()) << differences.status();
    EXPECT_GT(differences->front().relative, 1e-5) << key;
  }
}

// One kind of prediction in one precision.
class Teacher {
 public:
  Teacher(const std::string& folder, const std::string& plain, at::ScalarType dtype)
      : dtype_(dtype), suffix_(dtype == at::kDouble ? "_f64" : "") {
    const std::string config = folder + "/scheduler/scheduler_config.json";
    const std::string text = ReadFile(config).value_or("");
    eight_ = ReadDiffusersTables(text, 8, config, {}).value();
    four_ = ReadDiffusersTables(text, 4, config, {}).value();
    npz_ = std::make_unique<NpzTensors>(NpzTensors::Open(folder + "/io.npz").value());
    plain_ = plain;
  }

  at::Tensor Read(const std::string& name) const {
    const auto tensor = npz_->Read(name + suffix_, dtype_);
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    return *tensor;
  }
  std::unique_ptr<unet::UNet2d> Network() const {
    return unet::UNet2d::Load(plain_, {dtype_, at::kCPU}).value();
  }
  static at::Tensor Call(unet::UNet2d& net, const at::Tensor& z, double timestep) {
    const auto out = net.Forward(z, at::full({z.size(0)}, timestep, at::kLong), {});
    EXPECT_TRUE(out.ok()) << out.status();
    return *out;
  }
  // DDIM from one level to another; also the x0 between them.
  std::pair<at::Tensor, at::Tensor> Step(const at::Tensor& z, const at::Tensor& prediction,
                                         const DiffusersTables& tables, int from) const {
    const auto &a = tables.levels[from], &b = tables.levels[from + 1];
    at::Tensor x0, noise;
    if (tables.prediction_type == "epsilon") {
      x0 = (z - a.sigma * prediction) / a.alpha;
      noise = prediction;
    } else if (tables.prediction_type == "sample") {
      x0 = prediction;
      noise = (z - a.alpha * x0) / a.sigma;
    } else {
      x0 = a.alpha * z - a.sigma * prediction;
      noise = a.alpha * prediction + a.sigma * z;
    }
    return {b.alpha * x0 + b.sigma * noise, x0};
  }
  // The student's error on the first merge.
  at::Tensor Error(unet::UNet2d& net) const {
    const at::Tensor z = Read("z")[0];
    const double t = four_.levels[0].timestep;
    return Step(z, Call(net, z, t), four_, 0).first - Read("z")[2];
  }
  const DiffusersTables& eight() const { return eight_; }
  std::vector<std::string> GradientNames() const { return npz_->Names("grad_names").value(); }
  std::vector<std::string> ParameterNames() const { return npz_->Names("param_names").value(); }
  const NpzTensors& npz() const { return *npz_; }

 private:
  at::ScalarType dtype_;
  std::string suffix_, plain_;
  DiffusersTables eight_, four_;
  std::unique_ptr<NpzTensors> npz_;
};

using Case = std::tuple<std::string, at::ScalarType>;
class Distillation : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const std::string root = SharedDiffusers("teacher-ddim"),
                      plain = SharedDiffusers("unets/plain");
    SKIP_WITHOUT_DIFFUSERS(root, "teacher-ddim");
    SKIP_WITHOUT_DIFFUSERS(plain, "unets/plain");
    const auto& [prediction, dtype] = GetParam();
    teacher_ = std::make_unique<Teacher>(root + "/" + prediction, plain, dtype);
    // With sample and v the student is near its target, so that float32 keeps fewer digits.
    tight_ = dtype == at::kDouble ? 1e-11 : 1e-5;
    loose_ = dtype == at::kDouble ? 1e-9 : prediction == "epsilon" ? 1e-5 : 3e-4;
  }

  std::unique_ptr<Teacher> teacher_;
  double tight_ = 0, loose_ = 0;
};

TEST_P(Distillation, TheRolloutIsThatOfDiffusers) {
  const auto net = teacher_->Network();
  const at::Tensor z_expected = teacher_->Read("z"), x0_expected = teacher_->Read("x0"),
                   prediction_expected = teacher_->Read("prediction");
  const c10::AutoGradMode no_gradients(false);
  at::Tensor z = z_expected[0];
  for (int k = 0; k < 8; ++k) {
    const at::Tensor prediction =
        Teacher::Call(*net, z, teacher_->eight().levels[static_cast<size_t>(k)].timestep);
    const auto [next, x0] = teacher_->Step(z, prediction, teacher_->eight(), k);
    EXPECT_LT(Relative(prediction, prediction_expected[k]), tight_) << k;
    EXPECT_LT(Relative(x0, x0_expected[k]), tight_) << k;
    EXPECT_LT(Relative(next, z_expected[k + 1]), tight_) << k;
    z = next;
  }
}

// AdamW's first step from zero moments.
void AdamW(at::Tensor p, const at::Tensor& g) {
  constexpr double kLr = 2e-4;
  p.mul_(1 - kLr * 0.01);
  p.sub_(kLr * g / (g.abs() + 1e-8));
}

TEST_P(Distillation, ATrainingStepIsThatOfDiffusers) {
  const std::vector<std::string> watched = teacher_->GradientNames();
  for (const std::string loss : {"loss_sum", "loss_mean"}) {
    const auto value = [&](const at::Tensor& error) {
      return loss == "loss_sum" ? error.square().sum({1, 2, 3}).mean() : error.square().mean();
    };
    for (const std::string optimizer : {"sgd", "adamw"}) {
      SCOPED_TRACE(loss + " " + optimizer);
      const auto net = teacher_->Network();
      std::map<std::string, at::Tensor> parameters;
      std::vector<std::string> names;
      for (const auto& [name, tensor] : net->Parameters()) {
        parameters.emplace(name, tensor);
        names.push_back(name);
      }
      EXPECT_EQ(names, teacher_->ParameterNames());
      const at::Tensor before = value(teacher_->Error(*net));
      EXPECT_LT(Relative(before, teacher_->Read(loss)), loose_);
      before.backward();
      double squares = 0;
      for (auto& [name, p] : parameters) {
        squares += p.grad().to(at::kDouble).square().sum().item<double>();
      }
      const double norm = teacher_->Read(loss + ".grad_norm").item<double>();
      EXPECT_NEAR(std::sqrt(squares), norm, loose_ * norm);
      for (size_t k = 0; k < watched.size(); ++k) {
        const std::string key = loss + ".grad_" + std::to_string(k);
        EXPECT_LT(Relative(parameters.at(watched[k]).grad(), teacher_->Read(key)), loose_) << key;
      }
      const c10::AutoGradMode no_gradients(false);
      for (auto& [name, p] : parameters) {
        if (optimizer == "sgd") {
          p.sub_(1e-4 * p.grad());
        } else {
          AdamW(p, p.grad());
        }
      }
      const std::string key = loss + "." + optimizer;
      // AdamW's first step is the gradient's sign: in float32 one that is rounding noise may turn
      // (in PyTorch too, between one thread and two), and then moves a weight by twice the rate.
      const bool signs = optimizer == "adamw" && std::get<1>(GetParam()) == at::kFloat;
      for (size_t k = 0; k < watched.size(); ++k) {
        const at::Tensor expected = teacher_->Read(key + "_" + std::to_string(k));
        const at::Tensor off = (parameters.at(watched[k]) - expected).abs();
        EXPECT_LT(off.mean().item<double>(), loose_ * expected.abs().max().item<double>());
        EXPECT_LT(off.max().item<double>(),
                  signs ? 4.1e-4 : loose_ * expected.abs().max().item<double>());
      }
      EXPECT_LT(Relative(value(teacher_->Error(*net)), teacher_->Read(key + "_loss")),
                signs ? 3e-4 : loose_);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Distillation,
                         ::testing::Combine(::testing::Values("epsilon", "sample", "v_prediction"),
                                            ::testing::Values(at::kFloat, at::kDouble)),
                         [](const ::testing::TestParamInfo<Case>& info) {
                           return std::get<0>(info.param) +
                                  (std::get<1>(info.param) == at::kDouble ? "_f64" : "_f32");
                         });

}  // namespace
}  // namespace mergeplan
