// Trials from end to end, with real child processes at tiny scale.
#include "harness/trial/trial.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "adapters/temporary_directory.h"
#include "harness/measure/pinning.h"
#include "harness/trial/cache_policy.h"
#include "harness/trial/child_process.h"
#include "harness/trial/worker_request.h"
#include "workloads/stream_digest.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Trial : public ::testing::Test {
 protected:
  TrialRequest request(const std::string& store, const std::string& phases,
                       const std::string& keys = "count = 500") {
    const Result<Workload> workload = parse_workload(
        "name = \"small\"\n[keys]\n" + keys + "\n[values]\nbytes = 40\n" + phases, "small.toml");
    EXPECT_TRUE(workload) << workload.error().message();
    TrialRequest made;
    made.arm.name = store;
    made.arm.store = store;
    made.arm.durability = DurabilityClass::process;
    made.workload = *workload;
    made.seed = 11;
    made.root = root_ + "/bench";
    made.log_path = root_ + "/trial.log";
    made.timeout_ms = 60'000;
    made.binary = ASSAY_TEST_CHILD;
    return made;
  }
  json run(const TrialRequest& asked) {
    Result<json> record = run_trial(asked, stop_);
    EXPECT_TRUE(record) << record.error().message();
    return record ? *record : json();
  }
  /// Nothing of a trial is left below the root.
  void expect_clean() {
    for (const auto& entry : fs::directory_iterator(root_ + "/bench"))
      ADD_FAILURE() << "left behind: " << entry.path();
  }

  const TemporaryDirectory own_;
  const std::string root_ = own_.path();
  std::atomic<bool> stop_{false};
};

const std::string kLoad = "[[phases]]\nkind = \"load\"\nload_batch = 100\n";
const std::string kRun =
    "[[phases]]\nkind = \"run\"\noperations = 300\n"
    "[[phases.roles]]\nname = \"clients\"\nmix = { read = 0.5, update = 0.5 }\n";

json phase_of(const json& record, const std::string& name) {
  for (const json& phase : record.at("phases"))
    if (phase.at("name") == name) return phase;
  ADD_FAILURE() << "no phase " << name << " in " << record.dump(1);
  return {};
}

/// Member by member: a figure of the format is there, as a number or as {"unknown": why}.
void expect_figure(const json& where, const std::string& pointer) {
  const json::json_pointer at(pointer);
  ASSERT_TRUE(where.contains(at)) << pointer << " is missing in " << where.dump(1);
  const json& figure = where.at(at);
  EXPECT_TRUE(figure.is_number() || (figure.is_object() && figure.contains("unknown")))
      << pointer << " is " << figure.dump();
}

