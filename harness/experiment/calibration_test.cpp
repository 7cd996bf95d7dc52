// The error rate of the pipeline on simulated values: from the raw records of trials to the
// verdict, by the test that each design has.
#include "harness/experiment/calibration.h"

#include <cmath>
#include <random>

#include <fmt/format.h>

#include "harness/experiment/fake_trial_test.h"
#include "harness/experiment/run_state.h"
#include "harness/experiment/verdict.h"
#include "harness/stats/stats.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr std::size_t kExperiments = 250;
constexpr std::uint64_t kSeed = 20'260'101;  // printed with every failure

/// How the trials of one experiment scatter, on the log scale.
struct Noise {
  double between_processes = 0.05;
  double between_rounds = 0.0;  ///< common to the arms of a block or set
  double within = 0.0;          ///< of a window, autocorrelated
  double correlation = 0.0;     ///< of one window to the next
};

class Calibration : public FakeRun {
 protected:
  [[nodiscard]] Plan plan_of(Design design, std::uint64_t trials) const {
    Plan planned =
        plan(fmt::format("design = \"{}\"\na_a = false\neffect_percent = 10000\n"
                         "references = []\n",
                         to_string(design)));
    planned.trials = trials;
    return planned;
  }

  /// Rates of the windows of one process, each like the one before it.
  json windows_of(const std::string& arm, double level, const Noise& noise,
                  std::mt19937_64& random) {
    std::normal_distribution<double> normal;
    json windows = json::array();
    double drift = normal(random);
    for (int i = 0; i < 20; ++i) {
      windows.push_back(std::exp(level + noise.within * drift));
      windows_[arm].push_back(level + noise.within * drift);
      drift = noise.correlation * drift +
              std::sqrt(1.0 - noise.correlation * noise.correlation) * normal(random);
    }
    return windows;
  }

  /// The verdict of one simulated experiment; alpha is faster by `effect` on the log scale.
  json simulate(const Plan& planned, const Noise& noise, double effect, std::mt19937_64& random) {
    std::normal_distribution<double> normal;
    RunState state(planned, "simulated");
    std::map<std::uint64_t, json> raws;
    windows_.clear();
    std::uint64_t index = 0;
    for (std::uint64_t round = 0; round < planned.trials; ++round) {
      const double common = noise.between_rounds * normal(random);
      for (const Arm& arm : planned.arms) {
        const double level = std::log(1000.0) + common + noise.between_processes * normal(random) +
                             (arm.name == "alpha" ? effect : 0.0);
        json raw = {{"store", {{"name", arm.store}, {"version", "1.0"}}},
                    {"phases", {{{"name", "run"}, {"throughput_per_s", std::exp(level)}}}}};
        if (planned.design == Design::windows) {
          raw["phases"][0]["windows"] = windows_of(arm.name, level, noise, random);
        }
        state.add({{"arm", arm.name}, {"index", index}, {"round", round}, {"status", "ok"}});
        raws[index++] = std::move(raw);
      }
    }
    const VerdictInput input{
        planned, state, "registered", "", {}, {}, [&](const TrialEntry& trial) -> Result<json> {
          return raws.at(trial.index);
        }};
    return make_verdict(input).value();
  }

  /// In how many of the experiments a difference was found.
  std::size_t found(const Plan& planned, const Noise& noise, double effect,
                    std::size_t* pooled = nullptr) {
    std::mt19937_64 random(kSeed);
    std::size_t count = 0;
    for (std::size_t i = 0; i < kExperiments; ++i) {
      const json verdict = simulate(planned, noise, effect, random);
      const std::string said = verdict["comparisons"][0]["verdict"];
      count += said == "superior" || said == "inferior" ? 1 : 0;
      if (pooled == nullptr) continue;
      // What a tool does that takes the samples of a run for independent ones.
      *pooled += stats::welch(windows_["alpha"], windows_["beta"], 0.95).p < 0.05 ? 1 : 0;
    }
    return count;
  }

