#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace mergeplan {

// Some bytes of an open file where they lie in the system's cache, without a copy (a mapping). One
// thread opens, reads and closes a window; it has one at a time.
//
// Where somebody shortens the file meanwhile, or the disk fails, bytes that are no longer there
// would end the process (SIGBUS). Here they read as zeros, and Whole() says so: the first window
// installs a handler for that signal, which passes on whatever has nothing to do with windows.
class FileWindow {
 public:
  // Bytes at .. at + size - 1 of `file`, whose pages are made ready at once. Null where the file
  // cannot be mapped, or ends before that: reading says why.
  static std::unique_ptr<FileWindow> Open(int file, std::int64_t at, std::size_t size);
  ~FileWindow();
  FileWindow(const FileWindow&) = delete;
  FileWindow& operator=(const FileWindow&) = delete;

  const char* data() const { return begin_ + skipped_; }
  // Were all bytes that have been read those of the file? To be asked when they have been used.
  bool Whole() const;

 private:
  FileWindow(int file, std::int64_t end, char* begin, std::size_t length, std::size_t skipped);

  int file_;
  std::int64_t end_;  // of the window, in the file
  char* begin_;       // of the mapping, which begins with a whole page
  std::size_t length_, skipped_;
};

}  // namespace mergeplan
