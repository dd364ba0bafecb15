// Every input that the fuzzers start from or have found, in the usual build: none may break a
// promise of its parser (that stops the process, which fails the test).
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"
#include "tests/fuzz/target.h"

namespace mergeplan::fuzz {
namespace {

int AttackAll(const Target& target) {
  const char* source = std::getenv("MERGEPLAN_SOURCE_DIR");
  if (source == nullptr) return 0;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(source) /
                                                               "tests/fuzz/corpus" / target.name)) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    target.attack(bytes);
    ++count;
  }
  return count;
}

TEST(Corpus, Manifest) { EXPECT_GE(AttackAll(kManifest), 5); }
TEST(Corpus, PlanToml) { EXPECT_GE(AttackAll(kPlanToml), 5); }
TEST(Corpus, PlanJson) { EXPECT_GE(AttackAll(kPlanJson), 5); }

}  // namespace
}  // namespace mergeplan::fuzz
