#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "absl/strings/str_replace.h"
#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/spectrum/estimate.h"
#include "planner/spectrum/spectrum.h"
#include "tests/planner/spectrum/memory_source.h"

namespace mergeplan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SpectrumIoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "spectrum test XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/spec trum.toml";
    arrays_ = folder_ + "/spec trum.npz";

    std::mt19937_64 random(9);
    std::normal_distribution<float> normal;
    std::vector<double> values(50 * 6);
    for (double& value : values) value = 127 + 150 * normal(random);
    MemorySource source(values, {2, 3});
    source.pixels = true;
    source.left_out = 3;
    EstimateOptions options;
    options.source = "some \"odd\"\tname\\with 'quotes' é.npy";
    options.source_sha256 = Sha256("x");
    options.confidence = 0.9;
    auto spectrum = EstimateSpectrum(source, options);
    ASSERT_TRUE(spectrum.ok()) << spectrum.status();
    spectrum_ = *spectrum;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Writes the spectrum, replaces `from` by `to` in the TOML and returns what reading says.
  absl::Status Broken(const std::string& from, const std::string& to) {
    EXPECT_TRUE(WriteSpectrum(spectrum_, path_).ok());
    const std::string text = *ReadFile(path_);
    EXPECT_NE(text.find(from), std::string::npos) << from << " is not in\n" << text;
    EXPECT_TRUE(WriteFileAtomically(path_, absl::StrReplaceAll(text, {{from, to}})).ok());
    return ReadSpectrum(path_).status();
  }
  // Replaces the .npz by other arrays and puts the right hash into the TOML.
  absl::Status WithArrays(const NpzWriter& npz) {
    std::filesystem::remove(arrays_);
    EXPECT_TRUE(WriteSpectrum(spectrum_, path_).ok());
    const std::string before = *Sha256OfFile(arrays_);
    EXPECT_TRUE(npz.Write(arrays_).ok());
    const std::string text =
        absl::StrReplaceAll(*ReadFile(path_), {{before, *Sha256OfFile(arrays_)}});
    EXPECT_TRUE(WriteFileAtomically(path_, text).ok());
    return ReadSpectrum(path_).status();
  }

  std::string folder_, path_, arrays_;
  Spectrum spectrum_;
};

TEST_F(SpectrumIoTest, ReadsBackTheSameBits) {
  ASSERT_TRUE(WriteSpectrum(spectrum_, path_).ok());
  const auto back = ReadSpectrum(path_);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == spectrum_);
  EXPECT_EQ(back->covariance, spectrum_.covariance);
  EXPECT_EQ(back->source, spectrum_.source);
  EXPECT_EQ(back->skipped, 3);
}

TEST_F(SpectrumIoTest, KeepsNumbersThatAreHardToPrint) {
  spectrum_.mean = {0.1, -0.0, 5e-324, 1.7976931348623157e308, 1 + 2.220446049250313e-16, -1e-5};
  spectrum_.diagonal.off_diagonal_energy = 0.1 + 0.2;
  spectrum_.confidence = std::nextafter(1.0, 0.0);
  spectrum_.pca.off_diagonal_energy = 5e-324;
  spectrum_.samples = kMostSamples;
  ASSERT_TRUE(WriteSpectrum(spectrum_, path_).ok());
  const auto back = ReadSpectrum(path_);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == spectrum_);
  EXPECT_TRUE(std::signbit(back->mean[1]));
}

TEST_F(SpectrumIoTest, WorksWithoutPrincipalDirections) {
  spectrum_.vectors.clear();
  spectrum_.pca = Basis();
  EXPECT_THAT(WriteSpectrum(spectrum_, path_).message(), HasSubstr("basis.recommended"));
  spectrum_.recommended_basis = "diagonal";
  ASSERT_TRUE(WriteSpectrum(spectrum_, path_).ok());
  const auto back = ReadSpectrum(path_);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == spectrum_);
}

TEST_F(SpectrumIoTest, MovesToAnotherFolder) {
  ASSERT_TRUE(WriteSpectrum(spectrum_, path_).ok());
  const std::string other = folder_ + "/other place";
  ASSERT_TRUE(MakeDirectories(other).ok());
  std::filesystem::rename(path_, other + "/renamed.toml");
  std::filesystem::rename(arrays_, other + "/spec trum.npz");
  const auto back = ReadSpectrum(other + "/renamed.toml");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == spectrum_);
}

