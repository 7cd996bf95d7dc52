// Does a store behave as adapters/store.h says and as its capabilities declare?
//
// check_conformance() runs about thirty checks, each on a store of its own in a fresh directory:
// contents, order, batches, rollback, snapshots, extreme keys and values, reopening, threads, and a
// random history against a model. What a store declares not to do must be refused with
// ErrorKind::unsupported and is reported as `not_supported`, which is no failure.
//
// Invariants: a check that fails does not keep the others from running. Nothing is left behind in
// the directory. Crashes and hangs are the caller's affair: check_isolated() runs the suite in a
// child process and reports both (isolated.h).
// Threads: one call at a time a directory; the checks start and join threads of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/store.h"

namespace assay {

enum class CheckResult : std::uint8_t {
  passed,
  not_supported,   ///< the store declares that it cannot, and refuses
  not_applicable,  ///< makes no sense for this store (a reference arm that keeps no data)
  failed,          ///< the store returned an error, or did what it declares not to
  wrong_contents,  ///< the store returned data that differ from what was written
};
/// "passed", "not supported", "not applicable", "failed" or "wrong contents".
[[nodiscard]] std::string_view to_string(CheckResult result);

struct CheckOutcome {
  std::string check;  ///< name, as in conformance_checks()
  CheckResult result = CheckResult::passed;
  std::string detail;  ///< what was seen; empty if there is nothing to say
  double wall_ms = 0.0;
};

struct ConformanceOptions {
  std::string directory;  ///< exists; every check makes and removes a subdirectory of its own
  DurabilityClass durability = DurabilityClass::power;
  Settings settings;
  std::uint64_t memory_bytes = std::uint64_t{64} << 20;
  std::uint64_t seed = 1;  ///< of the random history
  std::uint64_t history_operations = 400;
  std::vector<std::string> only;                         ///< names of checks to run; empty = all
  std::function<void(std::string_view check)> on_check;  ///< called before each check
};

struct ConformanceReport {
  std::string store;
  std::string version;
  DurabilityClass durability = DurabilityClass::power;
  std::uint64_t seed = 0;
  std::vector<CheckOutcome> outcomes;

  [[nodiscard]] std::uint64_t count(CheckResult result) const;
  /// No check failed and none found wrong contents.
  [[nodiscard]] bool ok() const;
};

/// Name and one-line promise of every check, in the order in which they run.
struct CheckDescription {
  std::string name;
  std::string promise;
};
[[nodiscard]] std::vector<CheckDescription> conformance_checks();

/// Runs the suite. Errors: an unknown name in `only`, a setting or a durability class that the
/// store does not have, an unusable directory. Whatever the store does wrong is in the report.
[[nodiscard]] Result<ConformanceReport> check_conformance(const Driver& driver,
                                                          const ConformanceOptions& options);

[[nodiscard]] nlohmann::json to_json(const ConformanceReport& report);
[[nodiscard]] Result<ConformanceReport> conformance_report_from_json(const nlohmann::json& json);

}  // namespace assay
