// The worker threads of a phase over a store in memory; run under ThreadSanitizer too.
#include "harness/trial/run_phase.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>

#include "adapters/temporary_directory.h"
#include "harness/trial/load_phase.h"
#include "workloads/model.h"

namespace assay {
namespace {

/// A map under a lock. Fails every put once `puts_left` has come down to zero.
class MapStore final : public Store {
 public:
  MapStore() : Store("") {}

  class MapSession final : public Session {
   public:
    explicit MapSession(MapStore& store) : store_(store) {}
    Result<bool> get(std::string_view key, std::string_view& value) override {
      const std::lock_guard lock(store_.mutex_);
      const auto found = store_.entries_.find(std::string(key));
      if (found == store_.entries_.end()) return false;
      value_ = found->second;
      value = value_;
      return true;
    }
    Status put(std::string_view key, std::string_view value) override {
      if (store_.puts_left.fetch_sub(1) <= 0) return fail(ErrorKind::store, "no more puts");
      const std::lock_guard lock(store_.mutex_);
      store_.entries_[std::string(key)] = value;
      return {};
    }
    Status erase(std::string_view key) override {
      const std::lock_guard lock(store_.mutex_);
      store_.entries_.erase(std::string(key));
      return {};
    }
    Status apply(std::span<const Mutation> mutations) override {
      for (const Mutation& mutation : mutations) ASSAY_TRY(put(mutation.key, mutation.value));
      return {};
    }
    Status rollback(std::span<const Mutation>) override { return {}; }
    Result<std::uint64_t> scan(const ScanRange&, ScanSink& sink) override {
      const std::lock_guard lock(store_.mutex_);
      std::uint64_t seen = 0;
      for (const auto& [key, value] : store_.entries_) {
        ++seen;
        if (!sink.entry(key, value)) break;
      }
      return seen;
    }

   private:
    MapStore& store_;
    std::string value_;
  };

  Result<std::unique_ptr<Session>> session() override {
    return std::make_unique<MapSession>(*this);
  }
  Status sync() override { return {}; }
  Status checkpoint() override { return {}; }
  Status settle() override { return {}; }
  Result<Settings> effective_settings() override { return Settings{}; }
  Status close() override { return {}; }