  static void expect_within(std::size_t count, double probability, const std::string& what) {
    const auto interval = stats::binomial_interval(kExperiments, probability, 0.999);
    EXPECT_GE(count, interval.low) << what << ", seed " << kSeed;
    EXPECT_LE(count, interval.high) << what << ", seed " << kSeed;
  }

  std::map<std::string, std::vector<double>> windows_;
};

TEST_F(Calibration, every_design_keeps_its_level_by_its_own_test) {
  expect_within(found(plan_of(Design::random, 8), {.between_processes = 0.1}, 0.0), 0.05,
                "random, Welch");
  const Noise blocks = {.between_processes = 0.05, .between_rounds = 0.3};
  expect_within(found(plan_of(Design::blocks, 8), blocks, 0.0), 0.05, "blocks, paired");
  const Noise sets = {.between_processes = 0.02, .between_rounds = 0.3, .within = 0.1};
  expect_within(found(plan_of(Design::windows, 8), sets, 0.0), 0.05, "windows, paired");
}

TEST_F(Calibration, a_rank_test_of_medians_never_exceeds_its_level) {
  Plan planned = plan_of(Design::random, 8);
  planned.aggregation.median_of_trials = true;
  const std::size_t count = found(planned, {.between_processes = 0.1}, 0.0);
  EXPECT_LE(count, stats::binomial_interval(kExperiments, 0.05, 0.999).high) << "seed " << kSeed;
  EXPECT_GT(count, 0U);
}

TEST_F(Calibration, the_smallest_detectable_effect_is_seen_with_the_power_that_is_told) {
  const double deviation = 0.1;
  for (const Design design : {Design::random, Design::blocks, Design::windows}) {
    const bool pairs = is_paired(design);
    // The difference of two processes scatters by the square root of two.
    const double of_unit = pairs ? deviation * std::sqrt(2.0) : deviation;
    const double effect = stats::smallest_effect(of_unit, 10, 0.05, 0.8, pairs);
    const Noise noise = {.between_processes = deviation, .between_rounds = pairs ? 0.3 : 0.0};
    expect_within(found(plan_of(design, 10), noise, effect), 0.8, std::string(to_string(design)));
  }
}

TEST_F(Calibration, autocorrelated_samples_within_a_run_do_not_inflate_it) {
  const Noise noise = {
      .between_processes = 0.05, .between_rounds = 0.0, .within = 0.05, .correlation = 0.9};
  std::size_t pooled = 0;
  expect_within(found(plan_of(Design::windows, 8), noise, 0.0, &pooled), 0.05, "windows");
  // The same values, taken for independent ones, "find" a difference far too often.
  EXPECT_GT(pooled, kExperiments / 4) << "seed " << kSeed;
}

TEST_F(Calibration, on_trials_counts_what_the_pipeline_found_and_records_it) {
  std::mt19937_64 random(kSeed);
  change_ = [&random](const TrialRequest& trial, json& raw) -> Status {
    std::normal_distribution<double> normal;
    const double delayed = trial.arm.delay_ns == 0 ? 0.0 : -1.0;
    raw = fake_raw(std::exp(7.0 + delayed + 0.05 * normal(random)), trial.arm.store);
    return {};
  };
  const auto parsed = parse_plan(
      "name = \"calibrate\"\nworkload = \"" + folder_ + "/tiny.toml\"\nroot = \"" + folder_ +
          "/root\"\ntrials = 4\nreferences = []\neffect_percent = 10000\n"
          "[positive_control]\ndelay_ns = 1000\n[[arms]]\nstore = \"alpha\"\n",
      "p.toml", stores_.environment());
  ASSERT_TRUE(parsed) << parsed.error().message();
  CalibrationRequest request;
  request.experiments = 20;
  request.out = folder_ + "/calibration";
  RunObserver silent;
  const auto done = calibrate_on_trials(*parsed, request, services(), stop_, silent);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(done->body["experiments"], 20);
  EXPECT_EQ(done->body["ok"], true) << done->body["sentence"];
  EXPECT_EQ(done->body["control"]["seen"], 20);
  const auto contents = read_ledger(done->ledger_path);
  ASSERT_TRUE(contents) << contents.error().message();
  EXPECT_EQ(contents->records.back().kind, "calibration");
  EXPECT_EQ(contents->head, done->head);
  // Never over another.
  EXPECT_FALSE(calibrate_on_trials(*parsed, request, services(), stop_, silent));
}

