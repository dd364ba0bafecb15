// Parts of data: what a checkpoint takes up again, and what may be merged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/spectrum/spectrum.h"
#include "tests/planner/cli/command_line.h"

namespace mergeplan {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

std::vector<double> Normals(int count, double mean, double deviation, int seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(mean, deviation);
  std::vector<double> out(count);
  for (double& value : out) value = normal(random);
  return out;
}

// Arrays a and b of the same shape.
std::string TwoArrays(const std::string& folder) {
  NpzWriter npz;
  npz.Add("a", {200, 2}, Normals(400, 0, 1, 1));
  npz.Add("b", {200, 2}, Normals(400, 5, 3, 2));
  EXPECT_TRUE(npz.Write(folder + "/two.npz").ok());
  return folder + "/two.npz";
}

TEST(AnalyzeParts, CheckpointsBelongToAnArrayAScaleAndAPart) {
  const std::string folder = TestFolder(), data = TwoArrays(folder);
  const auto mean = [&](const std::string& flags) {
    const Outcome run = RunMergeplan(absl::StrCat("analyze '", data, "' --shards 2 --checkpoint '",
                                                  folder, "/parts' --json ", flags));
    EXPECT_EQ(run.code, 0) << run.err;
    return json::parse(run.out)["mean"][0].get<double>();
  };
  EXPECT_NEAR(mean("--array a"), 0, 0.5);
  EXPECT_NEAR(mean("--array b"), 5, 1);
  EXPECT_NEAR(mean("--array b --scale 0:2.55"), 0.05, 0.01);
  EXPECT_NEAR(mean("--array b"), 5, 1);  // not the scale of the run before
  // A part in the other's place is read anew.
  for (const std::string ending : {".toml", ".npz"}) {
    fs::copy_file(folder + "/parts/part-1-of-2" + ending, folder + "/parts/part-2-of-2" + ending,
                  fs::copy_options::overwrite_existing);
  }
  const std::string second = folder + "/parts/part-2-of-2.toml";
  std::string text = *ReadFile(second);
  ASSERT_TRUE(
      WriteFileAtomically(second, absl::StrReplaceAll(text, {{"part-1-of-2", "part-2-of-2"}}))
          .ok());
  ASSERT_TRUE(ReadSpectrum(second).ok());
  EXPECT_NEAR(mean("--array b"), 5, 1);
  EXPECT_EQ(ReadSpectrum(second)->parts[0].numbers[0].first, 2);
}

TEST(AnalyzeParts, PatternsHaveCheckpoints) {
  const std::string folder = TestFolder();
  for (int k = 0; k < 3; ++k) {
    NpzWriter npz;
    npz.Add("z", {50, 2}, Normals(100, 0, 1, k));
    ASSERT_TRUE(npz.Write(absl::StrCat(folder, "/x ", k, ".npz")).ok());
  }
  const std::string command = absl::StrCat(
      "analyze '", folder, "/x *.npz' --shards 4 --checkpoint '", folder, "/parts' --json");
  for (int twice = 0; twice < 2; ++twice) {
    const Outcome run = RunMergeplan(command);
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(run.err, "");
    EXPECT_EQ(json::parse(run.out)["samples"], 150);
  }
  EXPECT_EQ(RunMergeplan(absl::StrReplaceAll(command, {{"/x *", "/y *"}})).code, 1);
}

TEST(AnalyzeParts, MergingTakesEverySampleOnce) {
  const std::string folder = TestFolder(), data = TwoArrays(folder);
  const auto part = [&](const std::string& name, const std::string& flags) {
    EXPECT_EQ(RunMergeplan(absl::StrCat("analyze '", data, "' --no-gaussianity ", flags, " -o '",
                                        folder, "/", name, ".toml'"))
                  .code,
              0);
  };
  part("half1", "--array a --shard 1/2");
  part("half2", "--array a --shard 2/2");
  part("quarter", "--array a --shard 1/4");
  part("skipping", "--array a --shard 2/2 --skip-nonfinite");
  part("all", "--array a");
  part("other", "--array b");
  part("other2", "--array b --shard 2/2");
  const auto merge = [&](const std::string& first, const std::string& second) {
    return RunMergeplan(absl::StrCat("spectrum merge '", folder, "/", first, ".toml' '", folder,
                                     "/", second, ".toml' --json -o '", folder, "/merged.toml'"));
  };
  for (const auto& [first, second] : {std::pair<std::string, std::string>{"half1", "quarter"},
                                      {"quarter", "half1"},
                                      {"all", "quarter"},
                                      {"quarter", "all"}}) {
    const Outcome run = merge(first, second);
    EXPECT_EQ(run.code, 1);
    EXPECT_THAT(run.err, HasSubstr("samples in common"));
  }
  EXPECT_THAT(merge("half1", "skipping").err, HasSubstr("of one division"));
  EXPECT_THAT(merge("half1", "other2").err, HasSubstr("array a beside part 2 of 2"));
  EXPECT_EQ(merge("all", "other").code, 0);
  const Outcome some = merge("quarter", "half2");
  ASSERT_EQ(some.code, 0) << some.err;
  EXPECT_EQ(json::parse(some.out)["samples"], 150);
  EXPECT_THAT(json::parse(some.out)["incomplete"].get<std::string>(), HasSubstr("part 1 of 4"));
  // What was merged knows its parts: none can be added again.
  EXPECT_THAT(RunMergeplan(absl::StrCat("spectrum merge '", folder, "/merged.toml' '", folder,
                                        "/half1.toml'"))
                  .err,
              HasSubstr("samples in common"));
  const Outcome whole = merge("half1", "half2");
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_FALSE(json::parse(whole.out).contains("incomplete"));
}

TEST(AnalyzeParts, CountsChangedByHandAreRefused) {
  const std::string folder = TestFolder(), data = TwoArrays(folder);
  std::string names;
  for (const std::string k : {"1", "2"}) {
    const std::string file = absl::StrCat("'", folder, "/part", k, ".toml'");
    ASSERT_EQ(RunMergeplan(absl::StrCat("analyze '", data, "' --array a --no-gaussianity --shard ",
                                        k, "/2 -o ", file))
                  .code,
              0);
    names += " " + file;
  }
  const std::string path = folder + "/part2.toml";
  const std::string text = *ReadFile(path);
  for (const auto& [count, says] :
       {std::pair<std::string, std::string>{"9223372036854775807", "expected 0..9007199254740992"},
        {"9007199254740993", "expected 0..9007199254740992"},
        {"-1", "expected 0.."},
        {"1000", "its intervals are those of another number"},
        {"9007199254740992", "its intervals are those of another number"},
        {"1", "expected at least 2"}}) {
    ASSERT_TRUE(WriteFileAtomically(
                    path, absl::StrReplaceAll(text, {{"samples = 100", "samples = " + count}}))
                    .ok());
    const Outcome run = RunMergeplan("spectrum merge" + names);
    EXPECT_EQ(run.code, 1) << count;
    EXPECT_THAT(run.err, HasSubstr(says));
  }
}

// 60 parts of 5,000 samples: enough of them for a signal to come in between.
std::string ManyParts(const std::string& folder) {
  NpzWriter npz;
  npz.Add("x", {300000, 4}, Normals(1'200'000, 3, 2, 5));
  EXPECT_TRUE(npz.Write(folder + "/long.npz").ok());
  return folder + "/long.npz";
}

// What `analyze --json` printed, without the seconds that it took.
json Timeless(const Outcome& run) {
  EXPECT_EQ(run.code, 0) << run.err;
  json out = json::parse(run.out);
  out.erase("seconds");
  return out;
}

TEST(AnalyzeParts, AnInterruptedRunGoesOnToTheSameResultBitForBit) {
  const std::string folder = TestFolder(), data = ManyParts(folder);
  const auto command = [&](const std::string& parts) {
    return absl::StrCat("analyze '", data, "' --json --shards 60 --checkpoint '", folder, "/",
                        parts, "' -o '", folder, "/", parts, ".toml'");
  };
  const json whole = Timeless(RunMergeplan(command("whole")));
  for (const std::string signal : {"INT", "TERM", "KILL"}) {
    const std::string parts = "stopped-by-" + signal;
    RunMergeplan("--version",
                 absl::StrCat("\"${MERGEPLAN_BIN:-mergeplan}\" ", command(parts), " >'", folder,
                              "/out' 2>'", folder, "/err' & p=$!; while ! [ -e '", folder, "/",
                              parts, "/part-3-of-60.toml' ]; do sleep 0.01; done; kill -", signal,
                              " $p; wait $p; echo $? >'", folder, "/code'"));
    EXPECT_EQ(ReadFile(folder + "/code").value_or(""), signal == "KILL" ? "137\n" : "3\n");
    EXPECT_EQ(ReadFile(folder + "/out").value_or("?"), "");
    if (signal != "KILL") {
      EXPECT_THAT(ReadFile(folder + "/err").value_or(""),
                  testing::MatchesRegex("mergeplan analyze: stopped after [0-9]+ of 60 parts; the "
                                        "same command goes on from there\n"));
    }
    const std::string first = folder + "/" + parts + "/part-1-of-60.toml",
                      last = folder + "/" + parts + "/part-300-of-60.toml";
    ASSERT_TRUE(fs::exists(first));
    ASSERT_FALSE(fs::exists(last)) << "the run was over before the signal came";
    EXPECT_FALSE(fs::exists(folder + "/" + parts + ".toml"));
    const auto written = fs::last_write_time(first);
    EXPECT_EQ(Timeless(RunMergeplan(command(parts))), whole);
    EXPECT_EQ(fs::last_write_time(first), written);  // not made again
    const auto spectrum = ReadSpectrum(folder + "/" + parts + ".toml");
    ASSERT_TRUE(spectrum.ok()) << spectrum.status();
    EXPECT_EQ(*spectrum, *ReadSpectrum(folder + "/whole.toml"));
  }
}

// The eigenvectors of 1,500 dimensions take seconds in which nothing looks up.
TEST(AnalyzeParts, CtrlCEndsTheEigenvectors) {
  const std::string folder = TestFolder(), data = folder + "/x.npz";
  NpzWriter npz;
  npz.Add("x", {1501, 1500}, Normals(1501 * 1500, 0, 1, 7));
  ASSERT_TRUE(npz.Write(data).ok());
  const auto stopped = [&](const std::string& flags, const std::string& wait) {
    RunMergeplan("--version",
                 absl::StrCat("\"${MERGEPLAN_BIN:-mergeplan}\" analyze '", data,
                              "' --basis pca --no-gaussianity -o '", folder, "/all.toml' ", flags,
                              " >'", folder, "/out' 2>'", folder, "/err' & p=$!; ", wait,
                              "; kill -INT $p; wait $p; echo $? >'", folder, "/code'"));
    EXPECT_EQ(ReadFile(folder + "/code").value_or(""), "3\n");
    EXPECT_EQ(ReadFile(folder + "/out").value_or("?"), "");
    EXPECT_FALSE(fs::exists(folder + "/all.toml"));
    return ReadFile(folder + "/err").value_or("");
  };
  EXPECT_EQ(stopped("", "sleep 1"),
            "mergeplan analyze: stopped before it was done; wrote nothing\n");
  const std::string parts = folder + "/parts";
  EXPECT_EQ(
      stopped("--shards 2 --checkpoint '" + parts + "'",
              "while ! [ -e '" + parts + "/part-2-of-2.toml' ]; do sleep 0.01; done; sleep 1"),
      "mergeplan analyze: stopped while the parts were put together; all 2 lie in " + parts +
          ", and the same command goes on from there\n");
}

// Finished parts are told from the data by its size, time and a sample of it: a resumed run reads
// no more of it than that (here: what lies between the pieces may even be lost).
TEST(AnalyzeParts, ResumingReadsNoFinishedPartAgain) {
  const std::string folder = TestFolder(), data = ManyParts(folder);
  const std::string command = absl::StrCat("analyze '", data, "' --json --shards 3 --checkpoint '",
                                           folder, "/parts' -o '", folder, "/all.toml'");
  const json before = Timeless(RunMergeplan(command));
  const std::string hash = ReadSpectrum(folder + "/all.toml")->source_sha256;
  EXPECT_EQ(hash, *Sha256OfFile(data));
  EXPECT_EQ(ReadSpectrum(folder + "/all.toml")->parts[0].sha256, hash);
  // 9.6 MB; the pieces begin every 152 kB and are 16 KiB long.
  const auto time = fs::last_write_time(data);
  std::string bytes = *ReadFile(data);
  for (std::size_t k = 100'000; k < 140'000; ++k) bytes[k] = '\0';
  const auto put = [&] {
    std::FILE* file = std::fopen(data.c_str(), "r+b");
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
    EXPECT_EQ(std::fclose(file), 0);
  };
  put();
  fs::last_write_time(data, time);
  EXPECT_EQ(Timeless(RunMergeplan(command)), before);
  EXPECT_EQ(ReadSpectrum(folder + "/all.toml")->source_sha256, hash);
  // Touched: read anew, and what was lost is noticed.
  fs::last_write_time(data, time + std::chrono::seconds(1));
  EXPECT_THAT(RunMergeplan(command).err, HasSubstr("read anew"));
}

// The environment that mpirun makes, one process at a time; below it is mpirun itself.
TEST(AnalyzeParts, RanksShareThemAndTheFirstMerges) {
  const std::string folder = TestFolder(), data = TwoArrays(folder);
  const std::string command =
      absl::StrCat("analyze '", data, "' --array a --json --checkpoint '", folder, "/parts'");
  const auto as = [](int rank) {
    return absl::StrCat("export OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=", rank);
  };
  const Outcome second = RunMergeplan(command, as(1)), third = RunMergeplan(command, as(2));
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(second.out + third.out, "");
  EXPECT_FALSE(fs::exists(folder + "/parts/part-1-of-3.toml"));
  EXPECT_TRUE(fs::exists(folder + "/parts/part-3-of-3.toml"));
  const Outcome first = RunMergeplan(command, as(0));
  ASSERT_EQ(first.code, 0) << first.err;
  const json whole = json::parse(RunMergeplan("analyze '" + data + "' --array a --json").out);
  const json merged = json::parse(first.out);
  EXPECT_EQ(merged["samples"], whole["samples"]);
  for (int i = 0; i < 2; ++i) {
    EXPECT_NEAR(merged["bases"]["diagonal"]["variances"][i],
                whole["bases"]["diagonal"]["variances"][i], 1e-12);
  }
  // The first waits for what the others have not made yet.
  fs::remove(folder + "/parts/part-2-of-3.toml");
  const Outcome both = RunMergeplan(
      command, absl::StrCat("{ sleep 0.5; ", as(1), "; \"${MERGEPLAN_BIN:-mergeplan}\" ", command,
                            "; } & ", as(0)));
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_EQ(json::parse(both.out)["samples"], 200);
  EXPECT_THAT(RunMergeplan("analyze '" + data + "' --array a", as(0)).err,
              HasSubstr("give --checkpoint FOLDER"));
}

TEST(AnalyzeParts, UnderMpirunIsAsOneProcess) {
  constexpr char kMpirun[] = "/usr/bin/mpirun";
  if (!fs::exists(kMpirun)) GTEST_SKIP() << kMpirun << " is missing (Debian: openmpi-bin)";
  const std::string folder = TestFolder(), data = ManyParts(folder);
  const auto command = [&](const std::string& parts) {
    return absl::StrCat("analyze '", data, "' --json --checkpoint '", folder, "/", parts, "' -o '",
                        folder, "/", parts, ".toml'");
  };
  const auto under = [&](const std::string& arguments) {
    RunMergeplan("--version",
                 absl::StrCat("export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; ",
                              kMpirun, " --oversubscribe -n 3 \"${MERGEPLAN_BIN:-mergeplan}\" ",
                              arguments, " >'", folder, "/out' 2>'", folder, "/err' </dev/null; ",
                              "echo $? >'", folder, "/code'"));
    Outcome out;
    out.code = std::atoi(ReadFile(folder + "/code").value_or("-1").c_str());
    out.out = ReadFile(folder + "/out").value_or("");
    out.err = ReadFile(folder + "/err").value_or("");
    return out;
  };
  for (const std::string shards : {"", " --shards 7"}) {
    const std::string name = shards.empty() ? "three" : "seven";
    const json alone =
        Timeless(RunMergeplan(command(name) + (shards.empty() ? " --shards 3" : shards)));
    const json shared = Timeless(under(command("shared-" + name) + shards));
    EXPECT_EQ(shared, alone);
    const auto spectrum = ReadSpectrum(absl::StrCat(folder, "/shared-", name, ".toml"));
    ASSERT_TRUE(spectrum.ok()) << spectrum.status();
    EXPECT_EQ(*spectrum, *ReadSpectrum(absl::StrCat(folder, "/", name, ".toml")));
  }
  // As in one go, but for rounding.
  const json whole = json::parse(RunMergeplan("analyze '" + data + "' --json").out);
  const auto shared = ReadSpectrum(folder + "/shared-three.toml");
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(shared->diagonal.variances[i],
                whole["bases"]["diagonal"]["variances"][i].get<double>(), 1e-12);
  }
  // An error ends all of them.
  EXPECT_NE(under(command("x") + " --array none").code, 0);
}

}  // namespace
}  // namespace mergeplan
