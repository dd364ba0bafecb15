#include "adapters/denoising/log.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mergeplan::denoising {
namespace {

bool IsUpdate(double number) {
  return number >= 0 && number < 0x1p53 && number == std::floor(number);
}

}  // namespace

void Log::Append(const Row& row, std::vector<double>* out) const {
  for (const double number :
       {static_cast<double>(row.update), row.loss, row.norm, row.lr, row.seconds, row.skipped}) {
    out->push_back(number);
  }
  out->insert(out->end(), row.parts.begin(), row.parts.end());
}

Log::Row Log::RowOf(const double* numbers) const {
  Row row;
  row.update = static_cast<std::int64_t>(numbers[0]);
  row.loss = numbers[1];
  row.norm = numbers[2];
  row.lr = numbers[3];
  row.seconds = numbers[4];
  row.skipped = numbers[5];
  row.parts.assign(numbers + 6, numbers + columns());
  return row;
}

void Log::Add(std::int64_t update, double loss, double norm, double lr, double seconds,
              std::int64_t every, const std::vector<double>& parts) {
  ++updates_;
  open_.update = update;
  open_.loss += loss;
  for (std::size_t k = 0; k < std::min(parts.size(), names_.size()); ++k) {
    open_.parts[k] += parts[k];
  }
  open_.lr = lr;
  open_.seconds = seconds;
  if (std::isfinite(norm)) {
    open_.norm += norm;
    ++norms_;
  } else {
    ++open_.skipped;
  }
  if (update % every == 0) Close();
}

void Log::Close() {
  if (updates_ == 0) return;
  open_.loss /= static_cast<double>(updates_);
  for (double& part : open_.parts) part /= static_cast<double>(updates_);
  if (norms_ > 0) open_.norm /= norms_;
  rows_.push_back(open_);
  open_ = Row();
  open_.parts.resize(names_.size());
  updates_ = 0;
  norms_ = 0;
}

double Log::RecentLoss(std::int64_t updates) const {
  double sum = 0;
  std::int64_t count = 0;
  for (std::size_t k = rows_.size(); k-- > 0 && count < updates;) {
    const std::int64_t span = rows_[k].update - (k > 0 ? rows_[k - 1].update : 0);
    sum += rows_[k].loss * static_cast<double>(span);
    count += span;
  }
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

double Log::seconds() const {
  if (updates_ > 0) return open_.seconds;
  return rows_.empty() ? 0 : rows_.back().seconds;
}

std::string Log::Csv() const {
  std::string out = "update,loss,gradient_norm,lr,seconds,skipped";
  for (const std::string& name : names_) absl::StrAppend(&out, ",", name);
  out += "\n";
  for (const Row& row : rows_) {
    absl::StrAppendFormat(&out, "%d,%.6g,%.6g,%.6g,%.2f,%d", row.update, row.loss, row.norm, row.lr,
                          row.seconds, static_cast<std::int64_t>(row.skipped));
    for (const double part : row.parts) absl::StrAppendFormat(&out, ",%.6g", part);
    out += "\n";
  }
  return out;
}

std::vector<double> Log::Numbers() const {
  std::vector<double> out = {static_cast<double>(updates_), norms_};
  Append(open_, &out);
  for (const Row& row : rows_) Append(row, &out);
  return out;
}

bool Log::FromNumbers(const std::vector<double>& numbers) {
  if (numbers.size() < 2 + columns() || (numbers.size() - 2) % columns() != 0 ||
      !IsUpdate(numbers[0]) || !IsUpdate(numbers[1])) {
    return false;
  }
  for (std::size_t k = 2; k < numbers.size(); k += columns()) {
    if (!IsUpdate(numbers[k])) return false;
  }
  updates_ = static_cast<std::int64_t>(numbers[0]);
  norms_ = numbers[1];
  open_ = RowOf(&numbers[2]);
  rows_.clear();
  for (std::size_t k = 2 + columns(); k < numbers.size(); k += columns()) {
    rows_.push_back(RowOf(&numbers[k]));
  }
  return true;
}

}  // namespace mergeplan::denoising
