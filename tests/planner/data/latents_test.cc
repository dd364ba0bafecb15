// Arrays inside tars, one sample in each: as WebDataset keeps latents.
#include "planner/data/latents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/planner/data/writers.h"

namespace mergeplan {
namespace {

using namespace mergeplan::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string NpyOf(const std::vector<float>& values, const std::string& shape = "(2, 1, 2)") {
  return Npy("<f4", shape, Raw(values));
}

// What torch.save writes of a tensor of shape [2, 2].
std::string PthOf(const std::vector<float>& values) {
  const auto text = [](const std::string& t) {
    return absl::StrCat("X", Raw(std::vector<std::uint32_t>{static_cast<std::uint32_t>(t.size())}),
                        t);
  };
  const std::string pickle = absl::StrCat(
      "\x80\x02", "ctorch._utils\n_rebuild_tensor_v2\n((", text("storage"),
      "ctorch\nFloatStorage\n", text("0"), text("cpu"), "K\x04tQK", std::string(1, '\0'),
      "K\x02K\x02\x86K\x02K\x01\x86\x89", "ccollections\nOrderedDict\n)RtR.");
  return Zip({{"x/data.pkl", pickle}, {"x/byteorder", "little"}, {"x/data/0", Raw(values)}});
}

TEST(TarLatents, AreReadInOrder) {
  const TempFolder folder;
  const std::string npy = folder.Write("a.tar", Tar({{"0001.json", "{}"},
                                                     {"0001.npy", NpyOf({1, 2, 3, 4})},
                                                     {"0002.npy", NpyOf({5, 6, 7, 8.5})}}));
  const auto rows = ReadAll(npy);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->shape, ElementsAre(2, 1, 2));
  EXPECT_THAT(rows->values, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8.5));
  EXPECT_FALSE(rows->is_pixels);
  EXPECT_TRUE(
      ReadAll(folder.Write("u.tar", Tar({{"1.npy", Npy("|u1", "(1, 2)", "ab")}})))->is_pixels);
  const std::string pth = folder.Write(
      "b.tar", Tar({{"k/1.pth", PthOf({1, 2, 3, 4})}, {"k/2.pth", PthOf({-1, -2, -3, -4})}}));
  const auto tensors = ReadAll(pth);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_THAT(tensors->shape, ElementsAre(2, 2));
  EXPECT_THAT(tensors->values, ElementsAre(1, 2, 3, 4, -1, -2, -3, -4));
  // Fortran order, one number, half precision.
  EXPECT_THAT(
      ReadAll(
          folder.Write("f.tar", Tar({{"1.npy", Npy("<f4", "(2, 2)",
                                                   Raw(std::vector<float>{1, 2, 3, 4}), true)}})))
          ->values,
      ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(ReadAll(folder.Write("s.tar", Tar({{"1.npy", NpyOf({7}, "()")}})))->shape,
              ElementsAre(1));
  EXPECT_THAT(
      ReadAll(folder.Write("h.tar",
                           Tar({{"1.npy", Npy("<f2", "(2,)",
                                              Raw(std::vector<std::uint16_t>{0x3C00, 0xC000}))}})))
          ->values,
      ElementsAre(1, -2));
}

TEST(TarLatents, SeveralKindsAreToldApartByTheEnding) {
  const TempFolder folder;
  const std::string mixed = folder.Write("m.tar", Tar({{"1.latent.npy", NpyOf({1, 2, 3, 4})},
                                                       {"1.text.npy", NpyOf({9}, "(1,)")},
                                                       {"1.pth", PthOf({4, 3, 2, 1})},
                                                       {"2.latent.npy", NpyOf({5, 6, 7, 8})},
                                                       {"2.text.npy", NpyOf({8}, "(1,)")},
                                                       {"2.pth", PthOf({1, 1, 1, 1})}}));
  EXPECT_THAT(ReadAll(mixed).status().message(), HasSubstr("--array latent.npy"));
  EXPECT_THAT(ReadAll(mixed, {"latent.npy"})->values, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(ReadAll(mixed, {".text.npy"})->values, ElementsAre(9, 8));
  EXPECT_THAT(ReadAll(mixed, {"pth"})->values, ElementsAre(4, 3, 2, 1, 1, 1, 1, 1));
  EXPECT_THAT(ReadAll(mixed, {"jpg"}).status().message(), HasSubstr("whose name ends in .jpg"));
}

TEST(TarLatents, DamageIsNamed) {
  const TempFolder folder;
  const auto says = [&](const std::string& name, const std::string& bytes) {
    const absl::Status status =
        ReadAll(folder.Write("x.tar", Tar({{"0" + name, NpyOf({1, 2, 3, 4})}, {name, bytes}})),
                {"npy"})
            .status();
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  };
  EXPECT_THAT(says("a.npy", "text"), HasSubstr("member a.npy: starts with 'text'"));
  const std::string whole = NpyOf({1, 2, 3, 4});
  EXPECT_THAT(says("a.npy", whole.substr(0, whole.size() - 1)), HasSubstr("member a.npy"));
  EXPECT_THAT(says("a.npy", whole + "x"), HasSubstr("member a.npy"));
  EXPECT_THAT(says("a.npy", ""), HasSubstr("member a.npy"));
  EXPECT_THAT(says("a.npy", Zip({{"b.npy", whole}})), HasSubstr("none that torch.save writes"));
  EXPECT_THAT(says("a.npy", NpyOf({1, std::numeric_limits<float>::infinity(), 3, 4})),
              HasSubstr("NaN or infinite"));
  SamplesOptions skip;
  skip.skip_nonfinite = true;
  const auto rest = ReadAll(folder.Write("n.tar", Tar({{"1.npy", NpyOf({1, std::nanf(""), 3, 4})},
                                                       {"2.npy", NpyOf({1, 2, 3, 4})}})),
                            skip);
  EXPECT_THAT(rest->values, ElementsAre(1, 2, 3, 4));
  // Any damage ends in an error or in values, never in a crash.
  std::mt19937 random(8);
  for (const std::string& good : {whole, PthOf({1, 2, 3, 4})}) {
    for (int k = 0; k < 2000; ++k) {
      std::string bad = good;
      for (int n = 0; n < 1 + k % 3; ++n) bad[random() % bad.size()] = static_cast<char>(random());
      Latent latent;
      (void)DecodeLatent(bad, "x", latent);
      (void)DecodeLatent(good.substr(0, random() % good.size()), "x", latent);
    }
  }
}

}  // namespace
}  // namespace mergeplan
