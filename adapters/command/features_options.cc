#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "adapters/command/commands.h"
#include "adapters/command/features_command.h"
#include "adapters/command/options.h"

namespace mergeplan {
namespace {

constexpr char kFeaturesExample[] = R"(
Example:
  mergeplan features my-features --data train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz
  mergeplan features my-features

Exit codes: 0 done, 1 failed, 2 misuse, 3 stopped (Ctrl-C) with nothing written.
)";

}  // namespace

Command AddFeatures(CLI::App& app) {
  const auto arguments = std::make_shared<FeaturesArguments>();
  FeaturesArguments& a = *arguments;
  CLI::App* command = app.add_subcommand(
      "features",
      "Trains a small classifier whose features samples are compared by (bench --features FOLDER), "
      "or says what one is");
  command->add_option("folder", a.folder, "Folder of the classifier")->required();
  Add(command, "--data", a.data, "Pictures to train on, as analyze reads them");
  Add(command, "--labels", a.labels, "A class for each of them: an array of integers from 0");
  Add(command, "--test-data", a.test_data, "Pictures to test it on");
  Add(command, "--test-labels", a.test_labels, "Their classes");
  command->add_option("--name", a.name, "What it is called in every output")->capture_default_str();
  command->add_option("--epochs", a.epochs, "Times that every picture is seen")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command->add_option("--batch", a.batch, "Pictures per update")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("--lr", a.lr, "Learning rate")
      ->check(Real([](double x) { return x > 0 && std::isfinite(x); }, "a positive, finite number"))
      ->capture_default_str();
  command->add_option("--seed", a.seed, "Seed of weights and order")
      ->check(CLI::Range(std::int64_t{0}, kLargest))
      ->capture_default_str();
  command->add_option("--threads", a.threads, "Threads; 0: all")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  command->footer(kFeaturesExample);
  Command out;
  out.options = command;
  out.run = [arguments] { return RunFeaturesCommand(*arguments); };
  return out;
}

}  // namespace mergeplan
