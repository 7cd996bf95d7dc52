#include "workloads/stream.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "workloads/operation_source.h"
#include "workloads/trace_stream.h"

namespace assay {
namespace {

/// Intended start times of an open loop. Their random numbers are apart from those of the
/// operations, so that the arrival process does not change what is done.
class Schedule {
 public:
  Schedule(const Arrival& arrival, std::uint64_t seed, std::size_t phase, std::uint32_t thread,
           std::uint32_t threads)
      : random_(derive_seed(seed, 0x617272, phase, thread)), poisson_(arrival.poisson) {
    if (arrival.rate_per_s <= 0.0) return;
    gap_ns_ = 1e9 / arrival.rate_per_s;
    // Threads with constant gaps take turns instead of arriving together.
    if (!poisson_) due_ns_ = gap_ns_ * thread / threads;
  }
  [[nodiscard]] bool open() const { return gap_ns_ > 0.0; }
  [[nodiscard]] std::uint64_t next() {
    if (poisson_) {
      due_ns_ -= gap_ns_ * std::log(random_.unit());
      return static_cast<std::uint64_t>(due_ns_);
    }
    return static_cast<std::uint64_t>(due_ns_ + gap_ns_ * static_cast<double>(slot_++));
  }

 private:
  Random random_;
  bool poisson_;
  double gap_ns_ = 0.0;
  double due_ns_ = 0.0;
  std::uint64_t slot_ = 0;
};

/// Encodes the operations of a source. Allocates only until the chunk has reached its size.
template <class Source>
class EncodingStream final : public Stream {
 public:
  EncodingStream(Source source, const Workload& workload, std::uint64_t seed,
                 std::uint32_t largest_batch, Schedule schedule)
      : source_(std::move(source)),
        keys_(workload.keys, seed),
        values_(workload.values, seed),
        largest_bytes_(std::size_t{largest_batch} * (keys_.size() + values_.max_size())),
        schedule_(schedule) {}

  void fill(Chunk& chunk, std::size_t max_operations) override {
    if (chunk.bytes.size() < std::max(kChunkBytes, largest_bytes_)) {
      chunk.bytes.resize(std::max(kChunkBytes, largest_bytes_));
    }
    chunk.operations.resize(max_operations);
    chunk.mutations.clear();
    next_byte_ = chunk.bytes.data();
    std::size_t filled = 0;
    if constexpr (std::is_same_v<Source, RunSource>) {
      if (source_.points_only()) {
        filled = fill_points(chunk, max_operations);
        chunk.operations.resize(filled);
        position_ += filled;
        return;
      }
    }
    const char* const last_start = chunk.bytes.data() + chunk.bytes.size() - largest_bytes_;
    while (filled < max_operations && next_byte_ <= last_start) {
      if (!source_.next(logical_)) break;
      encode(chunk, chunk.operations[filled++]);
    }
    chunk.operations.resize(filled);
    position_ += filled;
  }
  std::uint64_t position() const override { return position_; }

