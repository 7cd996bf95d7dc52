// A copy of a store's directory, as a crash left it.
// Stateless; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "adapters/result.h"

namespace assay::qualify {

/// Copies regular files, directories and symbolic links below `from` into `to`, which is made.
/// Pages of zeros become holes. Sockets and pipes are left out: a kill leaves nothing in them.
[[nodiscard]] Status copy_directory(const std::string& from, const std::string& to);

/// Removes what is in a directory, and not the directory.
[[nodiscard]] Status empty_directory(const std::string& path);

/// Of names, sizes and bytes of all files below: two directories that a store cannot tell apart
/// have the same. Times and modes do not count.
[[nodiscard]] Result<std::uint64_t> directory_hash(const std::string& path);

}  // namespace assay::qualify
