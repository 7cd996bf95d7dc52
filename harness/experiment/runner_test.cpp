#include "harness/experiment/runner.h"

#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <set>

#include "harness/experiment/fake_trial_test.h"
#include "harness/experiment/order.h"
#include "harness/experiment/result_place.h"
#include "harness/ledger/durable_file.h"
#include "harness/ledger/ledger.h"
#include "harness/provenance/sha256.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Runner : public FakeRun {
 protected:
  [[nodiscard]] static std::vector<LedgerRecord> records(const std::string& path) {
    auto contents = read_ledger(path);
    EXPECT_TRUE(contents) << contents.error().message();
    return contents ? contents->records : std::vector<LedgerRecord>();
  }
  [[nodiscard]] static std::size_t count(const std::vector<LedgerRecord>& all,
                                         const std::string& kind) {
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [&](const LedgerRecord& one) { return one.kind == kind; }));
  }
  [[nodiscard]] RunRequest registered() const {
    RunRequest request;
    request.registered = true;
    return request;
  }
  [[nodiscard]] std::string actual_directory() const {
    return folder_ + "/" + records(ledger())[1].body["directory"].get<std::string>();
  }
  int voids_left_ = 0;
  [[nodiscard]] std::string ledger() const { return folder_ + "/ledgers/exp/ledger.jsonl"; }
};

TEST_F(Runner, records_plan_trials_and_verdict_in_this_order) {
  const auto outcome = run(plan());
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->end, RunEnd::judged);
  const auto all = records(outcome->ledger_path);
  ASSERT_EQ(all.size(), 1U + 5U * 4U + 1U);
  EXPECT_EQ(all.front().kind, "plan");
  EXPECT_EQ(all.back().kind, "verdict");
  EXPECT_EQ(all.back().hash, outcome->head);
  EXPECT_EQ(count(all, "trial"), 20U);
  EXPECT_EQ(all.front().body["status"], "exploratory");
  EXPECT_EQ(all.front().body["digest"], plan_digest(all.front().body["experiment"]));
}

TEST_F(Runner, writes_each_raw_record_with_the_digest_that_the_ledger_holds) {
  const auto outcome = run(plan());
  ASSERT_TRUE(outcome);
  std::set<std::string> paths;
  for (const LedgerRecord& record : records(outcome->ledger_path)) {
    if (record.kind != "trial") continue;
    const std::string path =
        folder_of(outcome->ledger_path) + "/" + record.body["raw"]["path"].get<std::string>();
    EXPECT_TRUE(paths.insert(path).second) << path;
    const std::string text = read_whole_file(path).value();
    EXPECT_EQ(sha256_hex(text), record.body["raw"]["sha256"]);
    const json raw = json::parse(text);
    EXPECT_TRUE(raw["phases"][0]["classes"]["update"].contains("histogram"));
    EXPECT_FALSE(record.body["phases"][0]["classes"]["update"].contains("histogram"));
    EXPECT_FALSE(record.body["phases"][0].contains("series"));
    EXPECT_EQ(raw["result"], outcome->result);
    EXPECT_EQ(raw["seed"].get<std::uint64_t>(), 1 + raw["round"].get<std::uint64_t>());
  }
  EXPECT_EQ(paths.size(), 20U);
}

TEST_F(Runner, of_a_registered_plan_uses_its_ledger_and_the_results_folder) {
  const auto outcome = run(plan(), registered());
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(fs::path(outcome->ledger_path).lexically_normal(), ledger());
  EXPECT_TRUE(fs::exists(folder_ + "/results/exp/" + outcome->result + "/trials"));
  const auto all = records(ledger());
  EXPECT_EQ(all.front().kind, "registration");
  EXPECT_EQ(all[1].body["status"], "registered");
  EXPECT_EQ(all.back().body["status"], "registered");
  const std::string raw = all[2].body["raw"]["path"];
  EXPECT_TRUE(raw.starts_with("results/exp/" + outcome->result + "/trials/0000-")) << raw;
}

