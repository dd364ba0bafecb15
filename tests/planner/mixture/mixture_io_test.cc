#include "planner/mixture/mixture_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/mixture/moments.h"
#include "planner/spectrum/spectrum.h"
#include "tests/planner/mixture/random_mixture.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kKinds;
using testing::RandomMixtureSpec;

class MixtureIoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "mixture test XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/mix ture.toml";
    arrays_ = folder_ + "/mix ture.npz";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  GaussianMixture Make(CovarianceKind kind) {
    std::mt19937_64 rng(5);
    MixtureSpec spec = RandomMixtureSpec(rng, kind, 3, 4);
    spec.name = "some \"odd\"\tname\\ é";
    return GaussianMixture::Create(spec).value();
  }
  // Writes a mixture, replaces `from` by `to` in the TOML and returns what reading says.
  absl::Status Broken(const std::string& from, const std::string& to,
                      CovarianceKind kind = CovarianceKind::kDiagonal) {
    EXPECT_TRUE(WriteMixture(Make(kind), path_).ok());
    const std::string text = *ReadFile(path_);
    EXPECT_NE(text.find(from), std::string::npos) << from << " is not in\n" << text;
    EXPECT_TRUE(WriteFileAtomically(path_, absl::StrReplaceAll(text, {{from, to}})).ok());
    return ReadMixture(path_).status();
  }
  // Replaces the .npz by other arrays and puts the right hash into the TOML.
  absl::Status WithArrays(const NpzWriter& npz) {
    EXPECT_TRUE(WriteMixture(Make(CovarianceKind::kDiagonal), path_).ok());
    const std::string before = *Sha256OfFile(arrays_);
    EXPECT_TRUE(npz.Write(arrays_).ok());
    const std::string text =
        absl::StrReplaceAll(*ReadFile(path_), {{before, *Sha256OfFile(arrays_)}});
    EXPECT_TRUE(WriteFileAtomically(path_, text).ok());
    return ReadMixture(path_).status();
  }

  std::string folder_, path_, arrays_;
};

TEST_F(MixtureIoTest, ReadsBackTheSameValue) {
  for (const CovarianceKind kind : kKinds) {
    const GaussianMixture mixture = Make(kind);
    ASSERT_TRUE(WriteMixture(mixture, path_).ok());
    const auto back = ReadMixture(path_);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(*back == mixture);
    EXPECT_EQ(back->spec().name, mixture.name());
    EXPECT_TRUE(back->notes().empty());
    // Both files can move together.
    const std::string moved = folder_ + "/moved";
    std::filesystem::create_directory(moved);
    std::filesystem::rename(path_, moved + "/mix ture.toml");
    std::filesystem::rename(arrays_, moved + "/mix ture.npz");
    EXPECT_TRUE(ReadMixture(moved + "/mix ture.toml").ok());
    std::filesystem::remove_all(moved);
  }
  EXPECT_EQ(MixtureArraysPath("a/b.toml"), "a/b.npz");
  EXPECT_EQ(MixtureArraysPath("a/b"), "a/b.npz");
  EXPECT_THAT(WriteMixture(Make(CovarianceKind::kFull), folder_ + "/\xff.toml").message(),
              HasSubstr("not UTF-8"));
}

