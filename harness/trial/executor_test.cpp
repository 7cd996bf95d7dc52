#include "harness/trial/operation_loop.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "harness/measure/pinning.h"
#include "harness/trial/cpu_pins.h"
#include "harness/trial/phase_record.h"
#include "harness/trial/run_phase.h"
#include "harness/trial/worker_request.h"

namespace assay {
namespace {

/// Keeps entries in memory; every get returns `lie` when it is not empty, fails when broken.
class MapSession final : public Session {
 public:
  Result<bool> get(std::string_view key, std::string_view& value) override {
    if (broken) return fail(ErrorKind::store, "broken on purpose");
    const auto found = entries.find(std::string(key));
    if (found == entries.end()) return false;
    value = lie.empty() ? std::string_view(found->second) : std::string_view(lie);
    return true;
  }
  Status put(std::string_view key, std::string_view value) override {
    entries[std::string(key)] = value;
    return {};
  }
  Status erase(std::string_view key) override {
    entries.erase(std::string(key));
    return {};
  }
  Status apply(std::span<const Mutation> mutations) override {
    for (const Mutation& mutation : mutations)
      ASSAY_TRY(mutation.kind == Mutation::Kind::put ? put(mutation.key, mutation.value)
                                                     : erase(mutation.key));
    return {};
  }
  Status rollback(std::span<const Mutation>) override { return {}; }
  Result<std::uint64_t> scan(const ScanRange&, ScanSink&) override { return std::uint64_t{0}; }

  std::map<std::string, std::string> entries;
  std::string lie;
  bool broken = false;
};

Workload small(const std::string& role) {
  const Result<Workload> workload = parse_workload(
      "name = \"small\"\n[keys]\ncount = 100\n[values]\nbytes = 32\n"
      "[[phases]]\nkind = \"load\"\n[[phases]]\nkind = \"run\"\noperations = 1000\n"
      "[[phases.roles]]\n" +
          role,
      "small.toml");
  EXPECT_TRUE(workload) << workload.error().message();
  return *workload;
}

class Loop : public ::testing::Test {
 protected:
  Loop()
      : workload_(small("mix = { read = 0.5, update = 0.5 }")),
        keys_(workload_.keys, kSeed),
        values_(workload_.values, kSeed),
        loop_(workload_, kSeed, 1, 0, session_, keys_, values_) {
    loop_.begin(ticks_now());
  }
  static constexpr std::uint64_t kSeed = 3;
  Workload workload_;
  MapSession session_;
  KeyCodec keys_;
  ValueCodec values_;
  OperationLoop loop_;
  std::atomic<std::uint64_t> deadline_{kNoDeadline};
};

TEST_F(Loop, records_one_latency_for_every_operation) {
  EXPECT_TRUE(loop_.run(700, kChunkOperations, deadline_, true));
  loop_.recorder().end();
  std::uint64_t recorded = 0;
  for (std::size_t kind = 0; kind < kOpKinds; ++kind)
    if (const Histogram* const one = loop_.recorder().histogram(static_cast<OpKind>(kind)))
      recorded += one->count();
  EXPECT_EQ(recorded, 700);
  EXPECT_EQ(loop_.executed(), 700);
  const OperationCounts& counts = loop_.executor().counts();
  EXPECT_EQ(counts.operations, 700);
  EXPECT_EQ(counts.mutations, loop_.recorder().histogram(OpKind::update)->count());
  EXPECT_EQ(counts.logical_bytes_written, counts.mutations * (8 + 32));
  std::uint64_t in_slots = 0;
  for (const LatencyRecorder::Slot& slot : loop_.recorder().slots()) in_slots += slot.operations;
  EXPECT_EQ(in_slots, 700);
}

/// Counts how often it is asked to make operations.
class CountingStream final : public Stream {
 public:
  CountingStream(std::unique_ptr<Stream> inner, int& fills)
      : inner_(std::move(inner)), fills_(fills) {}
  void fill(Chunk& chunk, std::size_t max_operations) override {
    ++fills_;
    inner_->fill(chunk, max_operations);
  }
  [[nodiscard]] std::uint64_t position() const override { return inner_->position(); }

