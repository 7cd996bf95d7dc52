// What the harness costs an operation, beside an empty loop: its parts one by one, then the whole
// worker loop over the store `null` with a latency sample for every operation.
//
// Goals: worker loop at most 45 ns (uniform reads of u64 keys) and 60 ns (zipfian, half updates);
// histogram record at most 6 ns; two threads at least 1.8 times the rate of one (items_per_second).
// What two threads reach is shown beside what the empty loop reaches on two, for a machine whose
// second CPU is busy or shared gives nobody 1.8.
// Figures of one's own machine: --benchmark_repetitions=10 --benchmark_enable_random_interleaving.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "adapters/registry.h"
#include "harness/measure/clock.h"
#include "harness/measure/histogram.h"
#include "harness/trial/operation_loop.h"
#include "workloads/stream.h"

namespace assay {
namespace {

constexpr std::uint64_t kSeed = 1;

template <class T>
T take(Result<T> result) {
  if (!result) check_failed(__FILE__, __LINE__, "result", result.error().message());
  return std::move(*result);
}

/// A run phase without end of the role `declaration`, over a million u64 keys and 100-byte values.
Workload endless(const std::string& declaration, std::int64_t threads = 1) {
  return take(
      parse_workload("name = \"cost\"\n[keys]\ncount = 1_000_000\n[values]\nbytes = 100\n"
                     "[[phases]]\nkind = \"run\"\nduration_ms = 1000\n[[phases.roles]]\n" +
                         declaration + "threads = " + std::to_string(threads) + "\n",
                     "harness_cost_benchmark.cpp"));
}

const std::string kUniformReads = "mix = { read = 1 }\n";
const std::string kZipfianHalf =
    "mix = { read = 1, update = 1 }\ndistribution = { kind = \"zipfian\" }\n";

/// Shows the time an operation where an iteration is many operations. With several threads it is
/// the time between two operations of any thread, the inverse of the rate beside it.
void count_operations(benchmark::State& state, std::size_t an_iteration) {
  const auto operations =
      static_cast<double>(state.iterations()) * static_cast<double>(an_iteration);
  state.SetItemsProcessed(static_cast<std::int64_t>(operations));
  state.counters["per_operation"] =
      benchmark::Counter(operations, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void empty_loop(benchmark::State& state) {
  std::uint64_t counter = 0;
  for (auto _ : state) benchmark::DoNotOptimize(++counter);
  count_operations(state, 1);
}
BENCHMARK(empty_loop)->ThreadRange(1, 2)->UseRealTime();

void clock_ticks(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(ticks_now());
  count_operations(state, 1);
}
BENCHMARK(clock_ticks);

void clock_system_call(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(monotonic_raw_ns());
  count_operations(state, 1);
}
BENCHMARK(clock_system_call);

void ticks_to_ns(benchmark::State& state) {
  const TickScale& scale = TickScale::get();
  std::uint64_t ticks = 1;
  for (auto _ : state) benchmark::DoNotOptimize(scale.to_ns(ticks += 977));
  count_operations(state, 1);
}
BENCHMARK(ticks_to_ns);

/// Latencies as a store has them: most near the median, a long tail (sigma of the logs in tenths).
void histogram_record(benchmark::State& state) {
  std::mt19937_64 generator(kSeed);
  std::lognormal_distribution<double> latency(std::log(2'000.0),
                                              static_cast<double>(state.range(0)) / 10);
  std::vector<std::uint64_t> values(4096);
  for (auto& value : values) value = static_cast<std::uint64_t>(latency(generator));
  Histogram histogram;
  for (auto _ : state) {
    for (const std::uint64_t value : values) histogram.record(value);
    benchmark::ClobberMemory();
  }
  benchmark::DoNotOptimize(histogram.count());
  count_operations(state, values.size());
}
BENCHMARK(histogram_record)->ArgName("sigma_tenths")->Arg(1)->Arg(10)->Arg(20);

void stream_fill(benchmark::State& state, const std::string& declaration) {
  const auto stream = make_stream(endless(declaration), kSeed, 0, 0);
  Chunk chunk;
  for (auto _ : state) {
    stream->fill(chunk);
    benchmark::DoNotOptimize(chunk.operations.data());
  }
  count_operations(state, kChunkOperations);
}
BENCHMARK_CAPTURE(stream_fill, uniform_reads, kUniformReads);
BENCHMARK_CAPTURE(stream_fill, zipfian_half_updates, kZipfianHalf);

/// The store call alone, as an adapter's virtual function: what no harness can avoid.
void null_get(benchmark::State& state) {
  const Driver* const driver = take(find_driver("null"));
  const auto store = take(driver->open(OpenOptions{}));
  const auto session = take(store->session());
  const std::string key(8, '\0');
  std::string_view value;
  for (auto _ : state) benchmark::DoNotOptimize(session->get(key, value));
  count_operations(state, 1);
}
BENCHMARK(null_get);

/// The whole of what a worker thread does: fill, execute with a stamp each, record.
void worker_loop(benchmark::State& state, const std::string& declaration) {
  const Workload workload = endless(declaration, state.threads());
  const Driver* const driver = take(find_driver("null"));
  OpenOptions options;
  options.value_bytes = usual_value_bytes(workload.values);
  const auto store = take(driver->open(options));
  const auto session = take(store->session());
  const KeyCodec keys(workload.keys, kSeed);
  ValueCodec values(workload.values, kSeed);
  values.accept_any();
  OperationLoop loop(workload, kSeed, 0, static_cast<std::uint32_t>(state.thread_index()), *session,
                     keys, values);
  const std::atomic<std::uint64_t> deadline{kNoDeadline};
  loop.begin(ticks_now());
  for (auto _ : state) loop.run(kChunkOperations, kChunkOperations, deadline, true);
  loop.recorder().end();
  count_operations(state, kChunkOperations);
}
BENCHMARK_CAPTURE(worker_loop, uniform_reads, kUniformReads)->ThreadRange(1, 2)->UseRealTime();
BENCHMARK_CAPTURE(worker_loop, zipfian_half_updates, kZipfianHalf)
    ->ThreadRange(1, 2)
    ->UseRealTime();

/// The console's report, and what a second thread adds to each benchmark that ran with two.
class ScalingReporter final : public benchmark::ConsoleReporter {
 public:
  ScalingReporter() : ConsoleReporter(::isatty(STDOUT_FILENO) == 1 ? OO_Color : OO_None) {}
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      const auto rate = run.counters.find("items_per_second");
      // With aggregates only, the library hands over the median and no single run.
      const bool single = run.run_type == Run::RT_Iteration;
      if (!single && run.aggregate_name != "median") continue;
      if (rate == run.counters.end()) continue;
      Figures& figures = figures_[run.run_name.function_name][static_cast<int>(run.threads)];
      figures.rates.push_back(rate->second);
      figures.cpu.push_back(run.GetAdjustedCPUTime());
    }
  }
  /// The rate tells what a user gets; the CPU time of an operation tells why: a thread that waits
  /// for a CPU makes the first worse, one that shares a cache line makes the second worse.
  void print_scaling() const {
    const double empty = scaling_of("empty_loop", &Figures::rates);
    if (empty == 0.0) return;
    std::printf("two threads beside one, by medians: rate of the empty loop %.2f\n", empty);
    for (const auto& [name, by_threads] : figures_) {
      const double scaling = scaling_of(name, &Figures::rates);
      if (name == "empty_loop" || scaling == 0.0) continue;
      std::printf("  %s: rate %.2f, %.0f %% of the empty loop's; CPU time an operation %.2f\n",
                  name.c_str(), scaling, 100.0 * scaling / empty,
                  scaling_of(name, &Figures::cpu) / scaling_of("empty_loop", &Figures::cpu));
    }
  }

 private:
  struct Figures {  ///< one a repetition
    std::vector<double> rates;
    std::vector<double> cpu;
  };
  static double median_of(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }
  /// Two threads' figure over one's; 0 when it did not run with both.
  [[nodiscard]] double scaling_of(const std::string& name,
                                  std::vector<double> Figures::* figure) const {
    const auto found = figures_.find(name);
    if (found == figures_.end() || found->second.size() < 2) return 0.0;
    return median_of(found->second.at(2).*figure) / median_of(found->second.at(1).*figure);
  }

  std::map<std::string, std::map<int, Figures>> figures_;  ///< by name and threads
};

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  benchmark::AddCustomContext("clock", assay::TickScale::get().source());
  benchmark::AddCustomContext("ns_per_tick", std::to_string(assay::TickScale::get().ns_per_tick()));
  const bool other_format = std::any_of(argv, argv + argc, [](const char* each) {
    return std::string_view(each).starts_with("--benchmark_format");
  });
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  if (other_format) {
    benchmark::RunSpecifiedBenchmarks();
  } else {
    assay::ScalingReporter reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    reporter.print_scaling();
  }
  benchmark::Shutdown();
  return 0;
}
