// MS-SSIM and its gradients against golden.json, which golden.py makes with the package
// pytorch-msssim.
#include "adapters/autoencoding/ms_ssim.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "planner/base/file.h"

namespace mergeplan::autoencoding {
namespace {

using ::testing::HasSubstr;

constexpr double kRounding = 1e-10;

// As golden.py has it.
at::Tensor Picture(const std::vector<std::int64_t>& shape, double shift) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  const at::Tensor i = at::arange(count, at::kDouble);
  return (0.5 + 0.3 * (0.37 * i).sin() + 0.15 * (0.011 * i + 3 * shift).sin() +
          0.05 * (i * i * 0.001 + shift).sin())
      .view(shape);
}

double At(const at::Tensor& x, std::int64_t index) { return x[index].item<double>(); }

TEST(MsSsim, EqualsAnIndependentImplementation) {
  const char* source = std::getenv("MERGEPLAN_SOURCE_DIR");
  const std::string path =
      std::string(source != nullptr ? source : ".") + "/tests/adapters/autoencoding/golden.json";
  const auto golden = nlohmann::json::parse(ReadFile(path).value());
  ASSERT_EQ(golden["cases"].size(), 5U);
  for (const auto& c : golden["cases"]) {
    SCOPED_TRACE(c["name"]);
    const std::vector<std::int64_t> shape = c["shape"];
    MsSsimOptions options;
    options.window = c["window"];
    options.scales = c["scales"];
    ASSERT_TRUE(options.Validate(shape[2], shape[3]).ok());
    const at::Tensor a = Picture(shape, 0).requires_grad_();
    const at::Tensor b =
        (0.6 * Picture(shape, 0) + 0.4 * Picture(shape, 0.4)).detach().requires_grad_();
    const at::Tensor values = MsSsim(a, b, options);
    ASSERT_EQ(values.numel(), shape[0]);
    for (std::int64_t k = 0; k < shape[0]; ++k) {
      EXPECT_NEAR(At(values, k), c["values"][k].get<double>(), kRounding);
    }
    values.sum().backward();
    for (const auto& [name, tensor] : {std::pair("a", a), std::pair("b", b)}) {
      SCOPED_TRACE(name);
      const auto& wanted = c["gradients"][name];
      const at::Tensor g = tensor.grad().flatten();
      const at::Tensor k = at::arange(g.numel(), at::kDouble);
      const double squares = wanted["squares"];
      EXPECT_NEAR((g * g).sum().item<double>(), squares, 10 * kRounding * squares);
      EXPECT_NEAR((g * (0.7 * k).cos()).sum().item<double>(), wanted["along"].get<double>(),
                  10 * kRounding * std::sqrt(squares * static_cast<double>(g.numel())));
      const double size = std::sqrt(squares / static_cast<double>(g.numel()));
      const at::Tensor places = at::linspace(0, static_cast<double>(g.numel() - 1), 7, at::kFloat);
      for (int i = 0; i < 7; ++i) {
        const auto place = static_cast<std::int64_t>(places[i].item<float>());
        EXPECT_NEAR(At(g, place), wanted["some"][i].get<double>(), 100 * kRounding * size) << i;
      }
    }
  }
}

TEST(MsSsim, OfAPictureWithItselfIsOne) {
  const at::Tensor a = Picture({2, 3, 32, 40}, 0);
  const MsSsimOptions options = MsSsimOptions::For(32, 40).value();
  const at::Tensor values = MsSsim(a, a, options);
  EXPECT_NEAR(At(values, 0), 1, 1e-12);
  EXPECT_NEAR(At(values, 1), 1, 1e-12);
  EXPECT_LT(At(MsSsim(a, 1 - a, options), 0), 0.5);
  EXPECT_EQ(MsSsim(a.to(at::kFloat), a.to(at::kFloat), options).scalar_type(), at::kFloat);
}

// A picture and its negative: no power of a negative number, and a way out.
TEST(MsSsim, HasAFiniteGradientWhereNothingIsAlike) {
  const at::Tensor a = Picture({1, 1, 32, 32}, 0);
  const at::Tensor b = (1 - a).detach().requires_grad_();
  const at::Tensor value = MsSsim(a, b, MsSsimOptions::For(32, 32).value());
  EXPECT_GT(At(value, 0), 0);
  EXPECT_LT(At(value, 0), 0.05);
  value.sum().backward();
  const at::Tensor g = b.grad();
  EXPECT_TRUE(at::isfinite(g).all().item<bool>());
  EXPECT_GT((g * (a - b)).sum().item<double>(), 0);  // uphill is towards the picture
}

TEST(MsSsim, TakesTheScalesThatFit) {
  const auto choice = [](std::int64_t height, std::int64_t width) {
    const MsSsimOptions options = MsSsimOptions::For(height, width).value();
    return std::pair(options.window, options.scales);
  };
  EXPECT_EQ(choice(32, 32), std::pair(std::int64_t{7}, 3));
  EXPECT_EQ(choice(64, 256), std::pair(std::int64_t{7}, 4));
  EXPECT_EQ(choice(128, 128), std::pair(std::int64_t{7}, 5));
  EXPECT_EQ(choice(176, 200), std::pair(std::int64_t{11}, 5));
  EXPECT_EQ(choice(7, 9), std::pair(std::int64_t{7}, 1));
  EXPECT_THAT(std::string(MsSsimOptions::For(6, 40).status().message()), HasSubstr("window"));
  MsSsimOptions options;
  options.scales = 2;
  EXPECT_TRUE(options.Validate(21, 40).ok());
  const absl::Status small = options.Validate(20, 40);
  EXPECT_THAT(std::string(small.message()), HasSubstr("1 scale fits"));
  options.window = 8;
  EXPECT_FALSE(options.Validate(100, 100).ok());
  options.scales = 3;
  double sum = 0;
  for (const double weight : options.Weights()) sum += weight;
  EXPECT_DOUBLE_EQ(sum, 1);
}

}  // namespace
}  // namespace mergeplan::autoencoding
