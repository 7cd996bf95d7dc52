#include <string>

#include <fmt/format.h>
#include <xxhash.h>

#include "workloads/operation_source.h"
#include "workloads/stream.h"
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

void add_operation(Digest& digest, const LogicalOperation& operation, const ValueCodec& values) {
  digest.add(static_cast<std::uint64_t>(operation.kind) | (std::uint64_t{operation.entries} << 8));
  digest.add(operation.index);
  if (operation.version == 0) return;
  digest.add(operation.version);
  if (operation.batch.empty()) digest.add(values.size(operation.index, operation.version));
  for (const std::uint64_t index : operation.batch) {
    digest.add(index);
    digest.add(values.size(index, operation.version));
  }
}

std::uint64_t add_trace(Digest& digest, TraceSource source, std::uint64_t operations) {
  TraceOperation operation;
  std::uint64_t done = 0;
  for (; done < operations && source.next(operation); ++done) {
    const TraceLine& line = operation.line;
    digest.add(static_cast<std::uint64_t>(line.kind) | (std::uint64_t{line.entries} << 8));
    digest.add(XXH3_64bits(line.key.data(), line.key.size()));
    digest.add(operation.version);
    digest.add(line.value_bytes);
  }
  return done;
}

std::uint64_t add_source(Digest& digest, OperationSource& source, const ValueCodec& values,
                         std::uint64_t operations) {
  LogicalOperation operation;
  std::uint64_t done = 0;
  for (; done < operations && source.next(operation); ++done) {
    add_operation(digest, operation, values);
  }
  return done;
}

}  // namespace

std::string stream_digest(const Workload& workload, std::uint64_t seed, std::uint64_t operations) {
  Digest digest;
  const ValueCodec values(workload.values, seed);
  for (std::size_t phase = 0; phase < workload.phases.size(); ++phase) {
    const std::uint32_t threads = thread_count(workload.phases[phase]);
    digest.add(threads);
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      const bool trace = !workload.phases[phase].trace.empty();
      digest.add(trace ? add_trace(digest, TraceSource(workload, seed, phase, thread), operations)
                       : add_source(digest, *make_source(workload, seed, phase, thread), values,
                                    operations));
    }
  }
  return digest.hex();
}

}  // namespace assay
