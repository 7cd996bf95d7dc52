#include "harness/experiment/registration.h"

#include <algorithm>

#include <fmt/format.h>

#include "harness/experiment/baseline.h"
#include "harness/experiment/fake_trial_test.h"
#include "harness/ledger/durable_file.h"
#include "harness/provenance/sha256.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

#define EXPECT_SAYS(message, part) \
  EXPECT_NE((message).find(part), std::string::npos) << "was: " << (message)

/// Notes of a run, to be looked at.
class Listener : public RunObserver {
 public:
  void note(const std::string& text) override { heard_ += text + "\n"; }
  std::string heard_;
};

class Registering : public FakeRun {
 protected:
  void SetUp() override {
    FakeRun::SetUp();
    fs::create_directories(folder_ + "/ledgers/exp");
  }
  [[nodiscard]] std::string ledger() const { return folder_ + "/ledgers/exp/ledger.jsonl"; }
  [[nodiscard]] std::vector<LedgerRecord> records() const {
    auto contents = read_ledger(ledger());
    EXPECT_TRUE(contents) << contents.error().message();
    return contents ? contents->records : std::vector<LedgerRecord>();
  }
  Result<RunOutcome> run_registered(const Plan& plan) {
    RunRequest request;
    request.tree = folder_;
    request.registered = true;
    RunServices fake = services();
    fake.conditions = [this](const Plan&) { return conditions_; };
    listener_.heard_.clear();
    return run_experiment(plan, request, fake, stop_, listener_);
  }
  Result<Registered> enroll(const Plan& plan) {
    return register_experiment(plan, folder_, {{"fingerprint", fingerprint_}});
  }
  /// The ledger's lines, and the ledger with these lines instead.
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> all;
    const std::string text = read_whole_file(ledger()).value();
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = text.find('\n', begin);
      all.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return all;
  }
  void rewrite(const std::vector<std::string>& all) const {
    std::string text;
    for (const std::string& line : all) text += line + "\n";
    write(ledger(), text);
  }
  /// A ledger of one record that was written at `time`.
  void write_record_of(const std::string& time) const {
    const json record = {{"body", {{"note", "x"}}},
                         {"kind", "note"},
                         {"previous", genesis_hash()},
                         {"schema", 1},
                         {"seq", 0},
                         {"time", time}};
    rewrite({record.dump()});
  }
  void stop_at(std::size_t trial) {
    change_ = [this, trial](const TrialRequest&, json&) -> Status {
      if (started_.size() == trial) return fail(ErrorKind::interrupted, "stopped");
      return {};
    };
  }

  Listener listener_;
  json conditions_ = {{"cache", {{"memory", "held to the budget"}}}};
};

TEST_F(Registering, records_the_canonical_plan_and_its_digest_before_anything_else) {
  const Plan declared = plan();
  const auto done = enroll(declared);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_TRUE(done->is_new);
  const auto all = records();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].kind, "registration");
  EXPECT_EQ(all[0].body["experiment"], to_json(declared));
  EXPECT_EQ(all[0].body["digest"], sha256_hex(to_json(declared).dump()));
  EXPECT_EQ(all[0].body["by"], "assay register");
  EXPECT_EQ(done->head, all[0].hash);
  const auto again = enroll(declared);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_FALSE(again->is_new);
  EXPECT_EQ(records().size(), 1U);
}

TEST_F(Registering, is_done_by_the_first_run_where_nobody_did_before_its_first_sample) {
  const auto outcome = run_registered(plan());
  ASSERT_TRUE(outcome) << outcome.error().message();
  const auto all = records();
  EXPECT_EQ(all[0].kind, "registration");
  EXPECT_EQ(all[0].body["by"], "first run");
  EXPECT_EQ(all[1].kind, "plan");
  EXPECT_EQ(all[1].body["registration"], all[0].hash);
  EXPECT_SAYS(listener_.heard_, "registered with this run");
}

TEST_F(Registering, is_what_the_run_links_to) {
  const auto done = enroll(plan());
  ASSERT_TRUE(done);
  ASSERT_TRUE(run_registered(plan()));
  const auto all = records();
  EXPECT_EQ(all[1].body["registration"], done->registration.hash);
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const auto& one) { return one.kind == "registration"; }),
            1);
}

