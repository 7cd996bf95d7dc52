#include "harness/measure/barriers.h"

#include <dlfcn.h>
#include <unistd.h>

#include "harness/measure/barrier_table.h"

// Weak: null in programs that do not link the hooks.
// NOLINTNEXTLINE(readability-redundant-declaration): the header's has no weakness
extern "C" __attribute__((weak)) const assay::BarrierTable* assay_barrier_table();

namespace assay {
namespace {

/// True when shared libraries reach the hooks: the symbol that the dynamic linker finds first is
/// the one of this executable, in the same object as the table's function.
bool reached_by_libraries() {
  Dl_info hooks{};
  Dl_info found{};
  void* const symbol = ::dlsym(RTLD_DEFAULT, "fdatasync");
  return symbol != nullptr &&
         ::dladdr(reinterpret_cast<void*>(&assay_barrier_table), &hooks) != 0 &&
         ::dladdr(symbol, &found) != 0 && hooks.dli_fbase == found.dli_fbase;
}

std::unexpected<Error> unknown(std::string why, std::string hint) {
  return fail(Error(ErrorKind::environment, "barriers are not counted: " + std::move(why))
                  .hint(std::move(hint)));
}

}  // namespace

BarrierCounts operator-(const BarrierCounts& after, const BarrierCounts& before) {
  return {.fsync = after.fsync - before.fsync,
          .fdatasync = after.fdatasync - before.fdatasync,
          .msync = after.msync - before.msync,
          .sync_file_range = after.sync_file_range - before.sync_file_range,
          .syncfs = after.syncfs - before.syncfs,
          .dsync_writes = after.dsync_writes - before.dsync_writes,
          .write_calls = after.write_calls - before.write_calls,
          .write_bytes = after.write_bytes - before.write_bytes};
}

Result<BarrierCounts> barrier_counts() {
  if (&assay_barrier_table == nullptr)
    return unknown("the hooks are not linked into this program", "link assay_barrier_hooks");
  const BarrierTable* const table = assay_barrier_table();
  if (table == nullptr)
    return unknown("the hooks are off in a build with sanitizers", "use a build without them");
  static const bool reached = reached_by_libraries();
  if (!reached)
    return unknown("this program does not export the hooks to shared libraries",
                   "set ENABLE_EXPORTS on the executable");
  const auto read = [](const std::atomic<std::uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  return BarrierCounts{.fsync = read(table->fsync),
                       .fdatasync = read(table->fdatasync),
                       .msync = read(table->msync),
                       .sync_file_range = read(table->sync_file_range),
                       .syncfs = read(table->syncfs),
                       .dsync_writes = read(table->dsync_writes),
                       .write_calls = read(table->write_calls),
                       .write_bytes = read(table->write_bytes)};
}

}  // namespace assay
