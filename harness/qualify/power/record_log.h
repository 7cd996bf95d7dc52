// The memory that a recorded process writes and its parent reads: a header, then records in the
// one order in which they happened.
//
// The log is append-only and shared: the recorder writes it under the header's lock, from a signal
// handler, so it holds plain data only. `used` is advanced after a record is whole; whoever reads
// after the process has gone sees whole records, wherever it died.
// Invariant: a record's place in the log is its place in the order of events; a change of a file is
// made and noted under one lock, so that replaying the log gives the directory byte for byte.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace assay::qualify::power {

enum class RecordKind : std::uint8_t {
  open,              ///< path_a; flag_truncate if asked for; created when the name was not there
  make_directory,    ///< path_a
  write,             ///< inode, offset, data; flag_dsync
  page,              ///< a stored-to part of a shared mapping: inode, offset, data
  truncate,          ///< inode, length
  allocate,          ///< inode, offset, length; `reference` holds fallocate's mode
  rename,            ///< path_a to path_b; `reference` holds renameat2's flags
  link,              ///< path_a to path_b
  unlink,            ///< path_a
  remove_directory,  ///< path_a
  sync_called,       ///< inode; flag_data_only; offset and length (0 = all) for msync
  sync_returned,     ///< `reference`: place of the call; `result`
  range_flush,       ///< sync_file_range: nothing is durable by it
  mark,              ///< a note of the worker: `reference` says which, offset and length its words
};

inline constexpr std::uint8_t kFlagDsync = 1;
inline constexpr std::uint8_t kFlagDataOnly = 2;
inline constexpr std::uint8_t kFlagTruncate = 4;
inline constexpr std::uint8_t kFlagEverything = 8;  ///< sync() and syncfs()

/// Behind it in the log: `stack_depth` return addresses, path_a, path_b, data; padded to 8 bytes.
struct RecordHead {
  std::uint32_t bytes;  ///< of the whole record
  RecordKind kind;
  std::uint8_t flags;
  std::uint16_t stack_depth;
  std::uint32_t process;
  std::uint32_t thread;
  std::uint64_t inode;
  std::uint64_t offset;
  std::uint64_t length;
  std::int64_t result;
  std::uint64_t reference;
  std::uint32_t path_a_bytes;
  std::uint32_t path_b_bytes;
  std::uint64_t data_bytes;
};
static_assert(sizeof(RecordHead) % 8 == 0);

inline constexpr std::uint64_t kLogMagic = 0x31676f4c79617341;  // "AsayLog1"
inline constexpr std::size_t kInodeSlots = 1U << 16;
inline constexpr std::size_t kPathMax = 4096;

struct LogHeader {
  std::uint64_t magic;
  std::uint64_t capacity;           ///< bytes of records
  std::atomic<std::uint64_t> used;  ///< of them
  std::atomic<std::uint32_t> lock;  ///< 0 free, 1 held, 2 held and waited for
  std::atomic<std::uint32_t> attached;
  std::atomic<std::uint32_t> refused;  ///< 1: `refusal` says why the recording cannot be used
  std::uint32_t stacks;                ///< return addresses that a sync call is noted with
  std::uint64_t device;                ///< of the directory
  std::atomic<std::uint64_t>
      fail_sync;  ///< the sync call that fails with EIO, counted down; 0 = none
  char refusal[256];
  char notes[256];  ///< what was turned down and the store has to do without
  char root[kPathMax];
  std::uint32_t root_bytes;
  /// Inodes below the directory, open-addressed; 0 = free.
  std::atomic<std::uint64_t> inodes[kInodeSlots];
};

inline constexpr std::size_t kLogRecordsAt = (sizeof(LogHeader) + 4095) / 4096 * 4096;

}  // namespace assay::qualify::power
