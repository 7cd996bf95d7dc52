// The one interface between the harness and a store. The harness includes this header and
// registry.h and never a store's own header.
//
// A Driver describes a store (name, version, capabilities, settings) and opens it. A Store is one
// open directory. A Session is one thread's handle: it is used by one thread at a time, sessions
// of one Store may be used at the same time. A write call returns when the change has reached the
// durability class the store was opened with. What a store cannot do it declares in its
// Capabilities and refuses with ErrorKind::unsupported; nothing is emulated silently.
//
// Keys of kind u64 are always handed over as 8 bytes, big-endian, so that byte order is numeric
// order; an adapter whose store has a native integer key converts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/result.h"

namespace assay {

enum class KeyKind : std::uint8_t { bytes, u64 };

/// What an acknowledged commit survives, from weakest to strongest.
enum class DurabilityClass : std::uint8_t {
  volatile_,     ///< nothing promised
  process,       ///< the death of the process, not the loss of power
  power_prefix,  ///< power loss leaves a prefix of the commits; a suffix may be missing
  power_last,    ///< power loss may take the last acknowledged commit only
  power,         ///< power loss takes nothing that was acknowledged
};
[[nodiscard]] std::string_view to_string(DurabilityClass durability);
/// "volatile", "process", "power-prefix", "power-last" or "power".
[[nodiscard]] Result<DurabilityClass> parse_durability(std::string_view text);

using Settings = std::map<std::string, std::string>;  ///< name -> value, as the user writes them

/// One setting of a store: its default for a class, why, and who says so.
struct Setting {
  std::string name;
  std::string value;                 ///< default for the durability class that was asked for
  std::string reason;                ///< why this value is best practice for the store
  std::string source;                ///< the store's own documentation that says so
  std::vector<std::string> choices;  ///< valid values; empty = free form, checked at open
};

struct Capabilities {
  bool ordered = false;             ///< scan() works, in key order
  bool rollback = false;            ///< rollback() works
  bool atomic_batches = false;      ///< apply() of several mutations is all or nothing
  bool concurrent_writers = false;  ///< writers in several threads make progress side by side
  bool larger_than_memory = false;  ///< data sets beyond the memory budget work
  bool rebuilds_index = false;      ///< drop_index() and rebuild_index() work
  bool tables = false;              ///< Store::tables() answers in a query language of its own
  bool retains_data = true;         ///< false: a reference arm that keeps nothing (`null`)
  bool reference = false;           ///< a floor or ceiling to show beside arms, never an arm
  std::vector<DurabilityClass> durability;  ///< classes it claims to reach
  std::uint64_t min_key_bytes = 0;          ///< 1: an empty key is refused
  std::uint64_t max_key_bytes = 0;
  std::uint64_t max_value_bytes = 0;
};

struct OpenOptions {
  std::string directory;  ///< exists and is ours; the store may put anything inside
  bool create = true;     ///< false: fail when the store is not there yet
  DurabilityClass durability = DurabilityClass::power;
  Settings settings;  ///< overrides of what the class maps to
  KeyKind key_kind = KeyKind::bytes;
  std::uint64_t memory_bytes = std::uint64_t{256} << 20;  ///< budget for the store's own caches
  std::uint64_t expected_bytes = 0;  ///< hint: keys and values to be stored, 0 = unknown
  std::uint64_t value_bytes = 0;     ///< hint: the usual size of a value, 0 = unknown
};

struct Mutation {
  enum class Kind : std::uint8_t { put, erase };
  Kind kind = Kind::put;
  std::string_view key = {};
  std::string_view value = {};  ///< empty for erase
};

/// A range of keys, read from one snapshot. `first` and `last` are both inclusive.
struct ScanRange {
  std::string_view first = {};
  std::string_view last = {};
  bool from_start = true;   ///< no lower bound: `first` is ignored
  bool to_end = true;       ///< no upper bound: `last` is ignored
  bool backward = false;    ///< from the upper bound down
  std::uint64_t limit = 0;  ///< entries to visit at most; 0 = no limit
};

/// Receives the entries of a scan. The views are valid during the call only.
class ScanSink {
 public:
  virtual ~ScanSink() = default;
  /// False ends the scan.
  virtual bool entry(std::string_view key, std::string_view value) = 0;
};

class Session {
 public:
  virtual ~Session() = default;
  /// True and `value` set when the key is there. The view is valid until the next call on this
  /// session; the whole value has been brought into memory.
  virtual Result<bool> get(std::string_view key, std::string_view& value) = 0;
  virtual Status put(std::string_view key, std::string_view value) = 0;
  /// Removing a key that is not there is not an error.
  virtual Status erase(std::string_view key) = 0;
  /// All of `mutations` in order, atomically: one commit.
  virtual Status apply(std::span<const Mutation> mutations) = 0;
  /// Begins a transaction, makes `mutations`, and rolls it back.
  virtual Status rollback(std::span<const Mutation> mutations) = 0;
  /// Visits `range` in order from one snapshot; returns the number of entries visited.
  virtual Result<std::uint64_t> scan(const ScanRange& range, ScanSink& sink) = 0;
};

/// Files and bytes of a store's directory.
struct Footprint {
  std::uint64_t files = 0;
  std::uint64_t apparent_bytes = 0;
  std::uint64_t allocated_bytes = 0;
};

class TableStore;

class Store {
 public:
  virtual ~Store() = default;
  virtual Result<std::unique_ptr<Session>> session() = 0;
  /// Tables in the store's own query language (table_store.h); null where its capabilities declare
  /// none. Not an owner.
  virtual TableStore* tables() { return nullptr; }
  /// Makes everything acknowledged so far survive power loss, whatever the class.
  virtual Status sync() = 0;
  /// Moves the log into the main structure, so that a reopen replays nothing.
  virtual Status checkpoint() = 0;
  /// Returns when no compaction, merge or other background work is pending.
  virtual Status settle() = 0;
  /// The default walks the directory.
  virtual Result<Footprint> footprint() const;
  /// The store's own counters, free-form; names keep the store's spelling.
  virtual std::map<std::string, double> counters() const { return {}; }
  /// The settings in force, read back from the open store (pragmas, flags, options string).
  virtual Result<Settings> effective_settings() = 0;
  /// Closes; every session must be gone. Errors of the last flush are reported here.
  virtual Status close() = 0;

