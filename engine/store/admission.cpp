// Admission of commits into a bounded data file: steps A1 to A4 of PROTOCOLS.md.
#include <algorithm>
#include <optional>

#include "engine/base/check.h"
#include "engine/base/mutation.h"
#include "engine/store/engine.h"

namespace lode {
namespace {

constexpr std::uint64_t streams_at_once = 5;  // two a flush, two a merge, a manifest
// A flush's, a released root's, a merge's, a released root's again, and what the first two may have
// grown by; a merge alone needs less.
constexpr std::uint64_t manifests_of_a_commit = 6;
constexpr std::uint64_t manifests_of_a_merge = 3;
constexpr std::uint64_t tree_record_bytes = 110;  // in a manifest, without keys and extents
constexpr std::uint64_t extent_record_bytes = 12;
constexpr std::uint64_t marker_record_bytes = longest_marker_bytes + 12;
constexpr std::uint64_t erase_share = 16;  // of the bound, kept for commits that only erase

// A tree that was built before the opening: whatever its payload may be made of.
EntryWeights guess(const TreeInfo& info) {
  constexpr std::uint64_t most_leaf_bytes = max_key_bytes + max_inline_value_bytes + 8;
  EntryWeights weights;
  weights.entries = info.entries;
  weights.payload_bytes = info.payload_bytes;
  weights.leaf_bytes = info.payload_bytes + 28 * info.entries;
  weights.largest_leaf_bytes = std::min(most_leaf_bytes, info.payload_bytes + 28);
  weights.longest_key_bytes = max_key_bytes;
  if (info.payload_bytes <= max_inline_value_bytes) return weights;
  weights.large_bytes =
      std::min(2 * info.payload_bytes + 32 * info.entries, 2 * info.pages() * page_bytes);
  for (const Extent& extent : info.extents) {
    weights.largest_value_bytes = std::max(weights.largest_value_bytes,
                                           std::min(info.payload_bytes, extent.pages * page_bytes));
  }
  return weights;
}

std::uint64_t record_bytes(const TreeInfo& info) {
  return tree_record_bytes + info.first_key.size() + info.last_key.size() +
         extent_record_bytes * info.extents.size();
}

}  // namespace

Options Engine::in_force(Options options) {
  constexpr std::uint64_t trees_of_all = 64;
  constexpr std::uint64_t least_tree_bytes = std::uint64_t{256} << 10;  // each has pages of its own
  if (options.max_bytes != 0) {
    options.tree_bytes =
        std::min(options.tree_bytes, std::max(least_tree_bytes, options.max_bytes / trees_of_all));
  }
  return options;
}

TreeLimits Engine::tree_limits() const {
  constexpr std::uint64_t least_payload_bytes = 32;  // an entry, else trees are cut by number
  TreeLimits limits;
  limits.payload_bytes = std::max<std::uint64_t>(1, options_.tree_bytes);
  if (bounded()) {
    limits.entries = std::max<std::uint64_t>(1, options_.tree_bytes / least_payload_bytes);
  }
  return limits;
}

// Needs the sequencing lock, or a store that is being opened.
void Engine::weigh_runs(const Runs& runs) {
  if (!bounded()) return;
  arena_.runs = {};
  arena_.run_trees = 0;
  arena_.run_manifest_bytes = 0;
  arena_.runs_guessed = false;
  for (const auto& run : runs) {
    for (const auto& tree : run->trees) {
      const TreeInfo& info = tree->info();
      ++arena_.run_trees;
      arena_.run_manifest_bytes += record_bytes(info);
      const auto walked = arena_.walked.find(info.number);
      if (info.weights) {
        arena_.runs += *info.weights;
      } else if (walked != arena_.walked.end()) {
        arena_.runs += walked->second;
      } else {
        arena_.runs += guess(info);
        arena_.runs_guessed = true;
      }
    }
  }
}

// Reads the trees of earlier openings once, when what their payload might weigh does not fit.
Status Engine::walk_runs() {
  const Runs runs = current_runs();
  for (const auto& run : runs) {
    for (const auto& tree : run->trees) {
      if (tree->info().weights) continue;
      EntryWeights weights;
      TreeCursor cursor(tree);
      for (cursor.seek_first(); cursor.valid(); cursor.next()) {
        const Position& at = *cursor.position();
        const std::uint64_t value_bytes =
            at.plain ? at.data.size() : decode_value_ref(as_bytes(at.data).data()).bytes;
        weights.add(at.key.size(), value_bytes);
      }
      LODE_TRY(cursor.status());
      const std::lock_guard lock(sequencing_mutex_);
      arena_.walked[tree->info().number] = weights;
    }
  }
  const std::lock_guard lock(sequencing_mutex_);
  weigh_runs(shape_->runs);
  return {};
}

// Needs the sequencing lock. All that a flush has to write.
EntryWeights Engine::pending_weights() const {
  EntryWeights pending = arena_.filling;
  pending += arena_.flushing;
  pending += shape_->active->weights();
  for (const FrozenOverlay& frozen : shape_->frozen) pending += frozen.overlay->weights();
  return pending;
}

// Needs the sequencing lock. `flush`: what flushing `pending` takes when it was counted.
// `merged`: what is merged besides; `merged_trees`: in so many trees.
PageNeed Engine::reserve_for(const EntryWeights& pending, const std::optional<PageNeed>& flush,
                             EntryWeights merged, std::uint64_t merged_trees,
                             std::uint64_t manifests) const {
  const TreeLimits limits = tree_limits();
  const std::uint64_t flush_trees =
      pending.entries == 0 ? 0 : pending.trees(limits, shape_->frozen.size() + 1);
  const PageNeed flushed = flush ? *flush : most_pages(pending, flush_trees, limits);
  merged += pending;
  const std::uint64_t merge_trees = merged.trees(limits, merged_trees + flush_trees + 1);
  const PageNeed merge = most_pages(merged, merge_trees, limits);
  const std::uint64_t manifest_bytes =
      (markers_.size() + 2) * marker_record_bytes + arena_.run_manifest_bytes +
      (flush_trees + merge_trees) * (tree_record_bytes + 2 * merged.longest_key_bytes) +
      (flushed.pages + merge.pages) * extent_record_bytes;
  const std::uint64_t manifest = manifest_bytes / page_bytes + 1;
  const std::uint64_t merged_pages = LODE_MUTATED("admission-forgets-the-merge") ? 0 : merge.pages;
  return {flushed.pages + merged_pages + manifests * manifest +
              streams_at_once * (space_.largest_extent() - 1),
          std::max({flushed.piece, merge.piece, manifest})};
}

// Needs the sequencing lock.
std::uint64_t Engine::usable_pages(std::uint64_t piece) {
  const std::uint64_t changes = space_.changes();
  if (arena_.usable_piece != piece || arena_.usable_changes != changes) {
    arena_.usable = space_.usable(piece);
    arena_.usable_piece = piece;
    arena_.usable_changes = changes;
  }
  return arena_.usable;
}

// Needs the sequencing lock, with everything applied. Lays out the pending entries, with those of
// `batch` (may be null), as flushes would: all together, or the frozen ones and the active ones one
// after the other.
PageNeed Engine::count_pending(const RadixTrie* batch) {
  using Sources = std::vector<std::unique_ptr<EntryCursor>>;
  const auto active = [&] {
    Sources sources;
    if (batch != nullptr) sources.push_back(std::make_unique<OverlayCursor>(batch->root()));
    sources.push_back(std::make_unique<OverlayCursor>(shape_->active->root()));
    return sources;
  };
  const auto add_frozen = [&](Sources& sources) {
    for (const FrozenOverlay& frozen : shape_->frozen) {
      sources.push_back(std::make_unique<OverlayCursor>(frozen.root));
    }
  };
  const auto count = [&](Sources sources) {
    PageCounter counter(options_.key_kind, tree_limits());
    MergeCursor source(std::move(sources), false);
    for (source.seek_first(); source.valid(); source.next()) {
      ++arena_.counted_entries;
      counter.add(source.key(), source.kind(), source.value().value());  // overlays never fail
    }
    return counter.finish();
  };
  ++arena_.full_recounts;
  Sources all = active();
  add_frozen(all);
  PageNeed together = count(std::move(all));
  if (shape_->frozen.empty()) return together;
  Sources older;
  add_frozen(older);
  const PageNeed first = count(std::move(older));
  const PageNeed then = count(active());
  return {std::max(together.pages, first.pages + then.pages),
          std::max({together.piece, first.piece, then.piece})};
}

// Needs the sequencing lock.
bool Engine::fits(const PageNeed& need, bool only_erases) {
  const std::uint64_t kept = only_erases || LODE_MUTATED("puts-take-the-room-for-erases")
                                 ? 0
                                 : space_.limit() / erase_share;
  return usable_pages(need.piece) >= need.pages + kept;
}

void Engine::promise(const PageNeed& need, const EntryWeights& batch) {
  arena_.promised = true;
  arena_.admitted_bytes += batch.payload_bytes;
  arena_.reserved_pages.store(need.pages, std::memory_order_relaxed);
}

// Needs the sequencing lock. What is pending fits by its weights.
bool Engine::promise_kept() {
  return fits(
      reserve_for(pending_weights(), {}, arena_.runs, arena_.run_trees, manifests_of_a_commit),
      true);
}

// A2, for a batch that is applied later: by the sums alone. Needs the sequencing lock.
bool Engine::reserve_by_weight(const EntryWeights& batch, bool only_erases) {
  EntryWeights pending = pending_weights();
  pending += batch;
  const PageNeed need =
      reserve_for(pending, {}, arena_.runs, arena_.run_trees, manifests_of_a_commit);
  if (!fits(need, only_erases)) return false;
  ++arena_.fast_accepts;
  promise(need, batch);
  return true;
}

// A2, A3. Needs the sequencing lock, with everything applied. `fill` makes the batch's changes to
// an empty overlay.
Status Engine::reserve_space(const EntryWeights& batch, bool only_erases,
                             const std::function<void(RadixTrie&)>& fill) {
  const bool weighted = options_.admission == Admission::weighted;
  if (weighted && reserve_by_weight(batch, only_erases)) return {};
  if (weighted) ++arena_.exact_fallbacks;
  RadixTrie changes(readers_, chunks_);
  changes.begin_generation(edit_generation_);
  fill(changes);
  EntryWeights pending = pending_weights();
  pending += batch;
  const PageNeed flush = count_pending(&changes);
  const std::uint64_t starts = shape_->frozen.size() + 1;
  const PageNeed bound = most_pages(pending, pending.trees(tree_limits(), starts), tree_limits());
  LODE_CHECK(flush.pages <= bound.pages && flush.piece <= bound.piece,
             "I18: what the sums bound is never less than what is counted");
  const PageNeed need =
      reserve_for(pending, flush, arena_.runs, arena_.run_trees, manifests_of_a_commit);
  if (fits(need, only_erases)) {
    promise(need, batch);
    return {};
  }
  return fail(ErrorKind::arena_full,
              "the arena of " + std::to_string(options_.max_bytes) + " bytes has " +
                  std::to_string(usable_pages(need.piece) * page_bytes) + " usable bytes left (" +
                  std::to_string((root_slots + space_.used_pages()) * page_bytes) +
                  " are in use); flushing and merging what is pending with this commit may take " +
                  std::to_string(need.pages * page_bytes) +
                  "; erase and compact, close snapshots, or open it with a larger max_bytes");
}

// A4: what the engine can do by itself before a commit is refused, step by step. True: worth
// another look.
bool Engine::make_room(unsigned step) {
  if (step == 0) {
    bool guessed = false;
    {
      const std::lock_guard lock(sequencing_mutex_);
      guessed = arena_.runs_guessed;
    }
    const bool reclaimed = reclaim_versions();
    if ((guessed && walk_runs()) || (reclaimed && !options_.background)) return true;
  }
  if (!options_.background) return false;
  if (step == 0) {  // what runs beside the commits is waited for: it holds pages twice
    const std::lock_guard lock(checkpoint_mutex_);
    const std::lock_guard merge_lock(merge_mutex_);
    return release_older_root().has_value();
  }
  {
    // A compaction writes everything, so that it has to be paid for by a share of it.
    const std::lock_guard lock(sequencing_mutex_);
    if (arena_.admitted_bytes * erase_share < options_.max_bytes) return false;
    arena_.admitted_bytes = 0;
  }
  ++arena_.rooms_made;
  return compact().has_value();
}

// A merge may begin when what the acknowledged commits need stays free beside it (I17).
bool Engine::merge_fits(const Runs& inputs) {
  const std::lock_guard lock(sequencing_mutex_);
  EntryWeights merged;
  std::uint64_t trees = 0;
  for (const auto& run : inputs) {
    for (const auto& tree : run->trees) {
      const TreeInfo& info = tree->info();
      const auto walked = arena_.walked.find(info.number);
      merged += info.weights                    ? *info.weights
                : walked != arena_.walked.end() ? walked->second
                                                : guess(info);
      ++trees;
    }
  }
  const EntryWeights pending = pending_weights();
  if (fits(reserve_for(pending, {}, merged, trees, manifests_of_a_merge), true)) return true;
  apply_all();
  return fits(reserve_for(pending, count_pending(nullptr), merged, trees, manifests_of_a_merge),
              true);
}

// Versions that only a snapshot kept, which is closed since, go with the next publication or here.
bool Engine::reclaim_versions() {
  const std::lock_guard lock(sequencing_mutex_);
  const std::uint64_t changes = space_.changes();
  versions_.reclaim(Generation(published_.load(std::memory_order_relaxed)));
  return space_.changes() != changes;
}

// What only the older root needs is free as soon as both roots name the same.
Status Engine::release_older_root() {
  const std::lock_guard install_lock(install_mutex_);
  (void)reclaim_versions();
  const auto& older = roots_[1 - newest_slot_];
  const Runs runs = current_runs();
  if (!older || older->runs == runs) return {};
  const Root root = roots_[newest_slot_]->root;
  const std::vector<Marker> markers = roots_[newest_slot_]->markers;
  ++arena_.roots_released;
  return install(runs, root.sequence, root.log_start, root.log_chain, markers, 0);
}

}  // namespace lode
