// Reading: look-ups, snapshots, verification, counters.
#include "engine/base/check.h"
#include "engine/store/engine.h"

namespace lode {

SnapshotCore::SnapshotCore(std::shared_ptr<Engine> of, const Version& version)
    : engine(std::move(of)),
      generation(version.generation),
      sequence(version.sequence),
      state(version.state) {
  engine->readers_.pin(generation);
  engine->handles_.fetch_add(1);
}

SnapshotCore::~SnapshotCore() {
  engine->readers_.unpin(generation);
  engine->handles_.fetch_sub(1);
}

// First from what is in memory, without a lock or a pin; what is not there is read with pins, after
// the right to look at pages without them is given up (I14).
Result<bool> Engine::get(std::string_view key, std::string& value) {
  if (ahead_.load(std::memory_order_acquire)) publish_ahead();
  const std::size_t slot = readers_.enter(published_, true);
  const Version* version = current_.load(std::memory_order_seq_cst);
  std::uint64_t pages = 0;
  const Resident answer = look_up_resident(version->state, key, value, pages);
  readers_.count_pages(slot, pages);
  if (answer != Resident::unknown) [[likely]] {
    readers_.leave(slot);
    return answer == Resident::value;
  }
  readers_.stop_reading_pages(slot);
  auto found = look_up(version->state, key, value);
  readers_.leave(slot);
  return found;
}

Result<bool> Engine::get(const State& state, std::string_view key, std::string& value) {
  const std::size_t slot = readers_.enter(published_, true);
  std::uint64_t pages = 0;
  const Resident answer = look_up_resident(state, key, value, pages);
  readers_.count_pages(slot, pages);
  readers_.leave(slot);
  if (answer != Resident::unknown) return answer == Resident::value;
  return look_up(state, key, value);
}

std::shared_ptr<const SnapshotCore> Engine::snapshot() {
  if (ahead_.load(std::memory_order_acquire)) publish_ahead();
  const std::size_t slot = readers_.enter(published_);  // until the generation is pinned
  const Version* version = current_.load(std::memory_order_seq_cst);
  auto core = std::make_shared<const SnapshotCore>(shared_from_this(), *version);
  readers_.leave(slot);
  return core;
}

Status Engine::verify() {
  const auto core = snapshot();
  for (const auto& run : core->state.shape->runs) {
    const Tree* before = nullptr;
    for (const auto& tree : run->trees) {
      LODE_TRY(tree->verify());
      if (before != nullptr && before->info().last_key >= tree->info().first_key) {
        return fail(ErrorKind::corruption, "the trees of a run overlap");
      }
      before = tree.get();
    }
  }
  return {};
}

std::map<std::string, double> Engine::statistics() {
  const auto number = [](auto value) { return static_cast<double>(value); };
  std::map<std::string, double> out;
  out["commits"] = number(commits_.load());
  out["commit_groups"] = number(groups_.load());
  if (log_) {
    const LogCounters& log = log_->counters();
    out["log_requested_bytes"] = number(log.payload_bytes.load());
    out["log_written_bytes"] = number(log.written_bytes.load());
    out["log_barriers"] = number(log.barriers.load());
    out["log_segments_activated"] = number(log.segments.load());
  }
  out["checkpoints"] = number(checkpoints_.load());
  out["merges"] = number(merges_.load());
  out["checkpoint_written_bytes"] = number(checkpoint_bytes_.load());
  out["merge_written_bytes"] = number(merge_bytes_.load());
  out["manifest_written_bytes"] = number(manifest_bytes_.load());
  out["data_barriers"] = number(data_barriers_.load());
  out["cache_hits"] = number(pool_->counters().hits.load() + readers_.pages_read());
  out["cache_misses"] = number(pool_->counters().misses.load());
  out["cache_overflows"] = number(pool_->counters().overflows.load());
  out["data_pages_used"] = number(space_.used_pages());
  out["data_pages_end"] = number(space_.end_page());
  out["open_handles"] = number(handles_.load());
  const auto core = snapshot();
  out["sequence"] = number(core->sequence.value);
  std::uint64_t trees = 0;
  std::uint64_t entries = 0;
  for (const auto& run : core->state.shape->runs) {
    trees += run->trees.size();
    for (const auto& tree : run->trees) entries += tree->info().entries;
  }
  out["runs"] = number(core->state.shape->runs.size());
  out["trees"] = number(trees);
  out["tree_entries"] = number(entries);
  out["overlay_bytes"] = number(overlay_bytes_.load());
  out["replayed_commits"] = number(report_.replayed_commits);
  return out;
}

}  // namespace lode
