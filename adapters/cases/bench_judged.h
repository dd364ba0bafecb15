#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "adapters/cases/gaussian_job.h"
#include "adapters/cases/network_job.h"
#include "adapters/judge/judge.h"
#include "adapters/network/executor.h"
#include "adapters/runtime/bench_row.h"

namespace mergeplan {

// What network students and their teacher make of noise: z_T of unit size times what the schedule
// has at T, down to data in native units; with classes, the classes in turns.
judge::Generate SamplesOfTeacher(const NetworkJob& job);
// The executor must live as long as it is used.
judge::Generate SamplesOfStudent(const NetworkJob& job, const network::Executor& executor);

// The same of linear students: `value` is the operator along the axes of the job's basis; the job
// must live as long.
judge::Generate SamplesOfOperator(const Job& job, absl::Span<const double> value);

// Verdicts of several trials.
class JudgedTrials {
 public:
  // The teacher's, named so; first, so that distances from it are known.
  absl::Status LookAtTeacher(judge::Judge& judge, const judge::Generate& generate,
                             const std::function<bool()>& stop);
  // An empty name makes no picture.
  absl::Status Look(const judge::Judge& judge, const judge::Generate& generate,
                    const std::string& name, const std::function<bool()>& stop);
  // None where nothing was looked at.
  std::optional<JudgedSamples> Result() const;

 private:
  void Take(const judge::Verdict& verdict);

  std::vector<double> frechet_, precision_, recall_, distance_;
  JudgedSamples out_;
};

// Adds what one of `trials` runs has come to at every merge.
void AddLevels(const network::Executor& executor, int trials, std::vector<LevelFigure>* levels);

// "boot", budget total: "boot-total"; what a file cannot be called becomes _.
std::string PictureName(const std::string& strategy, bool total_budget);

}  // namespace mergeplan
