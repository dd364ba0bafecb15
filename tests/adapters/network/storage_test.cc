// Tensor files and snapshots.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "adapters/network/snapshots.h"
#include "adapters/network/stopping.h"
#include "adapters/network/tensor_file.h"
#include "planner/base/file.h"
#include "tests/adapters/network/support.h"
#include "tests/adapters/support.h"

namespace mergeplan::network {
namespace {

using mergeplan::testing::TemporaryFolder;
using ::testing::HasSubstr;

using testing::Numbers;
using testing::SmallNetwork;
using testing::SmallSignature;
using testing::WritePlain;

TEST(NetworkTensorFile, EveryTypeComesBackBitByBit) {
  const TemporaryFolder folder;
  TensorFile file;
  file.metadata = {{"format", "x"}, {"quote\"d", "line\nbreak \xc3\xa9"}};
  const at::Tensor numbers =
      at::tensor({0.0, -0.0, 1e-320, 1.0 / 3, 1e308, std::numeric_limits<double>::quiet_NaN(),
                  std::numeric_limits<double>::infinity()},
                 at::kDouble);
  for (const auto type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16}) {
    file.tensors.emplace_back(std::string(c10::toString(type)), numbers.to(type));
  }
  for (const auto type : {at::kLong, at::kInt, at::kByte, at::kBool}) {
    file.tensors.emplace_back(std::string(c10::toString(type)), at::arange(5).to(type));
  }
  file.tensors.emplace_back("scalar", at::full({}, 7.0));
  file.tensors.emplace_back("nothing", at::empty({0, 3}));
  file.tensors.emplace_back("turned", at::arange(6).view({2, 3}).t());
  const std::string path = folder.File("a b.safetensors");
  ASSERT_TRUE(WriteTensorFile(file, path).ok());
  const TensorFile back = ReadTensorFile(path).value();
  EXPECT_EQ(back.metadata, file.metadata);
  ASSERT_EQ(back.tensors.size(), file.tensors.size());
  for (const auto& [name, tensor] : file.tensors) {
    const at::Tensor* found = back.Find(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->scalar_type(), tensor.scalar_type());
    EXPECT_TRUE(found->sizes().equals(tensor.sizes()));
    const at::Tensor flat = tensor.contiguous();
    EXPECT_EQ(std::string(static_cast<const char*>(found->const_data_ptr()), found->nbytes()),
              std::string(static_cast<const char*>(flat.const_data_ptr()), flat.nbytes()));
  }
  EXPECT_EQ(back.Find("other"), nullptr);
  file.tensors.emplace_back("scalar", at::full({}, 8.0));
  EXPECT_FALSE(WriteTensorFile(file, path).ok());
  file.tensors.back() = {"complex", at::zeros({1}, at::kComplexFloat)};
  EXPECT_FALSE(WriteTensorFile(file, path).ok());
  EXPECT_TRUE(ReadTensorFile(path).ok());  // the old one stands
}

TEST(NetworkTensorFile, DamageNeverGoesUnnoticed) {
  const TemporaryFolder folder;
  const std::string path = folder.File("t");
  EXPECT_EQ(ReadTensorFile(path).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(
      WriteTensorFile({{{"k", "v"}}, {{"a", at::arange(9)}, {"b", at::ones({2})}}}, path).ok());
  const std::string good = ReadFile(path).value();
  int unnoticed = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    WritePlain(path, good.substr(0, at));
    EXPECT_EQ(ReadTensorFile(path).status().code(), absl::StatusCode::kDataLoss) << at;
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    WritePlain(path, bad);
    const auto read = ReadTensorFile(path);
    // Only a blank at the end of the header, or the hash's own name, may change unnoticed.
    if (read.ok()) ++unnoticed;
    EXPECT_TRUE(read.ok() || absl::IsDataLoss(read.status())) << at;
    EXPECT_FALSE(read.ok() && at >= good.size() - 80) << at;
  }
  EXPECT_LT(unnoticed, 20);
  for (const char* header :
       {R"({"a":{"dtype":"F32","shape":[1e30],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"F8","shape":[1],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})",
        R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,400]}})",
        R"({"a":{"dtype":"F32","shape":[1]}})", R"({"a":3})", R"([1])",
        R"({"__metadata__":{"k":1}})"}) {
    std::string bytes(8, '\0');
    bytes[0] = static_cast<char>(std::string(header).size());
    WritePlain(path, bytes + header + "0000");
    EXPECT_EQ(ReadTensorFile(path).status().code(), absl::StatusCode::kDataLoss) << header;
  }
}

TEST(NetworkSnapshots, CountsReferencesAndDropsWhatNobodyNeeds) {
  const Signature signature = SmallSignature(2);
  const auto like = SmallNetwork(signature, 4, 1);
  const auto store = Snapshots::Create(*like, "", 0).value();
  const std::int64_t a = store->Put(SmallNetwork(signature, 4, 2)).value();
  const std::int64_t b = store->Put(SmallNetwork(signature, 4, 3)).value();
  EXPECT_NE(a, b);
  store->Retain(a);
  store->Release(a);
  EXPECT_EQ(store->references(a), 1);
  const auto held = store->Get(a).value();
  store->Release(a);
  EXPECT_EQ(store->count(), 1);
  EXPECT_EQ(store->Get(a).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Numbers(*held), Numbers(*SmallNetwork(signature, 4, 2)));  // it lives while it is held
  EXPECT_GT(store->Put(SmallNetwork(signature, 4, 4)).value(), b);
  EXPECT_EQ(store->bytes_in_memory(), 2 * BytesOf(*like));
  EXPECT_FALSE(store->Persist().ok());  // no folder
}

