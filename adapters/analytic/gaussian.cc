#include "adapters/analytic/gaussian.h"

#include <Eigen/Core>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/file.h"
#include "planner/base/status_macros.h"
#include "planner/spectrum/basis.h"
#include "planner/spectrum/spectrum.h"

namespace mergeplan {

absl::StatusOr<GaussianTeacher> GaussianTeacher::Load(const std::string& path,
                                                      const std::string& basis) {
  MP_ASSIGN_OR_RETURN(Spectrum spectrum, ReadSpectrum(path));
  GaussianTeacher teacher;
  teacher.path_ = path;
  MP_ASSIGN_OR_RETURN(teacher.sha256_, Sha256OfFile(path));
  teacher.basis_ = basis.empty() ? spectrum.recommended_basis : basis;
  absl::StatusOr<const Basis*> found = spectrum.FindBasis(teacher.basis_);
  if (!found.ok()) {
    return absl::Status(found.status().code(), absl::StrCat(path, ": ", found.status().message()));
  }
  teacher.variances_ = (*found)->variances;
  teacher.vectors_ = BasisVectors(spectrum, teacher.basis_);
  teacher.mean_ = std::move(spectrum.mean);
  teacher.shape_ = spectrum.shape;
  teacher.scaling_ = spectrum.scaling.text;
  return teacher;
}

std::vector<double> GaussianTeacher::Decode(absl::Span<const double> rows) const {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Index d = dimensions();
  const Eigen::Index count = static_cast<Eigen::Index>(rows.size()) / d;
  std::vector<double> out(rows.size());
  const Eigen::Map<const Matrix> in(rows.data(), count, d);
  Eigen::Map<Matrix> result(out.data(), count, d);
  if (vectors_.empty()) {
    result = in;
  } else {
    result.noalias() = in * Eigen::Map<const Matrix>(vectors_.data(), d, d);
  }
  result.rowwise() += Eigen::Map<const Eigen::RowVectorXd>(mean_.data(), d);
  return out;
}

}  // namespace mergeplan
