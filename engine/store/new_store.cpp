#include "engine/store/new_store.h"

#include <random>

#include "engine/base/mutation.h"
#include "engine/wal/log_writer.h"

namespace lode {

std::uint64_t random_store_id() {
  std::random_device device;
  std::uint64_t id = 0;
  while (id == 0) id = (std::uint64_t{device()} << 32) | device();
  return id;
}

Status make_store(Disk& disk, Root root, std::optional<LogMethod> log_method,
                  std::uint64_t log_segment_bytes, const FillData& fill) {
  if (log_method) {
    root.log_method = *log_method;
  } else {
    LODE_ASSIGN(root.log_method, probe_log_method(disk));
  }
  {
    OpenMode mode;
    mode.create = true;
    LODE_ASSIGN(const auto file, disk.open(unfinished_data_name, mode));
    const AlignedBuffer zeros(root_slots * page_bytes);
    LODE_TRY(file->write_at(zeros.bytes(), 0));
    if (fill) LODE_TRY(fill(*file, root));
    LODE_TRY(write_root(*file, 0, root));
    if (!LODE_MUTATED("creation-without-sync")) LODE_TRY(file->sync());
  }
  LogWriter log(disk, root.store_id, root.log_method,
                log_segment_bytes / direct_alignment * direct_alignment);
  LODE_TRY(log.start(Epoch(1), Lsn(0), 0));
  LODE_TRY(disk.sync_directory());
  LODE_TRY(disk.rename(unfinished_data_name, data_name));
  if (LODE_MUTATED("creation-without-directory-sync")) return {};
  return disk.sync_directory();
}

}  // namespace lode
