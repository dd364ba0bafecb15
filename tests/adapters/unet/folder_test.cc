// Folders of models: written, read back, damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>

#include "adapters/layers/model_folder.h"
#include "planner/data/safetensors.h"
#include "tests/adapters/support.h"
#include "tests/adapters/unet/support.h"

namespace mergeplan {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MakeUNet;
using testing::SmallConfig;
using testing::TemporaryFolder;
using ::testing::UnorderedElementsAre;

std::set<std::string> Contents(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

std::string LoadError(const std::string& folder) {
  const auto net = unet::UNet2d::Load(folder);
  return net.ok() ? "fine" : std::string(net.status().message());
}

void ExpectSameValues(const network::Module& a, const network::Module& b) {
  const auto left = a.Parameters(), right = b.Parameters();
  ASSERT_EQ(left.size(), right.size());
  for (size_t k = 0; k < left.size(); ++k) {
    ASSERT_EQ(left[k].first, right[k].first);
    EXPECT_TRUE(at::equal(left[k].second, right[k].second)) << left[k].first;
  }
}

// The weights of a folder, changed and written again.
struct Held {
  std::string name, dtype, bytes;
  std::vector<std::int64_t> shape;
};
std::vector<Held> ReadWeights(const std::string& path) {
  const auto file = SafetensorsFile::Open(path).value();
  std::vector<Held> all;
  for (const SafetensorsEntry& e : file->entries()) {
    Held& held = all.emplace_back();
    held.name = e.name;
    held.dtype = e.dtype;
    held.shape = e.shape;
    held.bytes.resize(static_cast<size_t>(e.bytes()));
    EXPECT_TRUE(file->Read(e, 0, absl::MakeSpan(held.bytes)).ok());
  }
  return all;
}
void WriteHeld(const std::string& path, const std::vector<Held>& all) {
  std::vector<SafetensorsTensor> tensors;
  for (const Held& held : all) {
    tensors.push_back({held.name, held.dtype, held.shape,
                       [&held]() -> absl::StatusOr<std::string_view> { return held.bytes; }});
  }
  ASSERT_TRUE(WriteSafetensors(path, tensors, {{"format", "pt"}}).ok());
}

class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    net_ = MakeUNet(SmallConfig(), 7);
    ASSERT_TRUE(net_->Save(model_).ok());
  }
  std::string File(const std::string& name) const { return temporary_.File(name); }

  TemporaryFolder temporary_;  // its name has blanks
  std::string model_ = temporary_.File("a model");
  std::string weights_ = model_ + "/diffusion_pytorch_model.safetensors";
  std::unique_ptr<unet::UNet2d> net_;
};

TEST_F(Folder, ReadsBackBitByBit) {
  EXPECT_THAT(Contents(model_),
              UnorderedElementsAre("config.json", "diffusion_pytorch_model.safetensors"));
  EXPECT_THAT(Contents(temporary_.path()), UnorderedElementsAre("a model"));
  const auto again = unet::UNet2d::Load(model_);
  ASSERT_TRUE(again.ok()) << again.status();
  ExpectSameValues(*net_, **again);
  EXPECT_EQ(nlohmann::json::parse(ReadFile(model_ + "/config.json").value()), SmallConfig());
  ASSERT_TRUE((*again)->Save(File("twice/inside")).ok());
  for (const std::string& name : Contents(model_)) {
    EXPECT_EQ(Sha256OfFile(model_ + "/" + name).value(),
              Sha256OfFile(File("twice/inside/" + name)).value());
  }
}

// A folder from diffusers comes out byte for byte.
TEST_F(Folder, WritesWhatDiffusersWrites) {
  const std::string root = testing::SharedDiffusers("unets");
  SKIP_WITHOUT_DIFFUSERS(root, "unets");
  for (const std::string name : {"plain", "attn", "ddpm-like", "class-cond"}) {
    const auto net = unet::UNet2d::Load(root + "/" + name);
    ASSERT_TRUE(net.ok()) << net.status();
    ASSERT_TRUE((*net)->Save(File(name)).ok());
    for (const std::string& file : Contents(File(name))) {
      EXPECT_EQ(Sha256OfFile(File(name + "/" + file)).value(),
                Sha256OfFile(root + "/" + name + "/" + file).value())
          << name << " " << file;
    }
  }
}

