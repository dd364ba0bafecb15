#pragma once

#include <CLI/CLI.hpp>

#include "adapters/denoising/run.h"

namespace mergeplan {

// The command line of `train-teacher`, which fills `arguments`.
CLI::App* AddTrainTeacher(CLI::App& app, TrainTeacherArguments& arguments);

}  // namespace mergeplan
