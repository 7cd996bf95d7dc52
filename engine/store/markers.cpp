// Checkpoint markers: names of places in the order of commits. A marker is a commit without
// entries, so that it costs a record in the log and nothing else, is durable when a commit would
// be, and lies in the prefix that a crash leaves, or does not. A root's manifest keeps the markers
// up to its sequence (K3), so that the log may be recycled.
#include <algorithm>
#include <chrono>

#include "engine/store/batch.h"
#include "engine/store/engine.h"

namespace lode {

// Needs the sequencing lock. Of no more than most_markers.
void Engine::set_marker(std::string_view name, Sequence sequence) {
  std::erase_if(markers_, [&](const Marker& marker) { return marker.name == name; });
  markers_.push_back({std::string(name), sequence.value});
  if (markers_.size() > most_markers) markers_.erase(markers_.begin());
}

std::vector<Marker> Engine::markers() {
  const std::lock_guard lock(sequencing_mutex_);
  return markers_;
}

// What it takes in memory and what it takes to be durable are counted separately.
Result<Receipt> Engine::mark(std::string_view name, Durability durability) {
  if (name.empty() || name.size() > longest_marker_bytes) {
    return fail(ErrorKind::bad_input,
                "a marker's name has 1 to 200 bytes, not " + std::to_string(name.size()));
  }
  using Clock = std::chrono::steady_clock;
  const auto nanoseconds_since = [](Clock::time_point start) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
  };
  WriteBatch batch;
  batch.add(static_cast<unsigned>(OperationKind::marker), name, {});
  const bool flushed = durability == Durability::sync || durability == Durability::buffered;
  auto start = Clock::now();
  LODE_ASSIGN(Receipt receipt, commit(batch, flushed ? Durability::volatile_ : durability));
  ++marks_;
  mark_memory_nanoseconds_ += nanoseconds_since(start);
  if (!flushed) return receipt;
  start = Clock::now();
  receipt.durable = durability == Durability::sync;
  LODE_TRY(flush_until(Sequence(receipt.sequence), receipt.durable));
  if (!receipt.durable) return receipt;
  ++durable_marks_;
  mark_durable_nanoseconds_ += nanoseconds_since(start);
  return receipt;
}

Result<Receipt> Store::mark(std::string_view name, Durability durability) {
  return guard_memory([&] { return engine_->mark(name, durability); });
}

std::vector<Marker> Store::markers() const {
  return engine_->markers();
}

}  // namespace lode