TEST_F(Runner, puts_a_second_result_beside_the_first_and_never_over_it) {
  const auto first = run(plan(), registered());
  const auto second = run(plan(), registered());
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(second->resumed);
  EXPECT_NE(first->directory, second->directory);
  EXPECT_EQ(count(records(ledger()), "verdict"), 2U);
}

TEST_F(Runner, refuses_a_changed_plan_under_a_registered_name_and_says_what_changed) {
  ASSERT_TRUE(run(plan(), registered()));
  const std::size_t before = records(ledger()).size();
  Plan changed = plan();
  changed.arms[0].settings["sync"] = "off";
  const auto refused = run(changed, registered());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::plan_changed);
  EXPECT_NE(refused.error().message().find("arms.0.settings.sync"), std::string::npos)
      << refused.error().message();
  EXPECT_EQ(records(ledger()).size(), before);
}

TEST_F(Runner, that_was_stopped_records_it_and_goes_on_where_it_stopped) {
  change_ = [this](const TrialRequest&, json&) -> Status {
    if (started_.size() == 8) return fail(ErrorKind::interrupted, "stopped");
    return {};
  };
  const auto stopped = run(plan(), registered());
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind(), ErrorKind::interrupted);
  EXPECT_NE(stopped.error().message().find("7 of 20"), std::string::npos);
  EXPECT_NE(stopped.error().message().find("run the same command again"), std::string::npos);
  const auto all = records(ledger());
  EXPECT_EQ(all.back().kind, "interrupted");
  EXPECT_EQ(all.back().body["done"], 7);
  EXPECT_EQ(count(all, "verdict"), 0U);
  const std::vector<std::string> first_part(started_.begin(), started_.begin() + 7);

  change_ = nullptr;
  started_.clear();
  const auto resumed = run(plan(), registered());
  ASSERT_TRUE(resumed) << resumed.error().message();
  EXPECT_TRUE(resumed->resumed);
  EXPECT_EQ(started_.size(), 13U);
  std::vector<std::string> whole = first_part;
  whole.insert(whole.end(), started_.begin(), started_.end());
  std::vector<std::string> planned;
  const Plan declared = plan();
  for (const Turn& turn : order_of_trials(declared.design, 5, 4, declared.seed)) {
    planned.push_back(declared.arms[turn.arm].name);
  }
  EXPECT_EQ(whole, planned);
  EXPECT_EQ(count(records(ledger()), "plan"), 1U);
}

TEST_F(Runner, refuses_a_root_that_takes_nothing_before_anything_is_recorded) {
  Plan elsewhere = plan();
  elsewhere.root = "/proc";
  const auto refused = run(elsewhere);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::environment);
  EXPECT_NE(refused.error().message().find("/proc"), std::string::npos);
  EXPECT_NE(refused.error().message().find("--root"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ + "/runs"));
  EXPECT_TRUE(started_.empty());
}

TEST_F(Runner, sees_the_stop_flag_before_a_trial_begins) {
  stop_.store(true);
  const auto stopped = run(plan());
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind(), ErrorKind::interrupted);
  EXPECT_TRUE(started_.empty());
}

TEST_F(Runner, resumes_an_exploratory_run_from_its_own_folder) {
  change_ = [this](const TrialRequest&, json&) -> Status {
    if (started_.size() == 3) return fail(ErrorKind::interrupted, "stopped");
    return {};
  };
  ASSERT_FALSE(run(plan()));
  change_ = nullptr;
  const auto resumed = run(plan());
  ASSERT_TRUE(resumed) << resumed.error().message();
  EXPECT_TRUE(resumed->resumed);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ + "/runs"), fs::directory_iterator()), 1);
}

TEST_F(Runner, begins_a_new_result_when_machine_binary_or_library_changed) {
  for (std::string* identity : {&fingerprint_, &binary_, &library_}) {
    change_ = [](const TrialRequest&, json&) -> Status {
      return fail(ErrorKind::interrupted, "stopped");
    };
    ASSERT_FALSE(run(plan(), registered()));
    *identity += "-other";
    change_ = nullptr;
    const auto fresh = run(plan(), registered());
    ASSERT_TRUE(fresh) << fresh.error().message();
    EXPECT_FALSE(fresh->resumed);
  }
}

