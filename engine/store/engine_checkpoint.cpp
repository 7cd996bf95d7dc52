// Checkpoints and merges: steps K1 to K6 and M1 to M4 of PROTOCOLS.md.
#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/crc32c.h"
#include "engine/base/mutation.h"
#include "engine/store/engine.h"
#include "engine/store/owned_extents.h"

namespace lode {
namespace {

RunInfo info_of(const Run& run) {
  RunInfo info{run.level, {}};
  for (const auto& tree : run.trees) info.trees.push_back(tree->info());
  return info;
}

struct Part {
  std::shared_ptr<const Tree> tree;
  std::size_t age = 0;  // 0 = of the newest run
};

// A group of neighbouring trees that go into the result together.
struct Group {
  std::vector<Part> parts;
  std::string last_key;
  bool reusable = false;  // one tree that overlaps nothing and may stay as it is
};

}  // namespace

Status Engine::checkpoint() {
  if (options_.read_only) return fail(ErrorKind::unsupported, "the store is open for reading only");
  return guarded([&] {
    const std::lock_guard lock(checkpoint_mutex_);
    return flush_overlay();
  });
}

// K1: from here on commits go into a new overlay; the old one never changes again. The log up to
// this point is durable and ends exactly at the last commit of the frozen overlay.
Status Engine::freeze() {
  {
    const std::lock_guard lock(sequencing_mutex_);
    // What changes no entry (a marker, a range erase that finds nothing) is in the log all the
    // same.
    if (shape_->active->root() == nullptr &&
        (last_sequence_ == frozen_sequence_ || LODE_MUTATED("log-without-entries-kept"))) {
      return {};
    }
  }
  const Role role(*this);
  const Status status = flush_group(true, [this] {
    auto next = std::make_shared<Shape>(*shape_);
    next->frozen.insert(next->frozen.begin(), {shape_->active, shape_->active->root()});
    next->active = std::make_shared<RadixTrie>(readers_, chunks_);
    next->active->begin_generation(edit_generation_);
    shape_ = std::move(next);
    frozen_sequence_ =
        LODE_MUTATED("checkpoint-claims-one-more") ? last_sequence_ + 1 : last_sequence_;
    frozen_markers_ = markers_;
    overlay_bytes_.store(0, std::memory_order_relaxed);
  });
  frozen_lsn_ = log_->end_lsn();
  frozen_chain_ = log_->chain();
  return status;
}

// A flush of what was admitted always finds its space. Without reserves it may not: then what only
// the older root needs is given back, and when that is not enough puts are refused (A1).
Status Engine::flush_overlay() {
  Status status = flush_once();
  if (bounded() && !status && status.error().kind == ErrorKind::arena_full) {
    {
      const std::lock_guard lock(sequencing_mutex_);
      LODE_CHECK(!arena_.promised, "I17: a flush finds the space that was reserved for it");
    }
    if (release_older_root()) status = flush_once();
  }
  if (bounded()) {
    arena_.full.store(!status && status.error().kind == ErrorKind::arena_full);
  }
  return status;
}

Status Engine::flush_once() {
  if (poisoned_.load()) return std::unexpected(poisoned_error(ErrorKind::poisoned));
  LODE_TRY(freeze());
  std::shared_ptr<const Shape> shape;
  {
    const std::lock_guard lock(sequencing_mutex_);
    shape = shape_;
  }
  if (shape->frozen.empty()) return {};
  // K2: one sorted run from the frozen overlays. Tombstones are needed while anything is below.
  std::vector<std::unique_ptr<EntryCursor>> sources;
  for (const FrozenOverlay& frozen : shape->frozen) {
    sources.push_back(std::make_unique<OverlayCursor>(frozen.root));
  }
  MergeCursor source(std::move(sources),
                     shape->runs.empty() || LODE_MUTATED("tombstone-dropped-in-flush"));
  LODE_ASSIGN(auto trees, build_trees(source));
  const std::lock_guard install_lock(install_mutex_);
  Runs runs = current_runs();  // a merge may have changed them meanwhile
  if (!trees.empty()) {
    for (const auto& tree : trees) {
      checkpoint_requested_bytes_ += tree->info().payload_bytes;
      checkpoint_bytes_ += tree->info().pages() * page_bytes;
    }
    runs.insert(runs.begin(), std::make_shared<const Run>(Run{0, std::move(trees)}));
  }
  LODE_TRY(install(runs, frozen_sequence_, frozen_lsn_, frozen_chain_,
                   LODE_MUTATED("markers-of-now-in-the-root") ? markers() : frozen_markers_,
                   shape->frozen.size()));
  ++checkpoints_;
  checkpoint_barriers_ += 2;
  return {};
}

Runs Engine::current_runs() {
  const std::lock_guard lock(sequencing_mutex_);
  return shape_->runs;
}

Result<std::vector<std::shared_ptr<const Tree>>> Engine::build_trees(EntryCursor& source) {
  std::vector<std::shared_ptr<const Tree>> trees;
  std::unique_ptr<TreeBuilder> builder;
  const TreeLimits limits = tree_limits();
  for (source.seek_first(); source.valid(); source.next()) {
    if (going_.load(std::memory_order_relaxed)) {
      return fail(ErrorKind::io, "given up: the store is being closed");
    }
    if (!builder) {
      builder = std::make_unique<TreeBuilder>(tree_space(), next_tree_++, options_.key_kind);
    }
    LODE_ASSIGN(const std::string_view value, source.value());
    LODE_TRY(builder->add(source.key(), source.kind(), value));
    if (builder->bytes() < limits.payload_bytes && builder->entries() < limits.entries) continue;
    LODE_ASSIGN(auto tree, finish_tree(*builder));
    trees.push_back(std::move(tree));
    builder.reset();
  }
  LODE_TRY(source.status());
  if (builder) {
    LODE_ASSIGN(auto tree, finish_tree(*builder));
    trees.push_back(std::move(tree));
  }
  return trees;
}

// K3, K4: everything that the root names is durable before the root is written, and the root goes
// into the slot of the older one (I7).
Status Engine::write_durable_root(const Runs& runs, Root root, const std::vector<Marker>& markers) {
  Manifest content;
  for (const auto& run : runs) content.runs.push_back(info_of(*run));
  content.markers = markers;
  DurableRoot durable;
  durable.manifest = std::make_shared<OwnedExtents>(space_);
  durable.runs = runs;
  durable.markers = markers;
  root.manifest = {};
  if (!content.runs.empty() || !content.markers.empty()) {
    const std::string manifest = encode_manifest(content);
    ExtentStream stream(*data_, space_);
    LODE_ASSIGN(root.manifest.offset, stream.reserve(manifest.size(), page_bytes));
    LODE_TRY(stream.append(as_bytes(manifest)));
    root.manifest.bytes = manifest.size();
    root.manifest.checksum = crc32c(as_bytes(manifest));
    LODE_ASSIGN(durable.manifest->extents, stream.finish());
    manifest_bytes_ += stream.written_bytes();
  }
  // From here on an error leaves the medium in a state that only recovery can read (I9).
  return in_one_step([&] { return write_slot(std::move(root), std::move(durable)); });
}

Status Engine::write_slot(Root root, DurableRoot durable) {
  Status synced;
  if (!LODE_MUTATED("root-before-its-data")) synced = data_->sync();
  if (!synced) {
    poison(synced.error());
    return synced;
  }
  const std::size_t slot = LODE_MUTATED("root-over-the-newest") ? newest_slot_ : 1 - newest_slot_;
  root.generation = roots_[newest_slot_]->root.generation + 1;
  root.next_tree = next_tree_;
  LODE_CHECK(root.sequence >= roots_[newest_slot_]->root.sequence, "I7: roots only advance");
  Status status = write_root(*data_, slot, root);
  if (status && !LODE_MUTATED("root-without-sync")) status = data_->sync();
  if (!status) {
    poison(status.error());
    return status;
  }
  data_barriers_ += 2;
  if (log_) log_->segments().claim_durable_root(root_identity(root));  // I21
  durable.root = root;
  roots_[slot] = std::move(durable);  // what only the overwritten root needed is free now (I8)
  newest_slot_ = slot;
  if (LODE_MUTATED("pages-of-the-older-root-reused") && roots_[1 - slot]) {
    roots_[1 - slot]->runs.clear();
  }
  return {};
}

// Needs install_mutex_. K5, K6: the new root is durable; readers get the new shape, and the log
// that neither root needs is recycled. `flushed_overlays` of the oldest frozen overlays are in the
// trees now.
Status Engine::install(const Runs& runs, Sequence sequence, Lsn log_start, std::uint32_t log_chain,
                       const std::vector<Marker>& markers, std::size_t flushed_overlays) {
  Root root = roots_[newest_slot_]->root;
  root.sequence = sequence;
  root.log_start = log_start;
  root.log_chain = log_chain;
  LODE_TRY(write_durable_root(runs, root, markers));
  checkpoint_lsn_.store(log_start.value);
  const Role role(*this);
  Status status = flush_group(false, [&] {
    auto next = std::make_shared<Shape>(*shape_);
    next->runs = runs;
    weigh_runs(runs);
    next->frozen.resize(next->frozen.size() - flushed_overlays);
    shape_ = std::move(next);
  });
  if (status) {
    status =
        in_one_step([&] { return log_->segments().recycle_below(log_needed(), kept_segments()); });
    if (!status) poison(status.error());
  }
  return status;
}

// Ahead of need and beside the commits, so that no commit waits for a segment to be filled with
// zeros.
Status Engine::make_spare_segment() {
  if (!spare_wanted_.exchange(false) || poisoned_.load()) return {};
  std::uint64_t slot = 0;
  {
    const Role role(*this);
    slot = log_->segments().reserve_slot();
  }
  LODE_TRY(log_->segments().create_spare(slot));
  const Role role(*this);
  log_->segments().add_spare(slot);
  return {};
}

// I8: the log from here on is needed by one of the two roots.
Lsn Engine::log_needed() const {
  Lsn needed = roots_[newest_slot_]->root.log_start;
  const auto& other = roots_[1 - newest_slot_];
  if (other && !LODE_MUTATED("log-of-the-older-root-recycled")) {
    needed = std::min(needed, other->root.log_start);
  }
  return needed;
}

std::uint64_t Engine::log_limit() const {
  return std::max<std::uint64_t>(4 * options_.overlay_bytes, 4 * options_.log_segment_bytes);
}

// A full overlay, or a log that is long beside it (the same keys over and over).
bool Engine::flush_due() const {
  return overlay_bytes_.load() >= options_.overlay_bytes ||
         log_end_.load() - checkpoint_lsn_.load() >= log_limit();
}

// More of either than commits may add to before a flush has caught up.
bool Engine::overfull() const {
  return overlay_bytes_.load() > 2 * options_.overlay_bytes ||
         log_end_.load() - checkpoint_lsn_.load() >= 3 * log_limit();
}

// M2: trees that overlap no other input stay as they are, the others are merged.
Result<std::vector<std::shared_ptr<const Tree>>> Engine::merge_trees(
    const std::vector<std::shared_ptr<const Run>>& inputs, bool drop_tombstones) {
  std::vector<Part> parts;
  for (std::size_t age = 0; age < inputs.size(); ++age) {
    for (const auto& tree : inputs[age]->trees) parts.push_back({tree, age});
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return a.tree->info().first_key < b.tree->info().first_key;
  });
  std::vector<Group> groups;
  for (const Part& part : parts) {
    const TreeInfo& info = part.tree->info();
    if (groups.empty() || info.first_key > groups.back().last_key) groups.emplace_back();
    Group& group = groups.back();
    group.parts.push_back(part);
    group.last_key = std::max(group.last_key, info.last_key);
    group.reusable = group.parts.size() == 1 && (!drop_tombstones || info.tombstones == 0) &&
                     info.payload_bytes >= options_.tree_bytes / 4;
  }
  std::vector<std::shared_ptr<const Tree>> result;
  for (std::size_t i = 0; i < groups.size();) {
    if (groups[i].reusable) {
      result.push_back(groups[i++].parts.front().tree);
      continue;
    }
    std::vector<Run::Trees> slices(inputs.size());  // by age, in key order
    for (; i < groups.size() && !groups[i].reusable; ++i) {
      for (const Part& part : groups[i].parts) slices[part.age].push_back(part.tree);
    }
    std::vector<std::unique_ptr<EntryCursor>> sources;
    for (Run::Trees& slice : slices) {
      if (slice.empty()) continue;
      sources.push_back(
          std::make_unique<RunCursor>(std::make_shared<const Run>(0, std::move(slice))));
    }
    MergeCursor source(std::move(sources), drop_tombstones);
    LODE_ASSIGN(auto merged, build_trees(source));
    for (auto& tree : merged) {
      merge_requested_bytes_ += tree->info().payload_bytes;
      merge_bytes_ += tree->info().pages() * page_bytes;
      result.push_back(std::move(tree));
    }
  }
  return result;
}

