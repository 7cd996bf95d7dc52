// assay workload: what a declared workload is, and the operations that it makes.
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/cli/terminal_width.h"
#include "harness/cli/verb.h"
#include "harness/experiment/plan_check.h"
#include "workloads/stream.h"
#include "workloads/toml_reader.h"
#include "workloads/trace.h"
#include "workloads/workload.h"

namespace assay::cli {
namespace {

struct Arguments {
  std::string workload;
  std::vector<std::string> sets;
  std::uint64_t operations = 20;
  std::uint64_t seed = 1;
  std::string phase;
  int thread = -1;
  bool json = false;
};

Result<Workload> load(const Arguments& arguments) {
  Overrides overrides;
  for (const std::string& set : arguments.sets) {
    auto split = split_assignment(set);
    if (!split) return std::unexpected(split.error());
    const bool twice =
        std::ranges::any_of(overrides, [&](const auto& one) { return one.first == split->first; });
    if (twice) {
      return fail(Error(ErrorKind::bad_input, fmt::format("--set gives '{}' twice", split->first))
                      .hint("leave one of the two out"));
    }
    overrides.push_back(std::move(*split));
  }
  return load_workload(arguments.workload, overrides);
}

void print_line(const nlohmann::json& json) {
  fmt::print("{}\n", json.dump());
}

Result<ExitStatus> list(const Arguments& arguments) {
  nlohmann::json all = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : shipped_workloads()) {
    const Result<Workload> workload = load_workload(name);
    if (!workload) return std::unexpected(workload.error());
    if (arguments.json) {
      all.push_back(
          {{"name", name}, {"description", workload->description}, {"source", workload->source}});
    } else {
      rows.push_back({name, workload->description});
    }
  }
  if (arguments.json) {
    print_line(all);
  } else {
    print_table(rows, Heading::none);
  }
  return ExitStatus::done;
}

Result<ExitStatus> show(const Arguments& arguments) {
  const Result<Workload> workload = load(arguments);
  if (!workload) return std::unexpected(workload.error());
  fmt::print("{}\n", arguments.json ? to_json(*workload).dump() : to_json(*workload).dump(2));
  return ExitStatus::done;
}

Result<ExitStatus> check(const Arguments& arguments) {
  const Result<Workload> workload = load(arguments);
  if (!workload) return std::unexpected(workload.error());
  const std::string digest = stream_digest(*workload, arguments.seed);
  std::vector<std::string> warnings;
  if (const auto pins = impossible_pins(*workload, PlanEnvironment::real().cpus, "")) {
    warnings.push_back(pins->what() + ": run and compare refuse it on this machine");
  }
  if (arguments.json) {
    print_line({{"ok", true},
                {"warnings", warnings},
                {"name", workload->name},
                {"seed", arguments.seed},
                {"stream_digest", digest}});
    return ExitStatus::done;
  }
  fmt::print("{}: good, {} keys, {} phases, {} is compared\n", workload->name, workload->keys.count,
             workload->phases.size(), workload->measured_phase);
  for (const std::string& warning : warnings) fmt::print("warning: {}\n", printable(warning));
  return ExitStatus::done;
}

Result<ExitStatus> digest(const Arguments& arguments) {
  const Result<Workload> workload = load(arguments);
  if (!workload) return std::unexpected(workload.error());
  const std::string hex = stream_digest(*workload, arguments.seed);
  if (arguments.json) {
    print_line({{"name", workload->name}, {"seed", arguments.seed}, {"stream_digest", hex}});
  } else {
    fmt::print("{}\n", hex);
  }
  return ExitStatus::done;
}

/// Phases that `arguments` asks for: all that have a stream, or the one named or numbered.
Result<std::vector<std::size_t>> phases_of(const Workload& workload, const Arguments& arguments) {
  std::vector<std::size_t> phases;
  std::vector<std::string> names;
  for (std::size_t phase = 0; phase < workload.phases.size(); ++phase) {
    if (thread_count(workload.phases[phase]) == 0) continue;
    const std::string& name = workload.phases[phase].name;
    names.push_back(name);
    if (arguments.phase.empty() || arguments.phase == name ||
        arguments.phase == std::to_string(phase)) {
      phases.push_back(phase);
    }
  }
  if (!phases.empty()) return phases;
  const std::string nearest = nearest_name(arguments.phase, names);
  return fail(Error(ErrorKind::bad_input, fmt::format("'{}' has no phase '{}' with operations",
                                                      workload.name, arguments.phase))
                  .at("--phase")
                  .hint(nearest.empty() ? fmt::format("there are {}", fmt::join(names, ", "))
                                        : fmt::format("did you mean '{}'?", nearest)));
}

Result<ExitStatus> trace(const Arguments& arguments) {
  const Result<Workload> workload = load(arguments);
  if (!workload) return std::unexpected(workload.error());
  const auto phases = phases_of(*workload, arguments);
  if (!phases) return std::unexpected(phases.error());
  if (!arguments.json) fmt::print("{}\n", trace_header());
  for (const std::size_t phase : *phases) {
    const std::uint32_t threads = thread_count(workload->phases[phase]);
    if (arguments.thread >= static_cast<int>(threads)) {
      return fail(
          Error(ErrorKind::bad_input, fmt::format("phase '{}' has {} threads, counted from 0",
                                                  workload->phases[phase].name, threads))
              .at("--thread"));
    }
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      if (arguments.thread >= 0 && thread != static_cast<std::uint32_t>(arguments.thread)) continue;
      const auto stream = make_stream(*workload, arguments.seed, phase, thread);
      print_trace(*stream, workload->phases[phase].name, thread, arguments.operations,
                  arguments.json ? TraceFormat::json : TraceFormat::text, stdout);
    }
  }
  return ExitStatus::done;
}

