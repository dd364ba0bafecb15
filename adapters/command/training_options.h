#pragma once

#include <CLI/CLI.hpp>
#include <utility>
#include <vector>

#include "adapters/denoising/run.h"

namespace mergeplan {

// Options of commands that train in a folder, each with its line of help.
using OptionHelp = std::vector<std::pair<const char*, const char*>>;

// Those that say how long and with which optimizer.
OptionHelp OptimizerHelp(const char* rate);
// Adds options whose texts go into `training` as they are.
void AddTexts(CLI::App* command, TrainingArguments& a, const OptionHelp& options);
// --data, --array, --data-rows.
void AddData(CLI::App* command, TrainingArguments& a);
// Where and for how long: --device, --threads, --checkpoint-seconds, --time-limit, --resume,
// -o, --quiet, --json.
void AddSession(CLI::App* command, TrainingArguments& a);

}  // namespace mergeplan