// M1: the runs of a level are merged when there are as many as the ratio between levels. The last
// run takes part once the others are not small beside it, else it moves a level down untouched.
// Neighbours of like size are merged by drain() only: it costs each entry a logarithm of writes,
// and every run less saves each scan a source and each look-up a filter.
Engine::MergeChoice Engine::choose_merge(const Runs& runs, MergeRule rule) const {
  if (runs.size() < 2) return {};
  if (rule == MergeRule::everything) return {0, runs.size(), runs.back()->level, false};
  if (rule == MergeRule::like_size) {
    constexpr std::uint64_t like = 2;  // an older run at most so many times what is before it
    for (std::size_t first = 0; first + 1 < runs.size(); ++first) {
      std::uint64_t pages = runs[first]->pages();
      std::size_t last = first + 1;
      for (; last < runs.size() && runs[last]->pages() <= like * pages; ++last) {
        pages += runs[last]->pages();
      }
      if (last - first > 1) return {first, last, runs[last - 1]->level, false};
    }
    return {};
  }
  MergeChoice choice;
  for (choice.first = 0; choice.first < runs.size(); choice.first = choice.last) {
    choice.level = runs[choice.first]->level;
    choice.last = choice.first + 1;
    while (choice.last < runs.size() && runs[choice.last]->level == choice.level) ++choice.last;
    if (choice.last - choice.first >= options_.level_ratio) break;
  }
  if (choice.first == runs.size()) return {};
  ++choice.level;
  if (choice.last + 1 == runs.size() && runs[choice.last]->level == choice.level) {
    std::uint64_t pages = 0;
    for (std::size_t i = choice.first; i < choice.last; ++i) pages += runs[i]->pages();
    choice.move_last_down = pages * options_.level_ratio < runs[choice.last]->pages();
    if (!choice.move_last_down) ++choice.last;
  }
  return choice;
}

