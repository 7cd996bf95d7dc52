// lode: a durable, ordered, embedded key-value store for one process. The public interface.
//
//   auto store = lode::Store::open("/some/directory", {});
//   lode::WriteBatch batch;
//   batch.put("key", "value");
//   auto receipt = (*store)->commit(batch, lode::Durability::sync);
//
// Keys are byte strings of 0 to 1,024 bytes in the order of their bytes; in a store of u64 keys
// they are 8 bytes, big-endian (u64_key makes one). Values have 0 bytes to 1 GiB.
//
// Threads: a Store is used from any number of threads. A Cursor, a Transaction and a WriteBatch
// belong to one thread at a time; a Snapshot may be shared.
// Errors are values (engine/base/result.h). After a failed write or sync the store is poisoned: it
// still reads, and refuses every write; what was in flight may be there after a reopen, whole.
// Memory that runs out is an error of kind out_of_memory and nothing was done, or, in the midst of
// a commit or a checkpoint, of kind outcome_unknown and the store is poisoned. What returns no
// Result throws std::bad_alloc; a cursor has to be placed anew after it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/types.h"
#include "engine/tree/entry_cursor.h"
#include "engine/tree/entry_weights.h"

namespace lode {

class Disk;
class Engine;
struct SnapshotCore;

/// When a commit is acknowledged. Whatever the mode, what a crash leaves is a prefix of the commits
/// in their order, each whole.
enum class Durability : std::uint8_t {
  sync,       ///< on the medium: survives power loss
  window,     ///< in memory; a background flush starts within the window's delay, and at most the
              ///< window's number of acknowledged operations is not durable at any time
  buffered,   ///< with the operating system: survives the death of the process. Where the log goes
              ///< past the page cache or syncs each write, that is the same as `sync`
  volatile_,  ///< in memory: durable with the next commit that is
};

/// What a commit has to leave free in a bounded data file (Options::max_bytes).
enum class Admission : std::uint8_t {
  /// Nothing. A flush may find no space for what was acknowledged: that stays in the log, readable,
  /// and puts are refused until a flush succeeds (a larger bound, closed snapshots, erases).
  unreserved,
  /// What flushing all pending writes and then merging everything takes at most, counted by laying
  /// out the pending writes at every commit: linear in their number.
  recount,
  /// The same, bounded by sums that are kept as writes come: constant. Only where the bound does
  /// not fit are the pending writes counted.
  weighted,
};

struct Options {
  bool create = true;                   ///< make the store when there is none
  bool read_only = false;               ///< replays the log in memory and changes nothing
  KeyKind key_kind = KeyKind::bytes;    ///< of a new store; must match an existing one
  std::optional<LogMethod> log_method;  ///< of a new store; default: the fastest by a short probe
  std::uint64_t log_segment_bytes = std::uint64_t{8} << 20;
  /// Log that is made ahead when the store is created, and kept for use again: a commit that needs
  /// new log pays for the zeros that it is filled with. 0: two segments, made while commits go on.
  std::uint64_t log_prepared_bytes = 0;
  std::size_t cache_bytes = std::size_t{64} << 20;     ///< pages of trees kept in memory
  std::size_t overlay_bytes = std::size_t{64} << 20;   ///< recent writes in memory before a flush
  std::uint64_t tree_bytes = std::uint64_t{64} << 20;  ///< payload of one tree, about
  unsigned level_ratio = 8;  ///< runs of one level before they are merged into the next
  bool background = true;    ///< flush and merge in a thread of the store's own
  std::chrono::milliseconds window_delay{250};
  std::uint64_t window_operations = 200;
  /// Bound of the data file in bytes, its log aside; 0 = none, else 1 MiB at least. Trees get no
  /// larger than a 64th of it, or 256 KiB.
  std::uint64_t max_bytes = 0;
  Admission admission = Admission::weighted;
};

/// Puts, erases and range erases that become visible and durable together.
class WriteBatch {
 public:
  void put(std::string_view key, std::string_view value);
  /// Erasing a key that is not there is not an error.
  void erase(std::string_view key);
  /// Erases all keys k with first <= k < last.
  void erase_range(std::string_view first, std::string_view last);
  /// Erases all keys k with first <= k.
  void erase_from(std::string_view first);
  void clear();
  [[nodiscard]] std::uint64_t operations() const { return operations_; }
  [[nodiscard]] bool empty() const { return operations_ == 0; }

