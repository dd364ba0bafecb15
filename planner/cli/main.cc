#include <clocale>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "planner/cli/command.h"
#include "planner/cli/flags.h"

namespace {

using mergeplan::cli::Command;

int RunCommand(int argc, char** argv) {
  CLI::App app{"mergeplan: plans the merges of diffusion distillation", "mergeplan"};
  app.set_version_flag("--version", "mergeplan " MERGEPLAN_VERSION);
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error& e) {
    return std::string("mergeplan: ") + e.what() +
           "; see mergeplan --help or mergeplan COMMAND --help\n";
  });
  app.footer(
      "example: mergeplan plan --variances 0.95,1.05 -T 32 --schedule cosine --train-time 6.4 "
      "--gap 0");
  const Command commands[] = {mergeplan::cli::MakeAnalyze(app), mergeplan::cli::MakePlan(app),
                              mergeplan::cli::MakeCompare(app), mergeplan::cli::MakeShow(app),
                              mergeplan::cli::MakeExport(app),  mergeplan::cli::MakeReport(app),
                              mergeplan::cli::MakeMixture(app), mergeplan::cli::MakeSpectrum(app)};
  for (const mergeplan::cli::Companion& companion : mergeplan::cli::Companions()) {
    app.add_subcommand(std::string(companion.command), std::string(companion.help));
  }
  if (argc > 1 && argv[1][0] != '-') {
    std::string known;
    bool found = false;
    for (const CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
      known += (known.empty() ? "" : ", ") + command->get_name();
      found = found || command->get_name() == argv[1];
    }
    if (!found) {
      std::fprintf(stderr, "mergeplan: unknown command \"%s\", expected one of %s\n", argv[1],
                   known.c_str());
      return mergeplan::cli::kMisuse;
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    app.exit(e);
    return mergeplan::cli::kMisuse;
  }
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    const absl::Status status = mergeplan::cli::RefuseEmpty(*command.app);
    return status.ok() ? command.run() : mergeplan::cli::Report(command.app->get_name(), status);
  }
  return mergeplan::cli::kMisuse;
}

}  // namespace

int main(int argc, char** argv) {
  // CLI11 would take the next word for the value of "--name=".
  for (int k = 1; k < argc; ++k) {
    const std::string_view word = argv[k];
    if (word == "--") break;
    if (word.size() > 3 && word.substr(0, 2) == "--" && word.find('=') == word.size() - 1) {
      std::fprintf(stderr, "mergeplan: %s: is empty, expected a value after the '='\n", argv[k]);
      return mergeplan::cli::kMisuse;
    }
  }
  if (argc > 1) {
    if (const auto* companion = mergeplan::cli::FindCompanion(argv[1]); companion != nullptr) {
      return mergeplan::cli::RunCompanion(*companion, argc, argv);
    }
  }
  try {
    const int code = RunCommand(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      std::fprintf(stderr, "mergeplan: the output could not be written to stdout\n");
      return code == mergeplan::cli::kDone ? mergeplan::cli::kFailed : code;
    }
    return code;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr,
                 "mergeplan: out of memory; give fewer dimensions or teacher steps, or a larger "
                 "machine\n");
    return mergeplan::cli::kFailed;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "mergeplan: %s\n", e.what());
    return mergeplan::cli::kFailed;
  }
}