Result<bool> Engine::merge_once(MergeRule rule) {
  if (poisoned_.load()) return std::unexpected(poisoned_error(ErrorKind::poisoned));
  const Runs runs = current_runs();
  const auto [first, last, target, move_last_down] = choose_merge(runs, rule);
  if (first == last) return false;
  // I13: a tombstone goes only when nothing is below that it could hide.
  const bool drop_tombstones = last == runs.size() || LODE_MUTATED("tombstone-dropped-in-merge");
  const Runs inputs(runs.begin() + static_cast<std::ptrdiff_t>(first),
                    runs.begin() + static_cast<std::ptrdiff_t>(last));
  if (reserves() && !merge_fits(inputs)) {
    LODE_TRY(release_older_root());
    LODE_TRY(walk_runs());
    if (!merge_fits(inputs)) {
      ++arena_.merges_put_off;
      if (rule != MergeRule::everything) return false;
      return fail(ErrorKind::arena_full, "the arena of " + std::to_string(options_.max_bytes) +
                                             " bytes has no room to merge beside what is in it");
    }
  }
  LODE_ASSIGN(auto trees, merge_trees(inputs, drop_tombstones));
  const std::lock_guard install_lock(install_mutex_);
  // Flushes may have put newer runs before ours meanwhile; nothing else has changed.
  Runs now = current_runs();
  auto at = std::find(now.begin(), now.end(), inputs.front());
  LODE_CHECK(now.end() - at == static_cast<std::ptrdiff_t>(runs.size() - first),
             "only newer runs were added during a merge");
  at = now.erase(at, at + static_cast<std::ptrdiff_t>(inputs.size()));
  if (move_last_down) *at = std::make_shared<const Run>(Run{target + 1, (*at)->trees});
  if (!trees.empty()) now.insert(at, std::make_shared<const Run>(Run{target, std::move(trees)}));
  const Root& root = roots_[newest_slot_]->root;
  const std::vector<Marker> markers = roots_[newest_slot_]->markers;
  LODE_TRY(install(now, root.sequence, root.log_start, root.log_chain, markers, 0));
  ++merges_;
  merge_barriers_ += 2;
  return true;
}

