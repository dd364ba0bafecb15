#include "adapters/network/operators.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "absl/types/span.h"
#include "planner/base/status_macros.h"

namespace mergeplan::network {
namespace {

absl::StatusOr<at::Tensor> Follow(absl::Span<const Link> links, const Frozen& frozen, at::Tensor z,
                                  const at::Tensor& label) {
  const c10::NoGradGuard no_gradients;
  for (const Link& link : links) {
    if (link.snapshot < 0) {
      for (int t = link.from; t > link.to; --t) {
        MP_ASSIGN_OR_RETURN(z, frozen.teacher->Jump(z, t, t - 1, label));
      }
      continue;
    }
    MP_ASSIGN_OR_RETURN(const std::shared_ptr<Module> module, frozen.snapshots->Get(link.snapshot));
    MP_ASSIGN_OR_RETURN(z, frozen.student->Jump(*module, z, link.from, link.landing, label));
  }
  return z;
}

}  // namespace

absl::StatusOr<at::Tensor> Apply(const std::vector<Link>& links, const Frozen& frozen,
                                 const at::Tensor& z, const at::Tensor& label) {
  return Follow(links, frozen, z, label);
}

absl::StatusOr<at::Tensor> ApplyToRows(const std::vector<Link>& links, const Frozen& frozen,
                                       Inputs& inputs, const RowStream& stream,
                                       std::uint64_t first_row, const at::Tensor& z,
                                       std::int64_t* calls) {
  absl::Span<const Link> rest = links;
  at::Tensor state = z;
  if (!rest.empty() && rest.front().snapshot < 0) {
    MP_ASSIGN_OR_RETURN(const at::Tensor known, inputs.Lower(rest.front().from, stream, first_row,
                                                             z.size(0), rest.front().to));
    if (known.defined()) {
      state = known;
      rest.remove_prefix(1);
    }
  }
  for (const Link& link : rest) {
    if (link.snapshot < 0) *calls += (link.from - link.to) * z.size(0);
  }
  return Follow(rest, frozen, std::move(state), inputs.Labels(stream, first_row, z.size(0)));
}

int TeacherSteps(const std::vector<Link>& links) {
  int steps = 0;
  for (const Link& link : links) steps += link.snapshot < 0 ? link.from - link.to : 0;
  return steps;
}

}  // namespace mergeplan::network
