#pragma once

#include <string_view>

namespace mergeplan {

// Is `name`, of a file without its folder, one that a write beside (file.h) leaves when the program
// is killed before it renames? Such a file may be deleted by whoever holds the folder's lock.
bool IsHalfWritten(std::string_view name);

// May `name` lie in a folder that counts as empty: a lock, a half-written file, a hidden one (of a
// file system or a desktop)?
bool IsLeftover(std::string_view name);

}  // namespace mergeplan