  std::atomic<std::int64_t> puts_left{1'000'000'000};

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> entries_;
};

Workload declared(const std::string& run) {
  const Result<Workload> workload = parse_workload(
      "name = \"small\"\n[keys]\ncount = 300\n[values]\nbytes = 24\n"
      "[[phases]]\nkind = \"load\"\nload_batch = 7\nload_threads = 2\n"
      "[[phases]]\nkind = \"run\"\n" +
          run,
      "small.toml");
  EXPECT_TRUE(workload) << workload.error().message();
  return *workload;
}

constexpr std::uint64_t kSeed = 17;

TEST(RunningAPhase, leaves_the_contents_that_the_model_expects) {
  const Workload workload = declared(
      "operations = 500\nwarm_up = { policy = \"fixed\", operations = 50 }\n"
      "[[phases.roles]]\nname = \"clients\"\nthreads = 2\n"
      "mix = { read = 0.4, update = 0.3, insert = 0.2, erase = 0.1 }\n"
      "[[phases.roles]]\nname = \"churn\"\nbackground = true\nmix = { update = 1.0 }\n");
  MapStore store;
  Model model(workload, kSeed);
  const Result<PhaseFigures> loaded = run_load(store, workload, kSeed, 0, {});
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(loaded->operations, 300);
  model.apply({0, loaded->executed});
  RunPhase phase(store, workload, kSeed, 1);
  ASSERT_TRUE(phase.start());
  const Result<WarmUpFigures> warm_up = phase.warm_up();
  ASSERT_TRUE(warm_up);
  EXPECT_EQ(warm_up->operations, 100);
  const Result<SectionFigures> timed = phase.run(phase.timed_section());
  ASSERT_TRUE(timed) << timed.error().message();
  EXPECT_EQ(timed->operations, 1000);
  const PhaseFigures figures = phase.finish();
  EXPECT_EQ(figures.operations, 1000);
  ASSERT_EQ(figures.executed.size(), 3);
  EXPECT_EQ(figures.executed[0], 550);
  EXPECT_EQ(figures.executed[1], 550);
  std::uint64_t measured = 0;
  for (const auto& one : figures.classes) measured += one ? one->count() : 0;
  EXPECT_EQ(measured, 1000);
  model.apply({1, figures.executed});
  const auto session = store.session();
  const Result<ModelCheck> check = model.check(**session, true);
  ASSERT_TRUE(check) << check.error().message();
  EXPECT_TRUE(check->ok) << check->first_difference;
}

TEST(RunningAPhase, ends_every_thread_at_the_first_error_of_the_store) {
  const Workload workload =
      declared("duration_ms = 600000\n[[phases.roles]]\nthreads = 3\nmix = { update = 1.0 }\n");
  MapStore store;
  store.puts_left = 400;
  RunPhase phase(store, workload, kSeed, 1);
  ASSERT_TRUE(phase.start());
  const Result<SectionFigures> timed = phase.run(phase.timed_section());
  ASSERT_FALSE(timed);
  EXPECT_EQ(timed.error().kind(), ErrorKind::store);
}

TEST(RunningAPhase, gives_up_a_warm_up_that_does_not_become_steady) {
  const Workload workload = declared(
      "duration_ms = 20\n"
      "warm_up = { policy = \"steady\", window_ms = 20, max_slope_per_s = 0.000001, max_ms = 100 "
      "}\n"
      "[[phases.roles]]\nthreads = 2\nmix = { read = 1.0 }\n");
  MapStore store;
  RunPhase phase(store, workload, kSeed, 1);
  ASSERT_TRUE(phase.start());
  const Result<WarmUpFigures> warm_up = phase.warm_up();
  ASSERT_TRUE(warm_up);
  EXPECT_GT(warm_up->operations, 0);
  EXPECT_GT(warm_up->wall_ns, 0);
  ASSERT_TRUE(phase.run(phase.timed_section()));
  EXPECT_GT(phase.finish().operations, 0);
}

TEST(RunningAPhase, in_windows_adds_the_windows_up) {
  const Workload workload =
      declared("duration_ms = 1\n[[phases.roles]]\nthreads = 2\nmix = { update = 1.0 }\n");
  MapStore store;
  RunPhase phase(store, workload, kSeed, 1);
  ASSERT_TRUE(phase.start());
  std::uint64_t wall_ns = 0;
  for (int window = 0; window < 5; ++window) {
    Section section;
    section.operations = 10;
    section.fresh = window == 0;
    const Result<SectionFigures> done = phase.run(section);
    ASSERT_TRUE(done);
    EXPECT_EQ(done->operations, 20);
    wall_ns += done->wall_ns;
  }
  const PhaseFigures figures = phase.finish();
  EXPECT_EQ(figures.operations, 100);
  EXPECT_EQ(figures.wall_ns, wall_ns);
}

TEST(RunningAPhase, of_a_trace_that_goes_away_is_an_error_and_not_a_short_phase) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("ops.trace");
  std::ofstream(path) << "1 update 00 10\n2 update 01 10\n";
  const Result<Workload> workload = parse_workload(
      "name = \"small\"\n[keys]\ncount = 300\nkind = \"bytes\"\nbytes = 8\n[values]\nbytes = 24\n"
      "[[phases]]\nkind = \"run\"\ntrace = \"" +
          path + "\"\n[[phases.roles]]\nname = \"replay\"\n",
      "small.toml");
  ASSERT_TRUE(workload) << workload.error().message();
  std::filesystem::remove(path);
  MapStore store;
  RunPhase phase(store, *workload, kSeed, 0);
  ASSERT_TRUE(phase.start());
  EXPECT_FALSE(phase.run(phase.timed_section()));
}

TEST(ReadsThatFindNothing, are_wrong_contents_where_every_key_was_loaded_and_none_erased) {
  const std::string reads = "operations = 5\n[[phases.roles]]\nmix = { read = 1.0 }\n";
  EXPECT_TRUE(check_reads_found(declared(reads), 1, 0));
  const Status lost = check_reads_found(declared(reads), 1, 3);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().kind(), ErrorKind::wrong_contents);
  const Workload erasing =
      declared("operations = 5\n[[phases.roles]]\nmix = { read = 0.5, erase = 0.5 }\n");
  EXPECT_TRUE(check_reads_found(erasing, 1, 3));
  Workload empty = declared(reads);
  empty.phases.erase(empty.phases.begin());
  EXPECT_TRUE(check_reads_found(empty, 0, 3));
}

TEST(RunningAPhase, reports_a_refused_pin_as_an_error) {
  Workload workload =
      declared("operations = 5\n[[phases.roles]]\nthreads = 2\nmix = { read = 1.0 }\n");
  workload.phases[1].roles[0].cpus = {4095};
  MapStore store;
  RunPhase phase(store, workload, kSeed, 1);
  const Status started = phase.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().kind(), ErrorKind::environment);
}

}  // namespace
}  // namespace assay
