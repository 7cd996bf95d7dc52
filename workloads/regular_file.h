// Opens a file that a user named. A pipe would be waited for, perhaps for ever, and a device never
// ends, so that both are refused. Threads: any.
#pragma once

#include <cstdio>
#include <string>

#include "adapters/result.h"

namespace assay {

/// The regular file at `path` for reading; the caller closes it. An error names no place and is of
/// ErrorKind::bad_input.
[[nodiscard]] Result<std::FILE*> open_regular_file(const std::string& path);

}  // namespace assay
