#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "planner/base/file.h"
#include "tests/adapters/command/distill_program.h"

namespace mergeplan::testing {

// Tests of a command that trains in a folder.
template <typename Arguments>
class TrainingFolder : public ::testing::Test {
 protected:
  using Command = int (*)(const Arguments&);
  // `network`: the folder of the trained one inside the training's.
  TrainingFolder(Command command, std::string network)
      : command_(command), network_(std::move(network)) {
    arguments_.threads = 1;
    arguments_.quiet = true;
  }

  std::string File(const std::string& name) const { return folder_.File(name); }
  Outcome Run(const std::string& name, Arguments arguments) const {
    arguments.output = File(name);
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = command_(arguments);
    Outcome outcome{code, ::testing::internal::GetCapturedStdout(), ""};
    outcome.err = ::testing::internal::GetCapturedStderr();
    return outcome;
  }
  static Arguments Resume() {
    Arguments arguments;
    arguments.resume = arguments.quiet = true;
    arguments.threads = 1;
    return arguments;
  }
  std::string Weights(const std::string& name) const {
    return ReadFile(File(name) + "/" + network_ + "/diffusion_pytorch_model.safetensors")
        .value_or("missing");
  }

  TemporaryFolder folder_;
  Arguments arguments_;

 private:
  Command command_;
  std::string network_;
};

}  // namespace mergeplan::testing
