// Backup of a snapshot: a store of its own, built from the snapshot's entries. See make_store for
// when it becomes one.
#include <algorithm>

#include "engine/base/crc32c.h"
#include "engine/base/mutation.h"
#include "engine/file/real_disk.h"
#include "engine/store/engine.h"
#include "engine/store/new_store.h"

namespace lode {
namespace {

bool ours(const std::string& name) {
  return segment_slot(name) || name == unfinished_data_name || name == "probe";
}

// So that the backup can be tried again. What cannot be removed is in the way of the next one,
// which says so; nothing of it is a store.
void remove_unfinished_backup(Disk& disk) {
  const auto names = disk.list();
  if (!names) return;
  if (std::find(names->begin(), names->end(), data_name) != names->end()) return;
  for (const std::string& name : *names) {
    if (ours(name)) (void)disk.remove(name);
  }
}

}  // namespace

// One run of trees from all that the snapshot shows, without tombstones: nothing is below it.
Status Engine::copy_into(const SnapshotCore& core, File& data, Root& root, BackupReport& report) {
  ExtentAllocator space{root_slots};
  PagePool pool(data, 0);
  const TreeSpace target{data, space, pool};
  RunInfo info;
  const Runs& runs = core.state.shape->runs;
  if (!runs.empty()) info.level = runs.back()->level;
  Run::Trees trees;  // each owns its pages: they must not go to the next one
  std::unique_ptr<TreeBuilder> builder;
  const auto finish_tree = [&]() -> Status {
    LODE_ASSIGN(auto tree, builder->finish());
    report.entries += tree->info().entries;
    report.payload_bytes += tree->info().payload_bytes;
    report.written_bytes += tree->info().pages() * page_bytes;
    info.trees.push_back(tree->info());
    trees.push_back(std::move(tree));
    builder.reset();
    return {};
  };
  const auto cursor = open_cursor(core.state);
  for (cursor->seek_first(); cursor->valid(); cursor->next()) {
    if (!builder)
      builder = std::make_unique<TreeBuilder>(target, root.next_tree++, options_.key_kind);
    LODE_ASSIGN(const std::string_view value, cursor->value());
    LODE_TRY(builder->add(cursor->key(), EntryKind::value, value));
    if (builder->bytes() >= options_.tree_bytes) LODE_TRY(finish_tree());
  }
  LODE_TRY(cursor->status());
  if (builder) LODE_TRY(finish_tree());
  Manifest content;
  if (!info.trees.empty()) content.runs.push_back(std::move(info));
  for (Marker& marker : markers()) {
    if (marker.sequence <= core.sequence.value) content.markers.push_back(std::move(marker));
  }
  if (content.runs.empty() && content.markers.empty()) return {};
  const std::string manifest = encode_manifest(content);
  ExtentStream stream(data, space);
  LODE_ASSIGN(root.manifest.offset, stream.reserve(manifest.size(), page_bytes));
  LODE_TRY(stream.append(as_bytes(manifest)));
  root.manifest.bytes = manifest.size();
  root.manifest.checksum = crc32c(as_bytes(manifest));
  LODE_ASSIGN(const auto extents, stream.finish());
  return {};
}

Result<BackupReport> Engine::backup(const SnapshotCore& core, Disk& target) {
  LODE_TRY(target.lock(true));
  LODE_ASSIGN(const auto names, target.list());
  for (const std::string& name : names) {
    if (name == "lock") continue;
    return fail(ErrorKind::bad_input,
                "a backup goes into a new or empty directory; " + target.name() + " holds " + name);
  }
  BackupReport report;
  report.sequence = core.sequence.value;
  Root root;
  root.store_id = random_store_id();
  root.generation = 1;
  root.key_kind = static_cast<std::uint8_t>(options_.key_kind);
  root.sequence = core.sequence;
  const Status made = guard_memory([&] {
    return make_store(
        target, root, options_.log_method, options_.log_segment_bytes,
        [&](File& data, Root& filled) { return copy_into(core, data, filled, report); });
  });
  if (made) return report;
  if (!LODE_MUTATED("failed-backup-left-behind")) remove_unfinished_backup(target);
  return std::unexpected(Error(made.error()).in("backup to " + target.name()));
}

Result<BackupReport> Snapshot::backup(const std::string& directory) const {
  LODE_ASSIGN(const auto disk, guard_memory([&] { return open_directory(directory, true); }));
  return backup(*disk);
}

Result<BackupReport> Snapshot::backup(Disk& disk) const {
  return guard_memory([&] { return core_->engine->backup(*core_, disk); });
}

}  // namespace lode