TEST_F(Registering, refuses_an_edited_plan_and_names_what_was_edited) {
  ASSERT_TRUE(enroll(plan()));
  Plan fewer = plan();
  fewer.trials = 3;
  fewer.arms[0].settings["sync"] = "off";
  const auto refused = run_registered(fewer);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::plan_changed);
  EXPECT_SAYS(refused.error().message(), "trials: 4 -> 3");
  EXPECT_SAYS(refused.error().message(), "arms.0.settings.sync: (none) -> \"off\"");
  EXPECT_TRUE(started_.empty());
  EXPECT_EQ(records().size(), 1U);
  const auto again = enroll(fewer);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind(), ErrorKind::plan_changed);
}

TEST_F(Registering, refuses_a_changed_cache_policy) {
  ASSERT_TRUE(enroll(plan()));
  Plan other = plan();
  other.workload.phases.back().cache = CachePolicy::warm;
  const auto refused = run_registered(other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::plan_changed);
  EXPECT_SAYS(refused.error().message(), "cache: \"as-is\" -> \"warm\"");
}

TEST_F(Registering, of_a_ledger_from_before_registrations_is_its_first_plan_record) {
  ASSERT_TRUE(run_registered(plan()));
  std::vector<std::string> kept;
  std::string previous = genesis_hash();
  for (const LedgerRecord& one : records()) {  // the same ledger as an earlier assay left it
    if (one.kind == "registration") continue;
    json body = one.body;
    body.erase("registration");
    const json record = {{"body", body}, {"kind", one.kind},   {"previous", previous},
                         {"schema", 1},  {"seq", kept.size()}, {"time", one.time}};
    kept.push_back(record.dump());
    previous = sha256_hex(kept.back());
  }
  rewrite(kept);
  const auto outcome = run_registered(plan());
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(registration_of(records())->by, "plan record");
  Plan other = plan();
  other.seed = 9;
  EXPECT_EQ(run_registered(other).error().kind(), ErrorKind::plan_changed);
}

TEST_F(Registering, after_the_run_is_refused_wherever_the_samples_lie) {
  ASSERT_TRUE(run_registered(plan()));
  fs::remove(ledger());  // and its results stay
  const auto refused = enroll(plan());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::plan_changed);
  EXPECT_SAYS(refused.error().message(), "samples of exp are there already");
  EXPECT_FALSE(fs::exists(ledger()));
  const auto run_again = run_registered(plan());
  ASSERT_FALSE(run_again);
  EXPECT_EQ(run_again.error().kind(), ErrorKind::plan_changed);
}

TEST_F(Registering, after_a_sample_in_the_same_ledger_is_refused) {
  const json trial = {{"body", {{"result", "r"}, {"arm", "alpha"}}},
                      {"kind", "trial"},
                      {"previous", genesis_hash()},
                      {"schema", 1},
                      {"seq", 0},
                      {"time", "2026-01-01T00:00:00Z"}};
  rewrite({trial.dump()});
  const auto refused = enroll(plan());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::plan_changed);
  EXPECT_SAYS(refused.error().message(), "no registration came before");
}

TEST_F(Registering, begins_a_new_result_and_says_why_when_binary_machine_or_cache_changed) {
  stop_at(3);
  ASSERT_FALSE(run_registered(plan()));
  change_ = nullptr;
  binary_ = "another";
  auto outcome = run_registered(plan());
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_FALSE(outcome->resumed);
  EXPECT_SAYS(listener_.heard_, "binary.sha256: \"binary\" -> \"another\"");

  started_.clear();
  stop_at(3);
  ASSERT_FALSE(run_registered(plan()));
  change_ = nullptr;
  conditions_["cache"]["memory"] = "not held to the budget";
  outcome = run_registered(plan());
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_FALSE(outcome->resumed);
  EXPECT_SAYS(listener_.heard_,
              "conditions.cache.memory: \"held to the budget\" -> \"not held to the budget\"");

  started_.clear();
  stop_at(3);
  ASSERT_FALSE(run_registered(plan()));
  change_ = nullptr;
  fingerprint_ = "elsewhere";
  outcome = run_registered(plan());
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_SAYS(listener_.heard_, "machine: \"machine\" -> \"elsewhere\"");
  const auto all = records();
  const auto newest =
      std::find_if(all.rbegin(), all.rend(), [](const auto& one) { return one.kind == "plan"; });
  EXPECT_SAYS(newest->body["new_because"].get<std::string>(), "machine");
}