TEST_F(Folder, NarrowWeightsAndSeveralFilesReadBack) {
  for (const auto& [dtype, word, tolerance] :
       {std::tuple(at::kHalf, "F16", 1e-3), std::tuple(at::kBFloat16, "BF16", 8e-3),
        std::tuple(at::kDouble, "F64", 0.0)}) {
    const std::string path = File(word);
    layers::SaveOptions options;
    options.dtype = dtype;
    options.shard_bytes = 4000;
    ASSERT_TRUE(net_->SaveAs(path, options).ok());
    const auto names = Contents(path);
    EXPECT_GT(names.size(), 4U);
    EXPECT_EQ(names.count("diffusion_pytorch_model.safetensors.index.json"), 1U);
    EXPECT_EQ(names.count("diffusion_pytorch_model.safetensors"), 0U);
    const auto files = layers::OpenWeights(path);
    ASSERT_TRUE(files.ok()) << files.status();
    for (const auto& file : *files) {
      for (const SafetensorsEntry& entry : file->entries()) EXPECT_EQ(entry.dtype, word);
    }
    const auto again = unet::UNet2d::Load(path);
    ASSERT_TRUE(again.ok()) << again.status();
    for (size_t k = 0; k < net_->Parameters().size(); ++k) {
      const at::Tensor a = net_->Parameters()[k].second, b = (*again)->Parameters()[k].second;
      EXPECT_EQ(b.scalar_type(), at::kFloat);
      EXPECT_LE((a - b).abs().max().item<double>(), tolerance * a.abs().max().item<double>());
    }
    const auto narrow = unet::UNet2d::Load(path, {dtype, at::kCPU});
    ASSERT_TRUE(narrow.ok()) << narrow.status();
    EXPECT_EQ((*narrow)->Parameters()[0].second.scalar_type(), dtype);
  }
}

TEST_F(Folder, OldNamesAndAPipelinesFolderAreRead) {
  std::vector<Held> all = ReadWeights(weights_);
  int renamed = 0;
  for (Held& held : all) {
    for (const auto& [now, old] : {std::pair<std::string, std::string>("to_q", "query"),
                                   {"to_k", "key"},
                                   {"to_v", "value"},
                                   {"to_out.0", "proj_attn"}}) {
      const size_t at = held.name.find("." + now + ".");
      if (at == std::string::npos) continue;
      held.name.replace(at + 1, now.size(), old);
      ++renamed;
    }
  }
  EXPECT_GT(renamed, 8);
  fs::create_directories(File("pipe/unet"));
  fs::copy_file(model_ + "/config.json", File("pipe/unet/config.json"));
  WriteHeld(File("pipe/unet/diffusion_pytorch_model.safetensors"), all);
  const auto old = unet::UNet2d::Load(File("pipe"));
  ASSERT_TRUE(old.ok()) << old.status();
  ExpectSameValues(*net_, **old);
  all.push_back(all.front());
  all.back().name = ReadWeights(weights_).front().name;
  if (all.back().name == all.front().name) return;
  WriteHeld(File("pipe/unet/diffusion_pytorch_model.safetensors"), all);
  EXPECT_THAT(LoadError(File("pipe")), HasSubstr("is the same as"));
}

TEST_F(Folder, TensorsThatDoNotFitAreNamed) {
  const std::vector<Held> all = ReadWeights(weights_);
  const auto with = [&](auto&& change) {
    std::vector<Held> other = all;
    change(other);
    WriteHeld(weights_, other);
    return LoadError(model_);
  };
  const auto find = [](std::vector<Held>& v, const std::string& name) {
    return std::find_if(v.begin(), v.end(), [&](const Held& h) { return h.name == name; });
  };
  EXPECT_THAT(with([&](auto& v) { v.erase(find(v, "conv_in.bias")); }),
              HasSubstr("tensor conv_in.bias of shape (8,) is missing"));
  EXPECT_THAT(with([&](auto& v) { find(v, "conv_in.bias")->name = "conv_in.offset"; }),
              AllOf(HasSubstr("conv_in.bias of shape (8,) is missing"), HasSubstr("found instead"),
                    HasSubstr("conv_in.offset")));
  EXPECT_THAT(with([&](auto& v) {
                v.push_back(v.front());
                v.back().name = "class_embedding.weight";
              }),
              AllOf(HasSubstr("class_embedding.weight"), HasSubstr("is none of this network's")));
  EXPECT_THAT(with([&](auto& v) {
                find(v, "conv_in.weight")->shape = {8, 2, 9, 1};
              }),
              HasSubstr("conv_in.weight: has shape (8, 2, 9, 1), expected (8, 2, 3, 3)"));
  EXPECT_THAT(with([&](auto& v) { find(v, "conv_in.weight")->dtype = "I32"; }),
              HasSubstr("conv_in.weight: has dtype I32, expected F32"));
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    EXPECT_THAT(with([&](auto& v) {
                  std::string& bytes = find(v, "conv_out.weight")->bytes;
                  std::memcpy(bytes.data() + bytes.size() - 4, &bad, 4);
                }),
                HasSubstr("tensor conv_out.weight holds a number that is not finite"));
  }
  EXPECT_EQ(with([](auto&) {}), "fine");
}

TEST_F(Folder, DamagedFilesAreErrors) {
  const std::string bytes = ReadFile(weights_).value();
  for (const size_t keep :
       {size_t{0}, size_t{7}, size_t{8}, size_t{100}, bytes.size() / 2, bytes.size() - 1}) {
    ASSERT_TRUE(WriteFileAtomically(weights_, bytes.substr(0, keep)).ok());
    EXPECT_THAT(LoadError(model_), HasSubstr("diffusion_pytorch_model.safetensors")) << keep;
  }
  ASSERT_TRUE(WriteFileAtomically(weights_, bytes + "x").ok());
  EXPECT_THAT(LoadError(model_), HasSubstr("1 bytes behind its tensors"));
  ASSERT_TRUE(WriteFileAtomically(model_ + "/config.json", "{\"in_channels\": }").ok());
  EXPECT_THAT(LoadError(model_), HasSubstr("config.json: no valid JSON at line 1, column 17"));
  fs::remove(model_ + "/config.json");
  EXPECT_THAT(LoadError(model_), HasSubstr("has no config.json"));
  EXPECT_THAT(LoadError(File("nowhere")), HasSubstr("does not exist"));
  EXPECT_THAT(LoadError(weights_), HasSubstr("is no folder"));
}

