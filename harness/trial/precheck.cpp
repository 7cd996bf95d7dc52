#include "harness/trial/precheck.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "harness/trial/cache_policy.h"
#include "harness/trial/cpu_pins.h"
#include "workloads/stream.h"

namespace assay {
namespace {

/// Stores need more than their data: logs, copies while compacting, pages half full. Three times
/// the data and a fixed part covers the stores that are compiled in.
constexpr double kSpaceFactor = 3.0;
constexpr std::uint64_t kSpaceBase = std::uint64_t{64} << 20;

double mean_value_bytes(const ValueSpec& values) {
  switch (values.sizes) {
    case ValueSizes::fixed:
      return values.bytes;
    case ValueSizes::uniform:
      return (static_cast<double>(values.min_bytes) + static_cast<double>(values.max_bytes)) / 2.0;
    case ValueSizes::lognormal:  // mean of a lognormal with that median
      return std::min(static_cast<double>(values.max_bytes),
                      values.bytes * std::exp(values.sigma * values.sigma / 2.0));
  }
  return values.bytes;
}

Status check_operations(const Driver& driver, const Capabilities& can, const Workload& workload) {
  const bool layout = can.ordered && can.rollback && can.atomic_batches;
  if (uses_tables(workload) && (!can.retains_data || !(can.tables || layout)))
    return fail(Error(ErrorKind::unsupported,
                      fmt::format("{} cannot hold the tables: that needs scans in order, batches "
                                  "and rollback, or tables of its own",
                                  driver.name()))
                    .hint("leave the store out"));
  for (const Phase& phase : workload.phases) {
    if (phase.kind == PhaseKind::rebuild && !can.rebuilds_index) {
      return fail(Error(ErrorKind::unsupported,
                        fmt::format("{} cannot run phase \"{}\": it has no index that can be "
                                    "removed and made again from its entries",
                                    driver.name(), phase.name))
                      .hint("leave the store or the phase out"));
    }
    for (const Role& role : phase.roles) {
      const auto uses = [&](OpKind kind) { return role.mix[static_cast<std::size_t>(kind)] > 0.0; };
      const auto refuse = [&](OpKind kind, std::string_view lacking) {
        return fail(
            Error(ErrorKind::unsupported,
                  fmt::format("{} cannot run role \"{}\" of phase \"{}\": {} needs {}",
                              driver.name(), role.name, phase.name, to_string(kind), lacking))
                .hint("leave the store or the operation out"));
      };
      for (const OpKind kind : {OpKind::scan, OpKind::reverse_scan})
        if (uses(kind) && !can.ordered) return refuse(kind, "an ordered store");
      if (uses(OpKind::rollback) && !can.rollback)
        return refuse(OpKind::rollback, "a store that can roll back");
      if (uses(OpKind::batch) && !can.atomic_batches && !can.reference)
        return refuse(OpKind::batch, "atomic batches");
    }
  }
  return {};
}

/// "16 MiB", "324 TiB": MiB up to 10 of the next unit, so that a figure keeps few digits.
std::string size_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"MiB", "GiB", "TiB", "PiB"};
  std::uint64_t size = bytes >> 20;
  std::size_t unit = 0;
  while (size >= 10U << 10 && unit + 1 < std::size(kUnits)) {
    size >>= 10;
    ++unit;
  }
  return fmt::format("{} {}", size, kUnits[unit]);
}

Status check_space(const Workload& workload, const std::string& directory) {
  struct statvfs info{};
  if (::statvfs(directory.c_str(), &info) != 0)
    return fail(system_error("cannot ask for the free space", errno).at(directory));
  const std::uint64_t free_bytes = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
  const std::uint64_t data_bytes = expected_data_bytes(workload);
  const auto needed =
      static_cast<std::uint64_t>(static_cast<double>(data_bytes) * kSpaceFactor) + kSpaceBase;
  if (needed <= free_bytes) return {};
  return fail(
      Error(ErrorKind::environment,
            fmt::format("workload \"{}\" stores {} of keys and values and needs about {} of "
                        "disk, but {} are free",
                        workload.name, size_text(data_bytes), size_text(needed),
                        size_text(free_bytes)))
          .at(directory)
          .hint("free some space, give another benchmark root, or lower keys.count"));
}

