// Times of a UNet2DModel, for a table beside eager PyTorch (table.sh).
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>

#include "adapters/layers/model_folder.h"
#include "adapters/unet/unet.h"

namespace mergeplan {
namespace {

// Of the processor, so that other programs count little.
double Seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// The fastest of several, after one to warm up.
template <typename Body>
double Fastest(int runs, Body&& body) {
  body();
  double best = 1e300;
  for (int k = 0; k < runs; ++k) {
    const double begin = Seconds();
    body();
    best = std::min(best, Seconds() - begin);
  }
  return best;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "unet_bench: %s\n", std::string(status.message()).c_str());
  return 1;
}

// Widths 32, 64, 64 are the size of the table; wider ones fill a disk.
int Make(const std::string& folder, int width, int layers) {
  const nlohmann::json json = {
      {"_class_name", "UNet2DModel"},
      {"_diffusers_version", "0.42.1"},
      {"sample_size", 28},
      {"in_channels", 1},
      {"out_channels", 1},
      {"layers_per_block", layers},
      {"block_out_channels", {width, 2 * width, 2 * width}},
      {"down_block_types", {"DownBlock2D", "AttnDownBlock2D", "AttnDownBlock2D"}},
      {"up_block_types", {"AttnUpBlock2D", "AttnUpBlock2D", "UpBlock2D"}},
      {"norm_num_groups", 8}};
  const auto config = unet::ParseConfig(json, "bench");
  if (!config.ok()) return Fail(config.status());
  const auto net = unet::UNet2d::Create(*config, 1);
  if (!net.ok()) return Fail(net.status());
  const absl::Status status = (*net)->Save(folder);
  return status.ok() ? 0 : Fail(status);
}

int Time(const std::string& folder, int batch, int runs) {
  auto loaded = unet::UNet2d::Load(folder);
  if (!loaded.ok()) return Fail(loaded.status());
  unet::UNet2d& net = **loaded;
  const std::int64_t size = net.config().sample_size[0];
  const at::Tensor z = at::randn({batch, net.config().in_channels, size, size});
  const at::Tensor time = at::full({batch}, 500, at::kLong);
  absl::Status status;
  const auto forward = [&] {
    const auto out = net.Forward(z, time, {});
    if (!out.ok()) status = out.status();
    return out.ok() ? *out : at::zeros({1});
  };
  const double teacher = Fastest(runs, [&] {
    const c10::AutoGradMode no_gradients(false);
    forward();
  });
  const auto step = [&] {
    for (const auto& [name, tensor] : net.Parameters()) tensor.mutable_grad() = at::Tensor();
    forward().square().mean().backward();
  };
  const double training = Fastest(runs, step);
  if (status.ok()) status = net.SetGradientCheckpointing(true);
  const double checkpointed = Fastest(runs, step);
  if (!status.ok()) return Fail(status);
  std::int64_t parameters = 0;
  for (const auto& [name, tensor] : net.Parameters()) parameters += tensor.numel();
  std::printf("{\"parameters\": %lld, \"forward\": %.6f, \"step\": %.6f, \"checkpointed\": %.6f}\n",
              static_cast<long long>(parameters), teacher, training, checkpointed);
  return 0;
}

// Reads the file into memory of its own, as anything that keeps it must.
double ReadSeconds(const std::string& path) {
  const double begin = Seconds();
  const int fd = ::open(path.c_str(), O_RDONLY);
  const auto size = static_cast<size_t>(::lseek(fd, 0, SEEK_END));
  const std::unique_ptr<char[]> buffer(new char[size]);
  for (size_t at = 0; at < size;) {
    const ssize_t n = ::pread(fd, buffer.get() + at, size - at, static_cast<off_t>(at));
    if (n <= 0) break;
    at += static_cast<size_t>(n);
  }
  ::close(fd);
  return Seconds() - begin;
}

int Load(const std::string& folder, int runs) {
  const auto files = layers::OpenWeights(folder);
  if (!files.ok()) return Fail(files.status());
  double read = 1e300, load = 1e300;
  for (int k = 0; k <= runs; ++k) {
    read = std::min(read, ReadSeconds(files->front()->path()));
    const double begin = Seconds();
    const auto net = unet::UNet2d::Load(folder);
    if (!net.ok()) return Fail(net.status());
    load = std::min(load, Seconds() - begin);
  }
  std::printf("{\"read\": %.6f, \"load\": %.6f}\n", read, load);
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("Times of a UNet2DModel");
  std::string folder;
  int width = 32, layers = 2, batch = 32, runs = 5, threads = 1;
  app.require_subcommand(1);
  CLI::App* make = app.add_subcommand("make", "Writes a folder with random weights");
  CLI::App* time = app.add_subcommand("time", "Seconds of a forward pass and of a training step");
  CLI::App* load = app.add_subcommand("load", "Seconds of loading it and of reading its file");
  for (CLI::App* command : {make, time, load}) command->add_option("folder", folder)->required();
  make->add_option("--width", width);
  make->add_option("--layers", layers);
  time->add_option("--batch", batch);
  for (CLI::App* command : {time, load}) command->add_option("--runs", runs);
  time->add_option("--threads", threads);
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(threads);
  if (make->parsed()) return Make(folder, width, layers);
  return time->parsed() ? Time(folder, batch, runs) : Load(folder, runs);
}

}  // namespace
}  // namespace mergeplan

int main(int argc, char** argv) { return mergeplan::Main(argc, argv); }
