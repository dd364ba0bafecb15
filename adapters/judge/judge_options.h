#pragma once

#include <cstdint>
#include <string>

namespace mergeplan::judge {

// What is judged, and how.
struct JudgeOptions {
  // Reference samples, as analyze reads them, or "teacher": the teacher's, from other noise. Empty:
  // nothing is compared.
  std::string data;
  std::string array;            // of an .npz
  std::int64_t rows = 10000;    // of the reference, at most, from the first
  std::int64_t samples = 1024;  // of what is judged
  std::int64_t batch = 64;
  std::string features;           // OpenFeatures
  std::string cache = "default";  // folder of reference statistics; empty: none
  std::uint64_t seed = 0;
  int neighbours = 3;
  int grid = 64;       // samples of a picture
  std::string folder;  // where pictures go; empty: none are made
};

}  // namespace mergeplan::judge
