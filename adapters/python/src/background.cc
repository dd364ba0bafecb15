#include "adapters/python/src/background.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace mergeplan::python {
namespace {

namespace nb = nanobind;
using namespace std::chrono_literals;

// What the two threads share.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<SearchProgress> news;  // guarded by mutex
  bool done = false;                   // guarded by mutex
  std::exception_ptr thrown;           // written before `done`
  std::atomic<bool> stop{false};
};

// Tells Python; false where the search should stop.
bool Tell(const nb::object& progress, const SearchProgress& news) {
  const nb::object answer = progress(news.seconds, news.objective, news.lower_bound);
  return answer.ptr() != Py_False;
}

}  // namespace

void RunSearch(SearchOptions options, const nb::object& progress,
               const std::function<void(const SearchOptions&)>& work) {
  Shared shared;
  options.interrupted = [&shared] { return shared.stop.load(std::memory_order_relaxed); };
  options.progress = [&shared](const SearchProgress& news) {
    const std::lock_guard lock(shared.mutex);
    shared.news = news;
  };
  std::thread thread([&] {
    try {
      work(options);
    } catch (...) {
      shared.thrown = std::current_exception();
    }
    const std::lock_guard lock(shared.mutex);
    shared.done = true;
    shared.changed.notify_one();
  });

  std::optional<nb::python_error> raised;
  const bool tells = !progress.is_none();
  for (bool done = false; !done;) {
    std::optional<SearchProgress> news;
    {
      const nb::gil_scoped_release release;
      std::unique_lock lock(shared.mutex);
      shared.changed.wait_for(lock, 50ms, [&] { return shared.done; });
      done = shared.done;
      std::swap(news, shared.news);
    }
    if (raised) continue;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (tells && news && !Tell(progress, *news)) shared.stop = true;
    } catch (nb::python_error& error) {
      raised.emplace(std::move(error));
      shared.stop = true;
    }
  }
  {
    const nb::gil_scoped_release release;
    thread.join();
  }
  if (raised) throw std::move(*raised);
  if (shared.thrown) std::rethrow_exception(shared.thrown);
}

}  // namespace mergeplan::python