TEST_F(SpectrumIoTest, NamesTheArraysAfterTheToml) {
  EXPECT_EQ(SpectrumArraysPath("a/b.toml"), "a/b.npz");
  EXPECT_EQ(SpectrumArraysPath("b.toml"), "b.npz");
  EXPECT_EQ(SpectrumArraysPath("a.x/b"), "a.x/b.npz");
  EXPECT_EQ(SpectrumArraysPath("a/.toml"), "a/.toml.npz");
  EXPECT_EQ(SpectrumArraysPath("b.npz"), "b.npz.npz");
}

TEST_F(SpectrumIoTest, ReplacesItsOwnArraysAndNobodyElses) {
  ASSERT_TRUE(WriteSpectrum(spectrum_, path_).ok());
  ASSERT_TRUE(WriteSpectrum(spectrum_, path_).ok());
  NpzWriter others;
  others.Add("latents", {2}, std::vector<double>{1, 2});
  const std::string theirs = *others.Bytes();
  for (const std::string& bytes : {theirs, std::string("no archive at all")}) {
    ASSERT_TRUE(WriteFileAtomically(arrays_, bytes).ok());
    const std::string toml = *ReadFile(path_);
    EXPECT_THAT(WriteSpectrum(spectrum_, path_).message(),
                AllOf(HasSubstr(path_), HasSubstr(arrays_), HasSubstr("give another name")));
    EXPECT_EQ(*ReadFile(arrays_), bytes);
    EXPECT_EQ(*ReadFile(path_), toml);
  }
  // Ours with one more.
  NpzWriter more;
  more.Add("diagonal_variances", {1}, std::vector<double>{1});
  ASSERT_TRUE(more.Write(arrays_).ok());
  EXPECT_TRUE(WriteSpectrum(spectrum_, path_).ok());
  more.Add("labels", {1}, std::vector<double>{1});
  ASSERT_TRUE(more.Write(arrays_).ok());
  EXPECT_THAT(WriteSpectrum(spectrum_, path_).message(), HasSubstr("array labels"));
}

TEST_F(SpectrumIoTest, RefusesToWriteWhatIsNotWhole) {
  const Spectrum whole = spectrum_;
  spectrum_.mean.pop_back();
  EXPECT_THAT(WriteSpectrum(spectrum_, path_).message(),
              AllOf(HasSubstr(path_), HasSubstr("data.shape")));
  spectrum_ = whole;
  spectrum_.covariance[5] = std::nan("");
  EXPECT_THAT(WriteSpectrum(spectrum_, path_).message(),
              HasSubstr("covariance is not finite at index 5"));
  spectrum_ = whole;
  spectrum_.scaling.multiply = 2;
  EXPECT_THAT(WriteSpectrum(spectrum_, path_).message(), HasSubstr("\"-1:1\" means"));
  spectrum_ = whole;
  spectrum_.vectors.pop_back();
  EXPECT_THAT(WriteSpectrum(spectrum_, path_).message(),
              HasSubstr("vectors holds 35 numbers; expected 36"));
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_FALSE(std::filesystem::exists(arrays_));
  EXPECT_FALSE(WriteSpectrum(whole, folder_ + "/absent/a.toml").ok());
}

