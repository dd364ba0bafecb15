#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace mergeplan {
namespace {

// Networks this small are slower with more threads, and far slower where others use the cores.
class OneThread : public ::testing::Environment {
 public:
  void SetUp() override { at::set_num_threads(1); }
};

[[maybe_unused]] const ::testing::Environment* const kOneThread =
    ::testing::AddGlobalTestEnvironment(new OneThread);

}  // namespace
}  // namespace mergeplan
