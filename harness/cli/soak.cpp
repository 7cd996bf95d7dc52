// assay soak: transfers that conserve a sum, for a long time.
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "adapters/registry.h"
#include "harness/cli/print_json.h"
#include "harness/cli/set_flags.h"
#include "harness/cli/verb.h"
#include "harness/experiment/stop_signal.h"
#include "harness/ledger/durable_file.h"
#include "harness/provenance/provenance.h"
#include "harness/soak/soak.h"

namespace assay::cli {
namespace {

struct Flags {
  std::string store;
  std::string durability = "power";
  std::vector<std::string> assignments;
  std::vector<std::uint32_t> clients = SoakPlan{}.clients;
  double seconds = SoakPlan{}.seconds;
  std::uint64_t accounts = SoakPlan{}.accounts;
  std::uint64_t memory_bytes = SoakPlan{}.memory_bytes;
  std::uint64_t seed = 1;
  std::string root = "bench";
  std::string out;
  bool quiet_disk = false;
  bool json = false;
};

Result<SoakPlan> plan_of(const Flags& flags) {
  SoakPlan plan;
  const Result<const Driver*> driver = find_driver(flags.store);
  if (!driver) return fail(driver.error());
  plan.driver = *driver;
  const Result<DurabilityClass> durability = parse_durability(flags.durability);
  if (!durability) return fail(durability.error());
  plan.durability = *durability;
  Result<Settings> settings = parse_set_flags(flags.assignments);
  if (!settings) return fail(settings.error());
  plan.settings = std::move(*settings);
  plan.memory_bytes = flags.memory_bytes;
  plan.root = flags.root;
  plan.clients = flags.clients;
  plan.seconds = flags.seconds;
  plan.accounts = flags.accounts;
  plan.seed = flags.seed;
  plan.own_process = works_elsewhere(**driver);
  plan.disk_writer = !flags.quiet_disk;
  return plan;
}

void print_round(const SoakRound& round, bool own_process) {
  const std::string memory =
      own_process ? "-"
                  : fmt::format("{:.1f}", static_cast<double>(round.peak_memory_bytes) / (1 << 20));
  fmt::print("{:>7} {:>8} {:>8.2f} {:>8.1f} {:>10} {:>10.0f} {:>7} {:>9}\n", round.clients,
             round.killed ? "SIGKILL" : "closed", round.open_s, round.load_s, round.transfers,
             static_cast<double>(round.transfers) / round.load_s, round.checks, memory);
  std::fflush(stdout);
}

void print_end(const nlohmann::json& all, const SoakReport& report) {
  fmt::print(
      "\n{} transfers, {} operations, {} checks of the invariant; the disk writer beside wrote {} "
      "MiB in {} syncs\n",
      all.at("transfers").get<std::uint64_t>(), all.at("operations").get<std::uint64_t>(),
      all.at("checks").get<std::uint64_t>(), report.written_beside_bytes >> 20,
      report.written_beside_syncs);
  if (!report.violation.empty()) {
    fmt::print("VIOLATION: {}\n", printable(report.violation));
    return;
  }
  fmt::print(
      "checkpoint {:.2f} s, backup of {:.1f} MiB {:.2f} s, restored and opened {:.2f} s; the "
      "digest "
      "of both is {}\nno violation\n",
      report.checkpoint_s, static_cast<double>(report.backup_bytes) / (1 << 20), report.backup_s,
      report.restore_s, report.digest);
}

Result<ExitStatus> soak(const Flags& flags) {
  const Result<SoakPlan> plan = plan_of(flags);
  if (!plan) return fail(plan.error());
  if (!flags.out.empty()) ASSAY_TRY(check_can_be_written(flags.out));
  if (!flags.json)
    fmt::print("{:>7} {:>8} {:>8} {:>8} {:>10} {:>10} {:>7} {:>9}\n", "clients", "ended", "open s",
               "load s", "transfers", "per s", "checks", "peak MiB");
  const StopOnSignal stopped;
  const Result<SoakReport> report = run_soak(*plan, stopped.flag(), [&](const SoakRound& round) {
    if (!flags.json) print_round(round, plan->own_process);
  });
  if (!report) return fail(report.error());
  nlohmann::json all = soak_json(*plan, *report);
  ProvenanceOptions options;
  options.benchmark_root = flags.root;
  all["provenance"] = collect_provenance(options);
  if (!flags.out.empty()) ASSAY_TRY(write_file_durably(flags.out, all.dump(1) + "\n"));
  if (flags.json) {
    print_json(all);
  } else {
    print_end(all, *report);
  }
  return report->violation.empty() ? ExitStatus::done : ExitStatus::wrong_contents;
}

}  // namespace

void add_soak(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand(
      "soak", "Let clients move money for a long time, close and kill the store, check the sum");
  auto flags = std::make_shared<Flags>();
  verb->add_option("STORE", flags->store, "a store, or the path of a plug-in")->required();
  verb->add_option("--seconds", flags->seconds, "time under load, all rounds together")
      ->check(number(0.1, 1e6))
      ->capture_default_str();
  verb->add_option("--clients", flags->clients, "numbers of clients, two rounds for each")
      ->delimiter(',')
      ->check(whole_number(1, kSoakClientsMost))
      ->capture_default_str();
  verb->add_option("--accounts", flags->accounts, "accounts")
      ->check(whole_number(kSoakAccountsLeast, 10'000'000))
      ->capture_default_str();
  verb->add_option("--durability", flags->durability, "class, process at least")
      ->capture_default_str();
  verb->add_option("--set", flags->assignments, "a setting of the store, name=value");
  verb->add_option("--memory-bytes", flags->memory_bytes, "budget for the store's caches")
      ->check(whole_number(1 << 20, kMostWhole))
      ->capture_default_str();
  verb->add_option("--root", flags->root, "folder below which the soak makes its directory")
      ->capture_default_str();
  verb->add_option("--out", flags->out, "file for plan, figures and provenance, JSON");
  verb->add_flag("--quiet-disk", flags->quiet_disk, "no process that writes beside the store");
  verb->add_flag("--json", flags->json, "print the same JSON instead of a table");
  add_seed_flag(*verb, flags->seed, "seed of the transfers");
  verb->callback([flags, &invocation] { invocation.action = [flags] { return soak(*flags); }; });
}

}  // namespace assay::cli