TEST_F(Trial, over_the_null_store_gives_every_figure_and_leaves_nothing) {
  const json record = run(request("null", kLoad + kRun));
  EXPECT_EQ(record.at("status"), "ok") << record.at("reason");
  EXPECT_EQ(record.at("schema"), 1);
  EXPECT_EQ(phase_of(record, "run").at("not_found"), 0) << "null answers with a value";
  EXPECT_EQ(record.at("seed"), 11);
  for (const char* pointer :
       {"/wall_ns", "/fixed_cost_ns", "/drain_ns", "/open_ns", "/close_ns", "/space/files",
        "/space/apparent_bytes", "/space/allocated_bytes", "/space/entries"})
    expect_figure(record, pointer);
  EXPECT_TRUE(record.at("validation").contains("unknown"));
  EXPECT_EQ(record.at("store").at("durability"), "process");
  EXPECT_FALSE(record.at("stream_digest").get<std::string>().empty());
  const json run_phase = phase_of(record, "run");
  EXPECT_EQ(run_phase.at("operations"), 300);
  EXPECT_EQ(run_phase.at("executed"), json::array({300}));
  EXPECT_EQ(run_phase.at("failed"), 0);
  EXPECT_GT(run_phase.at("throughput_per_s"), 0.0);
  for (const char* pointer : {"/wall_ns",
                              "/io/requested_write_bytes",
                              "/io/device_write_bytes",
                              "/io/device_flushes",
                              "/barriers/fsync",
                              "/barriers/fdatasync",
                              "/barriers/dsync_writes",
                              "/barriers/syncfs",
                              "/cpu/user_ns",
                              "/cpu/system_ns",
                              "/cpu/foreign_ns",
                              "/cpu/foreign_user_ns",
                              "/faults/minor",
                              "/faults/major",
                              "/context_switches/voluntary",
                              "/rss/peak_bytes",
                              "/rss/final_bytes",
                              "/warm_up/operations",
                              "/cache/resident_fraction",
                              "/trend/p"})
    expect_figure(run_phase, pointer);
  std::uint64_t count = 0;
  std::uint64_t buckets = 0;
  for (const auto& [name, figures] : run_phase.at("classes").items()) {
    count += figures.at("count").get<std::uint64_t>();
    for (const json& bucket : figures.at("histogram")) buckets += bucket.at(1).get<std::uint64_t>();
  }
  EXPECT_EQ(count, 300);
  EXPECT_EQ(buckets, 300);
  EXPECT_EQ(run_phase.at("mutations"), run_phase.at("classes").at("update").at("count"));
  EXPECT_EQ(phase_of(record, "load").at("operations"), 500);
  expect_clean();
}

TEST_F(Trial, over_sqlite_is_validated_in_a_fresh_process) {
  const json record = run(
      request("sqlite",
              kLoad + kRun + "[[phases]]\nkind = \"checkpoint\"\n[[phases]]\nkind = \"settle\"\n"));
  EXPECT_EQ(record.at("status"), "ok") << record.at("reason");
  EXPECT_TRUE(record.at("validation").at("ok"));
  EXPECT_EQ(record.at("validation").at("entries"), 500);
  EXPECT_EQ(record.at("validation").at("digest"), record.at("validation").at("expected_digest"));
  EXPECT_EQ(record.at("recovery_ns").size(), 1);
  EXPECT_GT(record.at("drain_ns"), 0);
  EXPECT_GT(record.at("space").at("apparent_bytes"), 500 * 48);
  EXPECT_TRUE(phase_of(record, "run").contains("throughput_with_drain_per_s"));
  EXPECT_FALSE(record.at("store").at("settings_effective").empty());
  EXPECT_EQ(phase_of(record, "run").at("not_found"), 0);
  expect_clean();
}

TEST_F(Trial, charges_each_timed_phase_the_drain_behind_it_and_tells_the_measured_ones) {
  TrialRequest asked = request("sqlite", kLoad + "[[phases]]\nkind = \"checkpoint\"\n" + kRun);
  asked.workload.phases[0].timed = true;
  asked.workload.measured_phase = "load";
  const json record = run(asked);
  const json added = phase_of(record, "load");
  const double drain_ns = phase_of(record, "checkpoint").at("wall_ns");
  EXPECT_NEAR(added.at("throughput_with_drain_per_s").get<double>(),
              500e9 / (added.at("wall_ns").get<double>() + drain_ns), 1e-3);
  EXPECT_EQ(record.at("drain_ns"), drain_ns);
}

TEST_F(Trial, removes_the_index_makes_it_again_and_still_finds_everything) {
  const std::string rebuild = "[[phases]]\nkind = \"settle\"\n[[phases]]\nkind = \"rebuild\"\n";
  const json record = run(request("lode", kLoad + rebuild + kRun, "count = 5000"));
  ASSERT_EQ(record.at("status"), "ok") << record.at("reason");
  EXPECT_EQ(phase_of(record, "rebuild").at("operations"), 5000) << "made from all entries";
  EXPECT_EQ(record.at("recovery_ns").size(), 2) << "opened after it, and to be validated";
}

