// assay store list|show|check: which stores there are, how each is set for a durability class and
// why, and whether it behaves as it declares.
//
// show and check of one store run in a child process: a plug-in that crashes or hangs, even while
// it is being loaded, is one message and exit status store_failed.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "adapters/conformance/conformance.h"
#include "adapters/conformance/isolated.h"
#include "adapters/registry.h"
#include "harness/cli/print_json.h"
#include "harness/cli/set_flags.h"
#include "harness/cli/terminal_width.h"
#include "harness/cli/verb.h"

namespace assay::cli {
namespace {

using nlohmann::json;

struct Flags {
  std::string name;
  std::string durability;
  std::vector<std::string> settings;
  std::string directory;
  std::vector<std::string> only;
  double timeout_s = 60.0;
  std::uint64_t seed = 1;
  bool as_json = false;
};

json capabilities_json(const Capabilities& declared) {
  json classes = json::array();
  for (const DurabilityClass one : declared.durability) classes.push_back(to_string(one));
  return {{"ordered", declared.ordered},
          {"rollback", declared.rollback},
          {"atomic_batches", declared.atomic_batches},
          {"concurrent_writers", declared.concurrent_writers},
          {"larger_than_memory", declared.larger_than_memory},
          {"rebuilds_index", declared.rebuilds_index},
          {"tables", declared.tables},
          {"retains_data", declared.retains_data},
          {"reference", declared.reference},
          {"durability", classes},
          {"min_key_bytes", declared.min_key_bytes},
          {"max_key_bytes", declared.max_key_bytes},
          {"max_value_bytes", declared.max_value_bytes}};
}

json driver_json(const Driver& driver) {
  return {{"store", driver.name()},
          {"version", driver.version()},
          {"capabilities", capabilities_json(driver.capabilities())}};
}

/// What a store can do, and what it cannot, in the words of the report.
std::vector<std::string> abilities(const json& capabilities, bool can) {
  struct Ability {
    const char* key;
    const char* words;
  };
  constexpr Ability kAbilities[] = {{"ordered", "scans"},
                                    {"atomic_batches", "batches"},
                                    {"rollback", "rollback"},
                                    {"concurrent_writers", "concurrent writers"},
                                    {"larger_than_memory", "larger than memory"},
                                    {"rebuilds_index", "an index to rebuild"},
                                    {"tables", "tables in its own language"},
                                    {"retains_data", "keeps data"}};
  std::vector<std::string> words;
  for (const Ability& ability : kAbilities) {
    if (capabilities.at(ability.key).get<bool>() == can) words.emplace_back(ability.words);
  }
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  return words.empty() ? "-" : fmt::format("{}", fmt::join(words, ", "));
}

/// The strongest class that the store claims, or the one that was asked for.
Result<DurabilityClass> choose_durability(const Capabilities& declared, const std::string& asked) {
  if (!asked.empty()) return parse_durability(asked);
  const auto strongest = std::ranges::max_element(declared.durability);
  return strongest == declared.durability.end() ? DurabilityClass::volatile_ : *strongest;
}

// ---- list -----------------------------------------------------------------------------------

Result<ExitStatus> list(const Flags& flags) {
  json stores = json::array();
  Status missing;
  for (const std::string& name : store_names()) {
    const Result<const Driver*> driver = find_driver(name);
    if (driver) {
      stores.push_back(driver_json(**driver));
    } else {  // one store that cannot be loaded takes no other with it
      missing = fail(driver.error());
    }
  }
  if (flags.as_json) {
    print_json({{"schema", 1}, {"stores", stores}});
    ASSAY_TRY(missing);
    return ExitStatus::done;
  }
  std::vector<std::vector<std::string>> rows{
      {"STORE", "VERSION", "DURABILITY CLASSES", "CAN", "CANNOT"}};
  for (const json& store : stores) {
    const json& declared = store.at("capabilities");
    const auto name = store.at("store").get<std::string>();
    rows.push_back({declared.at("reference").get<bool>() ? name + " (reference)" : name,
                    store.at("version").get<std::string>(),
                    joined(declared.at("durability").get<std::vector<std::string>>()),
                    joined(abilities(declared, true)), joined(abilities(declared, false))});
  }
  print_table(rows);
  fmt::print(
      "\nA plug-in is named by its path, ./mystore.so. `assay store show NAME` tells how\n"
      "a store is set and why, `assay store check NAME` whether it behaves as declared.\n");
  ASSAY_TRY(missing);
  return ExitStatus::done;
}

// ---- show -----------------------------------------------------------------------------------

Result<json> describe(const Flags& flags, const Settings& changed) {
  const Result<const Driver*> driver = find_driver(flags.name);
  if (!driver) return std::unexpected(driver.error());
  const Capabilities declared = (*driver)->capabilities();
  const Result<DurabilityClass> durability = choose_durability(declared, flags.durability);
  if (!durability) return std::unexpected(durability.error());
  if (std::ranges::find(declared.durability, *durability) == declared.durability.end()) {
    std::vector<std::string_view> claimed;
    for (const DurabilityClass one : declared.durability) claimed.push_back(to_string(one));
    return fail(
        Error(ErrorKind::unsupported, fmt::format("store {} does not claim durability class {}",
                                                  (*driver)->name(), to_string(*durability)))
            .hint(fmt::format("it claims: {}", fmt::join(claimed, ", "))));
  }
  const Result<Settings> resolved = resolve_settings(**driver, *durability, changed);
  if (!resolved) return std::unexpected(resolved.error());
  json settings = json::array();
  for (const Setting& setting : (*driver)->settings(*durability)) {
    settings.push_back({{"name", setting.name},
                        {"value", resolved->at(setting.name)},
                        {"default", setting.value},
                        {"reason", setting.reason},
                        {"source", setting.source},
                        {"choices", setting.choices}});
  }
  json all = driver_json(**driver);
  all["schema"] = 1;
  all["durability"] = to_string(*durability);
  all["settings"] = settings;
  return all;
}

void print_description(const json& all) {
  const json& declared = all.at("capabilities");
  fmt::print("{} {}{}\n", all.at("store").get<std::string>(), all.at("version").get<std::string>(),
             declared.at("reference").get<bool>() ? " (a reference, never an arm)" : "");
  print_table({{"  durability", joined(declared.at("durability").get<std::vector<std::string>>())},
               {"  can", joined(abilities(declared, true))},
               {"  cannot", joined(abilities(declared, false))},
               {"  keys", fmt::format("{} to {} bytes", declared.at("min_key_bytes").dump(),
                                      declared.at("max_key_bytes").dump())},
               {"  values", fmt::format("up to {} bytes", declared.at("max_value_bytes").dump())}},
              Heading::none);
  fmt::print("\nsettings for durability class {}:\n", all.at("durability").get<std::string>());
  if (all.at("settings").empty()) fmt::print("  none\n");
  for (const json& setting : all.at("settings")) {
    const auto value = setting.at("value").get<std::string>();
    const auto usual = setting.at("default").get<std::string>();
    fmt::print("  {} = {}{}\n", setting.at("name").get<std::string>(), value,
               value == usual ? "" : fmt::format("  (changed from {})", usual));
    constexpr std::size_t kIndent = 15;
    print_hanging("      why:     ", setting.at("reason").get<std::string>(), kIndent);
    print_hanging("      source:  ", setting.at("source").get<std::string>(), kIndent);
    const auto choices = setting.at("choices").get<std::vector<std::string>>();
    if (!choices.empty()) print_hanging("      choices: ", joined(choices), kIndent);
  }
}

Isolation isolation_of(const Flags& flags) {
  Isolation isolation;
  isolation.subject = flags.name;
  isolation.silence_limit = std::chrono::milliseconds(static_cast<long>(flags.timeout_s * 1000));
  return isolation;
}

Result<ExitStatus> show(const Flags& flags) {
  const Result<Settings> changed = parse_set_flags(flags.settings);
  if (!changed) return std::unexpected(changed.error());
  const Result<std::string> text =
      run_isolated(isolation_of(flags), [&](const OnStep&) -> Result<std::string> {
        const Result<json> all = describe(flags, *changed);
        if (!all) return std::unexpected(all.error());
        return all->dump(-1, ' ', false, json::error_handler_t::replace);
      });
  if (!text) return std::unexpected(text.error());
  const json all = json::parse(*text);
  if (flags.as_json) {
    print_json(all);
  } else {
    print_description(all);
  }
  return ExitStatus::done;
}

// ---- check ----------------------------------------------------------------------------------

/// A fresh directory below the one that was asked for; removed with everything in it.
class ScratchDirectory {
 public:
  static Result<std::unique_ptr<ScratchDirectory>> make(const std::string& parent) {
    std::error_code code;
    const std::filesystem::path below =
        parent.empty() ? std::filesystem::temp_directory_path(code) : std::filesystem::path(parent);
    std::string name = (below / "assay-check-XXXXXX").string();
    if (code || ::mkdtemp(name.data()) == nullptr) {
      const int reason = code ? code.value() : errno;
      Error error = system_error("cannot make a directory for the check", reason);
      return fail(std::move(error.at(below.string()).hint("--dir takes a directory that exists")));
    }
    return std::unique_ptr<ScratchDirectory>(new ScratchDirectory(std::move(name)));
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

void print_report(const ConformanceReport& report, const std::string& path) {
  fmt::print("{} {}, durability class {}, in {}\n\n", report.store, report.version,
             to_string(report.durability), path);
  std::vector<std::vector<std::string>> rows{{"CHECK", "RESULT", "DETAIL"}};
  for (const CheckOutcome& outcome : report.outcomes) {
    rows.push_back({outcome.check, std::string(to_string(outcome.result)), outcome.detail});
  }
  print_table(rows);
  const std::uint64_t bad =
      report.count(CheckResult::failed) + report.count(CheckResult::wrong_contents);
  fmt::print("\n{}: {} passed, {} declared not supported, {} not applicable, {} failed\n",
             report.ok() ? "behaves as declared" : "DOES NOT BEHAVE AS DECLARED",
             report.count(CheckResult::passed), report.count(CheckResult::not_supported),
             report.count(CheckResult::not_applicable), bad);
}

ExitStatus status_of(const ConformanceReport& report) {
  if (report.count(CheckResult::wrong_contents) > 0) return ExitStatus::wrong_contents;
  return report.ok() ? ExitStatus::done : ExitStatus::store_failed;
}

/// The durability class to check with needs the store, which only a child may touch.
Result<DurabilityClass> durability_for_check(const Flags& flags) {
  if (!flags.durability.empty()) return parse_durability(flags.durability);
  const Result<std::string> text =
      run_isolated(isolation_of(flags), [&](const OnStep&) -> Result<std::string> {
        const Result<const Driver*> driver = find_driver(flags.name);
        if (!driver) return std::unexpected(driver.error());
        const auto chosen = choose_durability((*driver)->capabilities(), "");
        if (!chosen) return std::unexpected(chosen.error());
        return std::string(to_string(*chosen));
      });
  if (!text) return std::unexpected(text.error());
  return parse_durability(*text);
}

Result<ExitStatus> check(const Flags& flags) {
  const Result<Settings> settings = parse_set_flags(flags.settings);
  if (!settings) return std::unexpected(settings.error());
  const Result<DurabilityClass> durability = durability_for_check(flags);
  if (!durability) return std::unexpected(durability.error());
  const Result<std::unique_ptr<ScratchDirectory>> scratch = ScratchDirectory::make(flags.directory);
  if (!scratch) return std::unexpected(scratch.error());
  ConformanceOptions options;
  options.directory = (*scratch)->path();
  options.durability = *durability;
  options.settings = *settings;
  options.seed = flags.seed;
  options.only = flags.only;
  Isolation isolation = isolation_of(flags);
  const bool show_progress = !flags.as_json && ::isatty(STDERR_FILENO) != 0;
  if (show_progress) {
    isolation.on_step = [](std::string_view step) {
      std::fputs(fmt::format("\r\033[K{} ...", step).c_str(), stderr);
    };
  }
  const Result<ConformanceReport> report =
      check_isolated(isolation, [&] { return find_driver(flags.name); }, options);
  if (show_progress) std::fputs("\r\033[K", stderr);
  if (!report) return std::unexpected(report.error());
  if (flags.as_json) {
    print_json(to_json(*report));
  } else {
    print_report(*report, std::filesystem::path((*scratch)->path()).parent_path().string());
  }
  return status_of(*report);
}

}  // namespace

void add_store(CLI::App& app, Invocation& invocation) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* const store = app.add_subcommand("store", "List, show and check stores");
  store->require_subcommand(1);
  const auto choose = [&invocation, flags](CLI::App* verb, auto run) {
    verb->add_flag("--json", flags->as_json, "Print JSON");
    verb->callback(
        [&invocation, flags, run] { invocation.action = [flags, run] { return run(*flags); }; });
  };
  const auto name_one = [flags](CLI::App* verb) {
    verb->add_option("name", flags->name, "A store of `assay store list`, or a plug-in's path")
        ->required();
    verb->add_option("--durability", flags->durability,
                     "Durability class (default: the strongest that the store claims)");
    verb->add_option("--set", flags->settings, "A setting, name=value; may be repeated")
        ->expected(1)
        ->take_all();
    verb->add_option("--timeout", flags->timeout_s,
                     "Seconds without progress after which the store has hung")
        ->check(number(0.1, 86'400.0))
        ->capture_default_str();
  };
  choose(store->add_subcommand("list", "Every store: version, durability classes, capabilities"),
         list);
  CLI::App* const show_verb =
      store->add_subcommand("show", "One store: each setting with its value, reason and source");
  name_one(show_verb);
  choose(show_verb, show);
  CLI::App* const check_verb =
      store->add_subcommand("check", "Run the conformance suite on a store");
  name_one(check_verb);
  check_verb->add_option("--dir", flags->directory,
                         "Where to make the stores (default: the temporary directory)");
  check_verb->add_option("--only", flags->only, "Run this check only; may be repeated")
      ->expected(1)
      ->take_all();
  add_seed_flag(*check_verb, flags->seed, "Seed of the random history");
  choose(check_verb, check);
}

}  // namespace assay::cli
