// Fakes for the tests of the experiment library: a store that is never opened, trials that are
// made up. Test code only.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"
#include "harness/experiment/runner.h"

namespace assay {

class FakeDriver : public Driver {
 public:
  FakeDriver(std::string name, bool reference) : name_(std::move(name)) {
    can_.ordered = can_.rollback = can_.atomic_batches = can_.larger_than_memory = true;
    can_.reference = reference;
    can_.durability = {DurabilityClass::process, DurabilityClass::power};
  }
  std::string name() const override { return name_; }
  std::string version() const override { return "1.0"; }
  Capabilities capabilities() const override { return can_; }
  std::vector<Setting> settings(DurabilityClass) const override {
    return {{"sync", "full", "", "", {"off", "full"}}};
  }
  DurabilityClass durability_under(DurabilityClass, const Settings& effective) const override {
    return effective.at("sync") == "off" ? DurabilityClass::process : DurabilityClass::power;
  }
  Result<std::unique_ptr<Store>> open(const OpenOptions&) const override {
    return fail(ErrorKind::internal, "a fake store was opened");
  }
  Capabilities can_;

 private:
  std::string name_;
};

/// Stores alpha, beta, gamma (a liar for those who want one), and the two references.
class FakeStores {
 public:
  FakeStores() {
    for (const char* name : {"alpha", "beta", "gamma"}) add(name, false);
    for (const char* name : {"null", "raw-file"}) add(name, true);
  }
  [[nodiscard]] PlanEnvironment environment() const {
    PlanEnvironment environment;
    environment.find_store = [this](std::string_view name) -> Result<const Driver*> {
      std::vector<std::string> names;
      for (const auto& [known, driver] : drivers_) {
        if (known == name) return driver.get();
        names.push_back(known);
      }
      return fail(Error(ErrorKind::bad_input, "no store is called '" + std::string(name) + "'")
                      .hint("did you mean '" + nearest_name(name, names) + "'?"));
    };
    environment.find_workload = load_workload;
    environment.cpus = {0, 1};
    return environment;
  }
  FakeDriver& driver(const std::string& name) { return *drivers_.at(name); }

 private:
  void add(const std::string& name, bool reference) {
    drivers_.emplace(name, std::make_unique<FakeDriver>(name, reference));
  }
  std::map<std::string, std::unique_ptr<FakeDriver>> drivers_;
};

inline constexpr std::string_view kFakeWorkload = R"(
name = "tiny"
[keys]
count = 100
[values]
bytes = 10
[[phases]]
kind = "load"
[[phases]]
kind = "run"
name = "run"
operations = 10
[[phases.roles]]
name = "writer"
mix = { update = 1 }
)";

/// A sound raw record as run_trial() gives it, with this throughput.
inline nlohmann::json fake_raw(double throughput_per_s, const std::string& store) {
  const auto latency_ns = static_cast<std::uint64_t>(1e9 / throughput_per_s);
  return {{"status", "ok"},
          {"reason", ""},
          {"store", {{"name", store}, {"version", "1.0"}}},
          {"phases",
           {{{"name", "run"},
             {"timed", true},
             {"wall_ns", 1'000'000},
             {"operations", 10},
             {"throughput_per_s", throughput_per_s},
             {"windows", {throughput_per_s, throughput_per_s * 1.1, throughput_per_s * 0.9}},
             {"classes",
              {{"update",
                {{"count", 10},
                 {"p50_ns", latency_ns},
                 {"p99_ns", latency_ns * 2},
                 {"max_ns", latency_ns * 2},
                 {"histogram", {{latency_ns, 9}, {latency_ns * 2, 1}}}}}}},
             {"series", {{{"t_ms", 0}, {"operations", 10}, {"p99_ns", 5}}}},
             {"logical_bytes_written", 1000},
             {"logical_bytes_read", 400},
             {"io", {{"device_write_bytes", 5000}, {"device_read_bytes", 1000}}},
             {"barriers",
              {{"fsync", 0},
               {"fdatasync", 10},
               {"msync", 0},
               {"sync_file_range", 0},
               {"dsync_writes", 0},
               {"syncfs", 0}}},
             {"cpu", {{"user_ns", 1000}, {"system_ns", 2000}, {"foreign_ns", 0}}},
             {"rss", {{"peak_bytes", 4096}}}}}},
          {"recovery_ns", nlohmann::json::array()},
          {"drain_ns", 7},
          {"space", {{"allocated_bytes", 8192}, {"entries", 100}}},
          {"stream_digest", "same"}};
}

