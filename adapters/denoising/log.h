#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mergeplan::denoising {

// What is told of a training: a row for every `every` updates (and for what is left when it ends).
class Log {
 public:
  struct Row {
    std::int64_t update = 0;    // how many had been made
    double loss = 0;            // mean over the row's updates
    double norm = 0;            // of the gradient, before clipping; mean over those not skipped
    double lr = 0;              // of the last of them
    double seconds = 0;         // of training since the beginning, resumed parts together
    double skipped = 0;         // updates of this row that were left out (fp16)
    std::vector<double> parts;  // of the loss; means over the row's updates
  };

  Log() = default;
  // `parts`: the names of what the loss is made of, columns of their own.
  explicit Log(std::vector<std::string> parts) : names_(std::move(parts)) {
    open_.parts.resize(names_.size());
  }

  // Adds an update; `norm` is not finite where it was skipped. `parts` are as many as names.
  void Add(std::int64_t update, double loss, double norm, double lr, double seconds,
           std::int64_t every, const std::vector<double>& parts = {});
  // Closes the row that has begun.
  void Close();

  const std::vector<Row>& rows() const { return rows_; }
  // Mean loss of the last rows that span `updates` updates; NaN where there is none.
  double RecentLoss(std::int64_t updates) const;
  double seconds() const;

  // update,loss,gradient_norm,lr,seconds,skipped and the parts
  std::string Csv() const;

  // Everything, the row that has begun included, and back; false where it is no such list.
  std::vector<double> Numbers() const;
  bool FromNumbers(const std::vector<double>& numbers);

 private:
  std::size_t columns() const { return 6 + names_.size(); }
  void Append(const Row& row, std::vector<double>* out) const;
  Row RowOf(const double* numbers) const;

  std::vector<std::string> names_;
  std::vector<Row> rows_;
  // The row that has begun, as sums.
  std::int64_t updates_ = 0;
  double norms_ = 0;  // how many norms are in its sum
  Row open_;
};

}  // namespace mergeplan::denoising
