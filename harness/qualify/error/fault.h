// What can go wrong with one system call of a store: which sort of call, the how many-th of its
// sort in a life, and what the store is answered instead.
//
// A fault comes once, or it stays: then every later call of its sort fails too, as on a full disk
// or one that has gone. Errors that a call cannot give by its manual page are replaced by EIO.
// Stateless; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct seccomp_data;
struct sock_filter;

namespace assay::qualify::error {

enum class CallSort : std::uint8_t {
  write,   ///< write, pwrite, writev, ...
  sync,    ///< fsync, fdatasync, msync, sync_file_range
  size,    ///< ftruncate, truncate, fallocate
  create,  ///< open with O_CREAT, creat, mkdir
  name,    ///< rename, link, unlink, rmdir
  map,     ///< mmap of a file
  read,    ///< read, pread, readv, ...
};
inline constexpr std::size_t kCallSorts = 7;
[[nodiscard]] std::string_view to_string(CallSort sort);

enum class Answer : std::uint8_t { io, no_space, quota, interrupted, no_memory, part };
/// "EIO", "ENOSPC", "EDQUOT", "EINTR", "ENOMEM" or "a short write".
[[nodiscard]] std::string_view to_string(Answer answer);

struct FaultShape {
  CallSort sort = CallSort::write;
  Answer answer = Answer::io;
  bool stays = false;
  /// "EIO once at sync"; also the name under which it is counted.
  [[nodiscard]] std::string text() const;
};
/// All that are tried, in the order of a round.
[[nodiscard]] const std::vector<FaultShape>& fault_shapes();

/// The sort of a call, nothing when faults know nothing of it.
[[nodiscard]] std::optional<CallSort> sort_of(int call);
[[nodiscard]] const char* name_of_call(int call);
/// A call that does nothing on the disk, by which a store asks whether the kernel has it: RocksDB
/// calls sync_file_range without flags, and takes no error but ENOSYS for possible.
[[nodiscard]] bool cannot_fail(const seccomp_data& call);
/// What the call is answered; `answer` is not Answer::part.
[[nodiscard]] int errno_of(Answer answer, int call);

/// Where a call names its file.
struct FilePlace {
  int descriptor = -1;  ///< index of the argument; -1 = none
  int directory = -1;   ///< descriptor that a relative path begins at; -1 = the working directory
  int path = -1;        ///< index of the argument with the path
};
[[nodiscard]] FilePlace file_of(int call);

using CallSorts = std::array<bool, kCallSorts>;

/// The `turn`-th of the calls 1 to `count`, each once in `count` turns, spread from the beginning:
/// a small budget sees all of a life.
[[nodiscard]] std::uint64_t spread(std::uint64_t turn, std::uint64_t count);

/// The filter that hands the calls of these sorts to a listener and lets every other go on.
[[nodiscard]] std::vector<sock_filter> fault_filter(const CallSorts& sorts);

}  // namespace assay::qualify::error