 private:
  friend class Engine;
  void add(unsigned kind, std::string_view key, std::string_view value);
  std::string encoded_;
  std::uint64_t operations_ = 0;
  std::size_t longest_key_ = 0;
  std::size_t shortest_key_ = ~std::size_t{0};
  std::uint64_t longest_value_ = 0;
  bool ranged_ = false;  // erases a range
  std::uint64_t puts_ = 0;
  EntryWeights weights_;  // of what it puts and erases by key
};

struct Receipt {
  std::uint64_t sequence = 0;  ///< number of the commit; 0 for an empty batch
  bool durable = false;        ///< already on the medium
};

/// A position in a snapshot, in key order.
class Cursor {
 public:
  Cursor(Cursor&&) noexcept;
  Cursor& operator=(Cursor&&) noexcept;
  ~Cursor();
  void seek_first();
  void seek_last();
  /// To the first entry with a key >= `key`.
  void seek(std::string_view key);
  /// To the last entry with a key <= `key`.
  void seek_at_or_below(std::string_view key);
  void next();
  void prev();
  /// False behind the last entry, before the first one, and after an error (see status()).
  [[nodiscard]] bool valid() const { return entries_->valid(); }
  [[nodiscard]] std::string_view key() const {
    return entries_->key();
  }  ///< until the cursor moves
  /// Until the cursor moves or the next value().
  Result<std::string_view> value() { return entries_->value(); }
  [[nodiscard]] Status status() const;

 private:
  friend class Snapshot;
  struct Body;
  explicit Cursor(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
  EntryCursor* entries_ = nullptr;  // in the body
};

/// A place in the order of commits with a name.
struct Marker {
  std::string name;
  std::uint64_t sequence = 0;
};
/// Markers that a store keeps; of more, the oldest are forgotten.
constexpr std::size_t most_markers = 256;
constexpr std::size_t longest_marker_bytes = 200;

/// Lost keys lie in [first, last]; the ends themselves may be intact.
struct LostRange {
  std::string first;
  std::string last;
};

/// How far rebuild() goes.
struct RebuildPolicy {
  /// Goes on without what is lost. Otherwise nothing is changed when something is.
  bool accept_loss = false;
  /// Reads every large value as well. Without it only values of trees that need more than new inner
  /// pages are read; a damaged value is still found when it is asked for.
  bool check_values = true;
};

/// What rebuild() has found and done.
struct RebuildReport {
  std::uint64_t trees = 0;  ///< checked
  std::uint64_t damaged_trees = 0;
  std::uint64_t rebuilt_trees = 0;    ///< 0 when nothing was changed
  std::uint64_t restored_pages = 0;   ///< inner pages written again at their own places
  std::uint64_t rebuilt_entries = 0;  ///< below those, and in new trees
  std::uint64_t lost_entries = 0;     ///< of leaves and values that are damaged
  std::vector<LostRange> lost;        ///< where; empty = everything is there
};

/// What a backup has written.
struct BackupReport {
  std::uint64_t sequence = 0;  ///< of the last commit that is in it
  std::uint64_t entries = 0;
  std::uint64_t payload_bytes = 0;  ///< keys and values
  std::uint64_t written_bytes = 0;  ///< trees, with pages and filters
};

/// The store as it was at one moment. Cheap; any number. Keeps what it shows, and only that.
class Snapshot {
 public:
  /// True and the value when the key is there.
  Result<bool> get(std::string_view key, std::string& value) const;
  /// For each of `keys` its value, or nothing when it is not there.
  Result<std::vector<std::optional<std::string>>> get_many(
      std::span<const std::string_view> keys) const;
  [[nodiscard]] Cursor cursor() const;
  [[nodiscard]] std::uint64_t sequence() const;
  /// Makes a store of its own, durable when this returns, from what the snapshot shows; commits and
  /// readers go on meanwhile. The directory is made; one with anything in it is refused. After an
  /// error or a crash on the way it holds no store. The copy goes on from the same sequence.
  Result<BackupReport> backup(const std::string& directory) const;
  /// The same on another file layer; for tests.
  Result<BackupReport> backup(Disk& disk) const;

 private:
  friend class Store;
  friend class Transaction;
  explicit Snapshot(std::shared_ptr<const SnapshotCore> core) : core_(std::move(core)) {}
  std::shared_ptr<const SnapshotCore> core_;
};

enum class Isolation : std::uint8_t {
  snapshot,      ///< conflicts when a key that it wrote was changed since it began
  serializable,  ///< also when anything that it read (keys, ranges) was changed
};

/// Reads from a snapshot and its own writes; commits all or nothing. "Changed" is decided by value:
/// a key that was written again with the value it had is not a conflict.
class Transaction {
 public:
  Transaction(Transaction&&) noexcept;
  Transaction& operator=(Transaction&&) noexcept;
  ~Transaction();  ///< rolls back
  Result<bool> get(std::string_view key, std::string& value);
  void put(std::string_view key, std::string_view value);
  void erase(std::string_view key);
  /// The entries with first <= key < last (no `last`: to the end), own writes included.
  Result<std::vector<std::pair<std::string, std::string>>> scan(
      std::string_view first, std::optional<std::string_view> last);
  /// ErrorKind::conflict: nothing was changed; begin again.
  Result<Receipt> commit(Durability durability);
  void rollback();