TEST_F(Runner, repeats_void_trials_and_keeps_them_in_the_ledger) {
  change_ = [this](const TrialRequest& trial, json& raw) -> Status {
    if (trial.arm.name == "beta" && trial.seed == 2 && voids_left_-- > 0) {
      raw["status"] = "void";
      raw["reason"] = "killed";
    }
    return {};
  };
  voids_left_ = 2;
  const auto outcome = run(plan());
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->end, RunEnd::judged);
  EXPECT_EQ(count(records(outcome->ledger_path), "trial"), 22U);
  for (const json& row : outcome->verdict["rows"]) {
    EXPECT_EQ(row["void"], row["arm"] == "beta" ? 2 : 0);
    EXPECT_EQ(row["n"], 4);
  }
}

TEST_F(Runner, hands_each_limit_of_the_machine_to_the_trial_by_itself) {
  const auto limits_of = [this](const std::string& more) {
    RunServices fake = services();
    std::vector<double> seen;
    fake.run_trial = [&seen](const TrialRequest& trial, const std::atomic<bool>&,
                             const OnProgress&) -> Result<json> {
      seen = {trial.max_foreign_cpus, trial.max_frequency_change, trial.max_steal_share};
      return fail(ErrorKind::interrupted, "seen enough");
    };
    RunRequest request;
    request.tree = folder_;
    request.fresh = true;
    RunObserver silent;
    EXPECT_FALSE(run_experiment(plan(more), request, fake, stop_, silent));
    return seen;
  };
  EXPECT_EQ(limits_of(""), (std::vector<double>{0.25, 0.2, 0.1}));
  EXPECT_EQ(limits_of("foreign_cpus_max = 0\n"), (std::vector<double>{0.0, 0.2, 0.1}));
  EXPECT_EQ(limits_of("steal_share_max = 0\n"), (std::vector<double>{0.25, 0.2, 0.0}));
}

TEST_F(Runner, accepts_a_plan_that_an_earlier_assay_recorded) {
  const Plan off = plan("foreign_cpus_max = 0\nfrequency_change_max = 0\nsteal_share_max = 0\n");
  json before = to_json(off);
  before["schema"] = 1;
  for (auto& phase : before["workload"]["phases"]) phase.erase("timed_batch");
  for (const char* key : {"frequency_change_max", "steal_share_max", "cv_percent"}) {
    before.erase(key);
  }
  fs::create_directories(folder_of(ledger()));
  {
    auto writer = LedgerWriter::open(ledger());
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->append("plan", {{"result", "old"},
                                        {"directory", "results/exp/old"},
                                        {"experiment", before},
                                        {"digest", plan_digest(before)},
                                        {"provenance", {{"fingerprint", "old"}}}}));
  }
  const auto outcome = run(off, registered());
  EXPECT_TRUE(outcome) << outcome.error().message();
  EXPECT_FALSE(run(plan(), registered()));  // with limits it is another plan
}

TEST_F(Runner, is_void_when_more_trials_were_void_than_the_plan_allows) {
  change_ = [](const TrialRequest& trial, json& raw) -> Status {
    if (trial.arm.name == "beta") {
      raw["status"] = "void";
      raw["reason"] = "no space left";
    }
    return {};
  };
  const auto outcome = run(plan("void_trials_max = 3\n"));
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->end, RunEnd::void_experiment);
  const std::string reasons = outcome->verdict["void_reasons"].dump();
  EXPECT_NE(reasons.find("4 void trials where the plan allows 3"), std::string::npos) << reasons;
  EXPECT_NE(reasons.find("no space left"), std::string::npos) << reasons;
  for (const json& one : outcome->verdict["comparisons"]) EXPECT_EQ(one["verdict"], "void");
}

