#include "adapters/layers/attention.h"

#include <ATen/ops/scaled_dot_product_attention.h>

#include "absl/strings/str_cat.h"

namespace mergeplan::layers {

Attention::Attention(const Scope& scope, const AttentionOptions& o) : options_(o) {
  const std::int64_t inner = o.heads * o.head_width;
  if (o.heads < 1) {
    scope.Fail(absl::StrCat(" has ", o.channels, " channels, less than a head's ", o.head_width));
  }
  if (o.groups > 0) norm_ = GroupNorm(scope / "group_norm", o.groups, o.channels, o.eps);
  query_ = Linear(scope / "to_q", o.channels, inner);
  key_ = Linear(scope / "to_k", o.channels, inner);
  value_ = Linear(scope / "to_v", o.channels, inner);
  out_ = Linear(scope / "to_out" / 0, inner, o.channels);
}

at::Tensor Attention::Forward(const at::Tensor& x) const {
  const std::int64_t batch = x.size(0), height = x.size(2), width = x.size(3);
  const std::int64_t places = height * width;
  // [B, places, channels]
  const at::Tensor rows =
      (norm_ ? norm_(x) : x).reshape({batch, options_.channels, places}).transpose(1, 2);
  // [B, heads, places, head_width]
  const auto heads = [&](const Linear& projection) {
    return projection(rows)
        .view({batch, places, options_.heads, options_.head_width})
        .transpose(1, 2);
  };
  const at::Tensor mixed =
      at::scaled_dot_product_attention(heads(query_), heads(key_), heads(value_));
  at::Tensor h = out_(mixed.transpose(1, 2).reshape({batch, places, -1}));
  h = h.transpose(1, 2).reshape({batch, options_.channels, height, width}).add(x);
  if (options_.output_scale != 1) h.div_(options_.output_scale);
  return h;
}

std::vector<at::Tensor> Attention::Tensors() const {
  std::vector<at::Tensor> all;
  if (norm_) all = {norm_.weight, norm_.bias};
  for (const Linear* l : {&query_, &key_, &value_, &out_}) {
    all.insert(all.end(), {l->weight, l->bias});
  }
  return all;
}

}  // namespace mergeplan::layers
