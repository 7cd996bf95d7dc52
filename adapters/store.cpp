#include "adapters/store.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay {
namespace {

constexpr std::array<std::pair<DurabilityClass, std::string_view>, 5> kDurabilityNames{{
    {DurabilityClass::volatile_, "volatile"},
    {DurabilityClass::process, "process"},
    {DurabilityClass::power_prefix, "power-prefix"},
    {DurabilityClass::power_last, "power-last"},
    {DurabilityClass::power, "power"},
}};

}  // namespace

std::string_view to_string(DurabilityClass durability) {
  for (const auto& [value, name] : kDurabilityNames) {
    if (value == durability) return name;
  }
  ASSAY_CHECK(false, "a durability class outside the enumeration");
}

Result<DurabilityClass> parse_durability(std::string_view text) {
  std::vector<std::string_view> names;
  for (const auto& [value, name] : kDurabilityNames) {
    if (name == text) return value;
    names.push_back(name);
  }
  return fail(Error(ErrorKind::bad_input, fmt::format("unknown durability class \"{}\"", text))
                  .hint(fmt::format("valid: {}", fmt::join(names, ", "))));
}

Result<Footprint> directory_footprint(const std::string& directory) {
  Footprint footprint;
  std::error_code code;
  std::filesystem::recursive_directory_iterator entries(directory, code);
  for (; !code && entries != std::filesystem::end(entries); entries.increment(code)) {
    struct stat info{};
    if (::lstat(entries->path().c_str(), &info) != 0) {
      if (errno == ENOENT) continue;  // a store may remove files while we walk
      return fail(system_error("cannot stat a file of the store", errno).at(entries->path()));
    }
    if (!S_ISREG(info.st_mode)) continue;
    ++footprint.files;
    footprint.apparent_bytes += static_cast<std::uint64_t>(info.st_size);
    footprint.allocated_bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
  }
  if (code)
    return fail(system_error("cannot list the store's directory", code.value()).at(directory));
  return footprint;
}

Result<Footprint> Store::footprint() const {
  return directory_footprint(directory_);
}

Status Driver::check_settings(const OpenOptions& options, std::uint32_t) const {
  ASSAY_TRY(resolve_settings(*this, options.durability, options.settings));
  return {};
}

DurabilityClass Driver::durability_under(DurabilityClass asked, const Settings&) const {
  return asked;
}

namespace {
Error no_index_apart(const Driver& driver) {
  return {ErrorKind::unsupported,
          driver.name() + " has no index that can be removed and made again from its entries"};
}
}  // namespace

Status Driver::drop_index(const OpenOptions&) const {
  return fail(no_index_apart(*this));
}

Result<std::uint64_t> Driver::rebuild_index(const OpenOptions&) const {
  return fail(no_index_apart(*this));
}

Result<GivenDurability> given_durability(const Driver& driver, DurabilityClass asked,
                                         const Settings& given) {
  const auto under = [&](const Settings& overrides) -> Result<DurabilityClass> {
    const Result<Settings> effective = resolve_settings(driver, asked, overrides);
    if (!effective) return std::unexpected(effective.error());
    return std::min(asked, driver.durability_under(asked, *effective));
  };
  const Result<DurabilityClass> whole = under(given);
  if (!whole) return std::unexpected(whole.error());
  GivenDurability result{.given = *whole, .weakened_by = {}};
  if (*whole == asked) return result;
  for (const auto& [name, value] : given) {
    const Result<DurabilityClass> alone = under({{name, value}});
    if (alone && *alone < asked) result.weakened_by.push_back(name);
  }
  if (!result.weakened_by.empty()) return result;
  // None does it alone, so it is what they come to together.
  for (const auto& [name, value] : given) {
    Settings others = given;
    others.erase(name);
    const Result<DurabilityClass> without = under(others);
    if (without && *without > *whole) result.weakened_by.push_back(name);
  }
  return result;
}

Result<Settings> resolve_settings(const Driver& driver, DurabilityClass durability,
                                  const Settings& given) {
  const std::vector<Setting> known = driver.settings(durability);
  Settings resolved;
  std::vector<std::string> names;
  for (const Setting& setting : known) {
    resolved[setting.name] = setting.value;
    names.push_back(setting.name);
  }
  for (const auto& [name, value] : given) {
    const auto setting = std::ranges::find(known, name, &Setting::name);
    if (setting == known.end()) {
      const std::string near = nearest_name(name, names);
      return fail(
          Error(ErrorKind::bad_input, fmt::format("{} has no setting \"{}\"", driver.name(), name))
              .hint(near.empty() ? fmt::format("valid: {}", fmt::join(names, ", "))
                                 : fmt::format("did you mean \"{}\"?", near)));
    }
    // Stores' manuals write FULL, full and Full for the same thing.
    const auto choice = std::ranges::find_if(setting->choices, [&value](const std::string& valid) {
      return std::ranges::equal(valid, value, [](char a, char b) {
        return std::tolower(static_cast<unsigned char>(a)) ==
               std::tolower(static_cast<unsigned char>(b));
      });
    });
    if (!setting->choices.empty() && choice == setting->choices.end()) {
      return fail(
          Error(ErrorKind::bad_input, fmt::format("{}: \"{}\" is not a value of setting \"{}\"",
                                                  driver.name(), value, name))
              .hint(fmt::format("valid: {}", fmt::join(setting->choices, ", "))));
    }
    resolved[name] = setting->choices.empty() ? value : *choice;
  }
  return resolved;
}

}  // namespace assay
