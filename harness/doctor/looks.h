// The items of the doctor, one function each, and what they look at. Internal to this folder.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "harness/doctor/checks.h"
#include "harness/provenance/system_files.h"

namespace assay::doctor {

/// What was seen once (and of what moves, a second time after `watched`), for all items.
struct Look {
  provenance::SystemFiles files{"/"};
  nlohmann::json cpu;
  nlohmann::json memory;
  nlohmann::json storage;
  nlohmann::json clock;
  std::chrono::milliseconds watched{0};
  /// Over the watched time; nothing where /proc/stat or the device's stat cannot be read.
  std::optional<double> foreign_cpus;
  std::optional<std::uint64_t> written_bytes;
  /// The process that wrote most meanwhile, "name (pid 12): 3.1 MiB"; empty when none was seen.
  std::string busiest_writer;
};
[[nodiscard]] Look take_look(const Options& options);

[[nodiscard]] Finding look_at_governor(const Look& look);
[[nodiscard]] Finding look_at_turbo(const Look& look);
[[nodiscard]] Finding look_at_smt(const Look& look);
[[nodiscard]] Finding look_at_throttling(const Look& look);
[[nodiscard]] Finding look_at_clock_source(const Look& look);
[[nodiscard]] Finding look_at_aslr(const Look& look);
[[nodiscard]] Finding look_at_load(const Look& look);
[[nodiscard]] Finding look_at_foreign_cpu(const Look& look);
[[nodiscard]] Finding look_at_cpu_limit(const Look& look);
[[nodiscard]] Finding look_at_memory_limit(const Look& look);
[[nodiscard]] Finding look_at_free_memory(const Look& look);
[[nodiscard]] Finding look_at_swap(const Look& look);
[[nodiscard]] Finding look_at_thp(const Look& look);
[[nodiscard]] Finding look_at_huge_pages(const Look& look);
[[nodiscard]] Finding look_at_numa_balancing(const Look& look);
[[nodiscard]] Finding look_at_dirty_limits(const Look& look);
[[nodiscard]] Finding look_at_free_disk(const Look& look);
[[nodiscard]] Finding look_at_scheduler(const Look& look);
[[nodiscard]] Finding look_at_write_cache(const Look& look);
[[nodiscard]] Finding look_at_background_writers(const Look& look);

/// The text of a provenance item, or the reason why it is unknown.
struct Item {
  std::string text;
  bool known = false;
};
[[nodiscard]] Item item(const nlohmann::json& value);

/// `finding` with `found` and the state that follows: fine when the item is one of `wanted`, whose
/// first is the one that is shown as wanted.
[[nodiscard]] Finding judged(Finding finding, const nlohmann::json& found,
                             const std::vector<std::string>& wanted);

}  // namespace assay::doctor