Status check_sizes(const Driver& driver, const Capabilities& can, const Workload& workload) {
  if (can.max_key_bytes != 0 && workload.keys.bytes > can.max_key_bytes)
    return fail(ErrorKind::unsupported,
                fmt::format("{} takes keys of at most {} bytes, the workload has {}", driver.name(),
                            can.max_key_bytes, workload.keys.bytes));
  const std::uint64_t largest = workload.values.sizes == ValueSizes::fixed
                                    ? workload.values.bytes
                                    : workload.values.max_bytes;
  if (can.max_value_bytes != 0 && largest > can.max_value_bytes)
    return fail(ErrorKind::unsupported,
                fmt::format("{} takes values of at most {} bytes, the workload has up to {}",
                            driver.name(), can.max_value_bytes, largest));
  return {};
}

}  // namespace

std::uint64_t expected_data_bytes(const Workload& workload) {
  double entries = static_cast<double>(workload.keys.count);
  for (const Phase& phase : workload.phases)
    for (const Role& role : phase.roles)
      entries += role.mix[static_cast<std::size_t>(OpKind::insert)] * role.threads *
                 static_cast<double>(phase.operations);
  return static_cast<std::uint64_t>(entries *
                                    (workload.keys.bytes + mean_value_bytes(workload.values)));
}

Status check_kills(const Workload& workload, DurabilityClass durability, const Capabilities& can) {
  if (durability != DurabilityClass::volatile_ || !can.retains_data) return {};
  for (const Phase& phase : workload.phases) {
    if (phase.kind != PhaseKind::restart || phase.how != RestartHow::kill) continue;
    return fail(
        Error(ErrorKind::bad_input,
              fmt::format("phase \"{}\" kills the process, after which durability \"volatile\" "
                          "promises nothing: the contents could not be validated",
                          phase.name))
            .hint("use durability \"process\" or a stronger one, or how = \"close\""));
  }
  return {};
}

Status check_capabilities(const Driver& driver, const Workload& workload) {
  const Capabilities can = driver.capabilities();
  ASSAY_TRY(check_operations(driver, can, workload));
  ASSAY_TRY(check_sizes(driver, can, workload));
  const std::uint64_t data_bytes =
      workload.keys.count * (workload.keys.bytes + std::uint64_t{workload.values.bytes});
  if (can.larger_than_memory || !can.retains_data || data_bytes <= workload.memory_bytes) return {};
  return fail(
      ErrorKind::unsupported,
      fmt::format("{} keeps everything in memory; the workload's {} bytes exceed the budget "
                  "of {}",
                  driver.name(), data_bytes, workload.memory_bytes));
}

Status check_class(const Driver& driver, DurabilityClass durability) {
  const Capabilities can = driver.capabilities();
  if (std::ranges::find(can.durability, durability) == can.durability.end()) {
    std::string valid;
    for (const DurabilityClass known : can.durability)
      valid += (valid.empty() ? "" : ", ") + std::string(to_string(known));
    return fail(Error(ErrorKind::unsupported, fmt::format("{} does not claim durability \"{}\"",
                                                          driver.name(), to_string(durability)))
                    .hint("it claims: " + valid));
  }
  return {};
}

Status check_before_trial(const Driver& driver, DurabilityClass durability,
                          const Settings& settings, const Workload& workload,
                          const std::string& directory) {
  ASSAY_TRY(check_class(driver, durability));
  const Result<Settings> resolved = resolve_settings(driver, durability, settings);
  if (!resolved) return fail(resolved.error());
  ASSAY_TRY(check_kills(workload, durability, driver.capabilities()));
  ASSAY_TRY(check_capabilities(driver, workload));
  ASSAY_TRY(check_cpus(workload));
  ASSAY_TRY(check_cold(workload));
  return check_space(workload, directory);
}

}  // namespace assay
