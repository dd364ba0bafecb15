#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "adapters/denoising/run.h"
#include "planner/data/npz.h"
#include "tests/adapters/denoising/training_folder.h"
#include "tests/adapters/unet/support.h"

namespace mergeplan {

// A folder with a small U-Net's config, ten pictures, and the arguments of a short training of it.
class TrainTeacher : public testing::TrainingFolder<TrainTeacherArguments> {
 protected:
  TrainTeacher() : TrainingFolder(&RunTrainTeacher, "unet") {}
  void SetUp() override {
    nlohmann::json config = testing::SmallConfig();
    config["in_channels"] = config["out_channels"] = 1;
    ASSERT_TRUE(WriteFileAtomically(File("my config.json"), config.dump()).ok());
    std::vector<double> pixels(10 * 8 * 8);
    for (std::size_t k = 0; k < pixels.size(); ++k) pixels[k] = static_cast<double>(k * 37 % 256);
    NpzWriter writer;
    writer.Add("x", {10, 8, 8}, pixels, NpzWriter::Type::kUint8);
    ASSERT_TRUE(writer.Write(File("data.npz")).ok());
    arguments_.model = File("my config.json");
    arguments_.data = File("data.npz");
    arguments_.schedule = "ddpm-cosine";
    arguments_.training = {{"iterations", "8"}, {"batch", "4"},        {"seed", "3"},
                           {"samples", "6"},    {"sample-steps", "2"}, {"log-every", "3"}};
  }

  // Goes on with a training that is stopped a few times more, and then to its end.
  Outcome GoOn(const std::string& name, const std::string& limit) {
    TrainTeacherArguments resume = Resume();
    resume.time_limit = limit;
    for (int stops = 0; stops < 5; ++stops) {
      if (const Outcome outcome = Run(name, resume); outcome.code != 3) return outcome;
    }
    return Run(name, Resume());
  }

  // log.csv without its times.
  std::string Losses(const std::string& name) const {
    std::istringstream in(ReadFile(File(name) + "/log.csv").value_or("missing"));
    std::string out;
    for (std::string line; std::getline(in, line);) {
      std::vector<std::string> cells;
      std::istringstream row(line);
      for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
      for (std::size_t k = 0; k < cells.size(); ++k) out += k == 4 ? "" : cells[k] + ",";
      out += "\n";
    }
    return out;
  }
};

}  // namespace mergeplan
