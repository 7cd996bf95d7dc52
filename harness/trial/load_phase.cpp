#include "harness/trial/load_phase.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "harness/measure/clock.h"
#include "harness/trial/quit_mask.h"
#include "workloads/stream.h"
#include "workloads/stream_digest.h"

namespace assay {
namespace {

/// One loading thread.
class Loader {
 public:
  Loader(Store& store, const Workload& workload, std::uint64_t seed, std::size_t phase,
         std::uint32_t thread)
      : store_(store),
        // The stream makes whole batches: one at a time, so that its bytes stay few.
        most_(workload.phases[phase].load_batch == 1 ? kChunkOperations : 1),
        stream_(make_stream(workload, seed, phase, thread)),
        digest_(workload, seed, phase) {
    stream_->fill(chunk_, most_);  // before the clock starts
  }

  void run(const std::atomic<bool>& give_up) {
    Result<std::unique_ptr<Session>> session = store_.session();
    if (!session) {
      failure_ = session.error();
      return;
    }
    while (!give_up.load(std::memory_order_relaxed) && !chunk_.operations.empty()) {
      for (const Operation& operation : chunk_.operations)
        if (!commit(**session, operation)) return;
      if (!digest_.full()) digest_.add(chunk_, 0, chunk_.operations.size());
      stream_->fill(chunk_, most_);
    }
  }

  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  [[nodiscard]] std::uint64_t loaded() const { return loaded_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t executed() const { return executed_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] const Histogram& latencies() const { return latencies_; }
  [[nodiscard]] std::uint64_t store_ns() const { return TickScale::get().to_ns(store_ticks_); }
  [[nodiscard]] std::uint64_t clock_steps_back() const { return clock_steps_back_; }
  [[nodiscard]] StreamPrefix prefix() const { return digest_.prefix(); }

 private:
  bool commit(Session& session, const Operation& operation) {
    const std::span<const Mutation> mutations{
        chunk_.mutations.data() + operation.first_mutation,
        operation.kind == OpKind::batch ? operation.entries : 0};
    const std::uint64_t before = ticks_now();
    const Status done = operation.kind == OpKind::batch
                            ? session.apply(mutations)
                            : session.put(operation.key, operation.value);
    const std::uint64_t after = ticks_now();
    const std::uint64_t ticks = ticks_between(before, after);
    clock_steps_back_ += clock_stepped_back(before, after) ? 1 : 0;
    store_ticks_ += ticks;
    latencies_.record(TickScale::get().to_ns(ticks));
    if (!done) {
      failure_ = done.error();
      return false;
    }
    if (operation.kind != OpKind::batch) bytes_ += operation.key.size() + operation.value.size();
    for (const Mutation& mutation : mutations)
      bytes_ += mutation.key.size() + mutation.value.size();
    ++executed_;
    const std::uint64_t keys = mutations.empty() ? 1 : mutations.size();
    loaded_.store(loaded_.load(std::memory_order_relaxed) + keys, std::memory_order_relaxed);
    return true;
  }

  Store& store_;
  std::size_t most_;  ///< operations a chunk
  std::unique_ptr<Stream> stream_;
  ExecutedDigest digest_;
  Chunk chunk_;
  std::atomic<std::uint64_t> loaded_{0};  ///< keys
  std::uint64_t executed_ = 0;            ///< operations of the stream
  std::uint64_t bytes_ = 0;
  std::uint64_t store_ticks_ = 0;
  std::uint64_t clock_steps_back_ = 0;
  Histogram latencies_;
  std::optional<Error> failure_;
};

/// Runs the loaders side by side; the calling thread reports the progress.
void run_all(std::vector<std::unique_ptr<Loader>>& loaders, std::uint64_t keys,
             const OnFraction& progress) {
  std::atomic<bool> give_up{false};
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t running = loaders.size();
  std::vector<std::thread> threads;
  for (auto& loader : loaders)
    threads.emplace_back([&, loader = loader.get()] {
      loader->run(give_up);
      if (loader->failure()) give_up.store(true, std::memory_order_relaxed);
      const std::lock_guard lock(mutex);
      --running;
      ended.notify_all();
    });
  {
    const QuitGoesToWorkers quit_mask;
    std::unique_lock lock(mutex);
    while (!ended.wait_for(lock, std::chrono::milliseconds(100), [&] { return running == 0; })) {
      std::uint64_t loaded = 0;
      for (const auto& loader : loaders) loaded += loader->loaded();
      if (progress) progress(static_cast<double>(loaded) / static_cast<double>(keys));
    }
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace

Result<PhaseFigures> run_load(Store& store, const Workload& workload, std::uint64_t seed,
                              std::size_t phase, const OnFraction& progress) {
  const Phase& load = workload.phases.at(phase);
  std::vector<std::unique_ptr<Loader>> loaders;
  for (std::uint32_t thread = 0; thread < load.load_threads; ++thread)
    loaders.push_back(std::make_unique<Loader>(store, workload, seed, phase, thread));
  const std::uint64_t start = ticks_now();
  run_all(loaders, workload.keys.count, progress);
  PhaseFigures figures;
  figures.wall_ns = TickScale::get().to_ns(ticks_between(start, ticks_now()));
  auto& latencies =
      figures
          .classes[static_cast<std::size_t>(load.load_batch == 1 ? OpKind::insert : OpKind::batch)];
  latencies = std::make_unique<Histogram>();
  for (const auto& loader : loaders) {
    if (loader->failure()) return fail(*loader->failure());
    figures.executed.push_back(loader->executed());
    figures.streams.push_back(loader->prefix());
    figures.store.add(loader->loaded(), loader->store_ns());
    figures.clock_steps_back += loader->clock_steps_back();
    figures.operations += loader->loaded();
    figures.logical_bytes_written += loader->bytes();
    latencies->merge(loader->latencies());
  }
  figures.mutations = figures.operations;
  return figures;
}

}  // namespace assay