TEST(NetworkSnapshots, WithoutAFolderThoseBeyondTheLimitLieInOneThatGoesWithThem) {
  const Signature signature = SmallSignature(2);
  const auto like = SmallNetwork(signature, 4, 1);
  auto store = Snapshots::Create(*like, "", 1).value();
  const std::int64_t a = store->Put(SmallNetwork(signature, 4, 2)).value();
  store->Put(SmallNetwork(signature, 4, 3)).value();
  EXPECT_EQ(store->spilled(), 1);
  const std::string path = store->Path(a);
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(Numbers(**store->Get(a)), Numbers(*SmallNetwork(signature, 4, 2)));
  EXPECT_FALSE(store->Persist().ok());  // it would be gone
  store = nullptr;
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(path).parent_path()));
}

TEST(NetworkSnapshots, BeyondTheLimitTheyLieInFilesAndComeBackBitByBit) {
  const TemporaryFolder folder;
  const Signature signature = SmallSignature(2);
  const auto like = SmallNetwork(signature, 4, 1);
  const auto store = Snapshots::Create(*like, folder.File("x y"), 2 * BytesOf(*like)).value();
  std::vector<std::int64_t> ids;
  std::vector<std::vector<double>> numbers;
  for (int i = 0; i < 6; ++i) {
    auto network = SmallNetwork(signature, 4, 10 + i);
    numbers.push_back(Numbers(*network));
    ids.push_back(store->Put(std::move(network)).value());
    EXPECT_LE(store->bytes_in_memory(), 2 * BytesOf(*like));
  }
  EXPECT_EQ(store->spilled(), 4);
  for (const int i : {0, 5, 2, 2, 4, 1, 3, 0}) {
    EXPECT_EQ(Numbers(**store->Get(ids[i])), numbers[i]) << i;
    EXPECT_LE(store->bytes_in_memory(), 2 * BytesOf(*like));
  }
  store->Release(ids[1]);
  EXPECT_TRUE(std::filesystem::exists(store->Path(ids[1])));
  store->Sweep();
  EXPECT_FALSE(std::filesystem::exists(store->Path(ids[1])));
  // Another store of the same run.
  ASSERT_TRUE(store->Persist().ok());
  const auto next = Snapshots::Create(*like, folder.File("x y"), 0).value();
  ASSERT_TRUE(next->Adopt(ids[3], 2).ok());
  EXPECT_EQ(Numbers(**next->Get(ids[3])), numbers[3]);
  EXPECT_EQ(next->references(ids[3]), 2);
  EXPECT_FALSE(next->Adopt(ids[1], 1).ok());
  EXPECT_GT(next->Put(SmallNetwork(signature, 4, 1)).value(), ids[3]);
  const auto wider =
      Snapshots::Create(*SmallNetwork(signature, 5, 1), folder.File("x y"), 0).value();
  EXPECT_THAT(std::string(wider->Adopt(ids[3], 1).message()), HasSubstr("shape"));
  EXPECT_FALSE(Snapshots::Create(*like, folder.path(), -1).ok());
}

TEST(NetworkStopping, AFallThatEndsIsSeenAndOneThatGoesOnIsNot) {
  const auto curve = [](int n, double rate, double noise) {
    std::vector<double> out;
    unsigned state = 1;
    for (int u = 0; u < n; ++u) {
      state = state * 1664525 + 1013904223;
      out.push_back(1 + std::exp(-rate * u) + noise * (state / 4294967296.0 - 0.5));
    }
    return out;
  };
  EXPECT_EQ(RemainingGain(curve(63, 1, 0), 1000), 1);  // too few
  EXPECT_LT(RemainingGain(curve(400, 0.05, 0), 10000), 1e-3);
  // A quarter of the way down: what is left is most of it. True shares beside.
  for (const int n : {100, 200, 400}) {
    const double rate = 0.004;
    const double made = 1 - std::exp(-rate * n), all = 1 - std::exp(-rate * 2000);
    const double found = RemainingGain(curve(n, rate, 0), 2000);
    EXPECT_GT(found, (all - made) / all - 0.02) << n;  // late, not early
    EXPECT_LT(found, (all - made) / all + 0.3) << n;
    EXPECT_GT(RemainingGain(curve(n, rate, 0.2), 2000), 0.1) << n;
  }
  // A power of the update, which is long in falling: never taken for done, with noise neither.
  for (const double noise : {0.0, 0.3, 1.0}) {
    for (int n = 64; n < 2000; n += 50) {
      std::vector<double> losses = curve(n, 1e9, noise);
      for (int u = 0; u < n; ++u) losses[u] += 5 / std::sqrt(1.0 + u);
      const double begin = 5, made = 5 / std::sqrt(n), all = 5 / std::sqrt(2000);
      // The share of the means over a sixteenth and a quarter, from which the gain is counted.
      EXPECT_GT(RemainingGain(losses, 2000), 0.8 * (made - all) / (begin - all))
          << n << " " << noise;
    }
  }
  // Noise alone does not stop.
  EXPECT_GT(RemainingGain(curve(64, 0.0, 1), 10000), 0.5);
  EXPECT_EQ(RemainingGain(std::vector<double>(80, 2.0), 1000), 1);
  std::vector<double> bad = curve(100, 0.01, 0);
  bad[99] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(RemainingGain(bad, 1000), 1);
  EXPECT_EQ(RemainingGain(curve(100, 0.01, 0), 100), 0);
}

}  // namespace
}  // namespace mergeplan::network
