#include "planner/data/window.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <mutex>

namespace mergeplan {
namespace {

// The window of this thread, for the handler, which runs on the thread whose access failed.
thread_local volatile std::uintptr_t window_begin = 0, window_end = 0;
thread_local volatile std::sig_atomic_t window_lost = 0;

struct sigaction handler_before;
std::uintptr_t page_size = 4096;

// Puts zeros in the place of what is not there, so that the access can be repeated.
void OnMissingPage(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (address >= window_begin && address < window_end) {
    const std::uintptr_t page = address / page_size * page_size;
    void* const zeros = ::mmap(reinterpret_cast<void*>(page), window_end - page, PROT_READ,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (zeros != MAP_FAILED) {
      window_lost = 1;
      return;
    }
  }
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) {
    handler_before.sa_sigaction(signal, info, context);
  } else if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN) {
    handler_before.sa_handler(signal);
  } else {
    // The access is repeated, and ends the process as it would have without this.
    ::sigaction(SIGBUS, &handler_before, nullptr);
  }
}

bool InstallHandler() {
  static std::once_flag once;
  static bool installed = false;
  std::call_once(once, [] {
    page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action = {};
    action.sa_sigaction = &OnMissingPage;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    installed = ::sigaction(SIGBUS, &action, &handler_before) == 0;
  });
  return installed;
}

bool Reaches(int file, std::int64_t end) {
  struct stat status = {};
  return ::fstat(file, &status) == 0 && status.st_size >= end;
}

}  // namespace

FileWindow::FileWindow(int file, std::int64_t end, char* begin, std::size_t length,
                       std::size_t skipped)
    : file_(file), end_(end), begin_(begin), length_(length), skipped_(skipped) {}

std::unique_ptr<FileWindow> FileWindow::Open(int file, std::int64_t at, std::size_t size) {
  if (size == 0 || window_begin != 0 || !InstallHandler()) return nullptr;
  const std::int64_t end = at + static_cast<std::int64_t>(size);
  if (!Reaches(file, end)) return nullptr;
  const std::size_t skipped = static_cast<std::size_t>(at) % page_size;
  const std::size_t length = (skipped + size + page_size - 1) / page_size * page_size;
  void* const begin = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file,
                             static_cast<off_t>(at - static_cast<std::int64_t>(skipped)));
  if (begin == MAP_FAILED) return nullptr;
  // Both are advice: without it pages come one by one when they are read.
  ::madvise(begin, length, MADV_SEQUENTIAL);
#ifdef MADV_POPULATE_READ
  ::madvise(begin, length, MADV_POPULATE_READ);
#endif
  window_begin = reinterpret_cast<std::uintptr_t>(begin);
  window_end = window_begin + length;
  window_lost = 0;
  return std::unique_ptr<FileWindow>(
      new FileWindow(file, end, static_cast<char*>(begin), length, skipped));
}

FileWindow::~FileWindow() {
  window_begin = 0;
  window_end = 0;
  ::munmap(begin_, length_);
}

// Beyond the end of a file the rest of its last page reads as zeros without any signal.
bool FileWindow::Whole() const { return window_lost == 0 && Reaches(file_, end_); }

}  // namespace mergeplan
