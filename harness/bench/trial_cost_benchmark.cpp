// What a trial costs beside its operations: a whole run_trial() through the real worker (marked
// directory, request file, `assay worker`, open null, one get, close, record, clean up), beside a
// bare fork and exec of /bin/true and the command alone that prints its help.
//
// Goal: at most 15 ms for trial_over_null. Peak memory of this process and of the largest worker
// stand at the end; the goal for both together is 64 MiB.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <benchmark/benchmark.h>
#include <nlohmann/json.hpp>

#include "adapters/temporary_directory.h"
#include "harness/trial/trial.h"

namespace assay {
namespace {

/// Runs a program to its end, with its output thrown away.
void run_program(benchmark::State& state, const char* program, const char* argument) {
  for (auto _ : state) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(126);
      ::execl(program, program, argument, static_cast<char*>(nullptr));
      ::_exit(127);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) state.SkipWithError("the program did not end well");
  }
}

void fork_exec_true(benchmark::State& state) {
  run_program(state, "/bin/true", nullptr);
}
BENCHMARK(fork_exec_true)->Unit(benchmark::kMillisecond)->UseRealTime();

void fork_exec_assay_help(benchmark::State& state) {
  run_program(state, ASSAY_COMMAND, "--help");
}
BENCHMARK(fork_exec_assay_help)->Unit(benchmark::kMillisecond)->UseRealTime();

void trial_over_null(benchmark::State& state) {
  const TemporaryDirectory root;
  const Result<Workload> workload = parse_workload(
      "name = \"nothing\"\n[keys]\ncount = 100_000_000\n[[phases]]\nkind = \"run\"\n"
      "operations = 1\n[[phases.roles]]\nmix = { read = 1 }\n",
      "trial_cost_benchmark.cpp");
  if (!workload) check_failed(__FILE__, __LINE__, "workload", workload.error().message());
  TrialRequest request;
  request.arm.name = request.arm.store = "null";
  request.arm.durability = DurabilityClass::process;
  request.workload = *workload;
  request.root = root.path();
  request.log_path = root.path() + "/trial.log";
  request.binary = ASSAY_COMMAND;
  const std::atomic<bool> stop{false};
  for (auto _ : state) {
    const Result<nlohmann::json> record = run_trial(request, stop);
    if (!record) state.SkipWithError(record.error().message().c_str());
  }
}
BENCHMARK(trial_over_null)->Unit(benchmark::kMillisecond)->UseRealTime();

double peak_mib(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  std::printf("peak memory: %.1f MiB here, %.1f MiB in the largest child\n",
              assay::peak_mib(RUSAGE_SELF), assay::peak_mib(RUSAGE_CHILDREN));
  return 0;
}
