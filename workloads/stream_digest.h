// Digests of operation streams: what shows that two arms were given, and have executed, the same
// operations.
//
// They cover logical operations: kind, entries, key index, version, size of the value; never the
// bytes of a key, which another key encoding would change, nor due times. Of each thread's stream a
// prefix is covered: its first kDigestOperations operations, or as many as it takes until
// kDigestKeys keys were named, so that a digest costs the same whatever the size of the data set.
// What lies behind the prefix is a function of the same parameters. Values, no shared state.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "workloads/codec.h"
#include "workloads/stream.h"
#include "workloads/workload.h"

namespace assay {

inline constexpr std::uint64_t kDigestOperations = 4096;
inline constexpr std::uint64_t kDigestKeys = 16'384;

/// What a digest covers and says.
struct StreamPrefix {
  std::uint64_t operations = 0;
  std::string digest;  ///< hex
  bool operator==(const StreamPrefix&) const = default;
};

/// Digest of the operations that a thread executes. It reads the chunk: key bytes are decoded
/// again, so a stream whose encoding went wrong has another digest too. Free of charge once full().
class ExecutedDigest {
 public:
  ExecutedDigest(const Workload& workload, std::uint64_t seed, std::size_t phase);
  ~ExecutedDigest();
  ExecutedDigest(ExecutedDigest&&) noexcept;

  [[nodiscard]] bool full() const { return full_; }
  /// Adds the operations [from, to) of `chunk`, which was made by the stream of this phase.
  void add(const Chunk& chunk, std::size_t from, std::size_t to);
  [[nodiscard]] StreamPrefix prefix() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  bool full_ = false;
};

/// The digest that a thread must have after `executed` operations, from the sources of the
/// operations and without any chunk.
[[nodiscard]] StreamPrefix expected_prefix(const Workload& workload, std::uint64_t seed,
                                           std::size_t phase, std::uint32_t thread,
                                           std::uint64_t executed);

}  // namespace assay