TEST_F(MixtureIoTest, ErrorsNameTheKey) {
  const auto is = [&](const std::string& key, const std::string& what) {
    return AllOf(HasSubstr(path_), HasSubstr(key), HasSubstr(what));
  };
  EXPECT_THAT(Broken("format = 1", "format = 2").message(), is("'format'", "is 2"));
  EXPECT_THAT(Broken("kind = \"mixture\"", "kind = \"model\"").message(),
              is("'kind'", "expected \"mixture\""));
  EXPECT_THAT(Broken("kind = \"mixture\"", "kind = \"spectrum\"").message(),
              is("is a spectrum, expected a mixture", "mergeplan mixture fit -o writes one"));
  EXPECT_THAT(Broken("K = 3", "K = 0").message(), is("'K'", "is 0"));
  EXPECT_THAT(Broken("K = 3", "K = 3.0").message(), is("'K'", "whole number"));
  EXPECT_THAT(Broken("d = 4\n", "").message(), is("'d'", "is missing"));
  EXPECT_THAT(Broken("name = ", "nome = ").message(), is("'name'", "is missing"));
  EXPECT_THAT(Broken("K = 3", "K = 3\nmodes = 3").message(), is("'modes'", "unknown key"));
  EXPECT_THAT(Broken("K = 3", "K = 3\nrank = 2").message(), is("'rank'", "unknown key"));
  EXPECT_THAT(Broken("file = ", "weight = 1\nfile = ").message(),
              is("'arrays.weight'", "unknown key"));
  EXPECT_THAT(Broken("[arrays]", "[array]").message(), is("'arrays'", "is missing"));
  EXPECT_THAT(Broken("\"diagonal\"", "\"banded\"").message(),
              is("'covariance'", "\"diagonal\", \"low-rank\" or \"full\""));
  EXPECT_THAT(Broken("rank = ", "rank = 9#", CovarianceKind::kLowRank).message(),
              is("'rank'", "is 9, expected 1..4"));
  EXPECT_THAT(Broken("K = 3", "K = = 3").message(), is("line", "TOML"));
  EXPECT_THAT(Broken("mix ture.npz", "../mix ture.npz").message(),
              is("'arrays.file'", "same folder"));
  EXPECT_EQ(ReadMixture(folder_ + "/none.toml").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(MixtureIoTest, ErrorsNameTheArray) {
  const auto damaged = Broken("sha256 = \"", "sha256 = \"0");
  EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(damaged.message(), AllOf(HasSubstr("have changed"), HasSubstr(arrays_)));
  EXPECT_THAT(Broken("K = 3", "K = 2").message(),
              AllOf(HasSubstr("array weights has the shape [3]"), HasSubstr("expected [2]")));
  EXPECT_THAT(Broken("d = 4", "d = 5").message(),
              AllOf(HasSubstr("array means has the shape [3, 4]"), HasSubstr("expected [3, 5]")));
  EXPECT_THAT(
      Broken("\"diagonal\"", "\"full\"").message(),
      AllOf(HasSubstr("unknown array variances"), HasSubstr("weights, means, covariances")));

  ASSERT_TRUE(WriteMixture(Make(CovarianceKind::kDiagonal), path_).ok());
  std::filesystem::remove(arrays_);
  const absl::Status gone = ReadMixture(path_).status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(gone.message(), AllOf(HasSubstr(arrays_), HasSubstr("keep both files together")));

  const std::vector<double> weights = {0.5, 0.25, 0.25}, twelve(12, 1.0);
  NpzWriter missing;
  missing.Add("weights", {3}, weights);
  missing.Add("means", {3, 4}, twelve);
  EXPECT_THAT(WithArrays(missing).message(), HasSubstr("variances"));
  NpzWriter whole = missing;
  whole.Add("variances", {3, 4}, twelve, NpzWriter::Type::kInt64);
  EXPECT_THAT(WithArrays(whole).message(),
              AllOf(HasSubstr("array variances is of type <i8"), HasSubstr("float32 or float64")));
  NpzWriter single = missing;
  single.Add("variances", {3, 4}, twelve, NpzWriter::Type::kFloat32);
  EXPECT_TRUE(WithArrays(single).ok());
  NpzWriter more = single;
  more.Add("colour", {1}, {1.0});
  EXPECT_THAT(WithArrays(more).message(), HasSubstr("unknown array colour"));
  NpzWriter nan = missing;
  std::vector<double> hole = twelve;
  hole[6] = std::nan("");
  nan.Add("variances", {3, 4}, hole);
  EXPECT_THAT(WithArrays(nan).message(),
              AllOf(HasSubstr(path_), HasSubstr("array variances is nan at [1, 2]")));
  NpzWriter heavy;
  heavy.Add("weights", {3}, {0.5, 0.5, 0.5});
  heavy.Add("means", {3, 4}, twelve);
  heavy.Add("variances", {3, 4}, twelve);
  EXPECT_THAT(WithArrays(heavy).message(), HasSubstr("array weights sums to 1.5"));
}

// Every truncation and many flipped bytes: an error or, never, another mixture.
TEST_F(MixtureIoTest, DamagedFilesAreRefused) {
  const GaussianMixture mixture = Make(CovarianceKind::kLowRank);
  ASSERT_TRUE(WriteMixture(mixture, path_).ok());
  const std::string toml = *ReadFile(path_), npz = *ReadFile(arrays_);
  std::mt19937_64 rng(6);
  for (int trial = 0; trial < 200; ++trial) {
    std::string broken = npz;
    if (trial % 2 == 0) {
      broken.resize(rng() % npz.size());
    } else {
      broken[rng() % npz.size()] ^= static_cast<char>(1 + rng() % 255);
    }
    ASSERT_TRUE(WriteFileAtomically(arrays_, broken).ok());
    EXPECT_EQ(ReadMixture(path_).status().code(), absl::StatusCode::kDataLoss);
    // The same with the hash of the damaged file: no crash, and no value that is not checked.
    ASSERT_TRUE(
        WriteFileAtomically(path_, absl::StrReplaceAll(toml, {{Sha256(npz), Sha256(broken)}}))
            .ok());
    const auto read = ReadMixture(path_);
    if (read.ok()) {
      EXPECT_EQ(read->dimensions(), mixture.dimensions());
    } else {
      EXPECT_THAT(read.status().message(), HasSubstr("mix ture"));
    }
    ASSERT_TRUE(WriteFileAtomically(path_, toml).ok());
  }
}

TEST_F(MixtureIoTest, ItsMomentsAreASpectrumFile) {
  const GaussianMixture mixture = Make(CovarianceKind::kFull);
  const auto spectrum = MixtureSpectrum(mixture, "mix ture.toml");
  ASSERT_TRUE(spectrum.ok()) << spectrum.status();
  const std::string path = folder_ + "/spectrum.toml";
  ASSERT_TRUE(WriteSpectrum(*spectrum, path).ok());
  const auto back = ReadSpectrum(path);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == *spectrum);
}

// The example of planner/mixture/README.md, word for word.
TEST_F(MixtureIoTest, ReadsWhatTheReadmesScriptWrites) {
  const char* chosen = std::getenv("MERGEPLAN_PYTHON");
  const std::string python = chosen != nullptr ? chosen : "python3";
  if (std::system((python + " -c 'import numpy' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << python << " has no numpy; name one that has in MERGEPLAN_PYTHON";
  }
  const char* source = std::getenv("MERGEPLAN_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  const std::string readme = *ReadFile(absl::StrCat(source, "/planner/mixture/README.md"));
  const std::size_t begin = readme.find("```python\n"), end = readme.find("```\n", begin + 10);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::string script = folder_ + "/write.py";
  ASSERT_TRUE(WriteFileAtomically(script, readme.substr(begin + 10, end - begin - 10)).ok());
  ASSERT_EQ(std::system(absl::StrCat("cd '", folder_, "' && ", python, " write.py").c_str()), 0);
  const auto mixture = ReadMixture(folder_ + "/mixture.toml");
  ASSERT_TRUE(mixture.ok()) << mixture.status();
  const auto circle = CircleMixture();
  EXPECT_EQ(mixture->components(), 8);
  EXPECT_EQ(mixture->kind(), CovarianceKind::kDiagonal);
  for (int i = 0; i < 16; ++i) {
    EXPECT_NEAR(mixture->spec().means[i], circle->spec().means[i], 1e-14);
    EXPECT_NEAR(mixture->spec().variances[i], 0.09, 1e-15);
  }
}

}  // namespace
}  // namespace mergeplan
