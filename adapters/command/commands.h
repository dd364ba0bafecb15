#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace mergeplan {

// One command of the program: its options, and what it does once they are parsed.
struct Command {
  CLI::App* options = nullptr;
  std::function<int()> run;                           // returns the exit code
  std::function<int()> more_help = [] { return 0; };  // printed behind --help
};

// Each adds the options of one command, which keeps the arguments they fill.
Command AddBench(CLI::App& app);
Command AddCalibrate(CLI::App& app);
Command AddDecode(CLI::App& app);
Command AddDistill(CLI::App& app);
Command AddEncode(CLI::App& app);
Command AddFeatures(CLI::App& app);
Command AddModel(CLI::App& app);
Command AddSample(CLI::App& app);
Command AddTrainTeacher(CLI::App& app);
Command AddTrainVae(CLI::App& app);

}  // namespace mergeplan
