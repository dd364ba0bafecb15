#pragma once

namespace mergeplan::search {

// Which parts a plan of the space may be made of: S[i,j] are the nodes over the steps i..j, Q[i,j]
// what can be the cleaner side of a merge or product.
//   kNary         Q[i,j] = S[i,j] + Q[i,m] x S[m+1,j];  S[i,j] = merge(Q[i,m], S[m+1,j])
//   kBinary       Q[i,j] = S[i,j];                      S[i,j] = merge(Q[i,m], S[m+1,j]) + all
//   steps at once
// and plans whose blocks are all of one strategy:
//   kVanilla      S[i,j] = all steps at once
//   kBoot         S[i,j] = merge(step i, S[i+1,j])
//   kConsistency  S[i,j] = merge(S[i,j-1], step j)
enum class Shape { kNary, kBinary, kVanilla, kBoot, kConsistency };

constexpr bool OneNodePerInterval(Shape shape) { return shape >= Shape::kVanilla; }

}  // namespace mergeplan::search