TEST_F(SpectrumIoTest, NamesTheKeyThatIsWrong) {
  const std::pair<std::pair<const char*, const char*>, const char*> cases[] = {
      {{"format = 1", "format = 2"}, "key format is 2; this program reads format 1"},
      {{"format = 1\n", ""}, "key format is missing"},
      {{"format = 1", "format = \"1\""}, "key format is of type string; expected an integer"},
      {{"kind = \"spectrum\"", "kind = \"plan\""}, "key kind is \"plan\""},
      {{"format = 1", "format = 1\ncolour = 3"}, "unknown key colour"},
      {{"[data]", "[data]\nsmaples = 3"}, "unknown key data.smaples"},
      {{"[scaling]", "[scaling]\nshift = 3"}, "unknown key scaling.shift"},
      {{"[basis]", "[basis]\n\"od d\" = 3"}, "unknown key basis.od d"},
      {{"[basis.pca]", "[basis.fourier]\n[basis.pca]"}, "unknown key basis.fourier"},
      {{"[arrays]", "[shrinkage]\nrule = \"most\"\nintensity = 0.5\n[arrays]"},
       "shrinkage.rule: shrinkage \"most\" is unknown"},
      {{"[arrays]", "[shrinkage]\nrule = \"oas\"\nintensity = 1.5\n[arrays]"},
       "shrinkage.intensity is 1.5"},
      {{"[arrays]", "[shrinkage]\nrule = \"none\"\nintensity = 0.5\n[arrays]"},
       "shrinkage.intensity is 0.5 by the rule \"none\""},
      {{"[basis.pca]", "[basis.pca]\nx = 1"}, "unknown key basis.pca.x"},
      {{"[arrays]", "[arrays]\nx = 1"}, "unknown key arrays.x"},
      {{"[arrays]", "[other]"}, "key arrays is missing; expected a table"},
      {{"samples = 50", "samples = 50.5"},
       "key data.samples is of type floating-point; expected an integer"},
      {{"samples = 50", "samples = -1"}, "data.samples is -1"},
      {{"shape = [2, 3]", "shape = [2, 4]"}, "data.shape is [2, 4]"},
      {{"shape = [2, 3]", "shape = [4611686018427387904, 4, 6]"}, "but the mean has 6 dimensions"},
      {{"shape = [2, 3]", "shape = [-2, -3]"}, "data.shape is [-2, -3]"},
      {{"shape = [2, 3]", "shape = [2, \"3\"]"},
       "key data.shape is of type array; expected a list of integers"},
      {{"shape = [2, 3]", "shape = 6"}, "data.shape is of type integer"},
      {{"confidence = 0.9", "confidence = nan"}, "basis.confidence is nan"},
      {{"confidence = 0.9", "confidence = 1"}, "basis.confidence is 1"},
      {{"confidence = 0.9", "confidence = true"},
       "basis.confidence is of type boolean; expected a number"},
      {{"text = \"-1:1\"", "text = \"1:-1\""}, "scaling \"1:-1\" does not rise"},
      {{"text = \"-1:1\"", "text = \"0:1\""}, "\"0:1\" means"},
      {{"regime = \"high\"", "regime = \"warm\""}, "expected low, high or mixed"},
      {{"regime = \"mixed\"", "regime = \"low\""}, "but the variances say \"mixed\""},
      {{"interval = \"gaussian\"", "interval = \"exact\""}, "basis.dct.interval is \"exact\""},
      {{"recommended = \"", "recommended = \"x"}, "basis.recommended: basis \"x"},
      {{"off_diagonal_energy = ", "off_diagonal_energy = 1"}, "expected a share between 0 and 1"},
      {{"file = \"spec", "file = \"../spec"}, "the name of a file in the same folder"},
      {{"file = \"spec trum.npz", "file = \""}, "key arrays.file is \"\""},
      {{"[data]", "[data"}, ": expected a TOML file"},
  };
  // One dimension more than 1 and one less, so that both regimes are there to be broken.
  spectrum_.diagonal.variances = {2, 2, 2, 2, 2, 2};
  spectrum_.diagonal.variances_low = {1, 1, 1, 1, 1, 1};
  spectrum_.diagonal.variances_high = {3, 3, 3, 3, 3, 3};
  SummarizeVariances(spectrum_.diagonal);
  spectrum_.pca.variances = {2, 2, 2, 2, 2, 0.5};
  spectrum_.pca.variances_low = {0, 0, 0, 0, 0, 0};
  spectrum_.pca.variances_high = {3, 3, 3, 3, 3, 3};
  SummarizeVariances(spectrum_.pca);
  spectrum_.diagonal.off_diagonal_energy = 0.5;
  spectrum_.pca.off_diagonal_energy = 0.25;
  for (const auto& [change, message] : cases) {
    const absl::Status status = Broken(change.first, change.second);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << change.second << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr(path_));
    if (std::string(message) != ": expected a TOML file") {
      EXPECT_THAT(status.message(), HasSubstr(message));
    } else {
      EXPECT_THAT(status.message(), HasSubstr("expected a TOML file"));
    }
    EXPECT_EQ(status.message().find('\n'), absl::string_view::npos) << status;
  }
}

// Without a covariance there is no such figure; with one, its absence is not 0.
TEST_F(SpectrumIoTest, ACovarianceNeedsItsOffDiagonalEnergy) {
  ASSERT_TRUE(WriteSpectrum(spectrum_, path_).ok());
  std::string text = *ReadFile(path_);
  const std::size_t begin = text.find("off_diagonal_energy", text.find("\n[basis.diagonal]")),
                    end = text.find('\n', begin);
  ASSERT_NE(end, std::string::npos);
  text.erase(begin, end + 1 - begin);
  ASSERT_TRUE(WriteFileAtomically(path_, text).ok());
  EXPECT_THAT(
      ReadSpectrum(path_).status().message(),
      AllOf(HasSubstr(path_), HasSubstr("key basis.diagonal.off_diagonal_energy is missing"),
            HasSubstr("since the file has a covariance")));
}