TEST_F(Registering, of_a_store_that_changes_within_the_result_ends_void) {
  change_ = [this](const TrialRequest& trial, json& raw) -> Status {
    raw["store"]["settings_effective"] = {{"sync", started_.size() < 9 ? "full" : "off"}};
    raw["store"]["name"] = trial.arm.store;
    return {};
  };
  const auto outcome = run_registered(plan());
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->end, RunEnd::void_experiment);
  const std::string why = outcome->verdict["void_reasons"][0];
  EXPECT_SAYS(why, "settings.sync: \"full\" -> \"off\"");
}

TEST_F(Registering, refuses_a_ledger_from_which_a_sample_was_dropped) {
  stop_at(6);
  ASSERT_FALSE(run_registered(plan()));
  change_ = nullptr;
  auto kept = lines();
  kept.erase(kept.begin() + 3);
  rewrite(kept);
  const auto refused = run_registered(plan());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::ledger);
}

TEST_F(Registering, tells_of_samples_that_a_cut_tail_took_away) {
  stop_at(6);
  ASSERT_FALSE(run_registered(plan()));
  change_ = nullptr;
  auto kept = lines();
  kept.resize(kept.size() - 3);  // two trials and the interruption
  rewrite(kept);
  const auto outcome = run_registered(plan());
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_TRUE(outcome->resumed);
  EXPECT_SAYS(outcome->verdict["warnings"].dump(), "2 raw records of this result are named by no");
}

TEST_F(Registering, refuses_a_raw_sample_that_was_removed) {
  stop_at(6);
  ASSERT_FALSE(run_registered(plan()));
  change_ = nullptr;
  std::string raw;
  for (const auto& one : records()) {
    if (one.kind == "trial") raw = one.body["raw"]["path"];
  }
  fs::remove(folder_ + "/" + raw);
  const auto refused = run_registered(plan());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::ledger);
}

TEST_F(Registering, refuses_a_clock_that_stands_before_the_ledger) {
  write_record_of("2999-01-01T00:00:00Z");
  for (const bool first : {true, false}) {
    const Error refused = first ? enroll(plan()).error() : run_registered(plan()).error();
    EXPECT_EQ(refused.kind(), ErrorKind::environment);
    EXPECT_SAYS(refused.message(), "before record 0 of the ledger (2999-01-01T00:00:00Z)");
  }
  EXPECT_TRUE(started_.empty());
}

TEST(Clock, that_was_set_back_within_a_result_is_told) {
  std::vector<LedgerRecord> records(3);
  const char* times[] = {"2026-01-01T10:00:00Z", "2026-01-01T09:00:00Z", "2026-01-01T11:00:00Z"};
  for (std::size_t i = 0; i < 3; ++i) {
    records[i].seq = i;
    records[i].time = times[i];
    records[i].body = {{"result", "r"}};
  }
  const auto warnings = clock_warnings(records, "r");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_SAYS(warnings[0], "record 1 says 2026-01-01T09:00:00Z");
  EXPECT_TRUE(clock_warnings(records, "other").empty());
}

TEST_F(Registering, refuses_a_second_run_while_one_writes_to_the_ledger) {
  const auto held = LedgerWriter::open(ledger());
  ASSERT_TRUE(held);
  const Error by_run = run_registered(plan()).error();
  EXPECT_EQ(by_run.kind(), ErrorKind::environment);
  EXPECT_SAYS(by_run.message(), "another assay is running");
  EXPECT_EQ(enroll(plan()).error().kind(), ErrorKind::environment);
  EXPECT_TRUE(started_.empty());
}

