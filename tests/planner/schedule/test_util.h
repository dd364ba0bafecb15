#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "planner/schedule/schedule.h"

namespace mergeplan::testing {

// A folder that is removed at the end.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "schedule_test_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline Schedule MustLoad(const std::string& spec, std::optional<int> steps) {
  absl::StatusOr<Schedule> s = LoadSchedule(spec, steps);
  EXPECT_TRUE(s.ok()) << s.status();
  return s.ok() ? *std::move(s) : Schedule{};
}

// The message of the error that loading must give.
inline std::string ErrorOf(const std::string& spec, std::optional<int> steps) {
  const absl::StatusOr<Schedule> s = LoadSchedule(spec, steps);
  EXPECT_FALSE(s.ok()) << spec;
  return s.ok() ? "no error" : std::string(s.status().message());
}

// |a - b| <= relative |b| (+ absolute) for every entry.
inline void ExpectNear(const std::vector<double>& a, const std::vector<double>& b, double relative,
                       const std::string& what, double absolute = 0) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_LE(std::abs(a[i] - b[i]), relative * std::abs(b[i]) + absolute)
        << what << "[" << i << "] is " << a[i] << ", expected " << b[i];
  }
}

}  // namespace mergeplan::testing