 protected:
  explicit Store(std::string directory) : directory_(std::move(directory)) {}
  std::string directory_;
};

class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::string name() const = 0;
  /// The version that the loaded library reports at run time.
  virtual std::string version() const = 0;
  virtual Capabilities capabilities() const = 0;
  /// Every setting of the store with its value for `durability`.
  virtual std::vector<Setting> settings(DurabilityClass durability) const = 0;
  virtual Result<std::unique_ptr<Store>> open(const OpenOptions& options) const = 0;
  /// What open() or session() would refuse of `options.settings`, without touching a directory;
  /// `sessions` are open at once (0: not known yet). The default checks names and choices only, so
  /// a store whose free-form values have a range overrides it.
  [[nodiscard]] virtual Status check_settings(const OpenOptions& options,
                                              std::uint32_t sessions) const;
  /// The strongest class whose settings that bear on durability are all met by `effective` (every
  /// setting with its value, as resolve_settings() gives them), by the store's documentation. May
  /// be stronger than `asked`. The default believes what was asked: of a store whose settings
  /// nobody here knows, such as a plug-in, the class that it was told is all there is.
  [[nodiscard]] virtual DurabilityClass durability_under(DurabilityClass asked,
                                                         const Settings& effective) const;
  /// Destroys, durably, what the files of a closed store hold besides its entries only to find
  /// them (its index). Error `unsupported` where there is no such thing: capabilities() say so.
  [[nodiscard]] virtual Status drop_index(const OpenOptions& options) const;
  /// Makes it again from the entries, durably, in a closed store. Returns the entries that it was
  /// made from; 0: nothing was missing.
  [[nodiscard]] virtual Result<std::uint64_t> rebuild_index(const OpenOptions& options) const;
};

/// Walks `directory`: regular files, apparent and allocated bytes.
[[nodiscard]] Result<Footprint> directory_footprint(const std::string& directory);

/// `driver.settings(durability)` overridden by `given`; an unknown name or a value that is not
/// among the choices is an error that names the nearest valid one. What every adapter opens with.
[[nodiscard]] Result<Settings> resolve_settings(const Driver& driver, DurabilityClass durability,
                                                const Settings& given);

/// What `given` leaves of the class that was asked for.
struct GivenDurability {
  DurabilityClass given = DurabilityClass::power;  ///< never stronger than what was asked for
  std::vector<std::string> weakened_by;  ///< names in `given` that lower it; empty: nothing does
};
/// The class that a store opened for `asked` with the overrides `given` really gives: a setting
/// that strengthens it changes nothing. Errors are those of resolve_settings().
[[nodiscard]] Result<GivenDurability> given_durability(const Driver& driver, DurabilityClass asked,
                                                       const Settings& given);

}  // namespace assay
