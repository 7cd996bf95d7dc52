#include "workloads/stream_digest.h"

#include <string>

#include <fmt/format.h>
#include <xxhash.h>

#include "workloads/operation_source.h"
#include "workloads/trace_file.h"

namespace assay {
namespace {

/// XXH3 with 128 bits over little-endian words.
class Digest {
 public:
  Digest() : state_(XXH3_createState()) { XXH3_128bits_reset(state_); }
  ~Digest() { XXH3_freeState(state_); }
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void add(std::uint64_t word) { XXH3_128bits_update(state_, &word, sizeof word); }
  [[nodiscard]] std::string hex() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_);
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  }

 private:
  XXH3_state_t* state_;
};

/// Stands for the index of a key that is none of the workload's.
constexpr std::uint64_t kNoIndex = ~std::uint64_t{0};

std::uint64_t hash_of(std::string_view key) {
  return XXH3_64bits(key.data(), key.size());
}

/// The prefix of one thread: the words of each operation, and where the prefix ends. `key` is the
/// index of a key, in a trace the hash of its bytes.
class PrefixDigest {
 public:
  [[nodiscard]] bool full() const {
    return operations_ >= kDigestOperations || keys_ >= kDigestKeys;
  }
  void begin(OpKind kind, std::uint32_t entries, std::uint64_t key, std::uint32_t version) {
    ++operations_;
    words_.add(static_cast<std::uint64_t>(kind) | (std::uint64_t{entries} << 8));
    add_key(key);
    words_.add(version);
  }
  void add_key(std::uint64_t key) {
    ++keys_;
    words_.add(key);
  }
  void add_size(std::uint64_t bytes) { words_.add(bytes); }
  [[nodiscard]] std::uint64_t operations() const { return operations_; }
  [[nodiscard]] StreamPrefix prefix() const { return {operations_, words_.hex()}; }

 private:
  Digest words_;
  std::uint64_t operations_ = 0;
  std::uint64_t keys_ = 0;
};

void add_logical(PrefixDigest& digest, const LogicalOperation& operation,
                 const ValueCodec& values) {
  digest.begin(operation.kind, operation.entries, operation.index, operation.version);
  for (const std::uint64_t index : operation.batch) {
    digest.add_key(index);
    digest.add_size(values.size(index, operation.version));
  }
  if (operation.batch.empty() && operation.version != 0)
    digest.add_size(values.size(operation.index, operation.version));
}

StreamPrefix prefix_of_trace(TraceSource source, std::uint64_t operations) {
  PrefixDigest digest;
  TraceOperation operation;
  while (!digest.full() && digest.operations() < operations && source.next(operation)) {
    const TraceLine& line = operation.line;
    digest.begin(line.kind, line.entries, hash_of(line.key), operation.version);
    if (operation.version != 0) digest.add_size(line.value_bytes);
  }
  return digest.prefix();
}

}  // namespace

struct ExecutedDigest::State {
  State(const Workload& workload, std::uint64_t seed, bool replays)
      : keys(workload.keys, seed), trace(replays) {}

  [[nodiscard]] std::uint64_t key_of(std::string_view bytes) const {
    if (trace) return hash_of(bytes);
    std::uint64_t index = 0;
    return keys.decode_declared(bytes, index) ? index : kNoIndex;
  }

  KeyCodec keys;
  bool trace;
  PrefixDigest digest;
};

ExecutedDigest::ExecutedDigest(const Workload& workload, std::uint64_t seed, std::size_t phase)
    : state_(std::make_unique<State>(workload, seed, !workload.phases.at(phase).trace.empty())) {}
ExecutedDigest::~ExecutedDigest() = default;
ExecutedDigest::ExecutedDigest(ExecutedDigest&&) noexcept = default;

void ExecutedDigest::add(const Chunk& chunk, std::size_t from, std::size_t to) {
  State& state = *state_;
  for (std::size_t at = from; at < to && !full_; ++at) {
    const Operation& operation = chunk.operations[at];
    state.digest.begin(operation.kind, operation.entries, state.key_of(operation.key),
                       operation.version);
    const bool batch = operation.kind == OpKind::batch || operation.kind == OpKind::rollback;
    for (std::uint32_t entry = 0; batch && entry < operation.entries; ++entry) {
      const Mutation& mutation = chunk.mutations[operation.first_mutation + entry];
      state.digest.add_key(state.key_of(mutation.key));
      state.digest.add_size(mutation.value.size());
    }
    if (!batch && operation.version != 0) state.digest.add_size(operation.value.size());
    full_ = state.digest.full();
  }
}

StreamPrefix ExecutedDigest::prefix() const {
  return state_->digest.prefix();
}

StreamPrefix expected_prefix(const Workload& workload, std::uint64_t seed, std::size_t phase,
                             std::uint32_t thread, std::uint64_t executed) {
  if (!workload.phases.at(phase).trace.empty())
    return prefix_of_trace(TraceSource(workload, seed, phase, thread), executed);
  const auto source = make_source(workload, seed, phase, thread);
  const ValueCodec values(workload.values, seed);
  PrefixDigest digest;
  LogicalOperation operation;
  while (!digest.full() && digest.operations() < executed && source->next(operation))
    add_logical(digest, operation, values);
  return digest.prefix();
}

namespace {

/// Rows and queries are functions of these numbers (harness/trade).
void add_tables(const Workload& workload, std::size_t at, Digest& digest) {
  const Phase& phase = workload.phases[at];
  const bool loads = phase.kind == PhaseKind::load_tables;
  digest.add(workload.keys.count);
  digest.add(loads ? phase.data_seed : static_cast<std::uint64_t>(phase.operation));
  digest.add(loads ? phase.load_batch : phase.rows);
  digest.add(loads ? 0 : phase.operations + phase.warm_up.operations);
}

}  // namespace

std::string stream_digest(const Workload& workload, std::uint64_t seed) {
  Digest digest;
  digest.add(kStreamVersion);  // the digest is over numbers, not over the bytes of values
  for (std::size_t phase = 0; phase < workload.phases.size(); ++phase) {
    if (uses_tables(workload.phases[phase].kind)) add_tables(workload, phase, digest);
    const std::uint32_t threads = thread_count(workload.phases[phase]);
    digest.add(threads);
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      const StreamPrefix prefix = expected_prefix(workload, seed, phase, thread, kEndless);
      digest.add(prefix.operations);
      digest.add(hash_of(prefix.digest));
    }
  }
  return digest.hex();
}

}  // namespace assay
