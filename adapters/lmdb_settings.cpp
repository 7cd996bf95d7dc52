#include "adapters/lmdb_settings.h"

#include <lmdb.h>

#include <algorithm>

#include "adapters/opening.h"

namespace assay {
namespace {

constexpr std::string_view kName = "lmdb";
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kMapBytesMost = std::uint64_t{1} << 46;

// Nothing of LMDB's lies between "the last commit" and "anything" after a loss of power, so
// power-prefix gets the cheapest setting that keeps at least a prefix.
std::string sync_for(DurabilityClass durability) {
  switch (durability) {
    case DurabilityClass::volatile_:
    case DurabilityClass::process:
      return "nosync";
    case DurabilityClass::power_prefix:
    case DurabilityClass::power_last:
      return "nometasync";
    case DurabilityClass::power:
      break;
  }
  return "full";
}

}  // namespace

std::vector<Setting> lmdb_settings(DurabilityClass durability) {
  const std::string manual = "lmdb.h 0.9.24, mdb_env_open";
  return {
      {"sync",
       sync_for(durability),
       "full syncs data and meta page at every commit; nometasync leaves the meta page to the next "
       "one (the last commit may be lost with the power, never the structure); nosync may lose the "
       "whole store with the power but nothing when only the process dies",
       manual,
       {"full", "nometasync", "nosync"}},
      {"writemap",
       "off",
       "on saves a copy of every page but is slower where the data outgrow memory, and a full disk "
       "then kills the process instead of giving an error",
       manual,
       {"on", "off"}},
      {"mapasync",
       "off",
       "with writemap: asynchronous msync; loses what nosync loses",
       manual,
       {"on", "off"}},
      {"read_ahead",
       "auto",
       "auto: off (MDB_NORDAHEAD) when expected_bytes is more than the memory budget, for it helps "
       "random reads of what does not fit in memory; else on",
       manual,
       {"auto", "on", "off"}},
      {"map_bytes",
       "auto",
       "auto: 16 GiB of address space or eight times expected_bytes (with writemap, whose file is "
       "as "
       "large as the map: 64 MiB or twice); a full map doubles and the transaction is tried again",
       "lmdb.h 0.9.24, mdb_env_set_mapsize",
       {}},
      {"max_readers",
       "512",
       "one a session and more than LMDB's 126, for runs with many threads",
       "lmdb.h 0.9.24, mdb_env_set_maxreaders",
       {}},
      {"meminit",
       "on",
       "LMDB's default: pages are zeroed, so that no stale memory reaches the file",
       manual,
       {"on", "off"}},
      {"append",
       "auto",
       "auto: MDB_APPEND for an atomic batch whose keys ascend and lie behind all others, as a "
       "sorted bulk load has them: no search for the place of a key (a third of the CPU time of "
       "a million puts when measured for this adapter; pages are as full without). Every batch is "
       "looked at, so nothing needs "
       "to be declared; single puts and batches in any other order go without",
       "lmdb.h 0.9.24, mdb_put on MDB_APPEND",
       {"auto", "off"}},
      {"zero_copy_bytes",
       "16384",
       "values from this size on are handed out as a view into the map, every page touched, under "
       "a "
       "snapshot held until the session's next call; smaller ones are copied and the snapshot "
       "released",
       "lmdb.h 0.9.24, mdb_get and Caveats on long-lived transactions",
       {}},
  };
}

// lmdb.h on MDB_NOSYNC, MDB_MAPASYNC (which takes effect with MDB_WRITEMAP only) and
// MDB_NOMETASYNC: the first two may lose the whole store with the power, the third one commit.
DurabilityClass lmdb_durability(const Settings& settings) {
  const std::string& sync = settings.at("sync");
  const bool asynchronous = on_setting(settings, "writemap") && on_setting(settings, "mapasync");
  if (sync == "nosync" || asynchronous) return DurabilityClass::process;
  return sync == "nometasync" ? DurabilityClass::power_last : DurabilityClass::power;
}

Result<LmdbPlan> lmdb_plan(const Settings& settings, const OpenOptions& options) {
  LmdbPlan plan;
  const bool writemap = on_setting(settings, "writemap");
  const std::uint64_t expected = std::min(options.expected_bytes, kMapBytesMost / 8);
  const std::uint64_t automatic = writemap ? std::max(std::uint64_t{64} << 20, expected * 2)
                                           : std::max(std::uint64_t{16} << 30, expected * 8);
  const auto map_bytes =
      count_setting(kName, settings, "map_bytes",
                    {.least = 1U << 16, .most = kMapBytesMost, .automatic = automatic});
  const auto readers =
      count_setting(kName, settings, "max_readers", {.least = 2, .most = 65536, .automatic = 512});
  const auto zero_copy = count_setting(kName, settings, "zero_copy_bytes",
                                       {.least = 1, .most = UINT64_MAX, .automatic = 16384});
  for (const auto* value : {&map_bytes, &readers, &zero_copy}) {
    if (!*value) return std::unexpected(value->error());
  }
  plan.map_bytes = (*map_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  plan.readers = *readers;
  plan.zero_copy_bytes = *zero_copy;
  plan.append = settings.at("append") == "auto";
  // Read transactions belong to sessions, not to threads.
  plan.flags = MDB_NOTLS;
  if (writemap) plan.flags |= MDB_WRITEMAP;
  if (on_setting(settings, "mapasync")) {
    if (!writemap) {
      return fail(Error(ErrorKind::bad_input, "lmdb: mapasync has no effect without writemap")
                      .hint("set writemap to on as well"));
    }
    plan.flags |= MDB_MAPASYNC;
  }
  if (settings.at("sync") == "nosync") plan.flags |= MDB_NOSYNC;
  if (settings.at("sync") == "nometasync") plan.flags |= MDB_NOMETASYNC;
  if (!on_setting(settings, "meminit")) plan.flags |= MDB_NOMEMINIT;
  const std::string& read_ahead = settings.at("read_ahead");
  if (read_ahead == "off" ||
      (read_ahead == "auto" && options.expected_bytes > options.memory_bytes)) {
    plan.flags |= MDB_NORDAHEAD;
  }
  return plan;
}

}  // namespace assay
