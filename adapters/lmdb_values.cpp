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

}  // namespace assay
