#include "adapters/command/program.h"

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "adapters/command/commands.h"
#include "adapters/runtime/device.h"
#include "adapters/runtime/output.h"
#include "planner/base/exit_code.h"

namespace mergeplan {

int RunProgram(int argc, const char* const* argv) {
  CLI::App app("The part of mergeplan that trains, with LibTorch.", "mergeplan");
  app.set_version_flag("--version", std::string("mergeplan-torch ") + MERGEPLAN_VERSION +
                                        " (LibTorch " + TorchVersion() + ")");
  app.require_subcommand(1);
  const std::vector<Command> commands = {
      AddDistill(app), AddBench(app),        AddCalibrate(app), AddModel(app),  AddEncode(app),
      AddDecode(app),  AddTrainTeacher(app), AddTrainVae(app),  AddSample(app), AddFeatures(app)};
  // For errors: what was asked for, where it is one of them.
  std::string name = "distill";
  for (const Command& command : commands) {
    if (argc > 1 && command.options->get_name() == argv[1]) name = argv[1];
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {  // --help, --version
    int code = app.exit(done);
    for (const Command& command : commands) {
      if (command.options->count("--help") > 0) code = command.more_help();
    }
    return code;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "mergeplan %s: %s; see mergeplan %s --help\n", name.c_str(), error.what(),
                 name.c_str());
    return kMisuse;
  }
  // A reader that goes away must not end a training.
  std::signal(SIGPIPE, SIG_IGN);
  // Nor may a limit on the size of files: the write fails then, and is told.
  std::signal(SIGXFSZ, SIG_IGN);
  DivertStdout();
  int code = kMisuse;
  for (const Command& command : commands) {
    if (command.options->parsed()) code = command.run();
  }
  RestoreStdout();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fprintf(stderr, "mergeplan %s: the output could not be written to stdout\n", name.c_str());
    return code == kDone ? kFailed : code;
  }
  return code;
}

}  // namespace mergeplan
