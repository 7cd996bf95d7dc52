// Whether there is room where stores live while they are qualified: on a full file system every
// store fails, which is no finding about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "adapters/result.h"

namespace assay::qualify {

/// Free bytes of the file system that `root`, or the nearest folder above it that exists, is on;
/// nothing when it has no bound or cannot be asked.
[[nodiscard]] std::optional<std::uint64_t> free_bytes(const std::string& root);

/// An error of the machine's when less is free than `jobs` cases at once need.
[[nodiscard]] Status check_room_to_begin(const std::string& root, std::uint32_t jobs);

/// An error of the machine's when what happens now may have happened for want of room.
[[nodiscard]] Status check_room_to_go_on(const std::string& root);

/// `error`, or that `root` is too small where that is what it says.
[[nodiscard]] Error explained_by_room(Error error, const std::string& root);

}  // namespace assay::qualify
