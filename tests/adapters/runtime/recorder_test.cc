// The files of a run that are for other programs.
#include "adapters/runtime/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "adapters/runtime/event_file.h"
#include "planner/base/file.h"
#include "planner/runs/curve_updates.h"
#include "planner/runs/result_file.h"
#include "tests/adapters/command/distill_program.h"

namespace mergeplan {
namespace {

// A reader of its own: step by tag, and the value there.
struct Reader {
  std::string bytes;
  size_t at = 0;

  std::uint64_t Fixed(int size) {
    std::uint64_t value = 0;
    for (int i = 0; i < size; ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(bytes.at(at++))} << (8 * i);
    }
    return value;
  }
  std::uint64_t Varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.at(at++));
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
  }
  std::string Take(std::uint64_t size) {
    const std::string out = bytes.substr(at, size);
    EXPECT_EQ(out.size(), size);
    at += size;
    return out;
  }
  bool done() const { return at >= bytes.size(); }
};

std::uint32_t Unmasked(std::uint64_t masked) {
  const auto turned = static_cast<std::uint32_t>(masked) - 0xa282ead8U;
  return turned << 15 | turned >> 17;
}

std::map<std::string, std::vector<std::pair<std::uint64_t, float>>> Series(
    const std::string& bytes) {
  std::map<std::string, std::vector<std::pair<std::uint64_t, float>>> out;
  Reader file{bytes};
  for (int record = 0; !file.done(); ++record) {
    const std::string length = bytes.substr(file.at, 8);
    const std::uint64_t size = file.Fixed(8);
    EXPECT_EQ(Unmasked(file.Fixed(4)), Crc32c(length));
    Reader event{file.Take(size)};
    EXPECT_EQ(Unmasked(file.Fixed(4)), Crc32c(event.bytes));
    EXPECT_EQ(event.Varint(), 1U << 3 | 1);
    EXPECT_GT(std::bit_cast<double>(event.Fixed(8)), 1.6e9);  // seconds since 1970
    if (record == 0) {
      EXPECT_EQ(event.Varint(), 3U << 3 | 2);
      EXPECT_EQ(event.Take(event.Varint()), "brain.Event:2");
      continue;
    }
    EXPECT_EQ(event.Varint(), 2U << 3);
    const std::uint64_t step = event.Varint();
    EXPECT_EQ(event.Varint(), 5U << 3 | 2);
    Reader summary{event.Take(event.Varint())};
    EXPECT_EQ(summary.Varint(), 1U << 3 | 2);
    Reader value{summary.Take(summary.Varint())};
    EXPECT_EQ(value.Varint(), 1U << 3 | 2);
    const std::string tag = value.Take(value.Varint());
    EXPECT_EQ(value.Varint(), 2U << 3 | 5);
    out[tag].emplace_back(step, std::bit_cast<float>(static_cast<std::uint32_t>(value.Fixed(4))));
    EXPECT_TRUE(event.done() && summary.done() && value.done());
  }
  return out;
}

// The check value of the polynomial, and a value of RFC 3720 (B.4).
TEST(Crc32c, IsCastagnolis) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aaU);
}

class Recorded : public Distill {};

TEST_F(Recorded, EventsAndTablesSayWhatTheResultSays) {
  ASSERT_EQ(Run(Small("progressive", "run")).code, 0);
  const auto result = ReadRunResult(File("run"));
  ASSERT_TRUE(result.ok()) << result.status();
  const auto series = Series(*ReadFile(File("run") + "/events.out.tfevents.0.mergeplan"));
  const std::vector<double> losses = Array("run", "loss");
  const std::vector<std::int64_t> updates = CurveUpdates(40);
  const std::vector<std::string> merges =
      absl::StrSplit(*ReadFile(File("run") + "/merges.csv"), '\n', absl::SkipEmpty());
  const std::vector<std::string> curve =
      absl::StrSplit(*ReadFile(File("run") + "/losses.csv"), '\n', absl::SkipEmpty());
  ASSERT_EQ(merges.size(), 1 + result->merges.size());
  ASSERT_EQ(curve.size(), 1 + losses.size());
  for (size_t m = 0; m < result->merges.size(); ++m) {
    const MergeRecord& merge = result->merges[m];
    const std::string range = std::to_string(merge.first) + ", " + std::to_string(merge.last);
    const auto& points = series.at("loss/[" + range + "]");
    ASSERT_EQ(points.size(), updates.size());
    for (size_t k = 0; k < points.size(); ++k) {
      EXPECT_EQ(points[k].first, static_cast<std::uint64_t>(updates[k]));
      EXPECT_EQ(points[k].second, static_cast<float>(losses[m * updates.size() + k]));
    }
    const std::vector<std::string> cells = absl::StrSplit(merges[1 + m], ',');
    ASSERT_EQ(cells.size(), 13u);
    EXPECT_EQ(std::stoi(cells[0]), merge.first);
    EXPECT_EQ(std::stod(cells[7]), merge.final_loss);
    EXPECT_EQ(std::stod(cells[10]), merge.achieved_error);
    EXPECT_EQ(cells[11], "");
  }
  EXPECT_EQ(series.at("merges/residual").size(), result->merges.size());
}

}  // namespace
}  // namespace mergeplan
