// Faults of the certificate and of the .npz beside a plan file.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/plan/io/document.h"
#include "tests/planner/plan/io/documents.h"

namespace mergeplan {
namespace {

using ::testing::HasSubstr;

// ---- the certificate, from a file that was written with one

class CertificateFaultTest : public ::testing::Test {
 protected:
  CertificateFaultTest() {
    EXPECT_TRUE(WritePlan(SmallDocument(), folder_.At("plan.toml")).ok());
    EXPECT_TRUE(WritePlan(SmallDocument(), folder_.At("plan.json")).ok());
    toml_ = *ReadFile(folder_.At("plan.toml"));
    json_ = *ReadFile(folder_.At("plan.json"));
  }
  // Replaces the whole line `key = …` in both forms; the message must name the line and say
  // `words`.
  void Expect(const std::string& key, const std::string& value, const std::string& words) {
    const size_t certificate = toml_.find("[certificate]");
    const size_t begin = toml_.find("\n" + key + " = ", certificate) + 1;
    ASSERT_NE(begin, 0U) << key;
    std::string text = toml_;
    text.replace(begin, text.find('\n', begin) - begin, value.empty() ? "" : key + " = " + value);
    const auto line = 1 + std::count(toml_.begin(), toml_.begin() + static_cast<long>(begin), '\n');
    const auto read = ReadPlan(folder_.Write("edited.toml", text));
    ASSERT_FALSE(read.ok()) << key << " = " << value;
    const std::string message(read.status().message());
    EXPECT_THAT(message, HasSubstr("certificate." + key + ": "));
    EXPECT_THAT(message, HasSubstr(words));
    if (!value.empty()) {
      EXPECT_THAT(message,
                  ::testing::StartsWith(folder_.At("edited.toml:") + std::to_string(line) + ": "));
    }

    const size_t at = json_.find("  \"" + key + "\": ");
    ASSERT_NE(at, std::string::npos) << key;
    text = json_;
    text.replace(at, text.find('\n', at) - at,
                 value.empty() ? "" : "  \"" + key + "\": " + value + ",");
    // The last member has no comma.
    for (const char* end : {",\n}", ",\n\n}"}) {
      if (text.find(end) != std::string::npos) text.erase(text.find(end), 1);
    }
    const auto json = ReadPlan(folder_.Write("edited.json", text));
    ASSERT_FALSE(json.ok()) << key << " = " << value;
    const std::string said(json.status().message());
    EXPECT_THAT(said, HasSubstr(key + ": "));
    EXPECT_THAT(said, HasSubstr(words));
    if (!value.empty()) {
      const auto json_line =
          1 + std::count(json_.begin(), json_.begin() + static_cast<long>(at), '\n');
      EXPECT_THAT(said, ::testing::StartsWith(folder_.At("edited.json:") +
                                              std::to_string(json_line) + ": "));
    }
  }

