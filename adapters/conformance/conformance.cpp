#include "adapters/conformance/conformance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>

#include "adapters/conformance/fixture.h"

namespace assay {
namespace {

using conformance::Bench;
using conformance::Check;
using conformance::Fixture;
using conformance::Outcome;

std::vector<Check> all_checks() {
  std::vector<Check> all;
  for (const auto list :
       {conformance::description_checks(), conformance::contents_checks(),
        conformance::order_checks(), conformance::batch_checks(), conformance::lifetime_checks(),
        conformance::thread_checks(), conformance::history_checks()}) {
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

Status check_options(const Driver& driver, const ConformanceOptions& options,
                     const std::vector<Check>& checks) {
  std::vector<std::string> names;
  for (const Check& check : checks) names.emplace_back(check.name);
  for (const std::string& wanted : options.only) {
    if (std::ranges::find(names, wanted) != names.end()) continue;
    const std::string near = nearest_name(wanted, names);
    return fail(Error(ErrorKind::bad_input, fmt::format("there is no check \"{}\"", wanted))
                    .hint(near.empty() ? fmt::format("checks: {}", fmt::join(names, ", "))
                                       : fmt::format("did you mean \"{}\"?", near)));
  }
  const Capabilities capabilities = driver.capabilities();
  if (std::ranges::find(capabilities.durability, options.durability) ==
      capabilities.durability.end()) {
    std::vector<std::string_view> claimed;
    for (const DurabilityClass one : capabilities.durability) claimed.push_back(to_string(one));
    return fail(
        Error(ErrorKind::unsupported, fmt::format("store {} does not claim durability class {}",
                                                  driver.name(), to_string(options.durability)))
            .hint(fmt::format("it claims: {}", fmt::join(claimed, ", "))));
  }
  const Result<Settings> settings = resolve_settings(driver, options.durability, options.settings);
  if (!settings) return std::unexpected(settings.error());
  std::error_code code;
  if (!std::filesystem::is_directory(options.directory, code)) {
    return fail(Error(ErrorKind::bad_input, "not a directory").at(options.directory));
  }
  return {};
}

/// Whether the store takes keys of this kind. Any other error is left for the checks to show.
bool takes(const Bench& bench, KeyKind kind) {
  Fixture fixture(bench, kind);
  const Status status = fixture.open();
  return status || status.error().kind() != ErrorKind::unsupported;
}

Outcome run_check(const Bench& bench, const Check& check) {
  if (check.needs_data && !bench.capabilities.retains_data) {
    return {CheckResult::not_applicable, "a reference that keeps no data"};
  }
  if (check.bytes_keys && check.needs_data && !bench.bytes_keys) {
    return {CheckResult::not_supported, "refuses keys of kind bytes"};
  }
  const Result<Outcome> outcome = check.run(bench);
  if (outcome) return *outcome;
  const bool wrong = outcome.error().kind() == ErrorKind::wrong_contents;
  return {wrong ? CheckResult::wrong_contents : CheckResult::failed, outcome.error().message()};
}

}  // namespace

std::string_view to_string(CheckResult result) {
  switch (result) {
    case CheckResult::passed:
      return "passed";
    case CheckResult::not_supported:
      return "not supported";
    case CheckResult::not_applicable:
      return "not applicable";
    case CheckResult::failed:
      return "failed";
    case CheckResult::wrong_contents:
      return "wrong contents";
  }
  ASSAY_CHECK(false, "a check result outside the enumeration");
}

std::uint64_t ConformanceReport::count(CheckResult result) const {
  return static_cast<std::uint64_t>(std::ranges::count(outcomes, result, &CheckOutcome::result));
}

bool ConformanceReport::ok() const {
  return count(CheckResult::failed) == 0 && count(CheckResult::wrong_contents) == 0;
}

std::vector<CheckDescription> conformance_checks() {
  std::vector<CheckDescription> all;
  for (const Check& check : all_checks()) all.push_back({check.name, check.promise});
  return all;
}

Result<ConformanceReport> check_conformance(const Driver& driver,
                                            const ConformanceOptions& options) {
  const std::vector<Check> checks = all_checks();
  ASSAY_TRY(check_options(driver, options, checks));
  Bench bench{.driver = driver, .options = options, .capabilities = driver.capabilities()};
  if (options.on_check) options.on_check("open");
  bench.bytes_keys = takes(bench, KeyKind::bytes);
  bench.u64_keys = takes(bench, KeyKind::u64);
  ConformanceReport report{.store = driver.name(),
                           .version = driver.version(),
                           .durability = options.durability,
                           .seed = options.seed,
                           .outcomes = {}};
  for (const Check& check : checks) {
    if (!options.only.empty() &&
        std::ranges::find(options.only, check.name) == options.only.end()) {
      continue;
    }
    if (options.on_check) options.on_check(check.name);
    const auto start = std::chrono::steady_clock::now();
    Outcome outcome = run_check(bench, check);
    const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - start;
    report.outcomes.push_back(
        {check.name, outcome.result, std::move(outcome.detail), wall.count()});
  }
  return report;
}

}  // namespace assay
