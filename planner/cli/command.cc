#include "planner/cli/command.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"
#include "planner/data/spool.h"

namespace mergeplan::cli {
namespace {

constexpr char kMisuseKey[] = "mergeplan/misuse";
constexpr char kToldKey[] = "mergeplan/told";
volatile std::sig_atomic_t g_interrupted = 0;

extern "C" void OnInterrupt(int signal) {
  g_interrupted = 1;
  std::signal(signal, SIG_DFL);  // a second Ctrl-C ends at once
}

// What EndAtOnce says, made beforehand: a signal handler may call little more than write.
char g_last_words[1024];
std::size_t g_last_words_size = 0;

extern "C" void EndAtOnce(int /*signal*/) {
  // Nobody is left to tell where this fails.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, g_last_words, g_last_words_size);
  ::_exit(kStopped);
}

}  // namespace

absl::Status Misuse(absl::Status status) {
  if (!status.ok()) status.SetPayload(kMisuseKey, absl::Cord("1"));
  return status;
}

absl::Status Misuse(std::string_view message) {
  return Misuse(absl::InvalidArgumentError(std::string(message)));
}

absl::Status CheckOutput(const std::string& path, const std::vector<std::string>& inputs,
                         OutputKind kind) {
  if (path.empty()) return absl::OkStatus();
  const bool with_arrays = kind == OutputKind::kWithArrays;
  const bool arrays = kind == OutputKind::kArrays;
  for (const std::string& input : inputs) {
    std::error_code same_error;
    if (std::filesystem::equivalent(path, input, same_error)) {
      return Misuse(absl::StrCat(
          path, ": is an input of this command and would be overwritten; give another name"));
    }
  }
  const std::string name = std::filesystem::path(path).filename().string();
  if (with_arrays && !IsUtf8(name)) {
    return Misuse(
        absl::StrCat("output ", path,
                     ": the file's name is not UTF-8, and the file names the one with its "
                     "arrays, which has the same name; give another name"));
  }
  std::error_code kind_error;
  if (with_arrays && std::filesystem::exists(path, kind_error) &&
      !std::filesystem::is_directory(path, kind_error) &&
      !std::filesystem::is_regular_file(path, kind_error)) {
    return Misuse(absl::StrCat("output ", path,
                               " is no plain file; arrays are written beside it, so name one"));
  }
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!arrays && (path.ends_with(".npz") || path.ends_with(".npy"))) {
    return Misuse(
        absl::StrCat("output ", path,
                     ": that ending is for arrays, such as a spectrum or a plan has beside "
                     "it, which would be overwritten; give another name"));
  }
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec))
    return Misuse(absl::StrCat("output ", path, " is a folder, expected a file"));
  if (std::filesystem::is_directory(folder, ec)) return absl::OkStatus();
  return Misuse(
      absl::StrCat("output ", path, ": there is no folder ", folder.string(), "; make it first"));
}

absl::Status CheckTomlOutput(const std::string& path, const std::vector<std::string>& inputs) {
  MP_RETURN_IF_ERROR(CheckOutput(path, inputs, OutputKind::kWithArrays));
  if (path.empty()) return absl::OkStatus();
  if (!path.ends_with(".toml")) {  // by which plan and distill know it
    return Misuse(
        absl::StrCat("-o ", path,
                     ": a spectrum or mixture is a TOML file, expected a name that ends in "
                     ".toml; for JSON there is --json, on stdout"));
  }
  const std::string arrays = path.substr(0, path.size() - 5) + ".npz";
  MP_RETURN_IF_ERROR(CheckOutput(arrays, inputs, OutputKind::kArrays));
  std::error_code ec;
  if (std::filesystem::exists(arrays, ec) && !std::filesystem::exists(path, ec)) {
    return Misuse(
        absl::StrCat("-o ", path, ": its arrays would overwrite ", arrays,
                     ", which is there without it, so perhaps something else; remove that "
                     "file or give another name"));
  }
  return absl::OkStatus();
}

std::string CommandLine() {
  const absl::StatusOr<std::string> raw = ReadFile("/proc/self/cmdline");
  if (!raw.ok()) return "";
  std::string out;
  for (const absl::string_view word :
       absl::StrSplit(absl::StripSuffix(*raw, std::string(1, '\0')), '\0')) {
    if (out.empty()) {
      out = "mergeplan";
      continue;
    }
    const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
             absl::string_view("-_./:=,+@%").find(c) != absl::string_view::npos;
    });
    const std::string text = ReplaceInvalidUtf8(std::string(word));
    absl::StrAppend(
        &out, " ",
        plain ? text : absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'"));
  }
  return out;
}

absl::Status Told(int exit_code) {
  absl::Status status = absl::AbortedError("it was said already");
  status.SetPayload(kToldKey, absl::Cord(absl::StrCat(exit_code)));
  return status;
}

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kDone;
  int told = 0;
  if (const auto code = status.GetPayload(kToldKey);
      code && absl::SimpleAtoi(std::string(*code), &told)) {
    return told;
  }
  if (absl::IsCancelled(status)) return kStopped;
  return status.GetPayload(kMisuseKey).has_value() ? kMisuse : kFailed;
}

int Report(std::string_view command, const absl::Status& status) {
  if (!status.ok() && !status.GetPayload(kToldKey).has_value()) {
    const std::string line =
        absl::StrReplaceAll(NameSpooled(std::string(status.message())), {{"\n", "; "}});
    std::fprintf(stderr, "mergeplan %s: %s\n", std::string(command).c_str(), line.c_str());
  }
  return ExitCodeOf(status);
}

void CatchInterrupts() {
  std::signal(SIGINT, OnInterrupt);
  std::signal(SIGTERM, OnInterrupt);
}

bool Interrupted() { return g_interrupted != 0; }

void EndOnInterrupt(std::string_view command, std::string_view what) {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  const std::string line = absl::StrReplaceAll(
      absl::StrCat("mergeplan ", std::string(command), ": ", std::string(what)), {{"\n", "; "}});
  g_last_words_size = std::min(line.size(), sizeof(g_last_words) - 1);
  std::copy_n(line.begin(), g_last_words_size, g_last_words);
  g_last_words[g_last_words_size++] = '\n';
  std::signal(SIGINT, EndAtOnce);
  std::signal(SIGTERM, EndAtOnce);
  if (Interrupted()) EndAtOnce(SIGINT);
}

HoldInterrupts::HoldInterrupts() {
  sigset_t both;
  sigemptyset(&both);
  sigaddset(&both, SIGINT);
  sigaddset(&both, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &both, &before_);
}

HoldInterrupts::~HoldInterrupts() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace mergeplan::cli
