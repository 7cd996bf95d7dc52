// Counters by name. README.md says what each is; all since the opening, but for states.
#include <bit>

#include "engine/store/engine.h"

namespace lode {

void Engine::count_group(std::uint64_t commits) {
  groups_.fetch_add(1, std::memory_order_relaxed);
  const auto size_class = static_cast<std::size_t>(std::bit_width(commits)) - 1;
  groups_by_size_[std::min(size_class, group_classes - 1)].fetch_add(1, std::memory_order_relaxed);
  // Only the holder of the flusher's role comes here.
  if (commits > largest_group_.load(std::memory_order_relaxed)) largest_group_.store(commits);
}

// With what it took: pages by kind, large values.
Result<std::shared_ptr<const Tree>> Engine::finish_tree(TreeBuilder& builder) {
  LODE_ASSIGN(auto tree, builder.finish());
  leaf_pages_ += builder.leaf_pages();
  inner_pages_ += builder.inner_pages();
  value_requested_bytes_ += builder.value_requested_bytes();
  value_bytes_ += builder.value_written_bytes();
  return tree;
}

namespace {

using Counters = std::map<std::string, double>;

double number(std::uint64_t value) {
  return static_cast<double>(value);
}

void add_recovery(const RecoveryReport& report, Counters& out) {
  out["root_generation_opened"] = number(report.root_generation);
  out["recovered_trees"] = number(report.trees);
  out["replayed_commits"] = number(report.replayed_commits);
  out["replayed_bytes"] = number(report.replayed_bytes);
  out["replayed_frames"] = number(report.replayed_frames);
  out["dropped_frames"] = number(report.dropped_frames);
  out["log_cut"] = report.log_cut ? 1 : 0;
  out["root_fallback"] = report.root_fallback ? 1 : 0;
  out["open_microseconds"] = number(report.microseconds);
  out["open_files_microseconds"] = number(report.files_microseconds);
  out["open_roots_microseconds"] = number(report.roots_microseconds);
  out["open_replay_microseconds"] = number(report.replay_microseconds);
}

void add_log(const LogCounters& log, Counters& out) {
  out["log_requested_bytes"] = number(log.payload_bytes.load());
  out["log_written_bytes"] = number(log.written_bytes.load());
  out["log_barriers"] = number(log.barriers.load());
  out["log_frames"] = number(log.frames.load());
  out["log_segments_activated"] = number(log.segments.load());
}

void add_runs(const Runs& runs, Counters& out) {
  std::uint64_t trees = 0;
  std::uint64_t entries = 0;
  std::uint64_t tombstones = 0;
  std::uint64_t pages = 0;
  for (const auto& run : runs) {
    trees += run->trees.size();
    pages += run->pages();
    for (const auto& tree : run->trees) {
      entries += tree->info().entries;
      tombstones += tree->info().tombstones;
    }
  }
  out["runs"] = number(runs.size());
  out["trees"] = number(trees);
  out["tree_entries"] = number(entries);
  out["tree_tombstones"] = number(tombstones);
  out["tree_pages"] = number(pages);
  // What has to be merged once more at least: all but the last run.
  const std::uint64_t last = runs.empty() ? 0 : runs.back()->pages();
  out["merge_debt_bytes"] = number((pages - last) * page_bytes);
}

void add_arena(const ArenaAccount& arena, Counters& out) {
  out["admission_fast_accepts"] = number(arena.fast_accepts.load());
  out["admission_exact_fallbacks"] = number(arena.exact_fallbacks.load());
  out["admission_full_recounts"] = number(arena.full_recounts.load());
  out["admission_counted_entries"] = number(arena.counted_entries.load());
  out["admission_refused_commits"] = number(arena.refused_commits.load());
  out["admission_reserved_pages"] = number(arena.reserved_pages.load());
  out["admission_rooms_made"] = number(arena.rooms_made.load());
  out["older_roots_released"] = number(arena.roots_released.load());
  out["merges_put_off"] = number(arena.merges_put_off.load());
}

}  // namespace

std::map<std::string, double> Engine::statistics() {
  Counters out;
  out["commits"] = number(commits_.load());
  out["commit_groups"] = number(groups_.load());
  out["largest_commit_group"] = number(largest_group_.load());
  for (std::size_t i = 0; i < group_classes; ++i) {
    out["commit_groups_from_" + std::to_string(std::uint64_t{1} << i)] =
        number(groups_by_size_[i].load());
  }
  if (log_) add_log(log_->counters(), out);
  out["markers"] = number(markers().size());
  out["marks"] = number(marks_.load());
  out["mark_memory_nanoseconds"] = number(mark_memory_nanoseconds_.load());
  out["durable_marks"] = number(durable_marks_.load());
  out["mark_durable_nanoseconds"] = number(mark_durable_nanoseconds_.load());
  out["checkpoints"] = number(checkpoints_.load());
  out["merges"] = number(merges_.load());
  out["checkpoint_requested_bytes"] = number(checkpoint_requested_bytes_.load());
  out["checkpoint_written_bytes"] = number(checkpoint_bytes_.load());
  out["merge_requested_bytes"] = number(merge_requested_bytes_.load());
  out["merge_written_bytes"] = number(merge_bytes_.load());
  out["value_requested_bytes"] = number(value_requested_bytes_.load());
  out["value_written_bytes"] = number(value_bytes_.load());
  out["manifest_written_bytes"] = number(manifest_bytes_.load());
  out["leaf_pages_written"] = number(leaf_pages_.load());
  out["inner_pages_written"] = number(inner_pages_.load());
  out["data_barriers"] = number(data_barriers_.load());
  out["checkpoint_barriers"] = number(checkpoint_barriers_.load());
  out["merge_barriers"] = number(merge_barriers_.load());
  out["cache_hits"] = number(pool_->counters().hits.load() + readers_.pages_read());
  out["cache_misses"] = number(pool_->counters().misses.load());
  out["cache_overflows"] = number(pool_->counters().overflows.load());
  out["data_pages_used"] = number(space_.used_pages());
  out["data_pages_end"] = number(space_.end_page());
  out["open_handles"] = number(handles_.load());
  out["overlay_bytes"] = number(overlay_bytes_.load());
  const auto core = snapshot();
  out["sequence"] = number(core->sequence.value);
  add_runs(core->state.shape->runs, out);
  const MergeChoice due = choose_merge(core->state.shape->runs, MergeRule::full_level);
  std::uint64_t due_pages = 0;
  for (std::size_t i = due.first; i < due.last; ++i) {
    due_pages += core->state.shape->runs[i]->pages();
  }
  out["merge_due_bytes"] = number(due_pages * page_bytes);
  out["max_bytes"] = number(options_.max_bytes);
  if (bounded()) add_arena(arena_, out);
  add_recovery(report_, out);
  return out;
}

}  // namespace lode