/// A fresh folder, fake stores and fake trials for one test.
class FakeRun : public ::testing::Test {
 protected:
  void SetUp() override { write(folder_ + "/tiny.toml", std::string(kFakeWorkload)); }

  static void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    FILE* file = std::fopen(path.c_str(), "wb");
    ASSERT_NE(file, nullptr);
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
  }

  [[nodiscard]] std::string plan_text(const std::string& more = "") const {
    return "name = \"exp\"\nworkload = \"" + folder_ + "/tiny.toml\"\nroot = \"" + folder_ +
           "/root\"\ntrials = 4\n" + more +
           "\n[[arms]]\nstore = \"alpha\"\n[[arms]]\nstore = \"beta\"\n";
  }
  [[nodiscard]] Plan plan(const std::string& more = "") const {
    auto parsed = parse_plan(plan_text(more), folder_ + "/p.toml", stores_.environment());
    EXPECT_TRUE(parsed) << parsed.error().message();
    return *parsed;
  }

  /// Trials that succeed with these throughputs, a little scattered by round so that tests work.
  RunServices services() {
    RunServices fake;
    fake.run_trial = [this](const TrialRequest& trial, const std::atomic<bool>&,
                            const OnProgress&) -> Result<nlohmann::json> {
      started_.push_back(trial.arm.name);
      return made_up(trial);
    };
    fake.run_window_set = [this](const std::vector<TrialRequest>& trials, const WindowPlan&,
                                 const std::atomic<bool>&,
                                 const OnProgress&) -> Result<std::vector<nlohmann::json>> {
      std::vector<nlohmann::json> raws;
      for (const TrialRequest& trial : trials) {
        started_.push_back(trial.arm.name);
        auto raw = made_up(trial);
        if (!raw) return fail(raw.error());
        raws.push_back(std::move(*raw));
      }
      return raws;
    };
    fake.remove_stale_trials = [](const std::string&) {};
    fake.provenance = [this](const Plan&) {
      return nlohmann::json{{"fingerprint", fingerprint_},
                            {"binary", {{"sha256", binary_}}},
                            {"libraries", {{"/lib/libstore.so", library_}}}};
    };
    fake.flush_warning = [](const std::string&) { return std::string(); };
    fake.stream_digest = [](const Workload&, std::uint64_t) { return std::string("same"); };
    return fake;
  }

  Result<nlohmann::json> made_up(const TrialRequest& trial) {
    const std::string store = trial.arm.store;
    const double wobble = 1.0 + 0.002 * static_cast<double>((trial.seed * 7 + started_.size()) % 5);
    nlohmann::json raw = fake_raw(rate_[store] * wobble, store);
    if (change_) {
      if (Status status = change_(trial, raw); !status) return fail(status.error());
    }
    return raw;
  }

  Result<RunOutcome> run(const Plan& plan, const RunRequest& more = {}) {
    RunRequest request = more;
    request.tree = folder_;
    RunObserver silent;
    return run_experiment(plan, request, services(), stop_, silent);
  }

  const TemporaryDirectory own_;
  const std::string folder_ = own_.path();
  FakeStores stores_;
  std::atomic<bool> stop_{false};
  std::vector<std::string> started_;
  std::map<std::string, double> rate_ = {
      {"alpha", 1000.0}, {"beta", 2000.0}, {"gamma", 3000.0}, {"null", 1e6}, {"raw-file", 4000.0}};
  std::string fingerprint_ = "machine";
  std::string binary_ = "binary";
  std::string library_ = "library";
  std::function<Status(const TrialRequest&, nlohmann::json&)> change_;
};

}  // namespace assay
