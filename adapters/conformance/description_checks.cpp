// What a store says about itself, and that it takes its settings seriously.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "adapters/conformance/fixture.h"

namespace assay::conformance {
namespace {

constexpr std::array kClasses{DurabilityClass::volatile_, DurabilityClass::process,
                              DurabilityClass::power_prefix, DurabilityClass::power_last,
                              DurabilityClass::power};

Outcome failed(std::string detail) {
  return {CheckResult::failed, std::move(detail)};
}

Result<Outcome> description(const Bench& bench) {
  const Capabilities& declared = bench.capabilities;
  if (bench.driver.name().empty()) return failed("the name is empty");
  if (bench.driver.version().empty()) return failed("the version is empty");
  if (declared.durability.empty()) return failed("no durability class is claimed");
  if (declared.retains_data && declared.max_key_bytes < 8) {
    return failed(
        fmt::format("max_key_bytes is {}, but a u64 key takes 8", declared.max_key_bytes));
  }
  if (declared.retains_data && declared.max_value_bytes == 0) return failed("max_value_bytes is 0");
  if (declared.min_key_bytes > 8) {
    return failed(fmt::format("min_key_bytes is {}, but a u64 key has 8", declared.min_key_bytes));
  }
  if (!bench.bytes_keys && !bench.u64_keys) return failed("refuses both kinds of keys");
  return Outcome{CheckResult::passed, fmt::format("{} {}, keys of {} to {} bytes",
                                                  bench.driver.name(), bench.driver.version(),
                                                  declared.min_key_bytes, declared.max_key_bytes)};
}

Result<Outcome> settings_listed(const Bench& bench) {
  std::size_t count = 0;
  for (const DurabilityClass durability : bench.capabilities.durability) {
    std::set<std::string> names;
    for (const Setting& setting : bench.driver.settings(durability)) {
      const std::string what =
          fmt::format("setting \"{}\" for {}", setting.name, to_string(durability));
      if (setting.name.empty()) return failed(what + ": the name is empty");
      if (!names.insert(setting.name).second) return failed(what + " is listed twice");
      if (setting.reason.empty()) return failed(what + " gives no reason");
      if (setting.source.empty()) return failed(what + " names no source");
      if (!setting.choices.empty() &&
          std::ranges::find(setting.choices, setting.value) == setting.choices.end()) {
        return failed(
            fmt::format("{}: its value \"{}\" is not among its choices", what, setting.value));
      }
    }
    count = std::max(count, names.size());
  }
  return Outcome{CheckResult::passed, fmt::format("settings: {}", count)};
}

Result<Outcome> effective_settings(const Bench& bench) {
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  const Result<Settings> settings = fixture.store().effective_settings();
  if (!settings) return failed_in(settings.error(), "effective settings");
  if (settings->empty() && !bench.driver.settings(bench.options.durability).empty()) {
    return failed("no setting is read back from the open store");
  }
  for (const auto& [name, value] : *settings) {
    if (name.empty()) return failed(fmt::format("the value \"{}\" has no name", value));
  }
  ASSAY_TRY(fixture.close());
  return Outcome{CheckResult::passed, fmt::format("{} read back", settings->size())};
}

Result<Outcome> unknown_setting(const Bench& bench) {
  Fixture fixture(bench);
  OpenOptions options = fixture.open_options();
  options.settings["no_such_setting_anywhere"] = "1";
  Result<std::unique_ptr<Store>> store = bench.driver.open(options);
  if (store) {
    ASSAY_TRY((*store)->close());
    return failed("a setting that does not exist is accepted");
  }
  if (store.error().kind() != ErrorKind::bad_input) {
    return failed("refused, but not as bad input: " + store.error().message());
  }
  return Outcome{};
}

Result<Outcome> undeclared_durability(const Bench& bench) {
  const auto& claimed = bench.capabilities.durability;
  std::size_t refused = 0;
  for (const DurabilityClass durability : kClasses) {
    if (std::ranges::find(claimed, durability) != claimed.end()) continue;
    Fixture fixture(bench);
    OpenOptions options = fixture.open_options();
    options.durability = durability;
    options.settings.clear();
    Result<std::unique_ptr<Store>> store = bench.driver.open(options);
    if (store) {
      ASSAY_TRY((*store)->close());
      return failed(fmt::format("opens with {}, which it does not claim", to_string(durability)));
    }
    ++refused;
  }
  if (refused == 0) return Outcome{CheckResult::passed, "claims every class"};
  return Outcome{CheckResult::passed, fmt::format("{} classes refused", refused)};
}

/// The calls of one session. What they return is checked elsewhere: a reference may keep nothing.
Status every_call(const Bench& bench, Fixture& fixture) {
  const std::string key = bench.key(1);
  const std::string value = "value";
  Session& session = fixture.session();
  ASSAY_TRY(session.put(key, value));
  std::string_view read;
  const Result<bool> found = session.get(key, read);
  // A reference arm may have no way to read.
  if (!found &&
      (bench.capabilities.retains_data || found.error().kind() != ErrorKind::unsupported)) {
    return failed_in(found.error(), "get");
  }
  ASSAY_TRY(session.erase(key));
  const std::array<Mutation, 1> batch{{{Mutation::Kind::put, key, value}}};
  if (bench.capabilities.atomic_batches) ASSAY_TRY(session.apply(batch));
  if (bench.capabilities.rollback) ASSAY_TRY(session.rollback(batch));
  if (bench.capabilities.ordered) {
    const Result<Entries> entries = collect(session, ScanRange{});
    if (!entries) return std::unexpected(entries.error());
  }
  ASSAY_TRY(fixture.store().sync());
  ASSAY_TRY(fixture.store().settle());
  const Result<Footprint> footprint = fixture.store().footprint();
  if (!footprint) return failed_in(footprint.error(), "footprint");
  static_cast<void>(fixture.store().counters());
  return {};
}

Result<Outcome> open_and_close(const Bench& bench) {
  for (int round = 0; round < 2; ++round) {
    Fixture fixture(bench);
    ASSAY_TRY(fixture.open());
    ASSAY_TRY(every_call(bench, fixture));
    ASSAY_TRY(fixture.close());
  }
  return Outcome{};
}

constexpr std::array kChecks{
    Check{"description", "name, version, limits and durability classes are declared", description,
          false, false},
    Check{"settings_listed", "each setting has a value among its choices, a reason and a source",
          settings_listed, false, false},
    Check{"open_and_close", "a new store opens, takes every declared call, and closes",
          open_and_close, false, false},
    Check{"effective_settings", "the settings in force are read back", effective_settings, false,
          false},
    Check{"unknown_setting", "a setting that does not exist is refused", unknown_setting, false,
          false},
    Check{"undeclared_durability", "a durability class that is not claimed is refused",
          undeclared_durability, false, false},
};

}  // namespace

std::span<const Check> description_checks() {
  return kChecks;
}

}  // namespace assay::conformance
