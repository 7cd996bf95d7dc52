// Opening, creation, recovery, closing: steps O1 to O4 and R1 to R8 of PROTOCOLS.md.
#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/crc32c.h"
#include "engine/base/mutation.h"
#include "engine/store/batch.h"
#include "engine/store/engine.h"
#include "engine/store/new_store.h"
#include "engine/store/owned_extents.h"

namespace lode {
namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Engine::Engine(std::shared_ptr<Disk> disk, const Options& options)
    : options_(in_force(options)),
      disk_(std::move(disk)),
      chunks_(std::make_shared<ChunkPool>(options.overlay_bytes)),
      versions_(readers_,
                [](void* version, std::size_t) { delete static_cast<Version*>(version); }) {
  auto shape = std::make_shared<Shape>();
  shape->active = std::make_shared<RadixTrie>(readers_, chunks_);
  shape->active->begin_generation(edit_generation_);
  shape_ = std::move(shape);
}

Engine::~Engine() {
  going_.store(true);
  {
    const std::lock_guard lock(background_mutex_);
    background_stop_ = true;
  }
  background_wanted_.notify_all();
  merge_wanted_.notify_all();
  {
    const std::lock_guard lock(flush_mutex_);
    stopping_ = true;
  }
  window_wanted_.notify_all();
  if (background_thread_.joinable()) background_thread_.join();
  if (merge_thread_.joinable()) merge_thread_.join();
  if (window_thread_.joinable()) window_thread_.join();
  if (!closed_.load() && log_ && !poisoned_.load()) (void)sync();
  delete current_.load();
  versions_.free_all();
  shape_.reset();
  for (auto& root : roots_) root.reset();
}

Result<std::shared_ptr<Engine>> Engine::open(std::shared_ptr<Disk> disk, const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  if (options.log_segment_bytes < direct_alignment || options.level_ratio < 2 ||
      options.window_operations == 0) {
    return fail(ErrorKind::bad_input,
                "options: log_segment_bytes >= 4096, level_ratio >= 2, window_operations >= 1");
  }
  constexpr std::uint64_t least_max_bytes = std::uint64_t{1} << 20;
  if (options.max_bytes != 0 && options.max_bytes < least_max_bytes) {
    return fail(ErrorKind::bad_input, "options: max_bytes = 0 (no bound) or >= 1048576");
  }
  try {
    return open_at(start, std::move(disk), options);
  } catch (const std::bad_alloc&) {
    return std::unexpected(out_of_memory());
  } catch (const std::system_error& error) {
    return fail(ErrorKind::io, std::string("a thread cannot be started: ") + error.what());
  }
}

// Throws where memory or a thread is lacking.
Result<std::shared_ptr<Engine>> Engine::open_at(std::chrono::steady_clock::time_point start,
                                                std::shared_ptr<Disk> disk,
                                                const Options& options) {
  const auto now_microseconds = [start] {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                          std::chrono::steady_clock::now() - start)
                                          .count());
  };
  auto engine = std::make_shared<Engine>(std::move(disk), options);
  LODE_TRY(engine->open_files());
  const std::uint64_t files_open = now_microseconds();
  LODE_TRY(engine->load_roots(false));
  const std::uint64_t roots_loaded = now_microseconds();
  LODE_TRY(engine->replay());
  engine->report_.microseconds = now_microseconds();
  engine->report_.files_microseconds = files_open;
  engine->report_.roots_microseconds = roots_loaded - files_open;
  engine->report_.replay_microseconds = engine->report_.microseconds - roots_loaded;
  engine->start_threads();
  return engine;
}

// O1 to O3. The name `data` appears only when everything that makes up a new store is durable; so
// a directory without it holds no store, whatever else of ours is in it.
Status Engine::open_files() {
  LODE_TRY(disk_->lock(!options_.read_only));
  LODE_ASSIGN(auto names, disk_->list());
  if (!contains(names, data_name)) {
    if (!options_.create || options_.read_only) {
      return fail(ErrorKind::not_found, "there is no store in " + disk_->name());
    }
    LODE_TRY(remove_unfinished_creation(names));
    LODE_TRY(create());
    report_.created = true;
  }
  LODE_ASSIGN(data_, disk_->open(data_name, {.read_only = options_.read_only}));
  pool_ = std::make_unique<PagePool>(*data_, options_.cache_bytes,
                                     [this] { readers_.wait_for_page_readers(); });
  return {};
}

// A creation that a crash interrupted leaves files without commits. Frames in a log whose data file
// is gone are another matter: those were commits, and nothing is removed.
Status Engine::remove_unfinished_creation(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!segment_slot(name)) continue;
    LODE_ASSIGN(const auto file, disk_->open(name, {.read_only = true}));
    AlignedBuffer block(segment_data_offset + direct_alignment);
    LODE_ASSIGN(const std::size_t count, file->read_at(block.bytes(), 0));
    if (count < segment_data_offset + frame_header_bytes) continue;
    LODE_ASSIGN(const auto header, decode_segment_header(block.bytes()));
    FrameHeader frame;
    if (!LODE_MUTATED("orphaned-log-removed") && header && header->serial != 0 &&
        inspect_frame(block.bytes().first(count).subspan(segment_data_offset), header->store_id,
                      frame) != FrameState::zero) {
      return fail(ErrorKind::corruption, disk_->name() + "/data is missing, but " + name +
                                             " holds commits; nothing was changed");
    }
  }
  for (const std::string& name : names) {
    if (segment_slot(name) || name == unfinished_data_name || name == "probe") {
      LODE_TRY(disk_->remove(name));
    }
  }
  return {};
}