class Accepting : public Registering {
 protected:
  void accept(const std::string& result = "") {
    auto writer = LedgerWriter::open(ledger());
    ASSERT_TRUE(writer);
    auto body = acceptance_of(writer->records(), result, "why not", ledger());
    ASSERT_TRUE(body) << body.error().message();
    ASSERT_TRUE(writer->append("accept", *body));
  }
  [[nodiscard]] Plan guarded() const {
    return plan(
        "a_a = false\n[[hypotheses]]\na = \"alpha\"\nkind = \"regression\"\n"
        "corridor = 1.2\n");
  }
};

TEST_F(Accepting, makes_a_later_result_a_regression_when_it_leaves_the_corridor) {
  const auto first = run_registered(guarded());
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(first->end, RunEnd::judged);
  EXPECT_EQ(first->verdict["comparisons"][0]["verdict"], "void");
  EXPECT_SAYS(first->verdict["comparisons"][0]["sentence"].get<std::string>(), "assay accept");
  accept();

  const auto same = run_registered(guarded());
  ASSERT_TRUE(same) << same.error().message();
  EXPECT_EQ(same->end, RunEnd::judged);
  EXPECT_EQ(same->verdict["comparisons"][0]["verdict"], "non-inferior");
  EXPECT_EQ(same->verdict["comparisons"][0]["claim"], "shown");
  EXPECT_EQ(same->verdict["comparisons"][0]["baseline"]["result"], first->result);

  rate_["alpha"] = 900.0;  // slower, within the corridor
  EXPECT_EQ(run_registered(guarded())->end, RunEnd::judged);
  rate_["alpha"] = 700.0;
  const auto worse = run_registered(guarded());
  ASSERT_TRUE(worse);
  EXPECT_EQ(worse->end, RunEnd::regression);
  EXPECT_EQ(worse->verdict["outcome"], "regression");
  EXPECT_SAYS(worse->verdict["comparisons"][0]["sentence"].get<std::string>(),
              "it is not so that alpha is within 1.2x of its accepted baseline");
}

TEST_F(Accepting, compares_shares_of_a_reference_where_the_plan_says_so) {
  const Plan relative = plan(
      "a_a = false\n[[hypotheses]]\na = \"alpha\"\nkind = \"regression\"\ncorridor = 1.2\n"
      "relative_to = \"raw-file\"\n");
  ASSERT_TRUE(run_registered(relative));
  accept();
  rate_["alpha"] = 500.0;  // the whole machine is half as fast today
  rate_["raw-file"] = 2000.0;
  const auto outcome = run_registered(relative);
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->verdict["comparisons"][0]["verdict"], "non-inferior");
  EXPECT_NEAR(outcome->verdict["comparisons"][0]["ratio"].get<double>(), 1.0, 0.02);
}

TEST_F(Accepting, is_refused_on_another_machine_and_of_a_void_result) {
  ASSERT_TRUE(run_registered(guarded()));
  accept();
  fingerprint_ = "elsewhere";
  const auto refused = run_registered(guarded());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::environment);
  EXPECT_SAYS(refused.error().message(), "machine -> elsewhere");
  std::vector<LedgerRecord> all(1);
  all[0].kind = "verdict";
  all[0].body = {{"result", "r"}, {"outcome", "void"}};
  EXPECT_EQ(acceptance_of(all, "", "", "l").error().kind(), ErrorKind::void_experiment);
  EXPECT_EQ(acceptance_of(all, "q", "", "l").error().kind(), ErrorKind::bad_input);
}

TEST_F(Accepting, does_not_change_the_baseline_of_a_result_that_is_under_way) {
  const auto first = run_registered(guarded());
  ASSERT_TRUE(first);
  accept();
  started_.clear();
  stop_at(4);
  ASSERT_FALSE(run_registered(guarded()));
  accept(first->result);  // another accept record in between
  change_ = nullptr;
  const auto resumed = run_registered(guarded());
  ASSERT_TRUE(resumed) << resumed.error().message();
  EXPECT_TRUE(resumed->resumed);
  std::vector<std::string> accepted;
  for (const auto& one : records()) {
    if (one.kind == "accept") accepted.push_back(one.hash);
  }
  ASSERT_EQ(accepted.size(), 2U);
  EXPECT_EQ(resumed->verdict["comparisons"][0]["baseline"]["record"], accepted[0]);
}

}  // namespace
}  // namespace assay
