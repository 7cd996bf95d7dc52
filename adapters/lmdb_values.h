// LMDB's keys, values and errors as ours.
//
// Private to the adapter. Stateless.
#pragma once

#include <lmdb.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "adapters/result.h"
#include "adapters/store.h"

namespace assay {

/// LMDB's text for `code` with `what` before it and the kind that it stands for.
[[nodiscard]] Error lmdb_error(std::string_view what, int code, const std::string& where);

inline MDB_val view_of(std::string_view text) {
  return {text.size(), const_cast<char*>(text.data())};  // LMDB does not write through it
}

inline std::string_view text_of(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

/// Makes `mutations` in `transaction`; MDB_SUCCESS or the code of the call that failed. With
/// `may_append` a batch of puts in ascending order behind the last key of the table is appended.
[[nodiscard]] int lmdb_apply(MDB_txn* transaction, MDB_dbi table,
                             std::span<const Mutation> mutations, bool u64, bool may_append);

/// A key as LMDB keeps it: bytes as they are, u64 in the machine's byte order (MDB_INTEGERKEY).
class StoredKey {
 public:
  StoredKey(std::string_view key, bool u64) {
    if (u64) {
      std::memcpy(&number_, key.data(), sizeof number_);
      number_ = __builtin_bswap64(number_);
      value_ = {sizeof number_, &number_};
    } else {
      value_ = view_of(key);
    }
  }
  StoredKey(const StoredKey&) = delete;
  StoredKey& operator=(const StoredKey&) = delete;
  MDB_val* get() { return &value_; }

 private:
  std::uint64_t number_ = 0;
  MDB_val value_;
};

/// <0, 0 or >0 as a stored key is below, equal to or above `key`.
[[nodiscard]] inline int compare_key(const MDB_val& stored, std::string_view key, bool u64) {
  if (!u64) return text_of(stored).compare(key);
  std::uint64_t left = 0;
  std::uint64_t right = 0;
  std::memcpy(&left, stored.mv_data, sizeof left);
  std::memcpy(&right, key.data(), sizeof right);
  right = __builtin_bswap64(right);
  return left < right ? -1 : static_cast<int>(left > right);
}

}  // namespace assay
