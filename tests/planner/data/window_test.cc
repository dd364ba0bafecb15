// Bytes of a file in place: what they are, and what happens where the file does not stay as it is.
#include "planner/data/window.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"

namespace mergeplan {
namespace {

constexpr std::int64_t kSize = 5 * 65536 + 1000;

class Window : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = absl::StrCat(::testing::TempDir(), "window ", ::getpid());
    for (std::int64_t k = 0; k < kSize; ++k) bytes_.push_back(static_cast<char>(k * 31 % 251));
    ASSERT_TRUE(WriteFileAtomically(path_, bytes_).ok());
    file_ = ::open(path_.c_str(), O_RDONLY);
    ASSERT_GE(file_, 0);
  }
  void TearDown() override {
    ::close(file_);
    std::filesystem::remove(path_);
  }
  void Shorten(std::int64_t size) const {
    std::filesystem::resize_file(path_, static_cast<std::uintmax_t>(size));
  }

  std::string path_, bytes_;
  int file_ = -1;
};

TEST_F(Window, HoldsTheBytesOfTheFile) {
  for (const std::int64_t at : {0, 1, 4095, 4096, 70'000, 327'680}) {
    for (const std::int64_t size : {std::int64_t{1}, std::int64_t{1000}, kSize - at}) {
      const auto window = FileWindow::Open(file_, at, static_cast<std::size_t>(size));
      ASSERT_NE(window, nullptr) << at << " " << size;
      EXPECT_EQ(std::string(window->data(), static_cast<std::size_t>(size)),
                bytes_.substr(static_cast<std::size_t>(at), static_cast<std::size_t>(size)));
      EXPECT_TRUE(window->Whole());
    }
  }
  EXPECT_EQ(FileWindow::Open(file_, 1, kSize), nullptr);
  EXPECT_EQ(FileWindow::Open(file_, 0, 0), nullptr);
  EXPECT_EQ(FileWindow::Open(-1, 0, 10), nullptr);
}

// One for each thread at a time.
TEST_F(Window, OfEveryThread) {
  const auto mine = FileWindow::Open(file_, 0, 100);
  ASSERT_NE(mine, nullptr);
  EXPECT_EQ(FileWindow::Open(file_, 0, 100), nullptr);
  std::thread other([&] { EXPECT_NE(FileWindow::Open(file_, 0, 100), nullptr); });
  other.join();
}

TEST_F(Window, SaysThatTheFileBecameShorter) {
  // Inside the last page, where no signal tells; by whole pages; all of it.
  for (const std::int64_t left : {kSize - 1, std::int64_t{65536}, std::int64_t{0}}) {
    ASSERT_TRUE(WriteFileAtomically(path_, bytes_).ok());
    const int file = ::open(path_.c_str(), O_RDONLY);
    {
      const auto window = FileWindow::Open(file, 10, kSize - 10);
      ASSERT_NE(window, nullptr);
      Shorten(left);
      std::string found(window->data(), kSize - 10);
      EXPECT_FALSE(window->Whole());
      for (std::int64_t k = std::max<std::int64_t>(left, 10); k < kSize; ++k) {
        ASSERT_EQ(found[static_cast<std::size_t>(k - 10)], 0) << k;
      }
      if (left > 10) {
        EXPECT_EQ(found.substr(0, 4096), bytes_.substr(10, 4096));
      }
    }
    ::close(file);
  }
}

// What is not a window's fault ends the process as before.
TEST_F(Window, PassesOnOtherFaults) {
  EXPECT_EXIT(
      {
        const auto window = FileWindow::Open(file_, 0, 100);
        const void* const other = ::mmap(nullptr, 65536, PROT_READ, MAP_SHARED, file_, 0);
        Shorten(0);
        _exit(*static_cast<const volatile char*>(other) == 1);
      },
      ::testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace mergeplan
