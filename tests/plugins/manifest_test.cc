#include "plugins/host/manifest.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plugins/abi/mergeplan_plugin.h"
#include "tests/plugins/plugin_folder.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

std::string ManifestMessage(const absl::Status& status) { return std::string(status.message()); }

// The good manifest with one text replaced.
std::string Changed(const std::string& from, const std::string& to) {
  std::string text = kOddManifest;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Manifest, ReadsEverything) {
  const PluginFolder folder;
  const std::string path =
      folder.Write("odd.toml", Changed("abi_minor = 0",
                                       "abi_minor = 3\nabi_minor_needed = 2\n"
                                       "teacher_needs = [\"predicts-v\", \"data-free\"]"));
  const auto manifest = ReadManifest(path);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->path, path);
  EXPECT_EQ(manifest->library, folder.File("odd.so"));
  EXPECT_EQ(manifest->name, "odd");
  EXPECT_EQ(manifest->version, "0.1");
  EXPECT_EQ(manifest->description, "Misbehaves on demand");
  EXPECT_EQ(manifest->abi_major, 1u);
  EXPECT_EQ(manifest->abi_minor, 3u);
  EXPECT_EQ(manifest->abi_minor_needed, 2u);
  EXPECT_EQ(manifest->teacher_needs, MERGEPLAN_TEACHER_PREDICTS_V | MERGEPLAN_TEACHER_DATA_FREE);
  ASSERT_EQ(manifest->parameters.size(), 2u);
  const ParameterSpec rate{"rate", ParameterType::kReal, "0.5", 0.0, std::nullopt, "a number"};
  EXPECT_EQ(manifest->parameters[1], rate);
}