TEST_F(Trial, refuses_to_remove_an_index_from_a_store_that_has_none_apart) {
  const std::string rebuild = "[[phases]]\nkind = \"rebuild\"\n";
  const Result<json> record = run_trial(request("sqlite", kLoad + rebuild + kRun), stop_);
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().kind(), ErrorKind::unsupported);
}

TEST_F(Trial, pins_its_workers_although_the_parent_keeps_off_their_cpu) {
  const Result<std::vector<int>> cpus = allowed_cpus();
  ASSERT_TRUE(cpus) << cpus.error().message();
  TrialRequest asked = request("sqlite", kLoad + kRun);
  asked.workload.phases.back().roles.front().cpus = {cpus->back()};
  EXPECT_EQ(run(asked).at("status"), "ok");
  EXPECT_EQ(*allowed_cpus(), *cpus);
}

TEST_F(Trial, restarts_in_fresh_processes_where_the_workload_says_so) {
  const json record = run(request("sqlite", kLoad + "[[phases]]\nkind = \"restart\"\n" + kRun));
  EXPECT_EQ(record.at("status"), "ok") << record.at("reason");
  EXPECT_EQ(record.at("recovery_ns").size(), 2);  // the restart and the validation
  EXPECT_EQ(phase_of(record, "restart").at("wall_ns"), record.at("recovery_ns").at(0));
  ASSERT_EQ(record.at("phases").size(), 3);
  EXPECT_EQ(record.at("phases").at(1).at("kind"), "restart");
}

const std::string kKill = "[[phases]]\nkind = \"restart\"\nhow = \"kill\"\n";

TEST_F(Trial, kills_the_process_where_the_workload_says_so_and_keeps_what_was_acknowledged) {
  for (const char* store : {"sqlite", "raw-file"}) {
    const json record = run(
        request(store, kLoad + kKill + kRun +
                           "[[phases]]\nkind = \"restart\"\nname = \"again\"\nhow = \"kill\"\n"));
    EXPECT_EQ(record.at("status"), "ok") << store << ": " << record.at("reason");
    EXPECT_TRUE(record.at("validation").at("ok")) << store;
    EXPECT_EQ(record.at("recovery_ns").size(), 3) << store;
    EXPECT_EQ(phase_of(record, "restart").at("how"), "kill");
    EXPECT_EQ(phase_of(record, "restart").at("wall_ns"), record.at("recovery_ns").at(0));
    EXPECT_TRUE(record.at("close_ns").is_number()) << "the last process is closed";
  }
  expect_clean();
}

TEST_F(Trial, that_kills_leaves_the_store_unclosed) {
  for (const bool kill : {false, true}) {
    WorkerRequest worker;
    worker.store = "sqlite";
    worker.durability = DurabilityClass::process;
    worker.workload =
        request("sqlite", kLoad + (kill ? kKill : "[[phases]]\nkind = \"restart\"\n")).workload;
    worker.directory = root_ + (kill ? "/killed" : "/closed");
    worker.outcome_path = worker.directory + ".json";
    worker.last_phase = 2;
    fs::create_directory(worker.directory);
    const std::string path = worker.directory + ".request";
    std::ofstream(path) << to_json(worker).dump();
    auto child = ChildProcess::start(ASSAY_TEST_CHILD, {"worker", path}, root_ + "/child.log");
    ASSERT_TRUE(child) << child.error().message();
    const std::string death = (*child)->wait();
    EXPECT_EQ(death.find("signal 9") != std::string::npos, kill) << death;
    EXPECT_TRUE(fs::exists(worker.outcome_path));
    bool log_left = false;
    for (const auto& entry : fs::directory_iterator(worker.directory))
      log_left = log_left || (entry.path().string().ends_with("-wal") && entry.file_size() > 0);
    EXPECT_EQ(log_left, kill) << "closing moves the log into the file and removes it";
  }
}

