#include "adapters/postgresql/settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "adapters/opening.h"

namespace assay::postgresql {
namespace {

constexpr std::uint64_t kOwnConnections =
    8;  // the store's own, table sessions, a superuser's three
constexpr std::uint64_t kMostKib = std::uint64_t{1} << 30;

}  // namespace

std::vector<Setting> settings_for(DurabilityClass durability) {
  const bool power = survives_power_loss(durability);
  const std::vector<std::string> on_off{"on", "off"};
  const std::string wal = "postgresql.org/docs/15/runtime-config-wal.html";
  const std::string memory = "postgresql.org/docs/15/runtime-config-resource.html";
  return {
      {"synchronous_commit", durability == DurabilityClass::volatile_ ? "off" : "on",
       "on: the log is written, and with fsync synced, before a commit is acknowledged; off "
       "acknowledges in the server's memory, so the death of the server takes the last commits "
       "too and no class but volatile is left",
       "postgresql.org/docs/15/wal-async-commit.html", on_off},
      {"fsync", power ? "on" : "off",
       "off hands the log to the operating system at a commit and syncs nothing: a process may "
       "die, the power may corrupt the cluster",
       wal, on_off},
      {"full_page_writes", "on",
       "on, the default: a page that the power tore is put back from the log", wal, on_off},
      {"wal_sync_method",
       "fdatasync",
       "the default on Linux",
       wal,
       {"fdatasync", "fsync", "open_datasync", "open_sync"}},
      {"shared_buffers_kib",
       "auto",
       "auto: a quarter of the memory budget, as the manual advises; the operating system's cache "
       "has the rest",
       memory,
       {}},
      {"work_mem_kib",
       "auto",
       "auto: a sixteenth of the memory budget for each sort or hash table, at least 1 MiB",
       memory,
       {}},
      {"maintenance_work_mem_kib",
       "auto",
       "auto: an eighth of the memory budget for the making of an index, at least 1 MiB",
       memory,
       {}},
      {"max_wal_mib",
       "auto",
       "auto: a quarter of expected_bytes, 1 GiB (the default) to 8 GiB: log between two "
       "checkpoints, more of it for a large load",
       "postgresql.org/docs/15/populate.html, Increase max_wal_size",
       {}},
      {"autovacuum", "on", "on, the default: dead rows are made room of in the background",
       "postgresql.org/docs/15/routine-vacuuming.html", on_off},
      {"max_connections",
       "300",
       "a connection is a session; the manual's default of 100 is too few for 256 of them",
       "postgresql.org/docs/15/runtime-config-connection.html",
       {}},
      {"value_storage",
       "external",
       "external: values are kept as they are, because nobody else compresses; extended, the "
       "default, compresses those above 2 kB",
       "postgresql.org/docs/15/storage-toast.html",
       {"external", "extended"}},
      {"programs",
       "auto",
       "the folder of initdb and postgres; auto: the newest below /usr/lib/postgresql",
       "postgresql.org/docs/15/server-start.html",
       {}},
  };
}

// The manual: with fsync off a crash of the machine may leave a cluster that cannot be used; with
// full_page_writes off too. A server that dies loses what synchronous_commit = off acknowledged
// within three times wal_writer_delay, and no more.
DurabilityClass durability_of(const Settings& settings) {
  if (settings.at("synchronous_commit") == "off") return DurabilityClass::volatile_;
  const bool kept = settings.at("fsync") == "on" && settings.at("full_page_writes") == "on";
  return kept ? DurabilityClass::power : DurabilityClass::process;
}

Result<Plan> plan_of(const Settings& settings, const OpenOptions& open) {
  const auto count = [&settings](const char* name, const CountRange& range) {
    return count_setting(kName, settings, name, range);
  };
  const std::uint64_t budget = open.memory_bytes / 1024;
  const auto buffers = count(
      "shared_buffers_kib",
      {.least = 128, .most = kMostKib, .automatic = std::max<std::uint64_t>(budget / 4, 1024)});
  const auto work = count(
      "work_mem_kib",
      {.least = 64, .most = kMostKib, .automatic = std::max<std::uint64_t>(budget / 16, 1024)});
  const auto upkeep = count(
      "maintenance_work_mem_kib",
      {.least = 1024, .most = kMostKib, .automatic = std::max<std::uint64_t>(budget / 8, 1024)});
  const auto log =
      count("max_wal_mib",
            {.least = 32,
             .most = 1U << 20,
             .automatic = std::clamp<std::uint64_t>(open.expected_bytes >> 22, 1024, 8192)});
  const auto connections =
      count("max_connections", {.least = kOwnConnections + 1, .most = 10'000, .automatic = 300});
  for (const auto* value : {&buffers, &work, &upkeep, &log, &connections}) {
    if (!*value) return std::unexpected(value->error());
  }
  Plan plan;
  plan.programs = settings.at("programs");
  plan.value_storage = settings.at("value_storage");
  plan.fsync = settings.at("fsync") == "on";
  plan.connections = *connections - kOwnConnections;
  for (const char* name :
       {"synchronous_commit", "fsync", "full_page_writes", "wal_sync_method", "autovacuum"}) {
    plan.options.push_back(fmt::format("{}={}", name, settings.at(name)));
  }
  plan.options.push_back(fmt::format("shared_buffers={}kB", *buffers));
  plan.options.push_back(fmt::format("effective_cache_size={}kB", std::max(budget, *buffers)));
  plan.options.push_back(fmt::format("work_mem={}kB", *work));
  plan.options.push_back(fmt::format("maintenance_work_mem={}kB", *upkeep));
  plan.options.push_back(fmt::format("max_wal_size={}MB", *log));
  plan.options.push_back(fmt::format("max_connections={}", *connections));
  // No network and no other place for a socket; nothing that a server killed at the wrong moment
  // would leave outside of its directory.
  for (const char* fixed : {"listen_addresses=", "unix_socket_directories=.", "port=5432",
                            "dynamic_shared_memory_type=mmap", "min_dynamic_shared_memory=32MB",
                            "track_wal_io_timing=off", "log_checkpoints=off"}) {
    plan.options.emplace_back(fixed);
  }
  return plan;
}

}  // namespace assay::postgresql
