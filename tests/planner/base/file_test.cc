#include "planner/base/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mergeplan {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    std::string pattern = (fs::temp_directory_path() / "mergeplan-file-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~FileTest() override {
    std::error_code ec;
    fs::remove_all(folder_, ec);
  }
  std::string At(const std::string& name) const { return (folder_ / name).string(); }
  std::vector<std::string> Names() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder_))
      out.push_back(entry.path().filename());
    std::sort(out.begin(), out.end());
    return out;
  }

  fs::path folder_;
};

TEST_F(FileTest, WritesReplacesAndReads) {
  std::string bytes("\0\xff\r\n", 4);
  for (int k = 0; k < 1'000'000; ++k) bytes += static_cast<char>(k * 2654435761U >> 24);
  ASSERT_TRUE(WriteFileAtomically(At("a"), "").ok());
  EXPECT_EQ(*ReadFile(At("a")), "");
  ASSERT_TRUE(WriteFileAtomically(At("a"), bytes).ok());
  EXPECT_EQ(*ReadFile(At("a")), bytes);
  ASSERT_TRUE(WriteFileAtomically(At("a"), "short").ok());
  EXPECT_EQ(*ReadFile(At("a")), "short");
  EXPECT_EQ(Names(), std::vector<std::string>{"a"});
}

TEST_F(FileTest, RelativePathsAndSpaces) {
  const fs::path old = fs::current_path();
  fs::current_path(folder_);
  EXPECT_TRUE(WriteFileAtomically("a plan with spaces.toml", "x").ok());
  EXPECT_EQ(*ReadFile("a plan with spaces.toml"), "x");
  fs::current_path(old);
}

TEST_F(FileTest, ReadingErrorsNameThePath) {
  const auto missing = ReadFile(At("missing"));
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr(At("missing")));
  const auto folder = ReadFile(folder_.string());
  EXPECT_EQ(folder.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(folder.status().message()), HasSubstr("is a folder"));
  EXPECT_FALSE(Sha256OfFile(At("missing")).ok());
  EXPECT_FALSE(Sha256OfFile(folder_.string()).ok());
}

TEST_F(FileTest, WhereTheFolderIsAFileNothingIsWritten) {
  ASSERT_TRUE(WriteFileAtomically(At("file"), "old").ok());
  const absl::Status status = WriteFileAtomically(At("file/plan.toml"), "new");
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(At("file/plan.toml")));
  EXPECT_EQ(*ReadFile(At("file")), "old");
  EXPECT_EQ(Names(), std::vector<std::string>{"file"});
}

TEST_F(FileTest, AMissingFolderIsAnError) {
  const absl::Status status = WriteFileAtomically(At("no/such/plan.toml"), "new");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(Names().empty());
}

TEST_F(FileTest, AFolderIsNotReplaced) {
  ASSERT_TRUE(MakeDirectories(At("folder")).ok());
  const absl::Status status = WriteFileAtomically(At("folder"), "new");
  EXPECT_THAT(std::string(status.message()), HasSubstr("is a folder"));
  EXPECT_EQ(Names(), std::vector<std::string>{"folder"});
}

// A name so long that the neighbour cannot be made although the file itself exists: writing fails
// and the old content stays.
TEST_F(FileTest, FailureKeepsTheOldFile) {
  const std::string name(250, 'n');
  const int fd = ::open(At(name).c_str(), O_WRONLY | O_CREAT, 0644);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::write(fd, "old", 3), 3);
  ::close(fd);
  EXPECT_FALSE(WriteFileAtomically(At(name), "new").ok());
  EXPECT_EQ(*ReadFile(At(name)), "old");
  EXPECT_EQ(Names(), std::vector<std::string>{name});
}

// The limit on file sizes makes write() fail half-way, in a child so that the limit stays there.
TEST_F(FileTest, FailureInTheMiddleKeepsTheOldFileAndLeavesNoLitter) {
  ASSERT_TRUE(WriteFileAtomically(At("plan"), "old").ok());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const absl::Status status = WriteFileAtomically(At("plan"), std::string(1'000'000, 'x'));
    const bool named = status.message().find("writing failed") != absl::string_view::npos;
    ::_exit(!status.ok() && named ? 0 : 1);
  }
  int result = -1;
  ASSERT_EQ(::waitpid(child, &result, 0), child);
  EXPECT_TRUE(WIFEXITED(result) && WEXITSTATUS(result) == 0);
  EXPECT_EQ(*ReadFile(At("plan")), "old");
  EXPECT_EQ(Names(), std::vector<std::string>{"plan"});
}

