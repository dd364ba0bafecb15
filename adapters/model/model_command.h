#pragma once

#include <optional>
#include <string>

namespace mergeplan {

// What `mergeplan model` is asked for.
struct ModelArguments {
  std::string folder;
  std::optional<std::string> compare;  // an .npz
  double tolerance = 1e-5;             // of differences over the largest value
  bool json = false;
};

// Prints what the model in a folder is and, where asked, how far it is from a reference. 0: done,
// 1: it cannot be read, or a difference is beyond the tolerance. Errors are one line on stderr.
int RunModelCommand(const ModelArguments& arguments);

}  // namespace mergeplan
