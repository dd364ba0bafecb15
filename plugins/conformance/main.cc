// mergeplan-plugin-conformance LIB.so [--param NAME=VALUE]... [GoogleTest's flags]
//
// Loads a plugin's library as the host does and runs the suite. With --events FD it also writes
// what happens to that file descriptor, a line each, as it happens, so that whoever started it
// knows where it ended when the plugin ends the process:
//   begin GROUP.NAME
//   at TEXT                 any number of times: what is asked of the plugin now
//   problem TEXT            any number of times; TEXT has no line breaks
//   end GROUP.NAME passed|failed|skipped
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "plugins/conformance/mergeplan_conformance.h"
#include "plugins/conformance/text.h"

namespace mergeplan_conformance {
namespace {

constexpr int kMisuse = 2;
constexpr int kCannotLoad = 3;

int g_events = -1;

// One line, in one piece.
void Write(std::string line) {
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  line += '\n';
  std::string_view rest(line);
  while (!rest.empty()) {
    const ssize_t n = ::write(g_events, rest.data(), rest.size());
    if (n <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
}

// A message of GoogleTest: without the word that says that it is one, lines set apart.
std::string InOneLine(std::string_view text) {
  constexpr std::string_view kWord = "Failed\n";
  if (text.substr(0, kWord.size()) == kWord) text.remove_prefix(kWord.size());
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "; ";
    } else {
      out += c;
    }
  }
  return out;
}

class Events : public ::testing::EmptyTestEventListener {
 public:
  void OnTestStart(const ::testing::TestInfo& info) override { Write("begin " + Name(info)); }
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (result.type() != ::testing::TestPartResult::kSuccess) {
      Write("problem " + InOneLine(result.message()));
    }
  }
  void OnTestEnd(const ::testing::TestInfo& info) override {
    const ::testing::TestResult& result = *info.result();
    Write("end " + Name(info) +
          (result.Failed()    ? " failed"
           : result.Skipped() ? " skipped"
                              : " passed"));
  }

 private:
  static std::string Name(const ::testing::TestInfo& info) {
    return std::string(info.test_suite_name()) + "." + info.name();
  }
};

int Misuse(const std::string& text) {
  std::cerr << "mergeplan-plugin-conformance: " << text << "\n"
            << "usage: mergeplan-plugin-conformance LIB.so [--param NAME=VALUE]... "
               "[GoogleTest's flags] | --list\n";
  return kMisuse;
}

int List() {
  for (const CheckInfo& check : Checks()) {
    std::cout << check.group << "." << check.name << "\t" << check.rule << "\n";
  }
  return 0;
}

int Main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  std::string library;
  Subject subject;
  for (int k = 1; k < argc; ++k) {
    const std::string word = argv[k];
    if (word == "--list") return List();
    if (word == "--param" || word == "--events") {
      if (++k == argc) return Misuse(word + ": no value");
      const std::string value = argv[k];
      if (word == "--events") {
        g_events = std::atoi(value.c_str());
        continue;
      }
      const std::size_t equals = value.find('=');
      if (equals == 0 || equals == std::string::npos) {
        return Misuse("--param " + value + ": expected NAME=VALUE");
      }
      subject.parameters[value.substr(0, equals)] = value.substr(equals + 1);
    } else if (library.empty() && word[0] != '-') {
      library = word;
    } else {
      return Misuse("unknown argument " + word);
    }
  }
  if (library.empty()) return Misuse("no library");
  // A name without a '/' would be looked for in the system's folders.
  const std::string path = library.find('/') == std::string::npos ? "./" + library : library;
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::cerr << "mergeplan-plugin-conformance: " << ::dlerror() << "\n";
    return kCannotLoad;
  }
  void* symbol = ::dlsym(handle, MERGEPLAN_PLUGIN_SYMBOL);
  if (symbol == nullptr) {
    std::cerr << "mergeplan-plugin-conformance: " << library
              << ": exports no function " MERGEPLAN_PLUGIN_SYMBOL "\n";
    return kCannotLoad;
  }
  subject.entry = reinterpret_cast<const mergeplan_plugin* (*)()>(symbol);
  Register(subject);
  if (g_events >= 0) {
    ::testing::UnitTest::GetInstance()->listeners().Append(new Events());
    SetCallHook([](const std::string& what) { Write("at " + what); });
  }
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace mergeplan_conformance

int main(int argc, char** argv) { return mergeplan_conformance::Main(argc, argv); }
