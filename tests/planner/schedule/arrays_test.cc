// Schedules given as arrays, in JSON and in npz; and what can be wrong with a JSON file.

#include "planner/data/npz.h"
#include "tests/planner/schedule/test_util.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::ErrorOf;
using testing::Folder;
using ::testing::HasSubstr;
using testing::MustLoad;

TEST(Arrays, AreTakenAsTheyAre) {
  const Folder folder;
  const std::string path =
      folder.Write("a.json", R"({"alpha": [1, 0.75, 0.25], "sigma": [0, 0.25, 0.75]})");
  for (const std::optional<int> steps : {std::optional<int>(), std::optional<int>(2)}) {
    const Schedule s = MustLoad(path, steps);
    EXPECT_THAT(s.alpha, ElementsAre(1, 0.75, 0.25));
    EXPECT_THAT(s.sigma, ElementsAre(0, 0.25, 0.75));
    EXPECT_THAT(s.level_scale, ElementsAre(1, 1, 1));
    EXPECT_FALSE(s.variance_preserving());
    EXPECT_EQ(s.name, "arrays");
    EXPECT_EQ(s.spec, path);
  }
}

TEST(Arrays, ComeFromNpzBesideOthers) {
  const Folder folder;
  const std::string path = folder.path() + "/a.npz";
  NpzWriter writer;
  writer.Add("alpha", {3}, std::vector<double>{1, 0.8, 0});
  writer.Add("sigma", {3}, std::vector<double>{0, 0.6, 1});
  writer.Add("other", {2, 2}, std::vector<double>{1, 2, 3, 4});
  ASSERT_TRUE(writer.Write(path).ok());
  EXPECT_THAT(MustLoad(path, std::nullopt).alpha, ElementsAre(1, 0.8, 0));
  EXPECT_THAT(ErrorOf(path, 3), AllOf(HasSubstr(path), HasSubstr("3 values"), HasSubstr("4")));
  EXPECT_THAT(ErrorOf(path + ":shift=3", 2), HasSubstr("expected no parameters"));

  NpzWriter one;
  one.Add("alpha", {3}, std::vector<double>{1, 0.8, 0});
  ASSERT_TRUE(one.Write(path).ok());
  EXPECT_THAT(ErrorOf(path, 2), AllOf(HasSubstr("sigma"), HasSubstr("alpha")));

  NpzWriter square;
  square.Add("alpha", {2, 2}, std::vector<double>{1, 2, 3, 4});
  square.Add("sigma", {2, 2}, std::vector<double>{1, 2, 3, 4});
  ASSERT_TRUE(square.Write(path).ok());
  EXPECT_THAT(ErrorOf(path, 2), AllOf(HasSubstr("alpha"), HasSubstr("2 dimensions")));

  NpzWriter nan;
  nan.Add("alpha", {2}, std::vector<double>{1, std::nan("")});
  nan.Add("sigma", {2}, std::vector<double>{0, 1});
  ASSERT_TRUE(nan.Write(path).ok());
  EXPECT_THAT(ErrorOf(path, 1), AllOf(HasSubstr(path), HasSubstr("t = 1")));
}

struct BadArrays {
  const char* json;
  std::vector<const char*> parts;
};

