// The operation stream of one thread: a pure function of (workload, seed, phase, thread).
//
// Operations are made in chunks outside the timed part: the worker calls fill(), then executes
// the chunk's operations and takes one time stamp an operation. A chunk owns the bytes of its keys
// and values, bounded by kChunkBytes, so nothing of the size of the data set is kept in memory.
//
// Writers own key ranges: thread t of the T writing threads of a phase updates and erases only
// keys whose index is t modulo T, and inserts fresh indices base + t, base + T + t, ..., where base
// is keys.count for the first phase that inserts (see InsertRange in operation_source.h). So the
// final contents depend only on how many operations each thread executed (model.h replays them).
// In a phase that replays a trace (trace_file.h) a key belongs to the thread that its hash names.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/store.h"
#include "workloads/codec.h"
#include "workloads/workload.h"

namespace assay {

inline constexpr std::size_t kChunkOperations = 256;
inline constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

struct Operation {
  OpKind kind = OpKind::read;
  std::uint32_t entries = 1;         ///< scan: entries to visit; batch, rollback: mutations
  std::string_view key;              ///< single-key operations; lower (or upper) bound of a scan
  std::string_view value;            ///< update, insert, read_modify_write
  std::uint32_t first_mutation = 0;  ///< batch, rollback: index into Chunk::mutations
  std::uint32_t version = 0;         ///< of what a write writes; 0 for reads and erases
  std::uint64_t index = 0;           ///< logical key index (single-key operations and scans)
  std::uint64_t due_ns = 0;          ///< open loop: intended start, ns after the phase's start
};

struct Chunk {
  std::vector<Operation> operations;
  std::vector<Mutation> mutations;
  std::vector<char> bytes;  ///< keys and values that the views point into
};

class Stream {
 public:
  virtual ~Stream() = default;
  /// Replaces `chunk` by the next at most `max_operations` operations (fewer when the bytes of a
  /// chunk run out; never zero before the end). Empty chunk = the stream's end.
  virtual void fill(Chunk& chunk, std::size_t max_operations = kChunkOperations) = 0;
  /// Operations handed out so far.
  [[nodiscard]] virtual std::uint64_t position() const = 0;
  /// An error when the stream ended early: only a trace can, whose file is gone or was changed.
  [[nodiscard]] virtual Status status() const { return {}; }
};

/// The stream of thread `thread` (0-based over all roles of the phase, in declared order) of
/// phase number `phase`. For a load phase the threads are its load_threads. A run phase with a
/// duration has an endless stream.
[[nodiscard]] std::unique_ptr<Stream> make_stream(const Workload& workload, std::uint64_t seed,
                                                  std::size_t phase, std::uint32_t thread);
/// Threads of a phase (load threads, or the sum over the roles; 0 for the other kinds).
[[nodiscard]] std::uint32_t thread_count(const Phase& phase);
/// The role of a thread of a run phase.
[[nodiscard]] const Role& role_of(const Phase& phase, std::uint32_t thread);

/// Hex digest of the logical streams of every thread of every phase, over the prefix of each that
/// stream_digest.h declares. Equal workload and seed give an equal digest, whatever the store.
/// Costs some ten thousand operations a thread, whatever the number of keys.
[[nodiscard]] std::string stream_digest(const Workload& workload, std::uint64_t seed);

}  // namespace assay
