#include "adapters/opening.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <utility>

namespace assay {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kMainFiles{{
    {"sqlite", "store.sqlite"},
    {"lmdb", "data.mdb"},
    {"rocksdb", "CURRENT"},
    {"raw-file", "raw-000001.log"},
    {"lode", "data"},
    {"rewrite", "map"},
    {"postgresql", "postgresql"},
}};

Result<bool> exists(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT) return false;
  return fail(system_error("cannot look for a store", errno).at(path));
}

Status require_directory(const std::string& directory) {
  struct stat info{};
  if (::stat(directory.c_str(), &info) != 0) {
    const int code = errno;
    Error error = code == ENOENT ? Error(ErrorKind::bad_input, "no such directory for a store")
                                 : system_error("cannot use the directory for a store", code);
    return fail(error.at(directory).hint("create it first; a store is opened in a directory"));
  }
  if (!S_ISDIR(info.st_mode)) {
    return fail(
        Error(ErrorKind::bad_input, "a store needs a directory and this is not one").at(directory));
  }
  if (::access(directory.c_str(), R_OK | W_OK | X_OK) != 0) {
    return fail(system_error("cannot write in the directory for a store", errno).at(directory));
  }
  return {};
}

}  // namespace

std::string_view main_file(std::string_view driver) {
  for (const auto& [name, file] : kMainFiles) {
    if (name == driver) return file;
  }
  return {};
}

Result<bool> find_store(std::string_view driver, const OpenOptions& options) {
  ASSAY_TRY(require_directory(options.directory));
  bool found = false;
  for (const auto& [name, file] : kMainFiles) {
    const Result<bool> there = exists(fmt::format("{}/{}", options.directory, file));
    if (!there) return there;
    if (name == driver) {
      found = *there;
    } else if (*there) {
      return fail(Error(ErrorKind::bad_input,
                        fmt::format("the directory holds a store of {}, not of {}", name, driver))
                      .at(options.directory)
                      .hint("give every store a directory of its own"));
    }
  }
  if (!found && !options.create) {
    return fail(Error(ErrorKind::bad_input, fmt::format("there is no {} store here", driver))
                    .at(options.directory)
                    .hint(fmt::format("expected the file \"{}\"", main_file(driver))));
  }
  return found;
}

Result<int> lock_directory(std::string_view driver, const std::string& directory) {
  const int handle = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) {
    return fail(
        system_error(fmt::format("{}: cannot open the directory", driver), errno).at(directory));
  }
  if (::flock(handle, LOCK_EX | LOCK_NB) != 0) {
    ::close(handle);
    return fail(Error(ErrorKind::store, fmt::format("{}: the store is open already", driver))
                    .at(directory)
                    .hint("close the other process or handle that uses it"));
  }
  return handle;
}

Status sync_directory(const std::string& directory) {
  const int handle = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0)
    return fail(system_error("cannot open the directory to sync it", errno).at(directory));
  const int code = ::fsync(handle) == 0 ? 0 : errno;
  ::close(handle);
  if (code != 0) return fail(system_error("cannot sync the directory", code).at(directory));
  return {};
}

Status sync_new_directory(const std::string& directory) {
  ASSAY_TRY(sync_directory(directory));
  return sync_directory(directory + "/..");
}

bool survives_power_loss(DurabilityClass durability) {
  return durability >= DurabilityClass::power_prefix;
}

Result<std::uint64_t> count_setting(std::string_view driver, const Settings& settings,
                                    const std::string& name, const CountRange& range) {
  const auto found = settings.find(name);
  ASSAY_CHECK(found != settings.end(), "an adapter asked for a setting it does not declare");
  const std::string& text = found->second;
  if (text == "auto") return range.automatic;
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, code] = std::from_chars(text.data(), end, value);
  if (text.empty() || code != std::errc() || stopped != end || value < range.least ||
      value > range.most) {
    return fail(
        Error(ErrorKind::bad_input,
              fmt::format("{}: \"{}\" is not a value of setting \"{}\"", driver, text, name))
            .hint(fmt::format("a whole number from {} to {}, or auto", range.least, range.most)));
  }
  return value;
}

Status require_reach(std::string_view driver, const std::string& name, std::string_view value,
                     std::uint64_t reach, std::uint32_t sessions) {
  if (sessions <= reach) return {};
  return fail(Error(ErrorKind::bad_input,
                    fmt::format("{}: {} = {} allows {} session{} at once, and {} are wanted",
                                driver, name, value, reach, reach == 1 ? "" : "s", sessions))
                  .hint(fmt::format("change {}, or use at most {} thread{}", name, reach,
                                    reach == 1 ? "" : "s")));
}

bool on_setting(const Settings& settings, const std::string& name) {
  const auto found = settings.find(name);
  ASSAY_CHECK(found != settings.end(), "an adapter asked for a setting it does not declare");
  return found->second == "on";
}

ErrorKind kind_of_errno(int code) {
  switch (code) {
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorKind::environment;
    default:
      return ErrorKind::store;
  }
}

bool disk_is_full(const std::string& directory) {
  struct statvfs info{};
  return ::statvfs(directory.c_str(), &info) == 0 && info.f_bavail * info.f_frsize < (1U << 20);
}

EntryLimits::EntryLimits(std::string driver, const Capabilities& capabilities, KeyKind key_kind)
    : driver_(std::move(driver)),
      key_kind_(key_kind),
      least_key_bytes_(key_kind == KeyKind::u64 ? 8 : capabilities.min_key_bytes),
      most_key_bytes_(key_kind == KeyKind::u64 ? 8 : capabilities.max_key_bytes),
      most_value_bytes_(capabilities.max_value_bytes) {}

Error EntryLimits::refusal(std::string_view key, std::string_view value) const {
  if (key.size() >= least_key_bytes_ && key.size() <= most_key_bytes_) {
    return {ErrorKind::bad_input, fmt::format("{}: a value of {} bytes; the store takes at most {}",
                                              driver_, value.size(), most_value_bytes_)};
  }
  if (key_kind_ == KeyKind::u64) {
    return {ErrorKind::bad_input,
            fmt::format("{}: a u64 key of {} bytes; it takes exactly 8", driver_, key.size())};
  }
  return {ErrorKind::bad_input,
          fmt::format("{}: a key of {} bytes; the store takes {} to {}", driver_, key.size(),
                      least_key_bytes_, most_key_bytes_)};
}

}  // namespace assay