TEST_F(Trial, that_kills_disqualifies_a_store_that_loses_what_it_acknowledged) {
  TrialRequest asked = request("lying", kLoad + kRun + kKill);
  asked.arm.store = ASSAY_TEST_LYING_STORE;
  asked.arm.settings = {{"lie", "lose_last"}};
  const json record = run(asked);
  EXPECT_EQ(record.at("status"), "disqualified");
  EXPECT_NE(record.at("reason").get<std::string>().find("wrong contents"), std::string::npos);
}

TEST_F(Trial, refuses_to_kill_a_store_that_promises_nothing_after_it) {
  TrialRequest asked = request("sqlite", kLoad + kKill);
  asked.arm.durability = DurabilityClass::volatile_;
  const Result<json> record = run_trial(asked, stop_);
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().kind(), ErrorKind::bad_input);
  EXPECT_NE(record.error().message().find("promises nothing"), std::string::npos);
  asked.arm.store = "null";  // keeps nothing in any class
  EXPECT_EQ(run(asked).at("status"), "ok");
}

TEST_F(Trial, records_the_time_inside_store_calls_beside_the_wall_time) {
  const json record = run(request("null", kLoad + "[[phases]]\nkind = \"run\"\noperations = 30000\n"
                                                  "[[phases.roles]]\nname = \"clients\"\n"
                                                  "threads = 2\nmix = { read = 1.0 }\n"));
  ASSERT_EQ(record.at("status"), "ok") << record.at("reason");
  const json phase = phase_of(record, "run");
  const double store_ns = phase.at("store_ns");
  EXPECT_GT(store_ns, 0.0);
  EXPECT_LT(store_ns, 2.0 * phase.at("wall_ns").get<double>()) << "of two threads";
  EXPECT_GT(phase.at("store_rate_per_s").get<double>(), phase.at("throughput_per_s").get<double>());
  EXPECT_EQ(phase.at("roles").at("clients").at("store_ns"), phase.at("store_ns"));
  EXPECT_EQ(phase.at("clock_steps_back"), 0);
  const json load = phase_of(record, "load");
  EXPECT_GT(load.at("store_ns"), 0);
  EXPECT_LE(load.at("store_ns"), load.at("wall_ns"));
}

TEST_F(Trial, times_batches_of_operations_where_the_workload_says_so) {
  const json record =
      run(request("sqlite", kLoad + "[[phases]]\nkind = \"run\"\noperations = 500\n"
                                    "timed_batch = 25\n[[phases.roles]]\nname = \"writer\"\n"
                                    "mix = { update = 1.0 }\n"));
  ASSERT_EQ(record.at("status"), "ok") << record.at("reason");
  const json phase = phase_of(record, "run");
  EXPECT_EQ(phase.at("operations"), 500);
  EXPECT_EQ(phase.at("operations_per_sample"), 25);
  EXPECT_EQ(phase.at("classes").at("update").at("count"), 20);
  EXPECT_NEAR(phase.at("classes").at("update").at("mean_ns").get<double>() * 500,
              phase.at("store_ns").get<double>(), 500 * 2.0);
}