 private:
  std::unique_ptr<Stream> inner_;
  int& fills_;
};

TEST_F(Loop, makes_no_operations_inside_a_window_that_was_refilled_for) {
  int fills = 0;
  OperationLoop loop(workload_, kSeed, 1, 0, session_, keys_, values_,
                     std::make_unique<CountingStream>(make_stream(workload_, kSeed, 1, 0), fills));
  for (int window = 0; window < 100; ++window) {
    loop.refill(10);
    const int before = fills;
    loop.begin(ticks_now());
    EXPECT_TRUE(loop.run(10, 10, deadline_, true)) << window;
    EXPECT_EQ(fills, before) << "window " << window;
  }
  EXPECT_EQ(loop.executed(), 1000);
  EXPECT_EQ(loop.executed_prefix(), expected_prefix(workload_, kSeed, 1, 0, 1000))
      << "nothing was left out or executed twice";
  loop.refill(10);
  EXPECT_FALSE(loop.run(10, 10, deadline_, true)) << "the stream has ended";
}

TEST_F(Loop, counts_the_time_inside_store_calls_and_not_that_of_making_operations) {
  EXPECT_TRUE(loop_.run(700, kChunkOperations, deadline_, true));
  loop_.recorder().end();
  const double store_ns =
      static_cast<double>(TickScale::get().to_ns(loop_.executor().counts().store_ticks));
  double latencies_ns = 0.0;
  for (const OpKind kind : {OpKind::read, OpKind::update}) {
    const Histogram* const one = loop_.recorder().histogram(kind);
    latencies_ns += one->mean() * static_cast<double>(one->count());
  }
  // Each latency is cut to whole ns.
  EXPECT_NEAR(store_ns, latencies_ns, 701.0);
  EXPECT_GT(store_ns, 0.0);
}

TEST_F(Loop, times_batches_that_are_never_cut_by_a_refill) {
  workload_.phases[1].timed_batch = 10;
  OperationLoop loop(workload_, kSeed, 1, 0, session_, keys_, values_);
  loop.begin(ticks_now());
  EXPECT_TRUE(loop.run(3, kChunkOperations, deadline_, false));  // as after an odd warm-up
  loop.begin(ticks_now());
  std::uint64_t done = 0;
  while (done < 990) {
    const std::uint64_t asked = std::min<std::uint64_t>(loop.until_refill(), 990 - done);
    ASSERT_TRUE(loop.run(asked, kChunkOperations, deadline_, true));
    done += asked;
  }
  loop.recorder().end();
  ASSERT_NE(loop.recorder().histogram(kMixedClass), nullptr);
  // 247 + 250 + 250 + 243: one sample shorter than ten in the first and one in the last buffer.
  EXPECT_EQ(loop.recorder().histogram(kMixedClass)->count(), 25 + 25 + 25 + 25);
  EXPECT_EQ(loop.executor().counts().operations, 990);
}

TEST_F(Loop, goes_on_with_the_stream_where_the_section_before_ended) {
  EXPECT_TRUE(loop_.run(10, 4, deadline_, false));
  loop_.begin(ticks_now());
  EXPECT_FALSE(loop_.run(5000, kChunkOperations, deadline_, true));  // the stream has 1000
  EXPECT_EQ(loop_.executed(), 1000);
  EXPECT_EQ(loop_.executor().counts().operations, 990);
}

TEST_F(Loop, does_nothing_after_the_deadline) {
  deadline_.store(0);
  EXPECT_FALSE(loop_.run(10, kChunkOperations, deadline_, true));
  EXPECT_EQ(loop_.executed(), 0);
  deadline_.store(kNoDeadline);
  EXPECT_TRUE(loop_.run(10, kChunkOperations, deadline_, true));  // nothing was lost of the chunk
  EXPECT_EQ(loop_.executed(), 10);
}

TEST_F(Loop, finds_a_value_that_belongs_to_another_key) {
  EXPECT_TRUE(loop_.run(400, kChunkOperations, deadline_, true));
  EXPECT_FALSE(loop_.executor().failure());
  session_.lie = std::string(32, 'x');
  EXPECT_FALSE(loop_.run(400, kChunkOperations, deadline_, true));
  ASSERT_TRUE(loop_.executor().failure());
  EXPECT_EQ(loop_.executor().failure()->kind(), ErrorKind::wrong_contents);
}

TEST_F(Loop, stops_at_an_error_of_the_store_and_counts_only_what_was_acknowledged) {
  session_.broken = true;
  EXPECT_FALSE(loop_.run(400, kChunkOperations, deadline_, true));
  ASSERT_TRUE(loop_.executor().failure());
  EXPECT_EQ(loop_.executor().failure()->kind(), ErrorKind::store);
  EXPECT_NE(loop_.executor().failure()->message().find("broken on purpose"), std::string::npos);
  EXPECT_EQ(loop_.executed(), loop_.executor().counts().mutations);
}

constexpr std::array<double, kOpKinds> kReadsOnly{1.0};

TEST(Recorder, puts_every_operation_into_the_interval_in_which_it_ended) {
  LatencyRecorder recorder(kReadsOnly, 1);
  Chunk chunk;
  chunk.operations.resize(4);
  const std::uint64_t second = TickScale::get().to_ticks(1'000'000'000);
  const std::uint64_t start = 1'000'000;
  recorder.begin(start);
  const std::uint64_t stamps[] = {start, start + second / 2, start + second + second / 4,
                                  start + second * 5 / 4 + 10, start + second * 7 / 2};
  recorder.record(chunk, 0, 4, stamps);
  recorder.end();
  ASSERT_EQ(recorder.slots().size(), 4);
  EXPECT_EQ(recorder.slots()[0].operations, 1);
  EXPECT_EQ(recorder.slots()[1].operations, 2);
  EXPECT_EQ(recorder.slots()[2].operations, 0);
  EXPECT_EQ(recorder.slots()[3].operations, 1);
  EXPECT_EQ(recorder.rates()[12], 2);
  EXPECT_EQ(recorder.histogram(OpKind::read)->count(), 4);
}

TEST(Recorder, takes_a_clock_that_steps_back_for_no_time_and_counts_it) {
  LatencyRecorder recorder(kReadsOnly, 1);
  Chunk chunk;
  chunk.operations.resize(3);
  const std::uint64_t start = 1'000'000;
  recorder.begin(start);
  const std::uint64_t stamps[] = {start, start + 3000, start + 2990, start + 5990};
  recorder.record(chunk, 0, 3, stamps);
  const std::uint64_t dues[] = {start + 9000, start, start};
  recorder.record_paced(chunk, 0, 1, stamps, dues);
  recorder.end();
  EXPECT_EQ(recorder.clock_steps_back(), 2);
  const Histogram* const reads = recorder.histogram(OpKind::read);
  ASSERT_NE(reads, nullptr);
  EXPECT_EQ(reads->count(), 4);
  EXPECT_EQ(reads->min(), 0);
  EXPECT_LE(reads->max(), TickScale::get().to_ns(3000));
}

TEST(Recorder, is_right_across_a_wrap_of_the_counter) {
  constexpr std::uint64_t kNearWrap = ~std::uint64_t{0} - 99;
  EXPECT_EQ(ticks_between(kNearWrap, kNearWrap + 300), 300);
  EXPECT_FALSE(clock_stepped_back(kNearWrap, kNearWrap + 300));
  EXPECT_EQ(ticks_between(300, 299), 0);
  EXPECT_TRUE(clock_stepped_back(300, 299));
}

TEST(Recorder, takes_a_clock_that_leaps_ahead_without_asking_for_all_memory) {
  LatencyRecorder recorder(kReadsOnly, 1);
  Chunk chunk;
  chunk.operations.resize(2);
  recorder.begin(1000);
  const std::uint64_t stamps[] = {1000, std::uint64_t{1} << 62, 2000};
  recorder.record(chunk, 0, 1, stamps);
  recorder.end();
  EXPECT_EQ(recorder.rates().size(), LatencyRecorder::kRatesMax);
  EXPECT_EQ(recorder.rates().back(), 1);
}

TEST(Recorder, divides_the_time_of_a_batch_by_its_operations) {
  const TickScale& scale = TickScale::get();
  const auto after = [&](std::uint64_t ns) { return 1000 + scale.to_ticks(ns); };
  Chunk chunk;
  chunk.operations.resize(5);
  const std::uint64_t stamps[] = {1000, after(4000), after(12'000), after(13'000)};
  LatencyRecorder reads(kReadsOnly, 2);
  reads.begin(1000);
  reads.record(chunk, 0, 5, stamps);  // 2, 2 and the 1 that was left
  reads.end();
  const Histogram* const samples = reads.histogram(OpKind::read);
  ASSERT_NE(samples, nullptr);
  EXPECT_EQ(samples->count(), 3);
  EXPECT_NEAR(static_cast<double>(samples->value_at(0.5)), 2000.0, 3.0);
  EXPECT_NEAR(static_cast<double>(samples->max()), 4000.0, 3.0);
  EXPECT_NEAR(static_cast<double>(samples->min()), 1000.0, 3.0);
  EXPECT_EQ(reads.slots().at(0).operations, 5);

  std::array<double, kOpKinds> half{0.5, 0.5};
  LatencyRecorder mixed(half, 2);
  mixed.begin(1000);
  mixed.record(chunk, 0, 5, stamps);
  mixed.end();
  EXPECT_EQ(mixed.histogram(OpKind::read), nullptr);
  ASSERT_NE(mixed.histogram(kMixedClass), nullptr);
  EXPECT_EQ(mixed.histogram(kMixedClass)->count(), 3);
}

TEST(Steadiness, is_the_slope_of_the_rate_relative_to_its_mean) {
  // 90, 100, 110 at intervals of half a second: 20 a second on a mean of 100.
  EXPECT_DOUBLE_EQ(*relative_slope_per_s({1e9, 90, 100, 110}, 3, 0.5), 0.2);
  EXPECT_DOUBLE_EQ(*relative_slope_per_s({5, 5, 5}, 3, 0.5), 0.0);
  EXPECT_FALSE(relative_slope_per_s({1, 2}, 3, 0.5));
  EXPECT_FALSE(relative_slope_per_s({0, 0, 0}, 3, 0.5));
}

TEST(Segments, begin_after_a_restart_and_before_a_cold_phase) {
  Workload workload;
  const auto add = [&](PhaseKind kind, CachePolicy cache = CachePolicy::as_is) {
    Phase phase;
    phase.kind = kind;
    phase.cache = cache;
    workload.phases.push_back(phase);
  };
  add(PhaseKind::load);
  add(PhaseKind::restart);
  add(PhaseKind::run, CachePolicy::cold);  // the restart before it is enough
  add(PhaseKind::run);
  add(PhaseKind::run, CachePolicy::cold_files);
  const auto segments = segments_of(workload);
  ASSERT_EQ(segments.size(), 3);
  EXPECT_EQ(segments[0].last, 2);
  EXPECT_EQ(segments[1].first, 2);
  EXPECT_EQ(segments[1].last, 4);
  EXPECT_EQ(segments[2].first, 4);
  EXPECT_EQ(segments[2].last, 5);
}

TEST(TrendOfAPhase, is_flagged_when_the_rate_rises_steadily_and_not_when_it_is_flat) {
  std::vector<double> rising;
  std::vector<double> flat;
  for (int i = 0; i < 50; ++i) {
    rising.push_back(1000.0 + 10.0 * i);
    flat.push_back(1000.0 + (i % 2 == 0 ? 3.0 : -3.0));
  }
  EXPECT_TRUE(trend_record(rising).at("flagged"));
  EXPECT_NEAR(trend_record(rising).at("relative_change"), 490.0 / 1245.0, 1e-9);
  EXPECT_FALSE(trend_record(flat).at("flagged"));
  EXPECT_TRUE(trend_record({1.0, 2.0}).at("p").contains("unknown"));
}

TEST(ParentOfATrial, keeps_off_the_pinned_cpus_and_comes_back) {
  const Result<std::vector<int>> before = allowed_cpus();
  ASSERT_TRUE(before) << before.error().message();
  Workload workload = small("mix = { read = 1.0 }");
  {
    const ParentElsewhere unpinned(workload);
    EXPECT_TRUE(unpinned.before().empty());
  }
  workload.phases[1].roles[0].cpus = {before->front()};
  {
    const ParentElsewhere elsewhere(workload);
    const Result<std::vector<int>> now = allowed_cpus();
    ASSERT_TRUE(now);
    if (before->size() == 1) {
      EXPECT_EQ(*now, *before);  // there is nowhere else
    } else {
      EXPECT_EQ(elsewhere.before(), *before);
      EXPECT_EQ(now->size(), before->size() - 1);
      EXPECT_NE(now->front(), before->front());
    }
  }
  EXPECT_EQ(*allowed_cpus(), *before);
}

TEST(WorkerRequests, come_back_from_json_as_they_were) {
  WorkerRequest request;
  request.task = WorkerTask::validate;
  request.store = "null";
  request.settings = {{"a", "b"}};
  request.workload = small("mix = { read = 1.0 }");
  request.seed = 77;
  request.executed = {{1, {5, 6}}};
  request.cpus = {0, 3};
  const Result<WorkerRequest> back = worker_request_from_json(to_json(request));
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(to_json(*back), to_json(request));
  EXPECT_EQ(back->executed.at(0).operations, (std::vector<std::uint64_t>{5, 6}));
  EXPECT_EQ(back->cpus, (std::vector<int>{0, 3}));
}

}  // namespace
}  // namespace assay