TEST_F(Runner, runs_a_disqualified_arm_no_further_and_compares_it_with_none) {
  change_ = [](const TrialRequest& trial, json& raw) -> Status {
    if (trial.arm.name == "beta" && trial.seed == 2) {
      raw["status"] = "disqualified";
      raw["reason"] = "key 7 holds another value";
    }
    return {};
  };
  const auto outcome = run(plan("design = \"blocks\"\n"));
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->end, RunEnd::disqualified);
  EXPECT_EQ(std::count(started_.begin(), started_.end(), "beta"), 2);
  for (const json& row : outcome->verdict["rows"]) {
    EXPECT_EQ(row["disqualified"], row["arm"] == "beta");
    EXPECT_EQ(row["reason"], row["arm"] == "beta" ? "key 7 holds another value" : "");
  }
  const json& comparison = outcome->verdict["comparisons"][0];
  EXPECT_EQ(comparison["verdict"], "void");
  EXPECT_NE(comparison["sentence"].get<std::string>().find("disqualified"), std::string::npos);
}

TEST_F(Runner, finds_out_that_arms_were_given_different_streams) {
  change_ = [](const TrialRequest& trial, json& raw) -> Status {
    if (trial.arm.name == "beta") raw["stream_digest"] = "other";
    return {};
  };
  const auto outcome = run(plan());
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind(), ErrorKind::internal);
  EXPECT_NE(outcome.error().message().find("different operation streams"), std::string::npos);
}

TEST_F(Runner, of_windows_repeats_a_whole_set_when_one_of_its_arms_is_void) {
  change_ = [this](const TrialRequest& trial, json& raw) -> Status {
    if (trial.arm.name == "beta" && trial.seed == 2 && voids_left_-- > 0) {
      raw["status"] = "void";
      raw["reason"] = "killed";
    }
    return {};
  };
  voids_left_ = 1;
  const auto outcome = run(plan("design = \"windows\"\n"));
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->end, RunEnd::judged);
  EXPECT_EQ(started_.size(), 25U);
  for (const json& row : outcome->verdict["rows"]) {
    EXPECT_EQ(row["void"], 1) << row["arm"];
    EXPECT_EQ(row["n"], 4);
  }
}

TEST_F(Runner, of_windows_takes_the_geometric_mean_of_its_windows_as_the_value_of_a_set) {
  change_ = [](const TrialRequest&, json& raw) -> Status {
    raw["phases"][0]["windows"] = {10.0, 40.0, 20.0};
    return {};
  };
  const auto outcome = run(plan("design = \"windows\"\na_a = false\n"));
  ASSERT_TRUE(outcome) << outcome.error().message();
  const json& values = outcome->verdict["rows"][0]["values"];
  ASSERT_EQ(values.size(), 4U);
  for (const json& value : values) EXPECT_NEAR(value.get<double>(), 20.0, 1e-9);
}

TEST_F(Runner, gives_every_arm_of_a_round_the_same_seed) {
  std::map<std::uint64_t, std::set<std::string>> arms;
  change_ = [&arms](const TrialRequest& trial, json&) -> Status {
    arms[trial.seed].insert(trial.arm.name);
    return {};
  };
  ASSERT_TRUE(run(plan("seed = 40\n")));
  ASSERT_EQ(arms.size(), 4U);
  for (const auto& [seed, names] : arms) {
    EXPECT_EQ(names.size(), 5U) << "seed " << seed;
    EXPECT_GE(seed, 40U);
  }
}

TEST_F(Runner, leaves_nothing_when_not_even_its_plan_can_be_recorded) {
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit none{0, before.rlim_max};  // as a full disk: directories can be made, files not
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  const auto exploratory = run(plan());
  const auto declared = run(plan(), registered());
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  ASSERT_FALSE(exploratory);
  ASSERT_FALSE(declared);
  EXPECT_EQ(declared.error().kind(), ErrorKind::environment);
  EXPECT_FALSE(fs::exists(folder_ + "/runs"));
  EXPECT_FALSE(fs::exists(folder_ + "/results"));
  EXPECT_FALSE(fs::exists(ledger()));
  EXPECT_TRUE(run(plan(), registered()));
}

TEST_F(Runner, that_begins_in_the_same_second_as_another_has_a_folder_of_its_own) {
  RunRequest request;
  request.tree = folder_;
  request.fresh = true;
  std::set<std::string> ledgers;
  for (int i = 0; i < 3; ++i) {
    const auto chosen = choose_ledger(plan(), request, {});
    ASSERT_TRUE(chosen) << chosen.error().message();
    EXPECT_TRUE(ledgers.insert(*chosen).second) << *chosen;
  }
}

