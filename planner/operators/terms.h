#pragma once

#include <string_view>

#include "absl/status/statusor.h"

namespace mergeplan {

// Where the student of a merge starts (c0 in planner/operators/README.md).
enum class Init {
  kChild,      // the operator learnt at the noisiest level, as it is (eq:recursive_merge)
  kTeacher,    // the teacher's single step (prop:student_gradient_flow)
  kJump,       // the teacher's x0 estimate used for the whole jump
  kChildJump,  // the x0 estimate that the noisiest child implies, used for the whole jump
};

// What the student is compared with.
enum class Reference {
  kSurrogate,  // def:surrogate_composite_operator
  kTeacher,    // the product of the teacher's steps (def:composite_teacher_operator)
  kData,       // the standard deviation of the data
};

// Which plans are searched.
enum class Space {
  kNary,    // every merge of any number of blocks (eq:recursive_merge)
  kBinary,  // two blocks, or all single steps at once (alg:pareto_dp_merge)
};

// The words of the command line and of the files: "child", "teacher", "jump", "child-jump";
// "surrogate", "teacher", "data"; "nary", "binary". Parsing an unknown word is INVALID_ARGUMENT and
// lists the known ones.
std::string_view ToString(Init init);
std::string_view ToString(Reference reference);
std::string_view ToString(Space space);
absl::StatusOr<Init> ParseInit(std::string_view word);
absl::StatusOr<Reference> ParseReference(std::string_view word);
absl::StatusOr<Space> ParseSpace(std::string_view word);

}  // namespace mergeplan