 private:
  friend class Store;
  friend class Engine;
  struct Body;
  explicit Transaction(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

/// What opening has found and done.
struct RecoveryReport {
  bool created = false;
  bool root_fallback = false;  ///< a root is damaged; the other one, with its log, has everything
  std::uint64_t root_generation = 0;
  std::uint64_t replayed_commits = 0;
  std::uint64_t replayed_bytes = 0;
  std::uint64_t replayed_frames = 0;
  std::uint64_t dropped_frames = 0;  ///< intact ones behind the cut that were never durable
  std::uint64_t trees = 0;           ///< that the roots name
  bool log_cut = false;              ///< an unfinished tail of the log was cut off
  std::string cut_reason;
  std::uint64_t microseconds = 0;         ///< in all; of it:
  std::uint64_t files_microseconds = 0;   ///< locking, syncing or making the files
  std::uint64_t roots_microseconds = 0;   ///< roots and manifests
  std::uint64_t replay_microseconds = 0;  ///< the log, and its new epoch
};

class Store {
 public:
  /// Opens the store in a directory, which is made if need be. One writer at a time.
  static Result<std::unique_ptr<Store>> open(const std::string& directory, const Options& options);
  /// The same on another file layer; for tests.
  static Result<std::unique_ptr<Store>> open(std::shared_ptr<Disk> disk, const Options& options);
  /// Closes, without a report of what goes wrong.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  /// For a store that is not open and in which verify() has found damage: makes damaged trees whole
  /// from their leaves, which have all that inner pages and filters say. Where the leaves prove
  /// what the inner pages were, these are written again at their own places; otherwise the tree is
  /// built anew, and the old pages stay until the root that names the new ones is durable. When
  /// leaves or large values are damaged too, nothing is changed and the report says what is lost;
  /// with `accept_loss` the rest is kept, and keys of the lost ranges may show what they held
  /// before or are gone.
  static Result<RebuildReport> rebuild(const std::string& directory, const Options& options,
                                       const RebuildPolicy& policy);
  /// The same on another file layer; for tests.
  static Result<RebuildReport> rebuild(std::shared_ptr<Disk> disk, const Options& options,
                                       const RebuildPolicy& policy);

  /// Overwrites every inner page of the trees of a store that is not open with zeros: what
  /// rebuild() makes again. For drills and for measuring what a rebuild takes. Returns how many
  /// there were.
  static Result<std::uint64_t> drop_inner_pages(const std::string& directory,
                                                const Options& options);
  /// The same on another file layer; for tests.
  static Result<std::uint64_t> drop_inner_pages(std::shared_ptr<Disk> disk, const Options& options);

  /// All of `batch` or nothing.
  Result<Receipt> commit(const WriteBatch& batch, Durability durability);
  Result<Receipt> put(std::string_view key, std::string_view value, Durability durability);
  Result<Receipt> erase(std::string_view key, Durability durability);
  /// True and the value when the key is there.
  Result<bool> get(std::string_view key, std::string& value);
  /// For each of `keys` its value, or nothing when it is not there; all as of one moment.
  Result<std::vector<std::optional<std::string>>> get_many(std::span<const std::string_view> keys);
  [[nodiscard]] Snapshot snapshot();
  [[nodiscard]] Transaction begin(Isolation isolation = Isolation::snapshot);

  /// Names this place in the order of commits, at a cost that does not depend on the number of
  /// entries: a record in the log, which is durable when a commit of this durability would be. A
  /// name that was there moves. Names have 1 to 200 bytes.
  Result<Receipt> mark(std::string_view name, Durability durability);
  /// The markers, oldest first.
  [[nodiscard]] std::vector<Marker> markers() const;

  /// Makes everything acknowledged so far durable.
  Status sync();
  /// Moves everything committed so far from the log into trees, durably.
  Status checkpoint();
  /// Flushes and merges until nothing is pending.
  Status drain();
  /// Merges all runs into one.
  Status compact();
  /// Reads every page and value of the trees and checks checksums, order and counts.
  Status verify();
  /// Counters by name, since the opening.
  [[nodiscard]] std::map<std::string, double> statistics() const;
  [[nodiscard]] const RecoveryReport& recovery() const;
  /// How log writes become durable in this store.
  [[nodiscard]] LogMethod log_method() const;
  /// The options in force: as the open store holds them, with what the files decide filled in.
  [[nodiscard]] Options options() const;
  /// Makes everything acknowledged durable and closes. Refused while snapshots, cursors or
  /// transactions are open; the store stays open then.
  Status close();

 private:
  explicit Store(std::shared_ptr<Engine> engine);
  std::shared_ptr<Engine> engine_;
};

/// Version of the engine and of its format: "0.3.0 (format 3)".
[[nodiscard]] std::string_view version();

/// The 8 bytes, big-endian, that stand for `number` in a store of u64 keys.
[[nodiscard]] std::string u64_key(std::uint64_t number);

}  // namespace lode
