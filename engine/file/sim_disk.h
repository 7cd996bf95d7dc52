// A disk in memory that forgets, for tests: what was written and not synced may be lost in any
// combination, torn at 512 bytes; calls fail on demand; the power can be cut at any call.
//
// Model (the strictest that POSIX allows): every 512-byte piece of a write, every change of a
// file's size and every change of a name is a unit of its own. A unit is durable after the sync
// that covers it: File::sync for pieces and size, Disk::sync_directory for names, the write itself
// in a `dsync` file. crashed() makes the disk that a chosen subset of the pending units leaves.
// After a failed sync its units are neither durable nor pending: a later sync does not save them.
// Threads: all calls may come from several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/file/disk.h"

namespace lode {

constexpr std::size_t sim_sector_bytes = 512;

enum class Fault : std::uint8_t {
  power_cut,  ///< this call and all later ones fail; this one has no effect
  io_error,   ///< this call fails, half done if it is a write
  no_space,   ///< this call fails with no_space, half done if it is a write (a short write)
};

class SimDisk final : public Disk, public std::enable_shared_from_this<SimDisk> {
 public:
  static std::shared_ptr<SimDisk> make();

  Result<std::unique_ptr<File>> open(std::string_view name, OpenMode mode) override;
  Result<std::vector<std::string>> list() override;
  Status remove(std::string_view name) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status sync_directory() override;
  Status lock(bool exclusive) override;
  [[nodiscard]] std::string name() const override { return "sim"; }

  /// Lets the `call`-th changing call from now on (1 = the next one) fail.
  void fail_at(std::uint64_t call, Fault fault);
  /// Changing calls (write, resize, sync, create, remove, rename, sync_directory) made so far.
  [[nodiscard]] std::uint64_t changing_calls() const;
  /// Lets every read of `name` that covers `offset` fail (nullopt: none).
  void fail_reads_of(std::string name);

  /// Units that a crash now could lose.
  [[nodiscard]] std::size_t pending_units() const;
  /// The disk after a crash now in which exactly the units with keep(i) have survived. Handles to
  /// this disk stay valid and do not reach the new one. The new disk is not locked.
  [[nodiscard]] std::shared_ptr<SimDisk> crashed(
      const std::function<bool(std::size_t)>& keep) const;
  /// The disk as the page cache shows it: what a new process sees after a SIGKILL. Pending units
  /// stay pending.
  [[nodiscard]] std::shared_ptr<SimDisk> killed() const;

  /// Direct access to the contents, to damage them. Both the cached and the durable ones change.
  [[nodiscard]] std::optional<std::string> contents(std::string_view name) const;
  void set_contents(std::string_view name, std::string contents);

 private:
  friend class SimFile;
  struct Inode {
    std::string live;
    std::string durable;
  };
  struct Unit {
    enum class Kind : std::uint8_t { piece, size, link, unlink, move } kind = Kind::piece;
    std::shared_ptr<Inode> inode;
    std::uint64_t offset = 0;  // piece: where; size: the new size
    std::string data;          // piece: bytes, within one sector; names: the (new) name
    std::string from;          // move: the old name
  };
  using Names = std::map<std::string, std::shared_ptr<Inode>, std::less<>>;

  SimDisk() = default;
  // All below need mutex_.
  Status count_call(bool& half_done);
  void apply(const Unit& unit, Names& names) const;
  void write_live(const std::shared_ptr<Inode>& inode, ConstBytes data, std::uint64_t offset,
                  bool dsync);
  void sync_units(const std::shared_ptr<Inode>& inode, bool forget);
  [[nodiscard]] std::shared_ptr<SimDisk> copy() const;

  mutable std::mutex mutex_;
  Names live_names_;
  Names durable_names_;
  std::vector<Unit> pending_;
  std::uint64_t calls_ = 0;
  std::optional<std::uint64_t> fail_call_;
  Fault fault_ = Fault::io_error;
  bool dead_ = false;
  bool locked_ = false;
  std::string unreadable_;
};

/// Keeps units by a seeded coin: `percent` of them.
[[nodiscard]] std::function<bool(std::size_t)> keep_some(std::uint64_t seed, unsigned percent);

}  // namespace lode
