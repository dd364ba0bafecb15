#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "adapters/cases/network_job.h"
#include "adapters/judge/judge.h"
#include "adapters/network/executor.h"
#include "adapters/runtime/bench_row.h"

namespace mergeplan {

// What network students and their teacher make of noise: z_T of unit size times what the schedule
// has at T, down to data in native units.
judge::Generate SamplesOfTeacher(const NetworkJob& job);
// The executor must live as long as it is used.
judge::Generate SamplesOfStudent(const NetworkJob& job, const network::Executor& executor);

// Verdicts of several trials.
class JudgedTrials {
 public:
  // An empty name makes no picture.
  absl::Status Look(const judge::Judge& judge, const judge::Generate& generate,
                    const std::string& name, const std::function<bool()>& stop);
  // None where nothing was looked at.
  std::optional<JudgedSamples> Result() const;

 private:
  std::vector<double> frechet_, precision_, recall_;
  JudgedSamples out_;
};

// Adds what one of `trials` runs has come to at every merge.
void AddLevels(const network::Executor& executor, int trials, std::vector<LevelFigure>* levels);

// "boot", budget total: "boot-total"; what a file cannot be called becomes _.
std::string PictureName(const std::string& strategy, bool total_budget);

}  // namespace mergeplan