TEST_F(Calibration, that_was_stopped_goes_on_with_the_experiment_it_was_stopped_in) {
  struct Counting : RunObserver {
    void run_begins(const std::string&, std::uint64_t done, std::uint64_t planned) override {
      ++begun;
      done_before = done;
      planned_in_all = planned;
    }
    std::uint64_t begun = 0;
    std::uint64_t done_before = 0;
    std::uint64_t planned_in_all = 0;
  };
  std::size_t ran = 0;
  std::size_t stop_at = 21;  // of 8 trials an experiment: in the third
  change_ = [&](const TrialRequest& trial, json& raw) -> Status {
    if (ran == stop_at) return fail(ErrorKind::interrupted, "stopped");
    ++ran;
    // Whenever a trial runs, it gives the same.
    std::mt19937_64 random(kSeed ^ (trial.seed * 8191 + std::hash<std::string>()(trial.arm.name)));
    std::normal_distribution<double> normal;
    raw = fake_raw(std::exp(7.0 + 0.05 * normal(random)), trial.arm.store);
    return {};
  };
  const auto parsed = parse_plan(
      "name = \"calibrate\"\nworkload = \"" + folder_ + "/tiny.toml\"\nroot = \"" + folder_ +
          "/root\"\ntrials = 4\nreferences = []\neffect_percent = 10000\n"
          "[[arms]]\nstore = \"alpha\"\n",
      "p.toml", stores_.environment());
  ASSERT_TRUE(parsed) << parsed.error().message();
  CalibrationRequest request;
  request.experiments = 5;
  request.out = folder_ + "/stopped";
  Counting first;
  const auto stopped = calibrate_on_trials(*parsed, request, services(), stop_, first);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind(), ErrorKind::interrupted);
  EXPECT_NE(stopped.error().message().find("2 of 5 experiments"), std::string::npos)
      << stopped.error().message();
  EXPECT_EQ(first.begun, 1U);
  EXPECT_EQ(first.planned_in_all, 40U);

  stop_at = 1'000;
  Counting second;
  const auto done = calibrate_on_trials(*parsed, request, services(), stop_, second);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(second.done_before, 21U);
  EXPECT_EQ(ran, 40U) << "no trial runs twice";
  EXPECT_EQ(done->body["experiments"], 5);

  CalibrationRequest at_once = request;
  at_once.out = folder_ + "/at-once";
  const auto whole = calibrate_on_trials(*parsed, at_once, services(), stop_, second);
  ASSERT_TRUE(whole) << whole.error().message();
  EXPECT_EQ(whole->body, done->body) << "the same figures as of one that was not stopped";

  Plan other = *parsed;
  other.trials = 3;
  request.out = folder_ + "/other";
  stop_at = ran + 3;
  EXPECT_FALSE(calibrate_on_trials(*parsed, request, services(), stop_, first));
  const auto mixed = calibrate_on_trials(other, request, services(), stop_, first);
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().kind(), ErrorKind::bad_input);
}

TEST(CalibrationBody, refutes_a_level_that_is_not_held) {
  Plan plan;
  const std::vector<double> all_found(200, 0.001);
  EXPECT_EQ(calibration_body(plan, all_found, {})["ok"], false);
  std::vector<double> ten_found(200, 0.5);
  std::fill_n(ten_found.begin(), 10, 0.01);
  const json body = calibration_body(plan, ten_found, {});
  EXPECT_EQ(body["ok"], true);
  EXPECT_EQ(body["false_positives"], 10);
}

}  // namespace
}  // namespace assay