TEST_F(Folder, PicklesAreRefusedWithWhatToDo) {
  fs::rename(weights_, model_ + "/diffusion_pytorch_model.bin");
  EXPECT_THAT(LoadError(model_), AllOf(HasSubstr("diffusion_pytorch_model.bin, a pickle"),
                                       HasSubstr("save_pretrained")));
  fs::remove(model_ + "/diffusion_pytorch_model.bin");
  EXPECT_THAT(LoadError(model_),
              HasSubstr("has no weights, expected diffusion_pytorch_model.safe"));
}

TEST_F(Folder, AnIndexMustAgreeWithItsFiles) {
  layers::SaveOptions options;
  options.shard_bytes = 40000;
  const std::string path = File("sharded");
  ASSERT_TRUE(net_->SaveAs(path, options).ok());
  const std::string index = path + "/diffusion_pytorch_model.safetensors.index.json";
  const nlohmann::json good = nlohmann::json::parse(ReadFile(index).value());
  const auto with = [&](auto&& change) {
    nlohmann::json other = good;
    change(other);
    EXPECT_TRUE(WriteFileAtomically(index, other.dump()).ok());
    return LoadError(path);
  };
  EXPECT_EQ(with([](auto&) {}), "fine");
  EXPECT_THAT(with([](auto& j) { j["weight_map"].erase("conv_in.bias"); }),
              HasSubstr("says that tensor conv_in.bias is nowhere"));
  EXPECT_THAT(with([](auto& j) { j["weight_map"]["x"] = j["weight_map"]["conv_in.bias"]; }),
              AllOf(HasSubstr("says that tensor x is in"), HasSubstr("which lacks it")));
  EXPECT_THAT(
      with([](auto& j) { j["weight_map"]["conv_in.bias"] = j["weight_map"]["conv_out.bias"]; }),
      HasSubstr("says that tensor conv_in.bias is in"));
  EXPECT_THAT(with([](auto& j) { j["weight_map"]["conv_in.bias"] = "../a.safetensors"; }),
              HasSubstr("expected the name of a file beside it"));
  EXPECT_THAT(with([](auto& j) { j["weight_map"]["conv_in.bias"] = "none.safetensors"; }),
              HasSubstr("none.safetensors"));
  EXPECT_THAT(with([](auto& j) { j.erase("weight_map"); }), HasSubstr("weight_map"));
}

TEST_F(Folder, IsReplacedWholeOrNotAtAll) {
  const auto other = MakeUNet(SmallConfig(), 8);
  ASSERT_TRUE(other->Save(model_ + "/").ok());
  ExpectSameValues(*other, **unet::UNet2d::Load(model_));
  // What is not a model stays.
  ASSERT_TRUE(WriteFileAtomically(model_ + "/README.md", "mine").ok());
  EXPECT_THAT(std::string(net_->Save(model_).message()),
              HasSubstr("holds README.md, which is no part of a model"));
  ExpectSameValues(*other, **unet::UNet2d::Load(model_));
  fs::remove(model_ + "/README.md");
  // A weight that cannot be written leaves what was.
  const auto broken = MakeUNet(SmallConfig(), 9);
  broken->Parameters()[2].second.detach().view(-1)[0] = 1e6;
  layers::SaveOptions half;
  half.dtype = at::kHalf;
  EXPECT_THAT(std::string(broken->SaveAs(model_, half).message()),
              HasSubstr("holds a number that is not finite as Half"));
  broken->Parameters()[2].second.detach().view(-1)[0] = NAN;
  EXPECT_THAT(std::string(broken->Save(model_).message()),
              HasSubstr(broken->Parameters()[2].first));
  ExpectSameValues(*other, **unet::UNet2d::Load(model_));
  EXPECT_THAT(Contents(temporary_.path()), UnorderedElementsAre("a model"));
  EXPECT_FALSE(net_->Save(weights_).ok());
  EXPECT_FALSE(net_->Save("").ok());
  EXPECT_FALSE(net_->Save("/proc/model").ok());
}

// The index of several files goes when one takes their place.
TEST_F(Folder, NothingOfTheOldFolderStays) {
  layers::SaveOptions options;
  options.shard_bytes = 4000;
  ASSERT_TRUE(net_->SaveAs(model_, options).ok());
  EXPECT_GT(Contents(model_).size(), 4U);
  ASSERT_TRUE(net_->Save(model_).ok());
  EXPECT_EQ(Contents(model_).size(), 2U);
}

}  // namespace
}  // namespace mergeplan
