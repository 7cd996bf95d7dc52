#include "harness/qualify/root_space.h"

#include <sys/statvfs.h>

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

namespace assay::qualify {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
/// Below this a write of a store may have failed, whatever is free when it is asked for.
constexpr std::uint64_t kReserve = 2 * kMiB;
/// A store, the images of it that a case compares, and what level E keeps of the lives before.
constexpr std::uint64_t kOfOneCase = 8 * kMiB;

Error too_small(const std::string& root, std::uint64_t free, const std::string& needed) {
  return Error(ErrorKind::environment,
               fmt::format("there is too little room where stores live meanwhile: {:.1f} MiB are "
                           "free{}",
                           static_cast<double>(free) / static_cast<double>(kMiB), needed))
      .at(root)
      .hint("free some space there, or give a place with more by --root");
}

}  // namespace

std::optional<std::uint64_t> free_bytes(const std::string& root) {
  std::error_code code;
  fs::path place = fs::absolute(root, code);
  while (!code && !fs::exists(place, code) && place.has_relative_path())
    place = place.parent_path();
  struct statvfs info{};
  if (code || ::statvfs(place.c_str(), &info) != 0 || info.f_blocks == 0) return std::nullopt;
  return std::uint64_t{info.f_bavail} * info.f_frsize;
}

Status check_room_to_begin(const std::string& root, std::uint32_t jobs) {
  const std::uint64_t needed = kReserve + jobs * kOfOneCase;
  const auto free = free_bytes(root);
  if (!free || *free >= needed) return {};
  return fail(
      too_small(root, *free, fmt::format(", {} cases at once need {}", jobs, needed / kMiB)));
}

Status check_room_to_go_on(const std::string& root) {
  const auto free = free_bytes(root);
  if (!free || *free >= kReserve) return {};
  return fail(too_small(root, *free, ", and a store that finds no room would be blamed for it"));
}

Error explained_by_room(Error error, const std::string& root) {
  if (const Status room = check_room_to_go_on(root); !room) return room.error();
  const bool no_space = error.message().find("No space left") != std::string::npos ||
                        error.message().find("disk is full") != std::string::npos;
  if (!no_space) return error;
  return Error(
             ErrorKind::environment,
             fmt::format("there was too little room where stores live meanwhile: {}", error.what()))
      .at(root)
      .hint("free some space there, or give a place with more by --root");
}

}  // namespace assay::qualify