TEST_F(SpectrumIoTest, NoticesArraysThatAreGoneOrOther) {
  ASSERT_TRUE(WriteSpectrum(spectrum_, path_).ok());
  std::string bytes = *ReadFile(arrays_);
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(arrays_, bytes).ok());
  absl::Status status = ReadSpectrum(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr(path_), HasSubstr(arrays_), HasSubstr("have changed")));
  ASSERT_TRUE(WriteFileAtomically(arrays_, bytes.substr(0, 100)).ok());
  EXPECT_EQ(ReadSpectrum(path_).status().code(), absl::StatusCode::kDataLoss);
  std::filesystem::remove(arrays_);
  status = ReadSpectrum(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr(path_), HasSubstr(arrays_), HasSubstr("keep both files together")));
  EXPECT_EQ(ReadSpectrum(folder_ + "/none.toml").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(ReadSpectrum(folder_).ok());
}

TEST_F(SpectrumIoTest, NoticesArraysThatDoNotFitEachOther) {
  NpzWriter empty;
  empty.Add("other", {1}, {1});
  EXPECT_EQ(WithArrays(empty).code(), absl::StatusCode::kDataLoss);
  NpzWriter flat;
  flat.Add("mean", {6}, spectrum_.mean);
  flat.Add("covariance", {36}, spectrum_.covariance);
  const absl::Status status = WithArrays(flat);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("array covariance has the shape [36]; expected [6, 6]"));

  const auto full = [&](const std::vector<double>& mean, const std::vector<double>& low) {
    NpzWriter npz;
    npz.Add("mean", {6}, mean);
    npz.Add("covariance", {6, 6}, spectrum_.covariance);
    npz.Add("vectors", {6, 6}, spectrum_.vectors);
    for (const Basis* basis : spectrum_.Bases()) {
      npz.Add(basis->name + "_variances", {6}, basis->variances);
      npz.Add(basis->name + "_variances_low", {6}, low);
      npz.Add(basis->name + "_variances_high", {6}, basis->variances_high);
    }
    return npz;
  };
  const std::vector<double> zero(6);
  EXPECT_TRUE(WithArrays(full(spectrum_.mean, zero)).ok());
  EXPECT_THAT(WithArrays(full({1, 2, 3, INFINITY, 5, 6}, zero)).message(),
              HasSubstr("array mean is not finite at index 3"));
  EXPECT_THAT(WithArrays(full(spectrum_.mean, {0, -1, 0, 0, 0, 0})).message(),
              HasSubstr("array diagonal_variances at index 1"));
}

// Else the file could not be read back.
TEST_F(SpectrumIoTest, WritesNoTextThatIsNotUtf8) {
  spectrum_.source = "caf\xE9.npy";
  const absl::Status source = WriteSpectrum(spectrum_, path_);
  EXPECT_EQ(source.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(source.message(), HasSubstr("data.source is not UTF-8"));
  spectrum_.source = "caf\xC3\xA9 \xF0\x9F\x98\x80\n.npy";
  ASSERT_TRUE(WriteSpectrum(spectrum_, path_).ok());
  EXPECT_EQ(*ReadSpectrum(path_), spectrum_);
  const std::string odd = folder_ + "/caf\xE9.toml";
  EXPECT_THAT(WriteSpectrum(spectrum_, odd).message(), HasSubstr("its name is not UTF-8"));
  EXPECT_FALSE(std::filesystem::exists(odd));
  EXPECT_FALSE(std::filesystem::exists(SpectrumArraysPath(odd)));
}

TEST_F(SpectrumIoTest, NeverCrashesOnADamagedFile) {
  ASSERT_TRUE(WriteSpectrum(spectrum_, path_).ok());
  const std::string text = *ReadFile(path_);
  const std::string broken = folder_ + "/broken.toml";
  std::mt19937 random(1);
  int accepted = 0;
  for (int round = 0; round < 600; ++round) {
    std::string damaged = text;
    for (int k = 0; k < 1 + round % 3; ++k) {
      const std::size_t at = random() % damaged.size();
      if (round % 2 == 0) {
        damaged[at] = static_cast<char>(random());
      } else {
        damaged.erase(at, 1 + random() % 20);
      }
    }
    std::ofstream(broken, std::ios::binary) << damaged;
    const auto spectrum = ReadSpectrum(broken);
    if (spectrum.ok()) {
      ++accepted;
      for (const double value : spectrum->mean) ASSERT_TRUE(std::isfinite(value));
    } else {
      ASSERT_THAT(spectrum.status().message(), HasSubstr(folder_));
    }
  }
  EXPECT_LT(accepted, 300);  // what hits a comment or a free text only
}

}  // namespace
}  // namespace mergeplan
