#include "adapters/lmdb_values.h"

#include <fmt/format.h>

#include <cerrno>

#include "adapters/opening.h"

namespace assay {

Error lmdb_error(std::string_view what, int code, const std::string& where) {
  ErrorKind kind = code > 0 ? kind_of_errno(code) : ErrorKind::store;
  std::string hint;
  switch (code) {
    case MDB_INVALID:
      kind = ErrorKind::bad_input;
      hint = "the file is no LMDB data file, or its creation was cut short";
      break;
    case MDB_VERSION_MISMATCH:
      kind = ErrorKind::bad_input;
      hint = "the file was made by another version of LMDB";
      break;
    case MDB_READERS_FULL:
      hint = "raise the setting max_readers";
      break;
    case EIO:
      // A write that was cut short by a full disk comes back as EIO (mdb_page_flush).
      if (disk_is_full(where)) {
        kind = ErrorKind::environment;
        hint = "the disk is full; free some space on the file system";
      }
      break;
    case ENOSPC:
      hint = "free some space on the file system";
      break;
    default:
      break;
  }
  Error error(kind, fmt::format("LMDB: {}: {}", what, mdb_strerror(code)));
  error.at(where);
  if (!hint.empty()) error.hint(hint);
  return error;
}

namespace {

/// Whether `mutations` are puts in strictly ascending order behind the last key of the table. (A
/// u64 key is handed over big-endian, so the order of the bytes is the order of both kinds.)
bool go_behind_all(MDB_txn* transaction, MDB_dbi table, std::span<const Mutation> mutations,
                   bool u64) {
  if (mutations.size() < 2) return false;
  for (std::size_t at = 0; at < mutations.size(); ++at) {
    if (mutations[at].kind != Mutation::Kind::put) return false;
    if (at > 0 && mutations[at].key <= mutations[at - 1].key) return false;
  }
  MDB_cursor* cursor = nullptr;
  if (mdb_cursor_open(transaction, table, &cursor) != MDB_SUCCESS) return false;
  MDB_val last{};
  MDB_val value{};
  const int code = mdb_cursor_get(cursor, &last, &value, MDB_LAST);
  const bool behind = code == MDB_NOTFOUND ||
                      (code == MDB_SUCCESS && compare_key(last, mutations.front().key, u64) < 0);
  mdb_cursor_close(cursor);
  return behind;
}

}  // namespace

int lmdb_apply(MDB_txn* transaction, MDB_dbi table, std::span<const Mutation> mutations, bool u64,
               bool may_append) {
  const unsigned flags =
      may_append && go_behind_all(transaction, table, mutations, u64) ? MDB_APPEND : 0U;
  for (const Mutation& mutation : mutations) {
    StoredKey key(mutation.key, u64);
    int code = MDB_SUCCESS;
    if (mutation.kind == Mutation::Kind::put) {
      MDB_val value = view_of(mutation.value);
      code = mdb_put(transaction, table, key.get(), &value, flags);
    } else {
      code = mdb_del(transaction, table, key.get(), nullptr);
      if (code == MDB_NOTFOUND) code = MDB_SUCCESS;
    }
    if (code != MDB_SUCCESS) return code;
  }
  return MDB_SUCCESS;
}

}  // namespace assay
