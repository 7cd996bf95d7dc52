// How a verb of the command plugs in. Each verb is one file that defines one add_*() function;
// main.cpp lists them. A verb adds its flags to `app` and stores what to do in `invocation`.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

#include "adapters/result.h"
#include "harness/cli/exit_status.h"
#include "harness/cli/number_flags.h"

namespace assay::cli {

struct Invocation {
  /// Set by the verb that was chosen; runs after parsing. An Error is printed by main and mapped
  /// to its exit status.
  std::function<Result<ExitStatus>()> action;
};

/// --seed, the same for every verb that takes one.
inline CLI::Option* add_seed_flag(CLI::App& verb, std::uint64_t& seed, const std::string& meaning) {
  return verb.add_option("--seed", seed, meaning)
      ->check(whole_number(0, kMostWhole))
      ->capture_default_str();
}

void add_workload(CLI::App& app, Invocation& invocation);
void add_store(CLI::App& app, Invocation& invocation);
void add_register(CLI::App& app, Invocation& invocation);
void add_accept(CLI::App& app, Invocation& invocation);
void add_plan(CLI::App& app, Invocation& invocation);
void add_run(CLI::App& app, Invocation& invocation);
void add_reproduce(CLI::App& app, Invocation& invocation);
void add_history(CLI::App& app, Invocation& invocation);
void add_gate(CLI::App& app, Invocation& invocation);
void add_calibrate(CLI::App& app, Invocation& invocation);
void add_compare(CLI::App& app, Invocation& invocation);
void add_qualify(CLI::App& app, Invocation& invocation);
void add_soak(CLI::App& app, Invocation& invocation);
void add_qualify_worker(CLI::App& app, Invocation& invocation);
void add_plot(CLI::App& app, Invocation& invocation);
void add_report(CLI::App& app, Invocation& invocation);
void add_ledger(CLI::App& app, Invocation& invocation);
void add_doctor(CLI::App& app, Invocation& invocation);
void add_serve(CLI::App& app, Invocation& invocation);

}  // namespace assay::cli