TEST_F(FileTest, KeepsPermissionsAndFollowsLinks) {
  ASSERT_TRUE(WriteFileAtomically(At("real"), "old").ok());
  ASSERT_EQ(::chmod(At("real").c_str(), 0640), 0);
  ASSERT_EQ(::symlink("real", At("link").c_str()), 0);
  ASSERT_TRUE(WriteFileAtomically(At("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(At("link")));
  EXPECT_EQ(*ReadFile(At("real")), "new");
  struct stat info = {};
  ASSERT_EQ(::stat(At("real").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640U);
}

TEST_F(FileTest, APipeIsWrittenToAndStaysAPipe) {
  ASSERT_EQ(::mkfifo(At("pipe").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] {
    const int fd = ::open(At("pipe").c_str(), O_RDONLY);
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof buffer)) > 0;) got.append(buffer, n);
    ::close(fd);
  });
  const std::string bytes(300'000, 'p');
  const absl::Status status = WriteFileAtomically(At("pipe"), bytes);
  reader.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(got, bytes);
  EXPECT_TRUE(fs::is_fifo(At("pipe")));
}

TEST_F(FileTest, AFullDeviceIsAnErrorThatNamesIt) {
  // Through a link, so that a fault here could at worst replace the link.
  if (!fs::is_character_file("/dev/full")) GTEST_SKIP() << "this machine has no /dev/full";
  ASSERT_EQ(::symlink("/dev/full", At("full").c_str()), 0);
  const absl::Status status = WriteFileAtomically(At("full"), "x");
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(At("full")));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

// A child replaces one file by one of two contents, over and over, and is killed at a random
// moment: what is there is one of the two, whole.
TEST_F(FileTest, KilledAtAnyMomentTheFileIsWhole) {
  const std::string contents[2] = {std::string(700'000, 'a'), std::string(900'000, 'b')};
  ASSERT_TRUE(WriteFileAtomically(At("plan"), contents[0]).ok());
  std::mt19937 random(20240501);
  int litter = 0;
  for (int round = 0; round < 40; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (unsigned k = 1;; ++k) {
        if (!WriteFileAtomically(At("plan"), contents[k % 2]).ok()) ::_exit(1);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 20'000));
    ::kill(child, SIGKILL);
    int result = 0;
    ASSERT_EQ(::waitpid(child, &result, 0), child);
    ASSERT_TRUE(WIFSIGNALED(result)) << "the child could not write";
    const auto found = ReadFile(At("plan"));
    ASSERT_TRUE(found.ok());
    const int which = *found == contents[0] ? 0 : 1;
    ASSERT_TRUE(*found == contents[which]) << "half a file of " << found->size() << " bytes";
    for (const std::string& name : Names()) {
      if (name == "plan") continue;
      EXPECT_TRUE(name.starts_with("plan.tmp-")) << name;
      fs::remove(At(name));
      ++litter;
    }
  }
  // Children were killed while they wrote, or the test would show nothing.
  EXPECT_GT(litter, 0);
}

TEST_F(FileTest, WritersAtTheSameTimeDoNotMix) {
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w) {
    writers.emplace_back([&, w] {
      for (int k = 0; k < 20; ++k) {
        EXPECT_TRUE(WriteFileAtomically(At("plan"), std::string(50'000 + w, 'a' + w)).ok());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::string found = *ReadFile(At("plan"));
  ASSERT_GE(found.size(), 50'000U);
  EXPECT_EQ(found, std::string(found.size(), static_cast<char>('a' + found.size() - 50'000)));
  EXPECT_EQ(Names(), std::vector<std::string>{"plan"});
}

TEST_F(FileTest, PiecesAppearTogetherOrNotAtAll) {
  ASSERT_TRUE(WriteFileAtomically(At("f"), "old").ok());
  {
    auto file = AtomicFile::Create(At("f"));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->Append("one ").ok());
    EXPECT_EQ(ReadFile(At("f")).value(), "old");
    AtomicFile moved = *std::move(file);
    ASSERT_TRUE(moved.Append("two").ok());
    ASSERT_TRUE(moved.Commit().ok());
  }
  EXPECT_EQ(ReadFile(At("f")).value(), "one two");
  {
    auto file = AtomicFile::Create(At("f"));
    ASSERT_TRUE(file.ok() && file->Append("three").ok());
  }
  EXPECT_EQ(ReadFile(At("f")).value(), "one two");
  EXPECT_EQ(Names().size(), 1U);
}

TEST_F(FileTest, MakesFolders) {
  EXPECT_TRUE(MakeDirectories(At("a/b/c")).ok());
  EXPECT_TRUE(fs::is_directory(At("a/b/c")));
  EXPECT_TRUE(MakeDirectories(At("a/b/c")).ok());
  ASSERT_TRUE(WriteFileAtomically(At("file"), "x").ok());
  for (const char* name : {"file", "file/below"}) {
    const absl::Status status = MakeDirectories(At(name));
    EXPECT_FALSE(status.ok()) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(At(name)));
  }
}

// FIPS 180-4's examples, and the two ways agree.
TEST_F(FileTest, Sha256) {
  EXPECT_EQ(Sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string million(1'000'000, 'a');
  const std::string expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
  EXPECT_EQ(Sha256(million), expected);
  ASSERT_TRUE(WriteFileAtomically(At("a"), million).ok());
  EXPECT_EQ(*Sha256OfFile(At("a")), expected);
}

}  // namespace
}  // namespace mergeplan