TEST(Arrays, BadOnesAreNamed) {
  const Folder folder;
  const BadArrays cases[] = {
      {R"({"alpha": [1, 0.5, 0.7], "sigma": [0, 0.5, 0.6]})", {"t = 1", "t = 2", "fall strictly"}},
      {R"({"alpha": [1, 0.5, 0.5], "sigma": [0, 0.5, 0.5]})", {"t = 1", "t = 2"}},
      {R"({"alpha": [1, 0.5], "sigma": [0, 0.5, 1]})", {"2 values", "3"}},
      {R"({"alpha": [1], "sigma": [0]})", {"1 values", ">= 2"}},
      {R"({"alpha": [], "sigma": []})", {"0 values"}},
      {R"({"alpha": [1, -0.5], "sigma": [0, 1]})", {"t = 1", "-0.5"}},
      {R"({"alpha": [1, 0.5], "sigma": [0, 0]})", {"t = 1"}},
      {R"({"alpha": ["1", 0.5], "sigma": [0, 1]})", {"\"alpha\"[0]", "\"1\"", "finite number"}},
      {R"({"alpha": [1, null], "sigma": [0, 1]})", {"\"alpha\"[1]", "null"}},
      {R"({"alpha": [1, [0]], "sigma": [0, 1]})", {"\"alpha\"[1]", "[0]"}},
      {R"({"alpha": [1, Infinity], "sigma": [0, 1]})", {"\"alpha\"[1]", "finite number"}},
      {R"({"alpha": "1, 0", "sigma": [0, 1]})", {"\"alpha\"", "string", "list of numbers"}},
      {R"({"alpha": [1, 0]})", {"\"sigma\" is missing"}},
      {R"({"sigma": [1, 0]})", {"\"alpha\" is missing"}},
      {R"({"alpha": [1, 0], "sigma": [0, 1], "sigmas": []})", {"unknown key \"sigmas\""}},
      {R"([1, 2])", {"[1,2]", "_class_name"}},
      {R"({})", {"_class_name", "missing"}},
      {"3", {"found 3", "_class_name"}},
  };
  for (const BadArrays& c : cases) {
    const std::string path = folder.Write("bad.json", c.json);
    const std::string message = ErrorOf(path, std::nullopt);
    EXPECT_THAT(message, HasSubstr(path)) << c.json;
    for (const char* part : c.parts) EXPECT_THAT(message, HasSubstr(part)) << c.json;
  }
}

TEST(Json, ErrorsSayWhere) {
  const Folder folder;
  const BadArrays cases[] = {
      {"{\n  \"alpha\": [1, 0.5,],\n}", {"line 2, column 20"}},
      {"{\"alpha\": [1, 2", {"line 1, column 16"}},
      {"", {"line 1, column 1"}},
      {"{\n\n \"alpha\": nul}", {"line 3, column 14"}},
      {"{\"alpha\": [1, NaN], \"sigma\": [0, 1]}", {"line 1, column 15", "NaN"}},
      {"{\"alpha\": [1, 0], \"sigma\": [0, 1]} x", {"line 1, column 36"}},
      {"{\"alpha\": [1e999, 0], \"sigma\": [0, 1]}", {"no valid JSON", "1e999"}},
      {"{'alpha': 1}", {"line 1, column 2"}},
      {"\x01\x02", {"line 1, column 1"}},
      {"{\"alpha\": \"\xff\"}", {"line 1, column 12"}},
  };
  for (const BadArrays& c : cases) {
    const std::string path = folder.Write("bad.json", c.json);
    const std::string message = ErrorOf(path, 4);
    EXPECT_THAT(message, AllOf(HasSubstr(path), HasSubstr("no valid JSON"))) << c.json;
    for (const char* part : c.parts) EXPECT_THAT(message, HasSubstr(part)) << c.json;
  }
  // Words inside strings are left alone.
  const std::string path = folder.Write(
      "ok.json", R"({"_note": "NaN \" Infinity", "alpha": [1, 0.5], "sigma": [0, 1]})");
  EXPECT_EQ(MustLoad(path, std::nullopt).steps(), 1);
  // Deep nesting is read and refused, not a crash.
  EXPECT_THAT(ErrorOf(folder.Write("deep.json", std::string(100'000, '[')), 4),
              HasSubstr("no valid JSON"));
}

TEST(Files, ThatAreNotThereOrNotRight) {
  const Folder folder;
  EXPECT_THAT(ErrorOf(folder.path() + "/none.json", 4),
              AllOf(HasSubstr("none.json"), HasSubstr("neither a file")));
  EXPECT_THAT(ErrorOf(folder.path(), 4),
              AllOf(HasSubstr(folder.path()), HasSubstr("without scheduler_config.json")));
  EXPECT_THAT(ErrorOf("/dev/null", 4), HasSubstr("not a regular file"));
  EXPECT_THAT(ErrorOf(folder.Write("a.npy", "\x93NUMPY\x01"), 4), HasSubstr("expected an .npz"));
  EXPECT_THAT(ErrorOf(folder.Write("a.npz", "PK\x03\x04 and no more"), 4), HasSubstr("a.npz"));
}

}  // namespace
}  // namespace mergeplan
