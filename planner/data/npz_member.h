#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/data/stream.h"

namespace mergeplan {

// The bytes of the member NAME.npy of an .npz; the other members are not decompressed. NOT_FOUND
// lists the names that there are.
absl::StatusOr<std::unique_ptr<ByteStream>> OpenNpzMember(const std::string& path,
                                                          std::string_view name);

// "a, b, c", cut after twenty names.
std::string ListNames(const std::vector<std::string>& names);

}  // namespace mergeplan
