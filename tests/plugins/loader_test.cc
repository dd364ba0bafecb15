#include <elf.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plugins/host/host.h"
#include "plugins/host/probe.h"
#include "tests/plugins/plugin_folder.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

constexpr const char* kPlugins[] = {"boot",   "consistency", "dp_custom", "greedy",
                                    "manual", "progressive", "vanilla"};

std::string LoaderMessage(const absl::Status& status) { return std::string(status.message()); }

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Loader, FindsOurPluginsBesideTheProgram) {
  for (const char* name : kPlugins) {
    const auto plugin = LoadPlugin(name, {});
    ASSERT_TRUE(plugin.ok()) << plugin.status();
    EXPECT_EQ((*plugin)->name(), name);
    EXPECT_FALSE((*plugin)->manifest().description.empty());
  }
}

TEST(Loader, TakesNamesAndPathsWithSpaces) {
  const PluginFolder folder;
  const std::string library = folder.CopyLibrary("odd");
  const std::string manifest = folder.Write("odd.toml", kOddManifest);
  const std::vector<std::string> folders = {folder.path()};
  EXPECT_FALSE(LoadPlugin("odd", {}).ok());
  for (const auto& [what, where] :
       {std::pair{std::string("odd"), folders}, std::pair{library, std::vector<std::string>()},
        std::pair{manifest, std::vector<std::string>()}}) {
    const auto plugin = LoadPlugin(what, where);
    ASSERT_TRUE(plugin.ok()) << plugin.status();
    EXPECT_EQ((*plugin)->manifest().library, library);
  }
  const ScopedVariable variable("MERGEPLAN_PLUGIN_PATH", "/no/such/folder::" + folder.path());
  EXPECT_TRUE(LoadPlugin("odd", {}).ok());
}

TEST(Loader, TakesAPlainFileNameInTheCurrentFolder) {
  const PluginFolder folder;
  folder.CopyLibrary("odd");
  folder.Write("odd.toml", kOddManifest);
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const auto by_library = LoadPlugin("odd.so", {});
  const auto by_manifest = LoadPlugin("odd.toml", {});
  fs::current_path(before);
  EXPECT_TRUE(by_library.ok()) << by_library.status();
  EXPECT_TRUE(by_manifest.ok()) << by_manifest.status();
}

TEST(Loader, LoadsAPluginInPlainC) {
  const PluginFolder folder;
  folder.CopyLibrary("c_plugin");
  folder.Write("c_plugin.toml", kCPluginManifest);
  const auto plugin = LoadPlugin("c_plugin", {folder.path()});
  ASSERT_TRUE(plugin.ok()) << plugin.status();
}

