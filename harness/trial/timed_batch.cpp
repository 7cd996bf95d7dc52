#include "harness/trial/timed_batch.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "adapters/registry.h"
#include "harness/trial/operation_loop.h"

namespace assay {
namespace {

/// Short enough for values of any size, repeated because another process may take the CPU.
constexpr std::uint64_t kMeasureNs = 1'000'000;
constexpr int kRepetitions = 5;

/// Store time of an operation over `null`, ns; the least of several short runs.
Result<double> null_ns_with(const Workload& workload, std::uint64_t seed, std::size_t phase,
                            std::uint32_t thread, Store& store) {
  Result<std::unique_ptr<Session>> session = store.session();
  if (!session) return fail(session.error());
  const KeyCodec keys(workload.keys, seed);
  ValueCodec values(workload.values, seed);
  values.accept_any();  // of `null`, which answers with a value of its own
  OperationLoop loop(workload, seed, phase, thread, **session, keys, values);
  const TickScale& scale = TickScale::get();
  double least = std::numeric_limits<double>::infinity();
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    loop.refill(kChunkOperations);
    loop.begin(ticks_now());
    const std::atomic<std::uint64_t> deadline{ticks_now() + scale.to_ticks(kMeasureNs)};
    while (loop.run(loop.until_refill(), kChunkOperations, deadline, false)) {
    }
    const OperationCounts& counts = loop.executor().counts();
    if (counts.operations == 0) continue;
    least = std::min(least, static_cast<double>(scale.to_ns(counts.store_ticks)) /
                                static_cast<double>(counts.operations));
  }
  if (loop.executor().failure()) return fail(*loop.executor().failure());
  return least;
}

std::uint32_t first_measured_thread(const Phase& phase) {
  std::uint32_t thread = 0;
  while (role_of(phase, thread).background) ++thread;
  return thread;
}

}  // namespace

std::uint32_t fewest_operations(const std::vector<std::pair<std::uint32_t, double>>& null_ns) {
  ASSAY_CHECK(!null_ns.empty(), "something was measured");
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [operations, ns] : null_ns) least = std::min(least, ns);
  for (const auto& [operations, ns] : null_ns)
    if (ns <= 1.1 * least) return operations;
  return null_ns.back().first;
}

Result<std::vector<TimedBatchChoice>> choose_timed_batches(const Workload& workload,
                                                           std::uint64_t seed) {
  std::vector<TimedBatchChoice> choices;
  for (std::size_t index = 0; index < workload.phases.size(); ++index) {
    const Phase& phase = workload.phases[index];
    if (phase.kind != PhaseKind::run || phase.timed_batch != kTimedBatchAuto) continue;
    const Result<const Driver*> driver = find_driver("null");
    if (!driver) return fail(driver.error());
    OpenOptions options;
    options.value_bytes = usual_value_bytes(workload.values);
    Result<std::unique_ptr<Store>> store = (*driver)->open(options);
    if (!store) return fail(store.error());
    TimedBatchChoice choice{.phase = phase.name, .operations = 1, .null_ns = {}};
    Workload probed = workload;
    for (Phase& other : probed.phases)
      if (other.kind == PhaseKind::run) other.timed_batch = 1;
    if (phase.trace.empty()) {  // the probe must not come to the stream's end
      probed.phases[index].operations = 0;
      probed.phases[index].duration_ms = 1;
    }
    for (std::uint32_t operations = 1; operations <= kTimedBatchMax; operations *= 2) {
      probed.phases[index].timed_batch = operations;
      const Result<double> ns =
          null_ns_with(probed, seed, index, first_measured_thread(phase), **store);
      if (!ns) return fail(ns.error());
      choice.null_ns.emplace_back(operations, *ns);
    }
    choice.operations = fewest_operations(choice.null_ns);
    ASSAY_TRY((*store)->close());
    choices.push_back(std::move(choice));
  }
  return choices;
}

void apply_timed_batches(const std::vector<TimedBatchChoice>& choices, Workload& workload) {
  for (const TimedBatchChoice& choice : choices)
    for (Phase& phase : workload.phases)
      if (phase.name == choice.phase) phase.timed_batch = choice.operations;
}

}  // namespace assay
