#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/network/teachers.h"
#include "adapters/noise/noise.h"
#include "planner/mixture/trajectory.h"
#include "planner/schedule/schedule.h"

namespace mergeplan::network {

// What a stream of rows is for. (adapters/linear has 0 and 1; an analytic Gaussian's rows for
// training are the numbers that a linear student sees.)
enum class Lane : int {
  kTraining = 0,
  kLevels = 8,
  kHeldOut = 9,
  kPool = 10,
  kChoice = 11,
  kLabel = 12
};

// The name of a stream of rows: a merge of one seed, {0, 0} the fit.
struct RowStream {
  std::uint64_t seed = 0;
  int first = 0, last = 0;
  Lane lane = Lane::kTraining;

  StreamName Name(Lane other) const {
    return StreamName::Of(seed, first, last, static_cast<int>(other));
  }
  StreamName Name() const { return Name(lane); }
};

// Where the states come from that students are trained on. Row i of a stream is the same whoever
// asks for it, in what order and in what company, on the CPU to the last bit, so that a run can be
// taken up anywhere. States are [rows, shape] in the schedule's coordinates, of the type and on the
// device that it was made for.
class Inputs {
 public:
  virtual ~Inputs() = default;

  virtual absl::StatusOr<at::Tensor> Draw(int level, const RowStream& stream,
                                          std::uint64_t first_row, std::int64_t rows) = 0;
  // The same rows after the teacher's steps down to `lower`, where they are at hand without asking
  // the teacher; else an undefined tensor.
  virtual absl::StatusOr<at::Tensor> Lower(int level, const RowStream& stream,
                                           std::uint64_t first_row, std::int64_t rows, int lower) {
    (void)level, (void)stream, (void)first_row, (void)rows, (void)lower;
    return at::Tensor();
  }
  // The classes of the same rows, [rows] int64 on the CPU, at whatever level; undefined where the
  // teacher has none.
  virtual at::Tensor Labels(const RowStream& stream, std::uint64_t first_row,
                            std::int64_t rows) const {
    (void)stream, (void)first_row, (void)rows;
    return at::Tensor();
  }
  // How many rows there are for training where they are taken from a pool, again and again; 0:
  // every row is a fresh one. The stream of Lane::kPool has the pool's rows in their order,
  // whatever else its name says.
  virtual std::int64_t pool_rows() const { return 0; }
  // Which of them the rows of a stream for training are.
  virtual std::vector<std::int64_t> PoolRows(const RowStream& stream, std::uint64_t first_row,
                                             std::int64_t rows) const {
    (void)stream, (void)first_row, (void)rows;
    return {};
  }
  // Single steps applied to single samples so far, for drawing.
  virtual std::int64_t teacher_calls() const { return 0; }
};

// N(0, alpha^2 lambda + sigma^2), lambda of data in native units; shape's product is their number.
absl::StatusOr<std::unique_ptr<Inputs>> MakeGaussianInputs(std::vector<double> variances,
                                                           const Schedule& schedule,
                                                           std::vector<std::int64_t> shape,
                                                           at::TensorOptions options);
// The law of a mixture at the level.
absl::StatusOr<std::unique_ptr<Inputs>> MakeMixtureInputs(
    std::shared_ptr<const MixtureTrajectory> trajectory, std::vector<std::int64_t> shape,
    at::TensorOptions options);
// alpha x0 + sigma eps, x0 a row of `data` at random: [N, shape], native units, on the CPU; with
// `labels` [N], its class goes with it. INVALID_ARGUMENT for no row, another shape, another number
// of labels, or numbers that are not finite.
absl::StatusOr<std::unique_ptr<Inputs>> MakeDataInputs(at::Tensor data, const Schedule& schedule,
                                                       at::TensorOptions options,
                                                       at::Tensor labels = {});
// The teacher's own states: noise at level T and its steps down to the level; needs no data. With
// `pool_rows` > 0 so many rollouts are made once, and training takes rows of them at random: the
// states at all levels are kept (pool_rows x T samples), and steps of the teacher that follow in a
// target cost nothing. Held-out rows are always fresh. 0: rollouts of their own for every row. Of a
// teacher with classes every rollout has one at random, all as likely.
absl::StatusOr<std::unique_ptr<Inputs>> MakeRolloutInputs(std::shared_ptr<Teacher> teacher,
                                                          const Schedule& schedule,
                                                          std::uint64_t seed,
                                                          std::int64_t pool_rows,
                                                          at::TensorOptions options);

// Which levels 1..levels an update of a fit trains: slice `slice` of `slices` equal shares of them.
int PickLevel(int levels, const RowStream& stream, std::uint64_t update, int slice, int slices);

}  // namespace mergeplan::network