  TempFolder folder_;
  std::string toml_, json_;
};

TEST_F(CertificateFaultTest, ContradictionsAndWrongTypes) {
  Expect("lower_bound", "-1e-9", "is -1e-09");
  Expect("lower_bound", "0.5", "above the objective");
  Expect("objective", "-1", "is -1");
  Expect("objective", "\"small\"", "is a text, expected a number");
  Expect("objective_surrogate", "-1", "is -1");
  Expect("objective_teacher", "true", "is a truth value, expected a number");
  Expect("tolerance", "-1", "is -1");
  Expect("seconds", "-1", "is -1");
  Expect("gap", "0.5", "but objective and lower_bound give");
  Expect("status", "\"best\"", "is \"best\", expected optimal");
  Expect("status", "\"optimal\"", "is optimal, but objective - lower_bound is");
  Expect("status", "3", "is a whole number, expected a text");
  Expect("value", "[1.0]", "has 1 numbers, expected 2");
  Expect("tau", "[1.0, 2.0, 3.0]", "has 3 numbers, expected 2");
  Expect("value", "[1.0, -2.0]", "number 2 is -2");
  Expect("value", "7", "is a whole number, expected a list");
  Expect("merges_trained", "-1", "is -1");
  Expect("merges_trained", "4", "there are 3 merges");
  Expect("fingerprint", "17", "is a whole number, expected a text");
}

TEST_F(CertificateFaultTest, MissingKeys) {
  for (const char* key :
       {"status", "guarantee", "objective", "lower_bound", "tolerance", "objective_surrogate",
        "objective_teacher", "objective_equal_total_time", "seconds", "value", "tau"}) {
    Expect(key, "", "the key is missing");
  }
}

TEST_F(CertificateFaultTest, UncheckedProvesNothing) {
  std::string text = Replaced(toml_, "status = \"within_gap\"", "status = \"unchecked\"");
  const auto read = ReadPlan(folder_.Write("edited.toml", text));
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(std::string(read.status().message()),
              HasSubstr("expected 0 where the status is unchecked"));
}

TEST_F(CertificateFaultTest, Strategies) {
  const auto fails = [&](const std::string& from, const std::string& to, const std::string& words) {
    const auto read = ReadPlan(folder_.Write("edited.toml", Replaced(toml_, from, to)));
    ASSERT_FALSE(read.ok()) << to;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(words));
  };
  fails("vanilla = { objective =", "vanilla = { objektive =", "did you mean \"objective\"?");
  fails("vanilla = { objective =", "vanilla = { objective = 1, objective =", "no valid TOML");
  fails(", merges_trained = 1 }", " }", "strategies.vanilla.merges_trained: the key is missing");
  fails("merges_trained = 1 }", "merges_trained = -1 }", "is -1");
  fails("[certificate.strategies]", "[certificate.strategys]", "did you mean \"strategies\"?");
  fails("\n[certificate]\n", "\n[certifikate]\n", "did you mean \"certificate\"?");
}

TEST(CertificateTest, AnEmptyOneIsNone) {
  const TempFolder folder;
  const auto read = ReadPlan(folder.Write("p.toml", std::string(kPlan) + "[certificate]\n"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->status, "unchecked");
  const auto unknown =
      ReadPlan(folder.Write("p.toml", std::string(kPlan) + "[certificate]\nx = 1\n"));
  EXPECT_THAT(std::string(unknown.status().message()),
              HasSubstr("p.toml:13: certificate.x: unknown key"));
  const auto text =
      ReadPlan(folder.Write("p.toml", std::string(kPlan) + "certificate = \"yes\"\n"));
  EXPECT_THAT(std::string(text.status().message()), HasSubstr("p.toml:12: certificate: is a text"));
}

// ---- the .npz

class StoredArraysTest : public ::testing::Test {
 protected:
  StoredArraysTest() {
    EXPECT_TRUE(WritePlan(LargeDocument(70, 3), folder_.At("plan.toml")).ok());
    text_ = *ReadFile(folder_.At("plan.toml"));
    npz_ = folder_.At(folder_.Names()[0]);
  }
  std::string Message(const std::string& from, const std::string& to) {
    const auto read = ReadPlan(folder_.Write("plan.toml", Replaced(text_, from, to)));
    EXPECT_FALSE(read.ok());
    return std::string(read.status().message());
  }

  TempFolder folder_;
  std::string text_, npz_;
};

TEST_F(StoredArraysTest, AChangedNpzIsFoundOut) {
  std::string bytes = *ReadFile(npz_);
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(npz_, bytes).ok());
  const auto read = ReadPlan(folder_.At("plan.toml"));
  EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("arrays.sha256: is "));
  EXPECT_THAT(std::string(read.status().message()), HasSubstr(npz_));
}

TEST_F(StoredArraysTest, AMissingNpzIsNamed) {
  std::filesystem::remove(npz_);
  const auto read = ReadPlan(folder_.At("plan.toml"));
  EXPECT_EQ(read.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("arrays.file: "));
  EXPECT_THAT(std::string(read.status().message()), HasSubstr(npz_));
}

TEST_F(StoredArraysTest, FaultsOfTheTable) {
  EXPECT_THAT(Message("[\"alpha\", \"sigma\"]", "[\"alpha\"]"),
              HasSubstr("alpha: stands alone; sigma is missing"));
  EXPECT_THAT(Message("[\"alpha\", \"sigma\"]", "[\"alpha\", \"sigma\", \"tau\"]"),
              HasSubstr("tau"));
  EXPECT_THAT(Message("[\"alpha\", \"sigma\"]", "[\"alpha\", \"beta\"]"),
              HasSubstr("unknown array \"beta\""));
  EXPECT_THAT(Message("[\"alpha\", \"sigma\"]", "[1]"),
              HasSubstr("arrays.names: is a whole number"));
  EXPECT_THAT(Message("data_scale = 1.0", "data_scale = 1.0\nalpha = [1, 0]"),
              HasSubstr("alpha: stands here and in the .npz"));
  EXPECT_THAT(Message("names = ", "name = "), HasSubstr("did you mean \"names\"?"));
  EXPECT_THAT(Message("[arrays]", "[arrais]"), HasSubstr("did you mean \"arrays\"?"));
}

TEST_F(StoredArraysTest, ThePlanMayMoveWithItsNpz) {
  std::filesystem::create_directories(folder_.At("else"));
  std::filesystem::rename(folder_.At("plan.toml"), folder_.At("else/renamed.toml"));
  std::filesystem::rename(
      npz_, folder_.At("else") + "/" + std::filesystem::path(npz_).filename().string());
  const auto read = ReadPlan(folder_.At("else/renamed.toml"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Difference(LargeDocument(70, 3), *read), "");
}

}  // namespace
}  // namespace mergeplan
