// What every adapter does the same way when it opens a directory: is it there, whose store is in
// it, what do the settings say, is the directory entry itself durable.
//
// Stateless functions, callable from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "adapters/store.h"

namespace assay {

/// The file by whose presence a store's directory is recognised, by the name of its driver.
/// Empty for a driver that keeps no files.
[[nodiscard]] std::string_view main_file(std::string_view driver);

/// True: `driver`'s store is in the directory; false: it is to be created. An error when the
/// directory is not usable, when another store lives in it, or when there is none and
/// `options.create` is false.
[[nodiscard]] Result<bool> find_store(std::string_view driver, const OpenOptions& options);

/// An exclusive lock on the directory of a store that one process at a time may open: a handle to
/// be closed. Error `store`: another has it.
[[nodiscard]] Result<int> lock_directory(std::string_view driver, const std::string& directory);

/// fsync of a directory, so that the entries in it survive power loss.
[[nodiscard]] Status sync_directory(const std::string& directory);
/// The same for a new store's directory and for its parent, which holds the directory's own entry.
[[nodiscard]] Status sync_new_directory(const std::string& directory);

/// True for the classes that promise something after power loss.
[[nodiscard]] bool survives_power_loss(DurabilityClass durability);

/// The whole number in a free-form setting; `automatic` when it reads "auto".
/// `least` and `most` are the valid range. `settings` must hold the name.
struct CountRange {
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  std::uint64_t automatic = 0;
};
[[nodiscard]] Result<std::uint64_t> count_setting(std::string_view driver, const Settings& settings,
                                                  const std::string& name, const CountRange& range);
/// Refuses more `sessions` at once than setting `name` with its `value` allows: `reach` of them.
[[nodiscard]] Status require_reach(std::string_view driver, const std::string& name,
                                   std::string_view value, std::uint64_t reach,
                                   std::uint32_t sessions);
/// True when the setting reads "on".
[[nodiscard]] bool on_setting(const Settings& settings, const std::string& name);

/// `environment` for what the machine lacks (space, quota, memory, file handles, permission),
/// else `store`.
[[nodiscard]] ErrorKind kind_of_errno(int code);

/// True when the file system of `directory` has next to nothing left (below 1 MiB): for stores that
/// report a full disk as some other error.
[[nodiscard]] bool disk_is_full(const std::string& directory);

/// Refuses a key or a value outside of the store's declared limits, and a u64 key that is not
/// 8 bytes. Cheap enough for the measured path: three comparisons.
class EntryLimits {
 public:
  EntryLimits(std::string driver, const Capabilities& capabilities, KeyKind key_kind);
  [[nodiscard]] bool accepts(std::string_view key, std::string_view value) const {
    return key.size() >= least_key_bytes_ && key.size() <= most_key_bytes_ &&
           value.size() <= most_value_bytes_;
  }
  /// A key of another length is in no store, so a read of it need not fail.
  [[nodiscard]] bool accepts(std::string_view key) const { return accepts(key, {}); }
  /// The message for an entry that accepts() refused.
  [[nodiscard]] Error refusal(std::string_view key, std::string_view value) const;

 private:
  std::string driver_;
  KeyKind key_kind_;
  std::uint64_t least_key_bytes_;
  std::uint64_t most_key_bytes_;
  std::uint64_t most_value_bytes_;
};

}  // namespace assay
