// The program mergeplan-plugins, run as `mergeplan plugins` runs it.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/plugins/plugin_folder.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Ran {
  int code;
  std::string out, err;
};

Ran Tool(const std::string& arguments, const std::string& program = MERGEPLAN_PLUGINS_TOOL) {
  const PluginFolder folder;
  const std::string command = "'" + program + "' " + arguments + " >'" + folder.File("out") +
                              "' 2>'" + folder.File("err") + "'";
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): our own words
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Slurp(folder.File("out")),
          Slurp(folder.File("err"))};
}

TEST(Tool, ListsAsJson) {
  const PluginFolder folder;
  folder.Write("broken.toml", "format = 1\nnmae = \"broken\"\n");
  const Ran ran = Tool("list --json --plugin-dir '" + folder.path() + "'");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  ASSERT_EQ(json["plugins"].size(), 8u);
  for (const auto& plugin : json["plugins"]) {
    const std::string name = plugin["name"];
    EXPECT_EQ(plugin["usable"], name != "broken") << name;
    if (name == "broken") {
      EXPECT_THAT(plugin["error"].get<std::string>(), HasSubstr("unknown key \"nmae\""));
    } else {
      EXPECT_TRUE(plugin["error"].is_null());
      EXPECT_EQ(plugin["abi"], "1.0");
      EXPECT_TRUE(std::filesystem::exists(plugin["library"].get<std::string>()));
    }
    if (name == "progressive") {
      const auto& factor = plugin["parameters"][0];
      EXPECT_EQ(factor["name"], "factor");
      EXPECT_EQ(factor["type"], "integer");
      EXPECT_EQ(factor["default"], 2);
      EXPECT_EQ(factor["minimum"].dump(), "2");
    }
  }
}

// Neither the words nor the crash of one plugin spoil the list.
TEST(Tool, ListsBesidePluginsThatPrintOrCrash) {
  const PluginFolder folder;
  const std::string library = folder.CopyLibrary("odd");
  folder.Write("odd.toml", kOddManifest);
  for (const char* odd : {"print", "crash"}) {
    const ScopedVariable variable("MERGEPLAN_TEST_ODD_ENTRY", odd);
    const Ran ran = Tool("list --json --plugin-dir '" + folder.path() + "'");
    ASSERT_EQ(ran.code, 0) << ran.err;
    const auto json = nlohmann::json::parse(ran.out);
    ASSERT_EQ(json["plugins"].size(), 8u);
    for (const auto& plugin : json["plugins"]) {
      EXPECT_EQ(plugin["usable"], plugin["name"] != "odd" || std::string(odd) == "print");
      if (plugin["usable"]) continue;
      EXPECT_THAT(plugin["error"].get<std::string>(),
                  AllOf(HasSubstr(library), HasSubstr("signal 11")));
    }
  }
  const ScopedVariable variable("MERGEPLAN_TEST_ODD_ENTRY", "crash");
  const Ran shown = Tool("show '" + library + "'");
  EXPECT_EQ(shown.code, 1);
  EXPECT_THAT(shown.err, AllOf(HasSubstr(library), HasSubstr("signal 11")));
}

TEST(Tool, ListsForPeople) {
  const Ran ran = Tool("list");
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* name :
       {"vanilla", "progressive", "boot", "consistency", "dp_custom", "greedy", "manual"}) {
    EXPECT_THAT(ran.out, HasSubstr(name));
  }
}

TEST(Tool, Shows) {
  const Ran ran = Tool("show progressive");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("factor (an integer from 2 to 1000000, default \"2\"): how many"));
  const Ran json = Tool("show --json dp_custom");
  EXPECT_EQ(nlohmann::json::parse(json.out)["parameters"][0]["name"], "plan");
}

TEST(Tool, ErrorsAreOneLineWithTheRightExitCode) {
  const Ran unknown = Tool("show nothing-like-it");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("plugin nothing-like-it: not found"));
  EXPECT_EQ(std::count(unknown.err.begin(), unknown.err.end(), '\n'), 1);
  for (const char* misuse : {"", "shwo", "list --jsno", "show", "list --plugin-dir"}) {
    const Ran ran = Tool(misuse);
    EXPECT_EQ(ran.code, 2) << misuse;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
  EXPECT_THAT(Tool("shwo").err,
              HasSubstr("unknown command \"shwo\", expected list, show or check"));
  EXPECT_THAT(Tool("").err, HasSubstr("expected list, show or check"));
  EXPECT_THAT(Tool("list boot").err, HasSubstr("boot"));
  EXPECT_THAT(Tool("show ''").err, HasSubstr("NAME: is empty"));
  EXPECT_THAT(Tool("list --plugin-dir ''").err, HasSubstr("--plugin-dir: is empty"));
  EXPECT_EQ(Tool("show /no/such/plugin.so").code, 1);
  const Ran help = Tool("show --help");
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("Example: mergeplan plugins show progressive"));
}

// The layout bin/, libexec/mergeplan/, lib/mergeplan/plugins is found wherever the tree is moved.
TEST(Tool, FindsPluginsBesideItselfInAnInstalledTree) {
  const PluginFolder prefix;
  namespace fs = std::filesystem;
  const fs::path tool = MERGEPLAN_PLUGINS_TOOL;
  fs::create_directories(prefix.File("libexec/mergeplan"));
  fs::create_directories(prefix.File("lib/mergeplan/plugins"));
  fs::copy_file(tool, prefix.File("libexec/mergeplan/mergeplan-plugins"));
  const fs::path built = tool.parent_path() / "../../lib/mergeplan/plugins";
  for (const char* file : {"boot.so", "boot.toml"}) {
    fs::copy_file(built / file, fs::path(prefix.File("lib/mergeplan/plugins")) / file);
  }
  const Ran ran = Tool("list --json", prefix.File("libexec/mergeplan/mergeplan-plugins"));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  ASSERT_EQ(json["plugins"].size(), 1u) << ran.out;
  EXPECT_EQ(json["plugins"][0]["library"], prefix.File("lib/mergeplan/plugins/boot.so"));
}

}  // namespace
}  // namespace mergeplan