Status Engine::create() {
  Root root;
  root.store_id = random_store_id();
  root.generation = 1;
  root.key_kind = static_cast<std::uint8_t>(options_.key_kind);
  return make_store(*disk_, root, options_.log_method, options_.log_segment_bytes, {});
}

// R2: the newest root whose manifest can be read. Both roots' pages are claimed, so that nothing
// overwrites what the older one needs (I8).
Status Engine::load_roots(bool confirm) {
  if (bounded() && !LODE_MUTATED("data-file-without-bound")) {
    space_.set_limit(options_.max_bytes / page_bytes);
  }
  LODE_ASSIGN(const RootSlots slots, read_roots(*data_));
  const auto newest = slots.newest();
  if (!newest) {
    return fail(ErrorKind::corruption, disk_->name() +
                                           "/data has no valid root; it is damaged or "
                                           "not a store of this engine");
  }
  std::map<std::uint64_t, std::shared_ptr<const Tree>> known;
  std::optional<Error> error;
  bool chosen = false;
  for (const std::size_t slot : {*newest, 1 - *newest}) {
    if (chosen && LODE_MUTATED("older-root-not-claimed")) break;
    if (!slots.root[slot]) continue;
    const Root& root = *slots.root[slot];
    DurableRoot durable;
    durable.root = root;
    durable.manifest = std::make_shared<OwnedExtents>(space_);
    auto runs = load_runs(root, known, durable.markers);
    if (runs && root.manifest.bytes > 0) {
      const Extent extent = manifest_extent(root.manifest);
      if (space_.claim(extent)) {
        durable.manifest->extents.push_back(extent);
      } else {
        runs = fail(ErrorKind::corruption, "the manifest overlaps a tree");
      }
    }
    if (!runs) {
      if (!error) error = std::move(runs).error();
      continue;
    }
    durable.runs = std::move(*runs);
    roots_[slot] = std::move(durable);
    if (!chosen) newest_slot_ = slot;
    chosen = true;
  }
  if (!chosen) return std::unexpected(std::move(*error).in("no usable root"));
  const Root& root = roots_[newest_slot_]->root;
  // From the second root on both slots are in use: one that cannot be read is damage.
  report_.root_fallback =
      newest_slot_ != *newest || (root.generation > 1 && !slots.root[1 - newest_slot_].has_value());
  report_.root_generation = root.generation;
  report_.trees = known.size();
  if (root.key_kind != static_cast<std::uint8_t>(options_.key_kind)) {
    return fail(ErrorKind::bad_input, std::string("the store has ") +
                                          (root.key_kind == 0 ? "byte" : "u64") +
                                          " keys, and the other kind was asked for");
  }
  log_method_ = root.log_method;
  markers_ = roots_[newest_slot_]->markers;
  frozen_sequence_ = root.sequence;
  next_tree_.store(root.next_tree);
  for (const auto& other : roots_) {
    if (other) next_tree_.store(std::max(next_tree_.load(), other->root.next_tree));
  }
  auto shape = std::make_shared<Shape>(*shape_);
  shape->runs = roots_[newest_slot_]->runs;
  weigh_runs(shape->runs);
  shape_ = std::move(shape);
  return confirm ? confirm_roots() : Status();
}

// R1: the directory, for a process that was killed may have left a rename unsynced; and the root,
// as with the log's last frames: it may be in the page cache only, and taken for clean. What it
// names was durable before it was written (I7).
Status Engine::confirm_roots() {
  if (options_.read_only) return {};
  if (!LODE_MUTATED("creation-without-directory-sync")) LODE_TRY(disk_->sync_directory());
  if (LODE_MUTATED("cached-root-trusted")) return {};
  LODE_TRY(write_root(*data_, newest_slot_, roots_[newest_slot_]->root));
  return data_->sync();
}

