// The file layer on a directory of the operating system. See disk.h for the promises.
#pragma once

#include <memory>
#include <string>

#include "engine/file/disk.h"

namespace lode {

/// Opens the directory at `path`; with `create`, makes it (its parent must exist) and syncs the
/// parent so that the name survives.
[[nodiscard]] Result<std::shared_ptr<Disk>> open_directory(const std::string& path, bool create);

}  // namespace lode