/// A program between parent and child: `before` may change the request ("$2"), `after` what the
/// child leaves.
std::string child_with(const std::string& root, const std::string& before,
                       const std::string& after = "") {
  const std::string path = root + "/child.sh";
  std::ofstream(path) << "#!/bin/sh\n"
                      << before << "\n"
                      << ASSAY_TEST_CHILD << " \"$@\"\n"
                      << "status=$?\n"
                      << after << "\nexit $status\n";
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

TEST_F(Trial, is_void_when_its_child_was_given_other_operations_than_were_declared) {
  TrialRequest asked = request("sqlite", kLoad + kRun);
  asked.binary = child_with(root_, "sed -i s/nothing/nothing/ \"$2\"");
  EXPECT_EQ(run(asked).at("status"), "ok");
  for (const char* change : {R"(s/"seed":11/"seed":12/)", R"(s/"read":0.5/"read":0.4/)"}) {
    asked.binary = child_with(root_, std::string("sed -i '") + change + "' \"$2\"");
    const json record = run(asked);
    EXPECT_EQ(record.at("status"), "void") << change;
    EXPECT_NE(record.at("reason").get<std::string>().find("another operation stream"),
              std::string::npos)
        << record.at("reason");
    EXPECT_NE(record.at("stream_digest"), stream_digest(asked.workload, asked.seed));
  }
}

TEST_F(Trial, is_void_when_its_child_executed_other_operations_than_were_declared) {
  TrialRequest asked = request("sqlite", kLoad + kRun);
  asked.binary =
      child_with(root_, "", R"(sed -i 's/"digest":"./"digest":"x/' "${2%/*}"/outcome-0.json)");
  const json record = run(asked);
  EXPECT_EQ(record.at("status"), "void");
  EXPECT_NE(record.at("reason").get<std::string>().find("has executed other operations"),
            std::string::npos)
      << record.at("reason");
}

TEST_F(Trial, ends_a_background_role_with_the_measured_one_and_keeps_it_apart) {
  const json record = run(request(
      "sqlite", kLoad + "[[phases]]\nkind = \"run\"\noperations = 400\n"
                        "[[phases.roles]]\nname = \"readers\"\nthreads = 2\nmix = { read = 1.0 }\n"
                        "[[phases.roles]]\nname = \"writer\"\nbackground = true\n"
                        "mix = { update = 1.0 }\n"));
  EXPECT_EQ(record.at("status"), "ok") << record.at("reason");
  const json phase = phase_of(record, "run");
  EXPECT_EQ(phase.at("operations"), 800);
  EXPECT_EQ(phase.at("roles").at("readers").at("operations"), 800);
  EXPECT_TRUE(phase.at("roles").at("writer").at("background"));
  EXPECT_EQ(phase.at("roles").at("writer").at("operations"), phase.at("mutations"));
  EXPECT_FALSE(phase.at("classes").contains("update"));
  EXPECT_EQ(phase.at("executed").size(), 3);
}

TEST_F(Trial, in_an_open_loop_counts_lag_and_skipped_slots) {
  const json record =
      run(request("null", kLoad + "[[phases]]\nkind = \"run\"\nduration_ms = 200\n"
                                  "[[phases.roles]]\nrate_per_s = 1000.0\nmix = { read = 1.0 }\n"));
  EXPECT_EQ(record.at("status"), "ok") << record.at("reason");
  const json phase = phase_of(record, "run");
  const auto done = phase.at("operations").get<std::uint64_t>();
  const auto skipped = phase.at("open_loop").at("skipped").get<std::uint64_t>();
  EXPECT_GE(done + skipped, 199);  // 200 slots of 1 ms; the clock's scale may move the last one
  EXPECT_LE(done + skipped, 201);
  EXPECT_GT(phase.at("open_loop").at("lag_max_ns"), 0);
}

TEST_F(Trial, warms_up_apart_from_the_timed_part) {
  const json record =
      run(request("sqlite", kLoad + "[[phases]]\nkind = \"run\"\noperations = 200\n"
                                    "warm_up = { policy = \"fixed\", operations = 70 }\n"
                                    "[[phases.roles]]\nmix = { read = 0.5, update = 0.5 }\n"));
  EXPECT_EQ(record.at("status"), "ok") << record.at("reason");
  const json phase = phase_of(record, "run");
  EXPECT_EQ(phase.at("operations"), 200);
  EXPECT_EQ(phase.at("warm_up").at("operations"), 70);
  EXPECT_EQ(phase.at("executed"), json::array({270}));
}

TEST_F(Trial, runs_a_cold_phase_in_a_fresh_process_with_its_files_out_of_the_cache) {
  const std::string cold =
      "[[phases]]\nkind = \"run\"\nname = \"cold\"\ncache = \"cold-files\"\noperations = 50\n"
      "max_resident = 0.5\n[[phases.roles]]\nmix = { read = 1.0 }\n";
  const json record = run(request("sqlite", kLoad + cold, "count = 5000"));
  ASSERT_EQ(record.at("status"), "ok") << record.at("reason");
  EXPECT_EQ(record.at("recovery_ns").size(), 2);  // the cold process and the validation
  const json cache = phase_of(record, "cold").at("cache");
  EXPECT_EQ(cache.at("policy"), "cold-files");
  EXPECT_LE(cache.at("resident_fraction"), 0.5);
}

TEST_F(Trial, runs_a_cold_phase_over_a_data_set_of_which_opening_caches_a_large_share) {
  // SQLite maps the index of its log, 32 KiB, whatever is in the file.
  const std::string cold =
      "[[phases]]\nkind = \"run\"\nname = \"cold\"\ncache = \"cold-files\"\noperations = 50\n"
      "[[phases.roles]]\nmix = { read = 1.0 }\n";
  const json record = run(request("sqlite", kLoad + cold, "count = 2000"));
  ASSERT_EQ(record.at("status"), "ok") << record.at("reason");
  const json cache = phase_of(record, "cold").at("cache");
  EXPECT_LE(cache.at("resident_bytes"), 65'536);
}

TEST(ColdPhase, may_begin_below_the_larger_of_its_two_limits) {
  Phase phase;
  phase.max_resident = 0.02;
  phase.max_resident_bytes = 1000;
  CacheFigures figures;
  figures.resident_fraction = 0.5;
  figures.resident_bytes = 1000;
  EXPECT_TRUE(within_limits(phase, figures));
  figures.resident_bytes = 1001;
  EXPECT_FALSE(within_limits(phase, figures));
  figures.resident_fraction = 0.02;
  EXPECT_TRUE(within_limits(phase, figures));
}

TEST_F(Trial, is_void_when_a_cold_phase_would_not_be_cold) {
  const std::string cold =
      "[[phases]]\nkind = \"run\"\nname = \"cold\"\ncache = \"cold-files\"\noperations = 50\n"
      "max_resident = 0.0\nmax_resident_bytes = 0\n[[phases.roles]]\nmix = { read = 1.0 }\n";
  // Opening SQLite reads at least the first page.
  const json record = run(request("sqlite", kLoad + cold));
  if (record.at("status") == "ok") {
    EXPECT_EQ(phase_of(record, "cold").at("cache").at("resident_fraction"), 0.0);
    return;
  }
  EXPECT_EQ(record.at("status"), "void");
  EXPECT_NE(record.at("reason").get<std::string>().find("was to be cold"), std::string::npos)
      << record.at("reason");
}

TEST_F(Trial, disqualifies_a_store_that_crashes) {
  TrialRequest asked = request("crashing", kLoad + kRun);
  asked.arm.store = ASSAY_TEST_CRASHING_STORE;
  asked.arm.durability = DurabilityClass::process;
  asked.arm.settings = {{"crash_in", "put"}, {"crash_after", "20"}};
  const json record = run(asked);
  EXPECT_EQ(record.at("status"), "disqualified");
  const std::string reason = record.at("reason");
  EXPECT_NE(reason.find("killed by signal 11"), std::string::npos) << reason;
  EXPECT_NE(reason.find("crashed with signal 11 inside put"), std::string::npos) << reason;
  expect_clean();
}

TEST_F(Trial, disqualifies_a_store_that_ends_its_process) {
  TrialRequest asked = request("crashing", kLoad + kRun);
  asked.arm.store = ASSAY_TEST_CRASHING_STORE;
  asked.arm.settings = {{"crash_in", "put"}, {"crash_after", "20"}, {"crash_how", "exit"}};
  const json record = run(asked);
  EXPECT_EQ(record.at("status"), "disqualified");
  const std::string reason = record.at("reason");
  EXPECT_NE(reason.find("exit status 3"), std::string::npos) << reason;
  expect_clean();
}

TEST_F(Trial, disqualifies_a_store_that_fails) {
  TrialRequest asked = request("crashing", kLoad + kRun);
  asked.arm.store = ASSAY_TEST_CRASHING_STORE;
  asked.arm.settings = {{"crash_in", "put"}, {"crash_after", "20"}, {"crash_how", "throw"}};
  const json record = run(asked);
  EXPECT_EQ(record.at("status"), "disqualified");
  EXPECT_NE(record.at("reason").get<std::string>().find("store error"), std::string::npos);
  expect_clean();
}

TEST_F(Trial, records_the_memory_budget_that_it_was_held_to) {
  TrialRequest asked = request("sqlite", kLoad + kRun);
  asked.workload.memory_bytes = 32 << 20;
  const json memory = run(asked).at("memory");
  if (memory.contains("unknown")) GTEST_SKIP() << memory;  // no control group may be made here
  EXPECT_EQ(memory.at("budget_bytes"), 32 << 20);
  EXPECT_EQ(memory.at("limit_bytes"), (32 << 20) + kHarnessMemoryBytes);
  EXPECT_GT(memory.at("peak_bytes"), 1 << 20);
}

TEST_F(Trial, disqualifies_a_store_that_wants_more_memory_than_the_budget) {
  TrialRequest asked = request("crashing", kLoad + kRun);
  asked.workload.memory_bytes = 16 << 20;
  asked.arm.store = ASSAY_TEST_CRASHING_STORE;
  asked.arm.settings = {{"crash_in", "put"}, {"crash_after", "20"}, {"crash_how", "memory"}};
  const json record = run(asked);
  if (record.at("memory").contains("unknown")) GTEST_SKIP() << record.at("memory");
  EXPECT_EQ(record.at("status"), "disqualified");
  const std::string reason = record.at("reason");
  EXPECT_NE(reason.find("wanted more than the 16 MiB"), std::string::npos) << reason;
  expect_clean();
}

TEST_F(Trial, is_void_when_it_takes_too_long) {
  TrialRequest asked = request("crashing", kLoad + kRun);
  asked.arm.store = ASSAY_TEST_CRASHING_STORE;
  asked.arm.settings = {{"crash_in", "put"}, {"crash_after", "20"}, {"crash_how", "hang"}};
  asked.timeout_ms = 1000;
  const json record = run(asked);
  EXPECT_EQ(record.at("status"), "void");
  EXPECT_EQ(record.at("timeout_ms"), 1000);
  const std::string reason = record.at("reason");
  EXPECT_NE(reason.find("timed out"), std::string::npos) << reason;
  EXPECT_NE(reason.find("still inside put"), std::string::npos) << reason;
  expect_clean();
}

TEST_F(Trial, disqualifies_a_store_that_lies) {
  for (const char* lie : {"lose_key", "wrong_value", "ghost_key"}) {
    TrialRequest asked = request("lying", kLoad + kRun);
    asked.arm.store = ASSAY_TEST_LYING_STORE;
    asked.arm.settings = {{"lie", lie}};
    const json record = run(asked);
    EXPECT_EQ(record.at("status"), "disqualified") << lie;
    EXPECT_FALSE(record.at("validation").at("ok")) << lie;
    EXPECT_FALSE(record.at("reason").get<std::string>().empty());
  }
  TrialRequest honest = request("lying", kLoad + kRun);
  honest.arm.store = ASSAY_TEST_LYING_STORE;
  EXPECT_EQ(run(honest).at("status"), "ok");
}

TEST_F(Trial, that_is_stopped_ends_soon_and_leaves_nothing) {
  const TrialRequest asked =
      request("null", kLoad +
                          "[[phases]]\nkind = \"run\"\nduration_ms = 60000\n[[phases.roles]]\n"
                          "mix = { read = 1.0 }\n");
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    stop_.store(true);
  });
  const Result<json> record = run_trial(asked, stop_);
  stopper.join();
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().kind(), ErrorKind::interrupted);
  expect_clean();
}

TEST_F(Trial, refuses_what_cannot_be_run_before_it_measures) {
  TrialRequest asked = request("nul", kLoad + kRun);
  Result<json> record = run_trial(asked, stop_);
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().kind(), ErrorKind::bad_input);
  EXPECT_NE(record.error().message().find("null"), std::string::npos) << record.error().message();

  asked = request("sqlite", kLoad + kRun);
  asked.arm.settings = {{"synchronos", "FULL"}};
  record = run_trial(asked, stop_);
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().kind(), ErrorKind::bad_input);

  asked = request("null", kLoad + kRun);
  asked.workload.phases.back().roles.front().cpus = {4095};
  record = run_trial(asked, stop_);
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().kind(), ErrorKind::environment);

  asked = request("null", kLoad + kRun, "count = 500");
  asked.workload.values.bytes = 1U << 20;
  asked.workload.keys.count = std::uint64_t{1} << 33;  // 8 PiB
  record = run_trial(asked, stop_);
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().kind(), ErrorKind::environment);
  EXPECT_NE(record.error().message().find("PiB of disk, but "), std::string::npos)
      << record.error().message();
  expect_clean();
}

TEST_F(Trial, in_windows_lets_one_arm_work_at_a_time) {
  std::vector<TrialRequest> arms{request("sqlite", kLoad + kRun), request("null", kLoad + kRun)};
  WindowPlan plan;
  plan.operations = 8;
  plan.windows = 12;
  plan.seed = 5;
  plan.max_idle_cpu_fraction = 1e9;  // the machine of a test may do anything beside it
  const Result<std::vector<json>> records = run_window_set(arms, plan, stop_);
  ASSERT_TRUE(records) << records.error().message();
  ASSERT_EQ(records->size(), 2);
  for (const json& record : *records) {
    EXPECT_EQ(record.at("status"), "ok") << record.at("reason");
    const json phase = phase_of(record, "run");
    EXPECT_EQ(phase.at("windows").size(), 12);
    EXPECT_EQ(phase.at("operations"), 96);
    EXPECT_TRUE(phase.at("idle_cpu_fraction").is_number());
  }
  EXPECT_TRUE(records->at(0).at("validation").at("ok"));
  EXPECT_EQ(records->at(0).at("stream_digest"), records->at(1).at("stream_digest"));
  expect_clean();
}

TEST_F(Trial, in_windows_refuses_an_open_loop) {
  const std::string paced =
      "[[phases]]\nkind = \"run\"\nduration_ms = 200\n"
      "[[phases.roles]]\nname = \"paced\"\nrate_per_s = 1000.0\nmix = { read = 1.0 }\n";
  const Result<std::vector<json>> records =
      run_window_set({request("null", kLoad + paced)}, {}, stop_);
  ASSERT_FALSE(records);
  EXPECT_EQ(records.error().kind(), ErrorKind::bad_input);
  EXPECT_NE(records.error().message().find("open loop"), std::string::npos);
}

TEST_F(Trial, in_windows_is_void_as_a_set_when_one_arm_dies) {
  std::vector<TrialRequest> arms{request("null", kLoad + kRun), request("crashing", kLoad + kRun)};
  arms[1].arm.store = ASSAY_TEST_CRASHING_STORE;
  arms[1].arm.settings = {{"crash_in", "put"}, {"crash_after", "10"}};
  const Result<std::vector<json>> records = run_window_set(arms, {}, stop_);
  ASSERT_TRUE(records) << records.error().message();
  ASSERT_EQ(records->size(), 2);
  EXPECT_EQ(records->at(0).at("status"), "void");
  EXPECT_EQ(records->at(1).at("status"), "disqualified");
  expect_clean();
}

}  // namespace
}  // namespace assay
