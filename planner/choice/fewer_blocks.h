#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/operators/model.h"
#include "planner/search/search.h"

namespace mergeplan {

// The numbers of blocks below `blocks` that are tried: all of them up to 8 blocks, above that
// halves, quarters, … down to 1; from the largest.
std::vector<int> FewerBlocks(int blocks);

// What became of the question whether fewer blocks are better.
struct FewerBlocksAnswer {
  struct Try {
    int student_steps = 0;
    SearchResult result;
    bool better = false;   // its plan has a smaller objective than the plan asked about
    bool certain = false;  // better than every plan with as many blocks as asked for
  };
  std::vector<Try> tries;  // in the order of FewerBlocks
  int left_out = 0;        // so many were not tried: the time was used up

  // The one with the least objective, if any is better; else null.
  const Try* Best() const;
};

// Solves the model for every number of FewerBlocks(options.student_steps) at the same training per
// merge. `asked` is the result for options.student_steps. Of the options the time limit holds for
// all of them together; what is interrupted is left out. Errors as Solve.
absl::StatusOr<FewerBlocksAnswer> TryFewerBlocks(const Model& model, const SearchResult& asked,
                                                 SearchOptions options);

}  // namespace mergeplan