TEST(Loader, NotFoundListsWhatThereIs) {
  const auto plugin = LoadPlugin("bot", {});
  EXPECT_EQ(plugin.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(
      LoaderMessage(plugin.status()),
      AllOf(HasSubstr("plugin bot: not found"),
            HasSubstr("one of boot, consistency, dp_custom, greedy, manual, progressive, vanilla"),
            HasSubstr("lib/mergeplan/plugins")));
  EXPECT_THAT(LoaderMessage(LoadPlugin("bot", {"/no/such folder"}).status()),
              HasSubstr("/no/such folder is no folder of plugins"));
}

TEST(Loader, MissingParts) {
  const PluginFolder folder;
  const std::string library = folder.CopyLibrary("odd");
  EXPECT_THAT(LoaderMessage(LoadPlugin(library, {}).status()),
              AllOf(HasSubstr(library), HasSubstr("manifest"), HasSubstr("is missing")));
  folder.Write("odd.toml", kOddManifest);
  fs::remove(library);
  const auto plugin = LoadPlugin("odd", {folder.path()});
  EXPECT_EQ(plugin.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(LoaderMessage(plugin.status()),
              AllOf(HasSubstr("plugin odd"), HasSubstr(library), HasSubstr("no such library")));
  EXPECT_THAT(LoaderMessage(LoadPlugin(folder.File("none.so"), {}).status()),
              HasSubstr("none.so: no such plugin library"));
  EXPECT_THAT(LoaderMessage(LoadPlugin(folder.File("none.toml"), {}).status()),
              HasSubstr("none.toml"));
}

TEST(Loader, ManifestOfAnotherLibrary) {
  const PluginFolder folder;
  folder.CopyLibrary("odd");
  const std::string other = folder.CopyLibrary("odd", "even");
  folder.Write("even.toml", Replaced(kOddManifest, "name = \"odd\"", "name = \"even\""));
  EXPECT_THAT(LoaderMessage(LoadPlugin(other, {}).status()),
              HasSubstr("library: found odd.so, expected even.so"));
}

TEST(Loader, WrongMajorIsSaidBeforeTheLibraryIsTouched) {
  const PluginFolder folder;
  folder.Write("odd.toml", Replaced(kOddManifest, "abi_major = 1", "abi_major = 2"));
  folder.Write("odd.so", "not a library at all");
  const auto plugin = LoadPlugin("odd", {folder.path()});
  EXPECT_EQ(plugin.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(LoaderMessage(plugin.status()),
              HasSubstr("plugin odd is for ABI 2.0, this host speaks 1."));
}

// "needs X, this teacher gives Y" comes before any code of the plugin: this library is none.
TEST(Loader, WhatATeacherLacksIsSaidBeforeTheLibraryIsTouched) {
  const PluginFolder folder;
  folder.Write("c_plugin.toml", kCPluginManifest);
  folder.Write("c_plugin.so", "not a library at all");
  constexpr std::uint64_t kPredictsX0 = 1;
  constexpr std::uint64_t kGivesGradients = 8;
  const auto plugin = LoadPlugin("c_plugin", {folder.path()}, kPredictsX0);
  EXPECT_EQ(plugin.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(LoaderMessage(plugin.status()),
            "plugin c_plugin needs a teacher with gives-gradients; this one has predicts-x0 and "
            "lacks gives-gradients");
  EXPECT_THAT(LoaderMessage(LoadPlugin("c_plugin", {folder.path()}, kGivesGradients).status()),
              HasSubstr("no ELF file"));
  EXPECT_THAT(LoaderMessage(LoadPlugin("greedy", {}, kPredictsX0).status()),
              HasSubstr("lacks has-spectrum"));
}

TEST(Loader, FindingAManifestRunsNoCode) {
  const PluginFolder folder;
  folder.Write("odd.toml", kOddManifest);
  folder.Write("odd.so", "not a library at all");
  const auto manifest = FindManifest("odd", {folder.path()});
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_THAT(
      ParameterLines(*manifest),
      ::testing::ElementsAre("do (a text without NUL, default \"good\"): what to do",
                             "rate (a finite number, 0 or more, default \"0.5\"): a number"));
  EXPECT_EQ(FindManifest("even", {folder.path()}).status().code(), absl::StatusCode::kNotFound);
}

TEST(Loader, NoSymbol) {
  const PluginFolder folder;
  folder.CopyLibrary("no_symbol", "odd");
  folder.Write("odd.toml", kOddManifest);
  EXPECT_THAT(
      LoaderMessage(LoadPlugin("odd", {folder.path()}).status()),
      AllOf(HasSubstr("plugin odd"), HasSubstr("exports no function mergeplan_plugin_entry")));
}

TEST(Loader, CutLibrariesAreErrorsAndNoCrash) {
  const PluginFolder whole;
  const std::string bytes = Slurp(whole.CopyLibrary("odd"));
  ASSERT_GT(bytes.size(), 10000u);
  std::vector<size_t> lengths = {0, 1, 4, 16, 63, 64, 65, 200, bytes.size() - 1};
  for (size_t k = 1; k < 40; ++k) lengths.push_back(bytes.size() * k / 40);
  for (const size_t length : lengths) {
    // A folder each: the loader of the system remembers files that it has seen.
    const PluginFolder folder;
    folder.Write("odd.so", bytes.substr(0, length));
    folder.Write("odd.toml", kOddManifest);
    const auto plugin = LoadPlugin("odd", {folder.path()});
    ASSERT_FALSE(plugin.ok()) << length << " of " << bytes.size() << " bytes";
    EXPECT_THAT(LoaderMessage(plugin.status()),
                AllOf(HasSubstr("plugin odd"), HasSubstr("odd.so")));
    if (length >= 64) {
      EXPECT_EQ(plugin.status().code(), absl::StatusCode::kDataLoss) << plugin.status();
      EXPECT_THAT(LoaderMessage(plugin.status()), HasSubstr("truncated library"));
    }
  }
}

// Without section headers (some strip them) only the segments tell that the file was cut.
TEST(Loader, CutLibrariesWithoutSectionHeaders) {
  const PluginFolder whole;
  std::string bytes = Slurp(whole.CopyLibrary("odd"));
  std::memset(bytes.data() + offsetof(Elf64_Ehdr, e_shoff), 0, sizeof(Elf64_Ehdr::e_shoff));
  std::memset(bytes.data() + offsetof(Elf64_Ehdr, e_shnum), 0, sizeof(Elf64_Ehdr::e_shnum));
  {
    const PluginFolder folder;
    folder.Write("odd.so", bytes);
    folder.Write("odd.toml", kOddManifest);
    const auto plugin = LoadPlugin("odd", {folder.path()});
    EXPECT_TRUE(plugin.ok()) << plugin.status();
  }
  const PluginFolder folder;
  folder.Write("odd.so", bytes.substr(0, bytes.size() / 4));
  folder.Write("odd.toml", kOddManifest);
  const auto plugin = LoadPlugin("odd", {folder.path()});
  EXPECT_EQ(plugin.status().code(), absl::StatusCode::kDataLoss) << plugin.status();
  EXPECT_THAT(LoaderMessage(plugin.status()), HasSubstr("its segment "));
}

TEST(Loader, OtherFiles) {
  const std::pair<std::string, std::string> cases[] = {
      {"#!/bin/sh\nexit 0\n" + std::string(100, ' '), "no ELF file"},
      {Slurp("/proc/self/exe").substr(0, 3), "no ELF file"},
      {std::string("\x7f"
                   "ELF\1\1\1",
                   7) +
           std::string(100, '\0'),
       "another kind of ELF file"},
  };
  for (const auto& [bytes, expected] : cases) {
    const PluginFolder folder;
    folder.Write("odd.so", bytes);
    folder.Write("odd.toml", kOddManifest);
    EXPECT_THAT(LoaderMessage(LoadPlugin("odd", {folder.path()}).status()), HasSubstr(expected));
  }
  const PluginFolder folder;
  fs::create_directory(folder.File("odd.so"));
  folder.Write("odd.toml", kOddManifest);
  EXPECT_THAT(LoaderMessage(LoadPlugin("odd", {folder.path()}).status()),
              HasSubstr("found no file"));
}

TEST(Loader, EntriesThatDoNotFit) {
  const std::map<std::string, std::string> cases = {
      {"null", "mergeplan_plugin_entry() returned NULL"},
      {"throw", "threw an exception across the border: no entry today"},
      {"major", "the library is for ABI 2."},
      {"tiny-major", "the library is for ABI 2."},
      {"needs-later-minor", "the library needs ABI 1.7 or newer"},
      {"size-0", "mergeplan_plugin: struct_size is 0, expected 12 or more"},
      {"size-small", "mergeplan_plugin: struct_size is "},
      {"no-plan", "plan is NULL"},
      {"no-execute", "execute is NULL"},
      {"name", "name is \"even\" in the library and \"odd\" in the manifest"},
      {"null-name", "name is \"missing\" in the library"},
      {"version", "version is \"0.2\" in the library and \"0.1\" in the manifest"},
      {"description", "description is \"Something else\""},
      {"needs", "teacher_needs is \"4\""},
      {"fewer-parameters", "the number of parameters is \"1\" in the library and \"2\""},
      {"null-parameters", "parameters is NULL"},
      {"rate-type", "parameter rate: type is \"0\""},
      {"rate-name", "the name of a parameter is \"speed\" in the library and \"rate\""},
      {"rate-default", "parameter rate: default is \"0.75\" in the library and \"0.5\""},
      {"rate-no-default", "parameter rate: default is \"none\""},
      {"rate-nan-default", "parameter rate: default is \"nan\""},
      {"rate-minimum", "parameter rate: minimum is \"0.25\" in the library and \"0\""},
      {"rate-nan-minimum", "a bound in the library is not finite"},
      {"rate-maximum", "parameter rate: maximum is \"0\" in the library and \"none\""},
      {"rate-size", "mergeplan_parameter_spec: struct_size is 8"},
  };
  const PluginFolder folder;
  folder.CopyLibrary("odd");
  folder.Write("odd.toml", kOddManifest);
  for (const auto& [odd, expected] : cases) {
    const ScopedVariable variable("MERGEPLAN_TEST_ODD_ENTRY", odd);
    const auto plugin = LoadPlugin("odd", {folder.path()});
    ASSERT_FALSE(plugin.ok()) << odd;
    EXPECT_THAT(LoaderMessage(plugin.status()),
                AllOf(HasSubstr("plugin odd: "), HasSubstr("odd.so"), HasSubstr(expected)));
  }
  EXPECT_TRUE(LoadPlugin("odd", {folder.path()}).ok());
}

TEST(Loader, AnEntryThatEndsOrHangsTheProgramIsAnError) {
  const PluginFolder folder;
  const std::string library = folder.CopyLibrary("odd");
  folder.Write("odd.toml", kOddManifest);
  const std::map<std::string, std::string> cases = {
      {"crash", "crashed while it was being loaded (signal 11, Segmentation fault)"},
      {"abort", "crashed while it was being loaded (signal 6, Aborted)"},
      {"exit", "ended the program while it was being loaded (exit status 0)"},
      {"hang", "was still being loaded after 0.5 seconds"},
  };
  const ScopedVariable seconds("MERGEPLAN_PLUGIN_LOAD_SECONDS", "0.5");
  for (const auto& [odd, expected] : cases) {
    const ScopedVariable variable("MERGEPLAN_TEST_ODD_ENTRY", odd);
    const auto plugin = LoadPlugin("odd", {folder.path()});
    ASSERT_FALSE(plugin.ok()) << odd;
    EXPECT_THAT(LoaderMessage(plugin.status()),
                AllOf(HasSubstr("plugin odd: " + library + ": "), HasSubstr(expected)));
    int usable = 0;
    for (const PluginListing& listing : ListPlugins({folder.path()})) {
      if (listing.name == "odd") {
        EXPECT_EQ(listing.status, plugin.status());
      }
      usable += listing.status.ok() ? 1 : 0;
    }
    EXPECT_EQ(usable, 7);
  }
  EXPECT_TRUE(LoadPlugin("odd", {folder.path()}).ok());
}

TEST(Loader, ALongMessageComesBackWhole) {
  const std::string name(5000, 'x');
  const absl::Status status = TryLoading("it", [&] { return absl::DataLossError("no " + name); });
  EXPECT_EQ(status, absl::DataLossError("no " + name));
  EXPECT_TRUE(TryLoading("it", [] { return absl::OkStatus(); }).ok());
}

TEST(Loader, APluginOfALaterMinorLoads) {
  const PluginFolder folder;
  folder.CopyLibrary("odd");
  folder.Write("odd.toml", Replaced(kOddManifest, "abi_minor = 0", "abi_minor = 7"));
  const ScopedVariable variable("MERGEPLAN_TEST_ODD_ENTRY", "later-minor");
  const auto plugin = LoadPlugin("odd", {folder.path()});
  EXPECT_TRUE(plugin.ok()) << plugin.status();
}

TEST(List, OneBadPluginDoesNotHideTheOthers) {
  const PluginFolder first;
  const PluginFolder second;
  first.CopyLibrary("odd");
  first.Write("odd.toml", kOddManifest);
  first.Write("broken.toml", "format = 1\nnmae = \"broken\"\n");
  first.Write("vanilla.toml", "format =");
  second.CopyLibrary("odd");
  second.Write("odd.toml", kOddManifest);
  second.Write("notes.txt", "not a plugin");
  std::map<std::string, std::vector<PluginListing>> by_name;
  for (PluginListing& listing : ListPlugins({first.path(), second.path(), "/no/such/place"})) {
    by_name[listing.name].push_back(std::move(listing));
  }
  for (const char* name : {"boot", "consistency", "dp_custom", "progressive"}) {
    ASSERT_EQ(by_name[name].size(), 1u) << name;
    EXPECT_TRUE(by_name[name][0].status.ok()) << by_name[name][0].status;
    EXPECT_TRUE(by_name[name][0].manifest.has_value());
  }
  ASSERT_EQ(by_name["odd"].size(), 2u);
  EXPECT_TRUE(by_name["odd"][0].status.ok());
  EXPECT_EQ(by_name["odd"][0].manifest_path, first.File("odd.toml"));
  EXPECT_THAT(LoaderMessage(by_name["odd"][1].status),
              HasSubstr("odd is hidden by " + first.File("odd.toml")));
  ASSERT_EQ(by_name["broken"].size(), 1u);
  EXPECT_THAT(LoaderMessage(by_name["broken"][0].status), HasSubstr("unknown key \"nmae\""));
  // A broken one that comes first is what would be loaded, so it hides the good one.
  ASSERT_EQ(by_name["vanilla"].size(), 2u);
  EXPECT_THAT(LoaderMessage(by_name["vanilla"][0].status), HasSubstr("no valid TOML"));
  EXPECT_EQ(by_name["vanilla"][1].status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(LoadPlugin("vanilla", {first.path()}).status(), by_name["vanilla"][0].status);
  ASSERT_EQ(by_name["place"].size(), 1u);
  EXPECT_EQ(by_name["place"][0].status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(by_name.count("notes"), 0u);
}

TEST(SearchPath, KeepsTheOrderAndNamesAFolderOnce) {
  const PluginFolder a;
  const PluginFolder b;
  const ScopedVariable variable("MERGEPLAN_PLUGIN_PATH", b.path() + ":" + a.path() + "/.:/none");
  const std::vector<std::string> path = PluginSearchPath({a.path()});
  ASSERT_EQ(path.size(), 3u);
  EXPECT_EQ(path[0], fs::canonical(a.path()).string());
  EXPECT_EQ(path[1], fs::canonical(b.path()).string());
  EXPECT_THAT(path[2], HasSubstr("lib/mergeplan/plugins"));
}

}  // namespace
}  // namespace mergeplan
