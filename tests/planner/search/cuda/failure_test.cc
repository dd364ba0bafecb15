// A device that fails at any moment costs nothing but the device.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "planner/operators/canonical.h"
#include "planner/search/cuda/offload.h"
#include "planner/search/frontier.h"
#include "planner/search/grouping.h"

namespace mergeplan::search {
namespace {

using device::Backend;

// The emulation, until its `calls`-th call; memory is counted.
class Failing : public Backend {
 public:
  Failing(int calls, int& blocks) : calls_(calls), blocks_(blocks) {}

  std::string name() const override { return "a device"; }
  absl::StatusOr<void*> Allocate(std::size_t bytes) override {
    if (absl::Status status = Call(); !status.ok()) return status;
    ++blocks_;
    return backend_->Allocate(bytes);
  }
  void Release(void* memory) override {
    if (memory != nullptr) --blocks_;
    backend_->Release(memory);
  }
  absl::Status Upload(void* to, const void* from, std::size_t bytes) override {
    absl::Status status = Call();
    return status.ok() ? backend_->Upload(to, from, bytes) : status;
  }
  absl::Status Download(void* to, const void* from, std::size_t bytes) override {
    absl::Status status = Call();
    return status.ok() ? backend_->Download(to, from, bytes) : status;
  }
  absl::Status Copy(void* to, const void* from, std::size_t bytes) override {
    absl::Status status = Call();
    return status.ok() ? backend_->Copy(to, from, bytes) : status;
  }
  absl::Status Zero(void* to, std::size_t bytes) override {
    absl::Status status = Call();
    return status.ok() ? backend_->Zero(to, bytes) : status;
  }
  absl::Status Run(const device::TileArgs& args) override { return Launch(args); }
  absl::Status Run(const device::UntileArgs& args) override { return Launch(args); }
  absl::Status Run(const device::PairArgs& args) override { return Launch(args); }
  absl::Status Run(const device::ValueArgs& args) override { return Launch(args); }
  absl::Status Run(const device::CoveredArgs& args) override { return Launch(args); }
  absl::Status Run(const device::AmongArgs& args) override { return Launch(args); }
  absl::Status Run(const device::AppendArgs& args) override { return Launch(args); }
  absl::Status Run(const device::SlackArgs& args) override { return Launch(args); }

 private:
  absl::Status Call() {
    return calls_-- > 0 ? absl::OkStatus() : absl::UnavailableError("it fell off the bus");
  }
  template <class Args>
  absl::Status Launch(const Args& args) {
    absl::Status status = Call();
    return status.ok() ? backend_->Run(args) : status;
  }

  int calls_;
  int& blocks_;
  std::unique_ptr<Backend> backend_ = device::Emulation();
};

TEST(FailingDevice, PassGoesOnWithoutIt) {
  ModelSpec spec;
  spec.schedule = CosineSchedule(7);
  spec.variances = {0.7, 0.9, 1.1, 1.4, 1.6};
  spec.budget = Budget::Flow(1.6);
  const Model model = *Model::Create(std::move(spec));
  const std::optional<Bounds> bounds =
      Bounds::Make(model, DistinctTargets(model), Shape::kNary, 2, false, 1, {});
  ASSERT_TRUE(bounds);
  for (const double slack : {0.0, 0.02}) {
    PassOptions options;
    options.threshold = 2 * model.Objective(*CanonicalPlan(Strategy::kVanilla, 7, 2));
    options.slack = slack * options.threshold;
    Pass plain(model, *bounds, options);
    ASSERT_EQ(plain.Run(), Pass::Outcome::kDone);
    int failed = 0, fine = 0;
    for (int calls = 0; fine == 0; calls = calls < 300 ? calls + 1 : calls + calls / 4) {
      ASSERT_LT(calls, 1000000);
      int blocks = 0;
      {
        Offload offload(std::make_unique<Failing>(calls, blocks), 0, {200, 16, 1 << 14});
        options.offload = &offload;
        Pass pass(model, *bounds, options);
        ASSERT_EQ(pass.Run(), Pass::Outcome::kDone);
        ASSERT_EQ(pass.candidates(), plain.candidates()) << "after " << calls << " calls";
        ASSERT_EQ(pass.kept(), plain.kept()) << "after " << calls << " calls";
        ASSERT_EQ(pass.LowerBound(), plain.LowerBound());
        ASSERT_EQ(pass.BestPlans(3), plain.BestPlans(3));
        if (offload.Used() == "a device") {
          ++fine;
        } else {
          ++failed;
          ASSERT_EQ(offload.Used(),
                    "a device was given up, the search went on without it: it fell off the bus");
        }
      }
      ASSERT_EQ(blocks, 0) << "memory is lost where a device fails after " << calls << " calls";
    }
    EXPECT_GT(failed, 300);
    EXPECT_EQ(fine, 1);
  }
}

}  // namespace
}  // namespace mergeplan::search