 private:
  void encode(Chunk& chunk, Operation& operation) {
    operation.kind = logical_.kind;
    operation.entries = logical_.entries;
    operation.index = logical_.index;
    operation.due_ns = schedule_.open() ? schedule_.next() : 0;
    operation.value = {};
    operation.first_mutation = 0;
    operation.version = logical_.version;
    if (logical_.batch.empty()) {
      operation.key = encode_key(logical_.index);
      const bool puts = is_write(logical_.kind) && logical_.kind != OpKind::erase;
      if (puts) operation.value = encode_value(logical_.index);
      return;
    }
    operation.first_mutation = static_cast<std::uint32_t>(chunk.mutations.size());
    for (const std::uint64_t index : logical_.batch) {
      const std::string_view key = encode_key(index);
      chunk.mutations.push_back({Mutation::Kind::put, key, encode_value(index)});
    }
    operation.key = chunk.mutations[operation.first_mutation].key;
  }
  /// The short cut for single-key operations: draw all, then encode all keys, then all values, each
  /// in a loop without branches that cannot be predicted.
  std::size_t fill_points(Chunk& chunk, std::size_t max_operations) {
    const std::size_t room = chunk.bytes.size() / largest_bytes_;
    const std::size_t wanted = std::min(max_operations, room);
    if (points_.size() < wanted) {
      points_.resize(wanted);
      puts_.resize(wanted + 1);
    }
    const std::size_t drawn = source_.draw({points_.data(), wanted});
    Operation* const operations = chunk.operations.data();
    std::size_t puts = 0;
    if (keys_.kind() == KeyKind::u64) {
      // A copy stays in registers: writes of key bytes could change any member.
      const KeyBijection bijection = keys_.bijection();
      puts = fill_keys(operations, drawn, [bijection](std::uint64_t index, char* out) {
        KeyCodec::encode_u64(bijection, index, out);
      });
    } else {
      puts = fill_keys(operations, drawn,
                       [this](std::uint64_t index, char* out) { keys_.encode(index, out); });
    }
    char* next_byte = next_byte_;
    for (std::size_t put = 0; put < puts; ++put) {
      const Point& point = points_[puts_[put]];
      const std::uint32_t bytes = values_.size(point.index, point.version);
      values_.encode_sized(point.index, point.version, bytes, next_byte);
      operations[puts_[put]].value = {next_byte, bytes};
      next_byte += bytes;
    }
    if (schedule_.open()) {
      for (std::size_t i = 0; i < drawn; ++i) operations[i].due_ns = schedule_.next();
    }
    return drawn;
  }
  /// Keys of the first `drawn` points, and where among them a value is to follow; their number.
  template <class Encode>
  std::size_t fill_keys(Operation* operations, std::size_t drawn, const Encode& encode) {
    const std::size_t key_bytes = keys_.size();
    const Point* const points = points_.data();
    std::uint32_t* const positions = puts_.data();
    std::size_t puts = 0;
    char* next_byte = next_byte_;
    for (std::size_t i = 0; i < drawn; ++i) {
      const Point& point = points[i];
      encode(point.index, next_byte);
      operations[i] = Operation{.kind = point.kind,
                                .entries = point.entries,
                                .key = {next_byte, key_bytes},
                                .value = {},
                                .first_mutation = 0,
                                .version = point.version,
                                .index = point.index,
                                .due_ns = 0};
      next_byte += key_bytes;
      positions[puts] = static_cast<std::uint32_t>(i);
      puts += point.version != 0;
    }
    next_byte_ = next_byte;
    return puts;
  }
  std::string_view encode_key(std::uint64_t index) {
    keys_.encode(index, next_byte_);
    const std::string_view key(next_byte_, keys_.size());
    next_byte_ += key.size();
    return key;
  }
  std::string_view encode_value(std::uint64_t index) {
    const std::string_view value(next_byte_, values_.size(index, logical_.version));
    values_.encode(index, logical_.version, next_byte_);
    next_byte_ += value.size();
    return value;
  }

  Source source_;
  KeyCodec keys_;
  ValueCodec values_;
  std::size_t largest_bytes_;  ///< of one operation
  Schedule schedule_;
  LogicalOperation logical_;
  std::vector<Point> points_;
  std::vector<std::uint32_t> puts_;  ///< positions of the operations that carry a value
  char* next_byte_ = nullptr;
  std::uint64_t position_ = 0;
};

}  // namespace

std::uint32_t thread_count(const Phase& phase) {
  if (phase.kind == PhaseKind::load) return phase.load_threads;
  std::uint32_t threads = 0;
  if (phase.kind == PhaseKind::run) {
    for (const Role& role : phase.roles) threads += role.threads;
  }
  return threads;
}

const Role& role_of(const Phase& phase, std::uint32_t thread) {
  for (const Role& role : phase.roles) {
    if (thread < role.threads) return role;
    thread -= role.threads;
  }
  check_failed(__FILE__, __LINE__, "thread < thread_count(phase)", "the thread has a role");
}

std::unique_ptr<Stream> make_stream(const Workload& workload, std::uint64_t seed, std::size_t phase,
                                    std::uint32_t thread) {
  ASSAY_CHECK(phase < workload.phases.size(), "the phase exists");
  const Phase& declared = workload.phases[phase];
  ASSAY_CHECK(thread < thread_count(declared), "the thread exists");
  if (declared.kind == PhaseKind::load) {
    return std::make_unique<EncodingStream<LoadSource>>(LoadSource(workload, seed, phase, thread),
                                                        workload, seed, declared.load_batch,
                                                        Schedule({}, seed, phase, thread, 1));
  }
  if (!declared.trace.empty()) return make_trace_stream(workload, seed, phase, thread);
  const Role& role = role_of(declared, thread);
  return std::make_unique<EncodingStream<RunSource>>(
      RunSource(workload, seed, phase, thread), workload, seed,
      std::max<std::uint32_t>(1, role.batch_keys),
      Schedule(role.arrival, seed, phase, thread, thread_count(declared)));
}

}  // namespace assay