Status Engine::drain() {
  if (options_.read_only) return {};
  LODE_TRY(checkpoint());
  return guarded([&]() -> Status {
    const std::lock_guard lock(merge_mutex_);
    while (true) {
      LODE_ASSIGN(bool merged, merge_once(MergeRule::full_level));
      if (!merged) {
        LODE_ASSIGN(merged, merge_once(MergeRule::like_size));
      }
      if (!merged) break;
    }
    return bounded() ? release_older_root() : Status{};
  });
}

Status Engine::compact() {
  if (options_.read_only) return fail(ErrorKind::unsupported, "the store is open for reading only");
  const Status flushed = checkpoint();
  // Where the flush found the arena full, merging what is in trees may make room for it.
  if (!flushed && flushed.error().kind != ErrorKind::arena_full) return flushed;
  const Status merged = guarded([&]() -> Status {
    const std::lock_guard lock(merge_mutex_);
    LODE_TRY(merge_once(MergeRule::everything));
    return bounded() ? release_older_root() : Status{};
  });
  if (!merged) return merged;
  return flushed ? flushed : checkpoint();
}

void Engine::background_thread() {
  std::unique_lock lock(background_mutex_);
  while (!background_stop_) {
    if (!background_due_) {
      background_wanted_.wait(lock);
      continue;
    }
    background_due_ = false;
    lock.unlock();
    Status status = guarded([&] { return make_spare_segment(); });
    if (status && flush_due()) status = checkpoint();
    lock.lock();
    merge_due_ = true;
    merge_wanted_.notify_one();
    background_error_.reset();
    if (!status) background_error_ = std::move(status).error();
    room_.notify_all();
  }
}

// Beside the flushes, so that a long merge does not keep the overlay from being flushed. What a
// failed merge meant to do is tried again after the next flush; nothing depends on it.
void Engine::merge_thread() {
  std::unique_lock lock(background_mutex_);
  while (!background_stop_) {
    if (!merge_due_) {
      merge_wanted_.wait(lock);
      continue;
    }
    merge_due_ = false;
    lock.unlock();
    bool again = false;
    {
      const auto merged = guarded([&] {
        const std::lock_guard merge_lock(merge_mutex_);
        return merge_once(MergeRule::full_level);
      });
      again = merged && *merged;
    }
    lock.lock();
    if (again) merge_due_ = true;
  }
}

}  // namespace lode
