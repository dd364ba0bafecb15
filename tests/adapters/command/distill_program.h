#pragma once

// The program mergeplan-torch as `mergeplan distill` runs it: in a child, or inside this process.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "adapters/command/program.h"
#include "planner/base/file.h"
#include "planner/data/npz.h"
#include "planner/spectrum/spectrum.h"
#include "tests/adapters/support.h"

namespace mergeplan {

inline std::string Program() {
  const char* binary_dir = std::getenv("MERGEPLAN_BINARY_DIR");
  EXPECT_NE(binary_dir, nullptr) << "run this test through ctest";
  return std::string(binary_dir != nullptr ? binary_dir : ".") +
         "/libexec/mergeplan/mergeplan-torch";
}

// A child process with its output in files.
class Child {
 public:
  struct AsIs {};  // the arguments begin with a program of their own
  Child(const testing::TemporaryFolder& folder, std::vector<std::string> arguments)
      : Child(folder, With(Program(), std::move(arguments)), AsIs()) {}
  Child(const testing::TemporaryFolder& folder, std::vector<std::string> arguments, AsIs /*tag*/)
      : out_(folder.File("stdout")), err_(folder.File("stderr")) {
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (std::string& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), STDOUT_FILENO);
      dup2(open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), STDERR_FILENO);
      execv(argv[0], argv.data());
      _exit(127);
    }
  }
  void Signal(int signal) const { kill(pid_, signal); }
  // Does the program, not this one that it is forked from, catch this signal by now?
  bool Catches(int signal) const {
    std::error_code ec;
    const std::string process = "/proc/" + std::to_string(pid_);
    if (std::filesystem::read_symlink(process + "/exe", ec) !=
        std::filesystem::canonical(Program(), ec)) {
      return false;
    }
    std::ifstream status(process + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("SigCgt:", 0) != 0) continue;
      return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
    }
    return false;
  }
  // The exit code, or minus the number of the signal that ended it.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  // Is it still running?
  bool Running() const {
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid == 0;
  }
  std::string out() const { return ReadFile(out_).value_or(""); }
  std::string err() const { return ReadFile(err_).value_or(""); }

 private:
  static std::vector<std::string> With(const std::string& program,
                                       std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), program);
    return arguments;
  }

  std::string out_, err_;
  pid_t pid_;
};

struct Outcome {
  int code;
  std::string out, err;
};

class Distill : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(
        WriteSpectrum(testing::MakeSpectrum(testing::LogSpaced(0.1, 4.0, 6)), File("spectrum.toml"))
            .ok());
  }
  std::string File(const std::string& name) const { return folder_.File(name); }
  std::string Teacher() const { return "analytic:" + File("spectrum.toml"); }

  // Inside this process, which saves the start of LibTorch.
  static Outcome Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "mergeplan-torch");
    std::vector<const char*> argv;
    argv.reserve(arguments.size());
    for (const std::string& a : arguments) argv.push_back(a.c_str());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = RunProgram(static_cast<int>(argv.size()), argv.data());
    Outcome outcome{code, ::testing::internal::GetCapturedStdout(), ""};
    outcome.err = ::testing::internal::GetCapturedStderr();
    return outcome;
  }
  // A small run with one strategy; `more` is added.
  std::vector<std::string> Small(const std::string& strategy, const std::string& run,
                                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> a = {"distill", "--strategy",   strategy,  "--teacher-steps",
                                  "6",       "--schedule",   "cosine",  "--lr",
                                  "0.05",    "--iterations", "40",      "--teacher",
                                  Teacher(), "-o",           File(run), "--quiet"};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  }
  std::vector<double> Array(const std::string& run, const std::string& name) const {
    const absl::StatusOr<NpyArray> array = ReadNpzArray(File(run) + "/result.npz", name);
    EXPECT_TRUE(array.ok()) << array.status();
    return array.ok() ? array->values : std::vector<double>();
  }
  void ExpectSameResult(const std::string& a, const std::string& b) const {
    for (const char* name : {"value", "merge_value", "loss", "samples"}) {
      EXPECT_EQ(Array(a, name), Array(b, name)) << name;
      EXPECT_FALSE(Array(a, name).empty()) << name;
    }
  }
  // Every file of a run and its hash.
  std::map<std::string, std::string> Contents(const std::string& run) const {
    std::map<std::string, std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(File(run))) {
      out[entry.path().filename()] = Sha256OfFile(entry.path()).value_or("unreadable");
    }
    return out;
  }

  testing::TemporaryFolder folder_;
};

}  // namespace mergeplan