using Verb = Result<ExitStatus> (*)(const Arguments&);

CLI::App* add(CLI::App& parent, Invocation& invocation, Arguments* arguments, const char* name,
              const char* description, Verb verb) {
  CLI::App* app = parent.add_subcommand(name, description);
  app->add_flag("--json", arguments->json, "Machine-readable output");
  app->callback([&invocation, arguments, verb] {
    invocation.action = [arguments, verb] { return verb(*arguments); };
  });
  return app;
}

}  // namespace

void add_workload(CLI::App& app, Invocation& invocation) {
  static Arguments arguments;  // lives until the action has run
  CLI::App* verb = app.add_subcommand("workload", "Show, check and trace declared workloads");
  verb->require_subcommand(1);
  add(*verb, invocation, &arguments, "list", "The workloads that come with assay", list);
  const auto named = [&](const char* name, const char* description, Verb action) {
    CLI::App* sub = add(*verb, invocation, &arguments, name, description, action);
    sub->add_option("workload", arguments.workload, "Name of a shipped workload, or a .toml file")
        ->required();
    sub->add_option("--set", arguments.sets, "Override a key: keys.count=1000 (repeatable)")
        ->allow_extra_args(false);
    return sub;
  };
  named("show", "The canonical form: every default filled in", show);
  for (CLI::App* sub :
       {named("check", "Check a declaration; file, line and a hint when bad", check),
        named("digest", "Digest of the operation streams", digest)}) {
    add_seed_flag(*sub, arguments.seed, "Seed of the streams");
  }
  CLI::App* sub = named("trace", "Print the operation streams, one operation a line", trace);
  add_seed_flag(*sub, arguments.seed, "Seed of the streams");
  sub->add_option("--operations", arguments.operations,
                  "Operations of each thread; a batch counts as many as it has keys")
      ->check(whole_number(1, kMostWhole));
  sub->add_option("--phase", arguments.phase, "Only this phase, by name or number");
  sub->add_option("--thread", arguments.thread, "Only this thread")->check(whole_number(0, 65'535));
}

}  // namespace assay::cli