// A pipe or a device could be read for ever.
TEST(Manifest, MustBeAFile) {
  const PluginFolder folder;
  ASSERT_EQ(mkfifo(folder.File("odd.toml").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", folder.File("zero.toml"));
  for (const char* name : {"odd.toml", "zero.toml"}) {
    const absl::Status status = ReadManifest(folder.File(name)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(ManifestMessage(status), AllOf(HasSubstr(name), HasSubstr("found no file")));
  }
}

TEST(Manifest, NamesWhatIsWrong) {
  struct Case {
    std::string text;
    std::vector<std::string> expected;
  };
  const std::string more = "\n[[parameters]]\nname = \"k\"\nhelp = \"\"\n";
  const Case cases[] = {
      {Changed("library", "libary"), {"odd.toml:5: unknown key \"libary\"", "library"}},
      {Changed("help = \"what", "hlep = \"what"), {"unknown key \"parameters[0].hlep\""}},
      {Changed("format = 1", "format = 2\nnew = 3"), {"format: found 2, expected 1"}},
      {Changed("format = 1\n", ""), {"format: found nothing"}},
      {Changed("name = \"odd\"", "name = \"Odd One\""), {"name: found \"Odd One\"", "a-z"}},
      {Changed("name = \"odd\"", "name = \"even\""), {"name: found \"even\", expected \"odd\""}},
      {Changed("name = \"odd\"", "name = 7"), {"name: found an integer, expected a text"}},
      {Changed("version = \"0.1\"", "version = \"\""), {"version: found \"\""}},
      {Changed("version = \"0.1\"\n", ""), {"version: found nothing, expected a text"}},
      {Changed("description = \"Mis", "description = 1979-05-27 #"),
       {"description: found a date or time"}},
      {Changed("odd.so", "../odd.so"), {"library: found \"../odd.so\"", "without a path"}},
      {Changed("\"odd.so\"", "\"\""), {"library: found \"\""}},
      {Changed("\"odd.so\"", "\"a\\u0000b\""), {"library: found a text with a NUL"}},
      {Changed("abi_major = 1", "abi_major = -1"), {"abi_major: found -1, expected an integer"}},
      {Changed("abi_major = 1", "abi_major = 1.0"), {"abi_major: found a real number"}},
      {Changed("abi_minor = 0", "abi_minor = 9223372036854775807"), {"abi_minor: found 9223372"}},
      {Changed("abi_minor = 0", "abi_minor = 0\nabi_minor_needed = 1"),
       {"abi_minor_needed: found 1, expected at most abi_minor, 0"}},
      {Changed("abi_minor = 0", "abi_minor = 0\nteacher_needs = \"data-free\""),
       {"teacher_needs: found a text, expected a list of predicts-x0"}},
      {Changed("abi_minor = 0", "abi_minor = 0\nteacher_needs = [\"luck\"]"),
       {"teacher_needs: found \"luck\"", "has-spectrum"}},
      {Changed("abi_minor = 0", "abi_minor = 0\nteacher_needs = [1]"),
       {"teacher_needs: found an integer"}},
      {Changed("type = \"real\"", "type = \"float\""),
       {"parameters[1].type: found \"float\", expected integer, real, flag or text"}},
      {Changed("name = \"rate\"", "name = \"do\""), {"parameters: found \"do\" twice"}},
      {Changed("name = \"rate\"", "name = \"9\""), {"parameters[1].name: found \"9\""}},
      {Changed("default = 0.5", "default = nan"), {"default", "finite number"}},
      {Changed("default = 0.5", "default = -1"),
       {"default: found \"-1\", expected a finite number, 0 or more"}},
      {Changed("default = 0.5", "default = \"x\""),
       {"found a text, expected a value of type real"}},
      {Changed("minimum = 0", "minimum = inf"), {"minimum: found inf, expected a finite number"}},
      {Changed("minimum = 0", "minimum = 3\nmaximum = 2"), {"minimum: found 3", "maximum 2"}},
      {Changed("default = \"good\"", "default = \"good\"\nmaximum = 1"),
       {"parameters[0].maximum: found a bound"}},
      {kOddManifest + more, {"parameters[2].type: found nothing"}},
      {kOddManifest + more + "type = \"integer\"\nminimum = 0.5", {"expected an integer"}},
      {kOddManifest + more + "type = \"integer\"\ndefault = 0.5", {"of type integer"}},
      {kOddManifest + more + "type = \"flag\"\ndefault = 1", {"of type flag"}},
      {"format = 1\nname = ", {"odd.toml:2:", "no valid TOML"}},
      {std::string("\0\xff\xfe", 3), {"no valid TOML"}},
      {std::string(2 << 20, '#'), {"at most 1 MiB"}},
      {"x = " + std::string(5000, '[') + std::string(5000, ']'), {"no valid TOML"}},
      {Changed("abi_minor = 0", "abi_minor = 0\nparameters = 3").substr(0, 140),
       {"parameters: found an integer, expected [[parameters]]"}},
      {"", {"format: found nothing"}},
  };
  const PluginFolder folder;
  for (const Case& c : cases) {
    const auto manifest = ReadManifest(folder.Write("odd.toml", c.text));
    ASSERT_FALSE(manifest.ok()) << c.text;
    EXPECT_EQ(manifest.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(ManifestMessage(manifest.status()), HasSubstr(folder.File("odd.toml")));
    EXPECT_THAT(ManifestMessage(manifest.status()), Not(HasSubstr("\n")));
    for (const std::string& expected : c.expected) {
      EXPECT_THAT(ManifestMessage(manifest.status()), HasSubstr(expected));
    }
  }
}

TEST(Manifest, MissingFileIsNotFound) {
  const PluginFolder folder;
  EXPECT_EQ(ReadManifest(folder.File("odd.toml")).status().code(), absl::StatusCode::kNotFound);
}

TEST(Manifest, EveryPrefixIsAnErrorOrReads) {
  const PluginFolder folder;
  const std::string text = kOddManifest;
  int good = 0;
  for (size_t length = 0; length <= text.size(); ++length) {
    const auto manifest = ReadManifest(folder.Write("odd.toml", text.substr(0, length)));
    if (manifest.ok()) {
      ++good;
    } else {
      EXPECT_FALSE(manifest.status().message().empty());
    }
  }
  EXPECT_GE(good, 1);
  EXPECT_LT(good, 20);
}

Manifest Sample() {
  Manifest manifest;
  manifest.name = "sample";
  manifest.parameters = {
      {"factor", ParameterType::kInteger, "2", 2.0, 8.0, "h"},
      {"rate", ParameterType::kReal, std::nullopt, 0.0, std::nullopt, "h"},
      {"fast", ParameterType::kFlag, "false", std::nullopt, std::nullopt, "h"},
      {"file", ParameterType::kText, "", std::nullopt, std::nullopt, "h"},
  };
  return manifest;
}

TEST(Parameters, FillsDefaults) {
  const auto values = CheckParameters(Sample(), {{"rate", "1e-3"}, {"file", "a b.toml"}});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(*values, ElementsAre(Pair("factor", "2"), Pair("fast", "false"),
                                   Pair("file", "a b.toml"), Pair("rate", "1e-3")));
  const auto defaults = CheckParameters(Sample(), {});
  ASSERT_TRUE(defaults.ok());
  EXPECT_EQ(defaults->count("rate"), 0u) << "no default, so absent";
}

TEST(Parameters, NamesWhatIsWrong) {
  const std::pair<std::pair<std::string, std::string>, std::string> cases[] = {
      {{"factor", "1"}, "parameter factor: found \"1\", expected an integer from 2 to 8"},
      {{"factor", "9"}, "expected an integer from 2 to 8"},
      {{"factor", "2.5"}, "expected an integer"},
      {{"factor", ""}, "expected an integer"},
      {{"factor", "99999999999999999999"}, "expected an integer"},
      {{"rate", "nan"}, "parameter rate: found \"nan\", expected a finite number"},
      {{"rate", "inf"}, "expected a finite number"},
      {{"rate", "1e999"}, "expected a finite number"},
      {{"rate", "-1e-9"}, "expected a finite number, 0 or more"},
      {{"rate", "1 "}, "expected a finite number"},
      {{"fast", "yes"}, "expected true or false"},
      {{"file", std::string("a\0b", 3)}, "expected a text without NUL"},
      {{"speed", "1"}, "unknown parameter \"speed\", expected one of factor, rate, fast, file"},
  };
  for (const auto& [given, expected] : cases) {
    const auto values = CheckParameters(Sample(), {given});
    ASSERT_FALSE(values.ok()) << given.first << " = " << given.second;
    EXPECT_EQ(values.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(ManifestMessage(values.status()), HasSubstr("plugin sample: "));
    EXPECT_THAT(ManifestMessage(values.status()), HasSubstr(expected));
  }
  EXPECT_THAT(ManifestMessage(CheckParameters(Manifest(), {{"a", "b"}}).status()),
              HasSubstr("has none"));
}

TEST(Teacher, SaysWhatIsMissing) {
  Manifest manifest = Sample();
  EXPECT_TRUE(CheckTeacher(manifest, 0).ok());
  manifest.teacher_needs = MERGEPLAN_TEACHER_PREDICTS_V | MERGEPLAN_TEACHER_GIVES_GRADIENTS;
  EXPECT_TRUE(CheckTeacher(manifest, ~std::uint64_t{0}).ok());
  const absl::Status status =
      CheckTeacher(manifest, MERGEPLAN_TEACHER_PREDICTS_X0 | MERGEPLAN_TEACHER_GIVES_GRADIENTS);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ManifestMessage(status),
            "plugin sample needs a teacher with predicts-v, gives-gradients; this one has "
            "predicts-x0, gives-gradients and lacks predicts-v");
}

TEST(Abi, MajorMustAgreeAndMinorSuffice) {
  Manifest manifest = Sample();
  manifest.abi_major = MERGEPLAN_ABI_MAJOR;
  manifest.abi_minor = MERGEPLAN_ABI_MINOR + 5;
  EXPECT_TRUE(CheckAbi(manifest).ok()) << "a newer plugin that does not need the news";
  manifest.abi_minor_needed = MERGEPLAN_ABI_MINOR + 5;
  EXPECT_THAT(ManifestMessage(CheckAbi(manifest)), HasSubstr("sample needs ABI 1.6 or newer"));
  manifest.abi_major = MERGEPLAN_ABI_MAJOR + 1;
  EXPECT_THAT(ManifestMessage(CheckAbi(manifest)),
              HasSubstr("sample is for ABI 2.6, this host speaks 1."));
}

}  // namespace
}  // namespace mergeplan
