// Records what a process does to the files of one directory, from inside the process.
//
// How: a seccomp filter sends every system call that can change a file to a signal handler, except
// when it is made from one instruction of ours. The handler makes the call from there and notes it.
// So nothing is missed, whoever calls: a library, stdio inside libc, syscall(). What cannot be
// followed (an asynchronous ring, a file moved in from outside, a file without a name) is turned
// down, or ends the recording with a sentence in the log's header.
// Writable shared mappings are write-protected; what was stored to is copied at every other noted
// call. Versions of a page between two calls are not seen.
//
// There is no way back: a filter stays for the life of the process. Start it in a forked child, or
// through the preloaded object (preload.cpp) in a foreign program.
// x86-64 only. Threads: start() before others run; all else from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "harness/qualify/power/record_log.h"

namespace assay::qualify::power {

/// Begins to record into `log`, whose root and inodes are set. False: `log.refusal` says why.
bool start_recording(LogHeader& log);

/// Notes a mark of the worker in the order of events; returns its place. 0 when not recording.
std::uint64_t record_mark(std::uint64_t what, std::uint64_t a, std::uint64_t b);

/// Adds an inode to those that belong to the directory.
void add_inode(LogHeader& log, std::uint64_t inode);

/// Shared with the parts of the recorder; nothing for others.
namespace detail {

/// One system call as it was trapped; arguments and result as the kernel has them.
struct Trapped {
  long number;
  std::uint64_t arguments[6];
  std::uint64_t caller;  ///< address behind the instruction
};

/// Makes a system call from the one place that the filter lets through.
using Stub = long (*)(long number, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                      std::uint64_t, std::uint64_t);

/// Where that place is, in every process that records.
inline constexpr std::uint64_t kStubAddress = 0x123450000000;
inline constexpr std::uint64_t kStubReturn = kStubAddress + 25;
/// Where shared mappings of the directory's files are put, so that the filter knows them again.
inline constexpr std::uint64_t kWindowAt = 0x200000000000;
inline constexpr std::uint64_t kWindowEnd = 0x300000000000;

/// Maps the stub. False when its address is taken.
bool map_stub();
/// Installs the filter for this process and its threads. 0 or an errno value.
int install_filter();
/// Does the call, notes it if it bears on the directory; returns what the kernel returned.
long handle(const Trapped& call);
/// Copies what was stored to shared mappings since the last time. The log's lock is held.
void capture_mappings();
/// Maps a file of the directory and follows it. The log's lock is held.
long map_file(const Trapped& call, std::uint64_t inode);
/// munmap, mremap or mprotect on the window. The log's lock is held.
long change_mapping(const Trapped& call);
/// The file of a followed mapping at `address`; 0 if there is none. Sets the offset in the file.
std::uint64_t mapped_inode(std::uint64_t address, std::uint64_t& offset);

LogHeader* log();
long raw(long number, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0,
         std::uint64_t d = 0, std::uint64_t e = 0, std::uint64_t f = 0);
void refuse(const char* why);
void note(const char* what);
/// Appends a record; the lock is held. Returns its place. Does nothing once refused.
std::uint64_t append(RecordHead head, const std::uint64_t* stack, const char* path_a,
                     const char* path_b, const void* data);
/// The return addresses of a call made at `caller`, innermost first; as many as the log asks for
/// and kStackMax at most. Returns how many.
inline constexpr std::size_t kStackMax = 32;
std::uint16_t take_stack(std::uint64_t caller, std::uint64_t* frames);
void lock_log();
void unlock_log();

}  // namespace detail
}  // namespace assay::qualify::power
