// Cost of making operations, apart from everything else of a trial: what a worker pays outside the
// timed calls. Time is per operation (items). Run it on a quiet, pinned CPU.
#include <benchmark/benchmark.h>

#include <string>

#include "workloads/stream.h"

namespace assay {
namespace {

Workload declared(const std::string& role) {
  const std::string toml =
      "name = \"b\"\n[keys]\ncount = 1_000_000\n[values]\nbytes = 100\n"
      "[[phases]]\nkind = \"run\"\nduration_ms = 1000\n[[phases.roles]]\n" +
      role;
  Result<Workload> workload = parse_workload(toml, "benchmark");
  if (!workload) check_failed(__FILE__, __LINE__, "parse", workload.error().message());
  return *workload;
}

void fill(benchmark::State& state, const std::string& role) {
  const auto stream = make_stream(declared(role), 1, 0, 0);
  Chunk chunk;
  for (auto _ : state) {
    stream->fill(chunk);
    benchmark::DoNotOptimize(chunk.operations.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kChunkOperations));
  state.counters["ns_per_operation"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kChunkOperations / 1e9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void empty_loop(benchmark::State& state) {
  std::uint64_t counter = 0;
  for (auto _ : state) benchmark::DoNotOptimize(++counter);
}
BENCHMARK(empty_loop);

void value_bytes(benchmark::State& state) {
  ValueSpec spec;
  spec.bytes = static_cast<std::uint32_t>(state.range(0));
  const ValueCodec values(spec, 1);
  std::string out(spec.bytes, '\0');
  std::uint64_t index = 0;
  for (auto _ : state) {
    values.encode(++index, 1, out.data());
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(value_bytes)->Arg(8)->Arg(100)->Arg(1000)->Arg(100'000);

void value_belongs_to(benchmark::State& state) {
  const ValueCodec values(ValueSpec{}, 1);
  std::string value(100, '\0');
  values.encode(5, 1, value.data());
  for (auto _ : state) benchmark::DoNotOptimize(values.belongs_to(5, value));
}
BENCHMARK(value_belongs_to);

void key_decode(benchmark::State& state) {
  const KeyCodec keys(KeySpec{}, 1);
  std::string key(8, '\0');
  keys.encode(5, key.data());
  std::uint64_t index = 0;
  for (auto _ : state) benchmark::DoNotOptimize(keys.decode(key, index));
}
BENCHMARK(key_decode);

BENCHMARK_CAPTURE(fill, uniform_reads, "mix = { read = 1 }");
BENCHMARK_CAPTURE(fill, zipfian_reads, "mix = { read = 1 }\ndistribution = { kind = \"zipfian\" }");
BENCHMARK_CAPTURE(fill, zipfian_reads_unscrambled,
                  "mix = { read = 1 }\ndistribution = { kind = \"zipfian\", scrambled = false }");
BENCHMARK_CAPTURE(fill, zipfian_half_updates_100_bytes,
                  "mix = { read = 1, update = 1 }\ndistribution = { kind = \"zipfian\" }");
BENCHMARK_CAPTURE(fill, uniform_updates_100_bytes, "mix = { update = 1 }");
BENCHMARK_CAPTURE(fill, latest_reads, "mix = { read = 1 }\ndistribution = { kind = \"latest\" }");
BENCHMARK_CAPTURE(fill, hot_prefix_reads,
                  "mix = { read = 1 }\ndistribution = { kind = \"hot-prefix\" }");
BENCHMARK_CAPTURE(fill, poisson_reads, "mix = { read = 1 }\nrate_per_s = 1000\npoisson = true");

}  // namespace
}  // namespace assay

BENCHMARK_MAIN();