Result<Runs> Engine::load_runs(const Root& root,
                               std::map<std::uint64_t, std::shared_ptr<const Tree>>& known,
                               std::vector<Marker>& markers) {
  Runs runs;
  if (root.manifest.bytes == 0) return runs;
  LODE_ASSIGN(const std::uint64_t size, data_->size());
  const Extent extent = manifest_extent(root.manifest);
  if (root.manifest.offset % page_bytes != 0 || root.manifest.bytes > size ||
      (extent.first.value + extent.pages) * page_bytes > size) {
    return fail(ErrorKind::corruption, "the manifest lies beyond the end of the data file");
  }
  AlignedBuffer buffer(root.manifest.bytes);
  LODE_TRY(read_exactly(*data_, buffer.bytes(), root.manifest.offset));
  const ConstBytes bytes = buffer.bytes().first(root.manifest.bytes);
  if (crc32c(bytes) != root.manifest.checksum) {
    return fail(ErrorKind::corruption, "the manifest is damaged (checksum)");
  }
  auto manifest = decode_manifest(bytes);
  if (!manifest) return fail(ErrorKind::corruption, "the manifest is malformed");
  markers = std::move(manifest->markers);
  for (const RunInfo& info : manifest->runs) {
    Run::Trees trees;
    for (const TreeInfo& tree : info.trees) {
      auto& entry = known[tree.number];
      if (!entry) {
        for (const Extent& part : tree.extents) {
          if ((part.first.value + part.pages) * page_bytes > size) {
            return fail(ErrorKind::corruption, "a tree lies beyond the end of the data file");
          }
          if (!space_.claim(part)) return fail(ErrorKind::corruption, "two trees overlap");
        }
        entry = std::make_shared<const Tree>(tree_space(), tree);
      }
      trees.push_back(entry);
    }
    runs.push_back(std::make_shared<const Run>(info.level, std::move(trees)));
  }
  return runs;
}

Status Engine::replay_frame(Sequence first, std::uint32_t commits, ConstBytes payload) {
  Decoder in(payload);
  for (std::uint32_t i = 0; i < commits; ++i) {
    const std::string_view encoded = in.text();
    if (in.failed())
      return fail(ErrorKind::corruption, "a log frame holds fewer commits than said");
    LODE_TRY(apply(encoded, Sequence(first.value + i)));
    last_sequence_ = Sequence(first.value + i);
  }
  if (in.left() != 0) return fail(ErrorKind::corruption, "a log frame is longer than its commits");
  return {};
}

// R3 to R8: replay what the log holds beyond the root, then go on in a new epoch and a fresh
// segment, never behind a torn tail.
Status Engine::replay() {
  const Root& root = roots_[newest_slot_]->root;
  last_sequence_ = applied_ = root.sequence;
  LODE_ASSIGN(auto recovered,
              recover_log(*disk_, root.store_id, {root.log_start, root.log_chain, root.sequence},
                          options_.read_only,
                          [this](Sequence first, std::uint32_t commits, ConstBytes payload) {
                            return replay_frame(first, commits, payload);
                          }));
  report_.replayed_commits = recovered.commits;
  report_.replayed_bytes = recovered.bytes;
  report_.replayed_frames = recovered.frames;
  report_.dropped_frames = recovered.dropped_frames;
  report_.log_cut = recovered.cut;
  report_.cut_reason = recovered.cut_reason;
  LODE_CHECK(last_sequence_ == recovered.last_sequence, "I5: sequences have no gaps");
  written_ = durable_ = last_sequence_;
  {
    const std::lock_guard lock(sequencing_mutex_);
    publish(seal(true));
    if (reserves()) {
      arena_.promised = promise_kept();
    }
  }
  if (options_.read_only) return {};
  log_ =
      std::make_unique<LogWriter>(*disk_, root.store_id, log_method_,
                                  options_.log_segment_bytes / direct_alignment * direct_alignment);
  log_->segments().adopt(recovered.live, recovered.reusable, recovered.free_slots);
  const Epoch epoch(std::max(recovered.last_epoch.value, root.epoch.value) +
                    (LODE_MUTATED("epoch-used-again") ? 0 : 1));
  // I21: before a header of this opening says that the root is durable. Creation has synced it.
  const std::uint64_t identity = root_identity(root);
  const bool claimed = recovered.durable_root == identity ||
                       (recovered.durable_root != 0 && LODE_MUTATED("claimed-root-not-compared"));
  if (!claimed && !report_.created) LODE_TRY(confirm_roots());
  log_->segments().claim_durable_root(identity);
  LODE_TRY(log_->start(epoch, recovered.end_lsn, recovered.chain));
  // The epoch travels with the next root, so that it never falls back when segments are recycled.
  roots_[newest_slot_]->root.epoch = epoch;
  checkpoint_lsn_.store(root.log_start.value);
  log_end_.store(recovered.end_lsn.value);
  LODE_TRY(log_->segments().recycle_below(log_needed(), kept_segments()));
  if (!report_.created || options_.log_prepared_bytes == 0) return {};
  return log_->segments().prepare_spares(kept_segments());
}

void Engine::start_threads() {
  if (options_.read_only || !options_.background) return;
  background_thread_ = std::thread([this] { background_thread(); });
  merge_thread_ = std::thread([this] { merge_thread(); });
}

Status Engine::close() {
  if (closed_.load()) return {};
  if (handles_.load() != 0) {
    return fail(ErrorKind::bad_input, std::to_string(handles_.load()) +
                                          " snapshots, cursors or transactions are still open");
  }
  LODE_TRY(sync());
  closed_.store(true);
  return {};
}

}  // namespace lode
