// What the worker of a qualification writes: a history of transactions that follows from a seed.
//
// Nothing of it needs to be stored: transaction(w, n) gives the n-th transaction of writer w, and
// every value names the transaction, the key and the place in the batch that wrote it. So what a
// store gives back after a crash can be told apart key by key without a copy of it. Each writer
// owns a range of keys; a transaction of several changes always writes its writer's counter too, so
// that every commit shows.
// Invariants: the same seed and shape give the same history on every machine; a value that is not
// byte for byte what its stamp says was written by nobody.
// A History is immutable; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "adapters/store.h"

namespace assay::qualify {

/// The measures of a history. Shares are in thousandths, so that a record of them is exact.
struct HistoryShape {
  std::uint32_t writers = 1;
  std::uint32_t keys = 48;  ///< of a writer, its counter apart
  /// Changes of a transaction at most, the counter apart. 0: single puts and erases, for stores
  /// without atomic batches.
  std::uint32_t changes_max = 6;
  std::uint32_t value_bytes_max = 400;         ///< usual values; not below kStampBytes
  std::uint32_t large_value_bytes_max = 9000;  ///< of `large_permille` of the values
  std::uint32_t large_permille = 30;
  std::uint32_t erase_permille = 250;
  std::uint32_t rollback_permille = 60;  ///< transactions that are rolled back; 0 where none can be
  KeyKind key_kind = KeyKind::bytes;
  bool operator==(const HistoryShape&) const = default;
};
[[nodiscard]] nlohmann::json to_json(const HistoryShape& shape);
[[nodiscard]] Result<HistoryShape> history_shape_from_json(const nlohmann::json& json);

/// The shape that a store with these capabilities can take, `writers` at once. ErrorKind::
/// unsupported when no history fits (values below kStampBytes, keys below 8 bytes).
[[nodiscard]] Result<HistoryShape> shape_for(const Capabilities& capabilities,
                                             std::uint32_t writers);

/// The first bytes of each value say who wrote it.
inline constexpr std::uint32_t kStampBytes = 32;

/// Who wrote a value. Numbers of transactions begin at 1, for each writer; 0 = nobody.
struct Version {
  std::uint64_t number = 0;
  std::uint32_t position = 0;  ///< of the change in its transaction
  bool operator==(const Version&) const = default;
};

/// A key of the history: of a writer, by its index; index 0 is the writer's counter.
struct KeyId {
  std::uint32_t writer = 0;
  std::uint32_t index = 0;
  bool operator==(const KeyId&) const = default;
};

struct Change {
  bool erase = false;
  std::uint32_t key = 0;  ///< index of a key of the transaction's writer
  std::string value;      ///< empty for an erase
};

struct Transaction {
  std::uint32_t writer = 0;
  std::uint64_t number = 0;
  bool rolled_back = false;     ///< made and taken back: nothing of it may be seen
  std::vector<Change> changes;  ///< in order; the same key may come more than once
};

class History {
 public:
  History(std::uint64_t seed, const HistoryShape& shape);

  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  [[nodiscard]] const HistoryShape& shape() const { return shape_; }
  /// Keys of one writer, the counter included.
  [[nodiscard]] std::uint32_t keys_of_writer() const { return shape_.keys + 1; }

  [[nodiscard]] Transaction transaction(std::uint32_t writer, std::uint64_t number) const;

  [[nodiscard]] std::string key_bytes(KeyId key) const;
  /// The key behind the bytes; nothing when no key of the history has these bytes.
  [[nodiscard]] std::optional<KeyId> key_of(std::string_view bytes) const;
  /// Who wrote `value` under `key`; nothing when nobody can have: no stamp, the stamp of another
  /// key or writer, bytes behind it that differ, or a transaction that makes no such change.
  [[nodiscard]] std::optional<Version> writer_of(KeyId key, std::string_view value) const;

 private:
  [[nodiscard]] std::string value_of(KeyId key, Version version, std::uint64_t bytes) const;

  std::uint64_t seed_;
  HistoryShape shape_;
};

}  // namespace assay::qualify