TEST_F(Runner, refuses_to_run_beside_another_run_of_the_same_experiment) {
  change_ = [this](const TrialRequest&, json&) -> Status {
    if (started_.size() != 2) return {};
    const auto second = run(plan(), registered());
    EXPECT_FALSE(second);
    EXPECT_EQ(second.error().kind(), ErrorKind::environment);
    EXPECT_NE(second.error().message().find("another assay is running this experiment"),
              std::string::npos)
        << second.error().message();
    return {};
  };
  ASSERT_TRUE(run(plan(), registered()));
}

TEST_F(Runner, refuses_an_out_folder_with_other_files) {
  write(folder_ + "/mine/thesis.txt", "x");
  RunRequest request;
  request.out = folder_ + "/mine";
  const auto refused = run(plan(), request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::bad_input);
}

TEST_F(Runner, refuses_an_out_that_is_a_file) {
  write(folder_ + "/mine", "a file");
  RunRequest request;
  request.out = folder_ + "/mine";
  const auto refused = run(plan(), request);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("this is a file"), std::string::npos)
      << refused.error().message();
}

TEST_F(Runner, names_the_files_of_a_resumed_result_without_a_double_slash) {
  ResultPlace place;
  place.base = "/x/";
  EXPECT_EQ(actual_path(place, "."), "/x");
  EXPECT_EQ(actual_path(place, "trials/0.json"), "/x/trials/0.json");
}

TEST_F(Runner, does_not_judge_from_a_raw_record_that_was_changed) {
  change_ = [this](const TrialRequest&, json&) -> Status {
    if (started_.size() == 8) return fail(ErrorKind::interrupted, "stopped");
    return {};
  };
  ASSERT_FALSE(run(plan(), registered()));
  const std::string raw = records(ledger())[2].body["raw"]["path"];
  const std::string path = folder_ + "/" + raw;
  ASSERT_TRUE(write_file_durably(path, read_whole_file(path).value() + " "));
  change_ = nullptr;
  const auto resumed = run(plan(), registered());
  ASSERT_FALSE(resumed);
  EXPECT_EQ(resumed.error().kind(), ErrorKind::ledger);
  EXPECT_NE(resumed.error().message().find(raw), std::string::npos);
}

TEST_F(Runner, goes_on_after_a_kill_between_raw_record_and_ledger_line) {
  change_ = [this](const TrialRequest&, json&) -> Status {
    if (started_.size() == 2) return fail(ErrorKind::interrupted, "stopped");
    return {};
  };
  ASSERT_FALSE(run(plan(), registered()));
  const std::string dir = actual_directory();
  for (const char* arm : {"alpha", "beta", "alpha-again", "null", "raw-file"}) {
    write(dir + "/trials/0001-" + arm + ".json", "{}");
  }
  change_ = nullptr;
  ASSERT_TRUE(run(plan(), registered()));
  EXPECT_EQ(read_whole_file(dir + "/trials/0001-beta.json").value(), "{}");
}

TEST_F(Runner, tells_that_a_torn_ledger_was_mended) {
  change_ = [this](const TrialRequest&, json&) -> Status {
    if (started_.size() == 3) return fail(ErrorKind::interrupted, "stopped");
    return {};
  };
  ASSERT_FALSE(run(plan(), registered()));
  ASSERT_TRUE(write_file_durably(ledger(), read_whole_file(ledger()).value() + "{\"body\":{"));
  change_ = nullptr;
  struct Notes : RunObserver {
    void note(const std::string& sentence) override { all += sentence + "\n"; }
    std::string all;
  } notes;
  RunRequest request = registered();
  request.tree = folder_;
  ASSERT_TRUE(run_experiment(plan(), request, services(), stop_, notes));
  EXPECT_NE(notes.all.find("ledger.jsonl.torn-1"), std::string::npos) << notes.all;
}

}  // namespace
}  // namespace assay
