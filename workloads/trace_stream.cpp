#include "workloads/trace_stream.h"

#include <algorithm>
#include <cstring>

#include "workloads/trace_file.h"

namespace assay {
namespace {

class TraceStream final : public Stream {
 public:
  TraceStream(const Workload& workload, std::uint64_t seed, std::size_t phase, std::uint32_t thread)
      : source_(workload, seed, phase, thread),
        values_(workload.values, seed),
        speed_(workload.phases[phase].trace_speed) {}

  void fill(Chunk& chunk, std::size_t max_operations) override {
    if (chunk.bytes.size() < kChunkBytes) chunk.bytes.resize(kChunkBytes);
    chunk.operations.resize(max_operations);
    chunk.mutations.clear();
    std::size_t filled = 0;
    std::size_t used = 0;
    while (filled < max_operations) {
      if (!waiting_ && !source_.next(next_)) break;
      waiting_ = true;  // until its bytes have found room
      const std::size_t value_bytes = next_.version != 0 ? next_.line.value_bytes : 0;
      const std::size_t bytes = next_.line.key.size() + value_bytes;
      if (used + bytes > chunk.bytes.size()) {
        if (filled > 0) break;
        chunk.bytes.resize(bytes);
      }
      encode(chunk.operations[filled++], chunk.bytes.data() + used, value_bytes);
      used += bytes;
      waiting_ = false;
    }
    chunk.operations.resize(filled);
    position_ += filled;
  }
  std::uint64_t position() const override { return position_; }
  Status status() const override { return source_.status(); }

 private:
  void encode(Operation& operation, char* bytes, std::size_t value_bytes) {
    const TraceLine& line = next_.line;
    std::memcpy(bytes, line.key.data(), line.key.size());
    char* const value = bytes + line.key.size();
    if (next_.version != 0) {
      values_.encode_sized(next_.index, next_.version, value_bytes, value);
    }
    const std::uint64_t since_us = line.time_us - source_.first_time_us();
    operation = Operation{.kind = line.kind,
                          .entries = line.entries,
                          .key = {bytes, line.key.size()},
                          .value = {value, value_bytes},
                          .first_mutation = 0,
                          .version = next_.version,
                          .index = next_.index,
                          .due_ns = speed_ > 0.0 ? static_cast<std::uint64_t>(
                                                       static_cast<double>(since_us) * 1e3 / speed_)
                                                 : 0};
  }

  TraceSource source_;
  ValueCodec values_;
  double speed_;
  TraceOperation next_;
  bool waiting_ = false;
  std::uint64_t position_ = 0;
};

}  // namespace

std::unique_ptr<Stream> make_trace_stream(const Workload& workload, std::uint64_t seed,
                                          std::size_t phase, std::uint32_t thread) {
  return std::make_unique<TraceStream>(workload, seed, phase, thread);
}

}  // namespace assay
