#include "harness/experiment/plan.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "harness/experiment/fake_trial_test.h"

namespace assay {
namespace {

class PlanFile : public FakeRun {
 protected:
  [[nodiscard]] std::string refusal(const std::string& text) const {
    const auto parsed = parse_plan(text, "p.toml", stores_.environment());
    return parsed ? "accepted" : parsed.error().message();
  }
  [[nodiscard]] ErrorKind kind_of_refusal(const std::string& text) const {
    const auto parsed = parse_plan(text, "p.toml", stores_.environment());
    return parsed ? ErrorKind::internal : parsed.error().kind();
  }
  [[nodiscard]] Plan read(const std::string& text) const {
    auto parsed = parse_plan(text, "p.toml", stores_.environment());
    EXPECT_TRUE(parsed) << parsed.error().message();
    return *parsed;
  }
  [[nodiscard]] std::string head() const {
    return "name = \"exp\"\nworkload = \"" + folder_ + "/tiny.toml\"\n";
  }
};

#define EXPECT_SAYS(message, part) \
  EXPECT_NE((message).find(part), std::string::npos) << "was: " << (message)

TEST_F(PlanFile, fills_in_defaults_the_twin_and_the_references) {
  const Plan plan = read(head() + "[[arms]]\nstore = \"alpha\"\n[[arms]]\nstore = \"beta\"\n");
  ASSERT_EQ(plan.arms.size(), 5U);
  EXPECT_EQ(plan.arms[2].name, "alpha-again");
  EXPECT_EQ(plan.a_a, "alpha");
  EXPECT_EQ(plan.arms[3].name, "null");
  EXPECT_TRUE(plan.arms[4].reference);
  EXPECT_EQ(plan.design, Design::random);
  EXPECT_EQ(plan.trials, 20U);
  EXPECT_EQ(plan.root, kDefaultRoot);
  EXPECT_EQ(benchmark_root(plan), std::string(kDefaultRoot) + "-" + std::to_string(::getuid()));
  ASSERT_EQ(plan.hypotheses.size(), 1U);
  EXPECT_EQ(plan.hypotheses[0].a, "alpha");
  EXPECT_EQ(plan.hypotheses[0].b, "beta");
  EXPECT_FALSE(plan.hypotheses[0].declared);
}

TEST_F(PlanFile, is_the_same_plan_however_it_is_spelt) {
  const Plan terse = read(head() + "[[arms]]\nstore = \"alpha\"\n[[arms]]\nstore = \"beta\"\n");
  const Plan wordy = read("# a comment\ndesign = \"random\"\ntrials = 20\nalpha = 0.05\n" + head() +
                          "references = [\"null\", \"raw-file\"]\n"
                          "[[arms]]\nname = \"alpha\"\nstore = \"alpha\"\ndurability = \"power\"\n"
                          "[[arms]]\nstore = \"beta\"\n");
  EXPECT_EQ(to_json(terse).dump(), to_json(wordy).dump());
  EXPECT_EQ(plan_digest(to_json(terse)), plan_digest(to_json(wordy)));
  EXPECT_EQ(plan_digest(to_json(terse)).size(), 64U);
}

TEST_F(PlanFile, judges_load_frequency_and_steal_each_by_a_limit_of_its_own) {
  const std::string arms = "[[arms]]\nstore = \"alpha\"\n";
  const Plan sane = read(head() + arms);
  EXPECT_DOUBLE_EQ(sane.foreign_cpus_max, 0.25);
  EXPECT_DOUBLE_EQ(sane.frequency_change_max, 0.2);
  EXPECT_DOUBLE_EQ(sane.steal_share_max, 0.1);
  EXPECT_TRUE(sane.notes.empty());
  const Plan loaded = read(head() + "foreign_cpus_max = 0\n" + arms);
  EXPECT_DOUBLE_EQ(loaded.foreign_cpus_max, 0.0);
  EXPECT_DOUBLE_EQ(loaded.frequency_change_max, 0.2);
  EXPECT_DOUBLE_EQ(loaded.steal_share_max, 0.1);
  ASSERT_EQ(loaded.notes.size(), 1U);
  EXPECT_SAYS(loaded.notes[0], "foreign_cpus_max");
  EXPECT_EQ(loaded.notes[0].find("steal"), std::string::npos);
  const nlohmann::json canonical = to_json(loaded);
  EXPECT_EQ(canonical["foreign_cpus_max"], 0.0);
  EXPECT_EQ(canonical["steal_share_max"], 0.1);
}

TEST_F(PlanFile, recorded_by_an_earlier_assay_is_the_same_plan_when_nothing_of_it_changed) {
  const std::string arms = "[[arms]]\nstore = \"alpha\"\n";
  const Plan off =
      read(head() + "foreign_cpus_max = 0\nfrequency_change_max = 0\nsteal_share_max = 0\n" + arms);
  nlohmann::json before = to_json(off);
  before["schema"] = 1;
  for (auto& phase : before["workload"]["phases"]) phase.erase("timed_batch");
  for (const char* key : {"frequency_change_max", "steal_share_max", "cv_percent"}) {
    before.erase(key);
  }
  for (const char* key : {"aggregation"}) before.erase(key);
  for (auto& arm : before["arms"]) arm.erase("delay_ns");
  EXPECT_EQ(differences(migrated_plan(before), to_json(off)), std::vector<std::string>());
  const auto changed = differences(migrated_plan(before), to_json(read(head() + arms)));
  EXPECT_SAYS(difference_text(changed, 5), "foreign_cpus_max: 0.0 -> 0.25");
  before["foreign_cpus_max"] = 0.5;
  EXPECT_EQ(migrated_plan(before)["steal_share_max"], 0.1);
}

TEST_F(PlanFile, names_every_key_that_differs_with_both_values) {
  const Plan one = read(head() + "[[arms]]\nstore = \"alpha\"\n[[arms]]\nstore = \"beta\"\n");
  Plan other = one;
  other.arms[1].settings["sync"] = "off";
  other.trials = 30;
  const auto found = differences(to_json(one), to_json(other));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], "arms.1.settings.sync: (none) -> \"off\"");
  EXPECT_EQ(found[1], "trials: 20 -> 30");
  EXPECT_EQ(difference_text(found, 1), found[0] + "; and 1 more");
  EXPECT_TRUE(differences(to_json(one), to_json(one)).empty());
}

TEST_F(PlanFile, refuses_an_unknown_key_with_line_and_nearest_name) {
  const std::string message = refusal(head() + "trails = 5\n[[arms]]\nstore = \"alpha\"\n");
  EXPECT_SAYS(message, "p.toml:3");
  EXPECT_SAYS(message, "did you mean 'trials'");
}

TEST_F(PlanFile, refuses_an_unknown_store_setting_and_value_in_place) {
  std::string message = refusal(head() + "[[arms]]\nstore = \"alpga\"\n");
  EXPECT_SAYS(message, "p.toml:4");
  EXPECT_SAYS(message, "alpha");
  message = refusal(head() + "[[arms]]\nstore = \"alpha\"\n[arms.settings]\nsynk = \"off\"\n");
  EXPECT_SAYS(message, "p.toml:6");
  EXPECT_SAYS(message, "sync");
  message = refusal(head() + "[[arms]]\nstore = \"alpha\"\n[arms.settings]\nsync = \"fll\"\n");
  EXPECT_SAYS(message, "full");
}

TEST_F(PlanFile, refuses_more_pins_than_cpus) {
  write(folder_ + "/pins.toml", std::string(kFakeWorkload) + "threads = 3\ncpus = [0, 1, 2]\n");
  const std::string text =
      "name = \"exp\"\nworkload = \"" + folder_ + "/pins.toml\"\n[[arms]]\nstore = \"alpha\"\n";
  EXPECT_SAYS(refusal(text), "pins.toml:17: phase run asks for 3 pins on 2 CPUs");
}

TEST_F(PlanFile, refuses_unequal_durability_unless_it_is_declared) {
  const std::string arms =
      "[[arms]]\nstore = \"alpha\"\n[[arms]]\nstore = \"beta\"\ndurability = \"process\"\n";
  const std::string message = refusal(head() + arms);
  EXPECT_SAYS(message, "p.toml:7");
  EXPECT_SAYS(message, "mixed_durability = true");
  EXPECT_TRUE(read(head() + "mixed_durability = true\n" + arms).mixed_durability);
}

TEST_F(PlanFile, refuses_settings_that_break_the_promise_unless_it_is_declared) {
  const std::string arms =
      "[[arms]]\nstore = \"alpha\"\n[[arms]]\nstore = \"beta\"\n[arms.settings]\nsync = \"off\"\n";
  const std::string message = refusal(head() + arms);
  EXPECT_SAYS(message, "p.toml:8");
  EXPECT_SAYS(message, "beta: sync=off gives durability process, not the power that is declared");
  EXPECT_SAYS(message, "durability = \"process\"");
  EXPECT_SAYS(message, "mixed_durability = true");
  const Plan mixed = read(head() + "mixed_durability = true\n" + arms);
  EXPECT_EQ(mixed.find_arm("alpha")->weakened_to, std::nullopt);
  EXPECT_EQ(mixed.find_arm("beta")->weakened_to, DurabilityClass::process);
  ASSERT_FALSE(mixed.notes.empty());
  EXPECT_SAYS(mixed.notes.front(), "sync=off gives durability process");
  const Plan strengthened = read("durability = \"process\"\n" + head() +
                                 "[[arms]]\nstore = \"alpha\"\n[arms.settings]\nsync = \"full\"\n");
  EXPECT_EQ(strengthened.find_arm("alpha")->weakened_to, std::nullopt);
}

TEST_F(PlanFile, refuses_a_class_that_a_store_does_not_claim) {
  const std::string text = head() + "[[arms]]\nstore = \"alpha\"\ndurability = \"power-last\"\n";
  EXPECT_SAYS(refusal(text), "does not claim durability \"power-last\"");
  EXPECT_EQ(kind_of_refusal(text), ErrorKind::unsupported);
}

TEST_F(PlanFile, refuses_an_arm_without_a_capability_but_leaves_a_reference_out) {
  write(folder_ + "/scan.toml", [] {
    std::string text(kFakeWorkload);
    text.replace(text.find("update = 1"), 10, "scan = 1");
    return text;
  }());
  const std::string text =
      "name = \"exp\"\nworkload = \"" + folder_ + "/scan.toml\"\n[[arms]]\nstore = \"alpha\"\n";
  stores_.driver("raw-file").can_.ordered = false;
  const Plan plan = read(text);
  EXPECT_EQ(plan.find_arm("raw-file"), nullptr);
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_SAYS(plan.notes[0], "raw-file is left out");
  stores_.driver("alpha").can_.ordered = false;
  EXPECT_SAYS(refusal(text), "scan needs an ordered store");
  EXPECT_EQ(kind_of_refusal(text), ErrorKind::unsupported);
}

TEST_F(PlanFile, refuses_a_reference_as_an_arm_and_an_arm_as_a_reference) {
  EXPECT_SAYS(refusal(head() + "[[arms]]\nstore = \"null\"\n"), "never an arm");
  EXPECT_SAYS(refusal(head() + "references = [\"beta\"]\n[[arms]]\nstore = \"alpha\"\n"),
              "is no reference");
}

TEST_F(PlanFile, takes_a_reference_as_an_arm_of_a_calibration_alone) {
  PlanEnvironment calibration = stores_.environment();
  calibration.references_as_arms = true;
  const std::string text = head() + "references = []\n[[arms]]\nstore = \"null\"\n";
  const auto plan = parse_plan(text, "p.toml", calibration);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_FALSE(plan->arms[0].reference);
  EXPECT_SAYS(refusal(text), "never an arm");
}

TEST_F(PlanFile, refuses_two_arms_of_one_name_and_names_that_are_no_file_names) {
  EXPECT_SAYS(refusal(head() + "[[arms]]\nstore = \"alpha\"\n[[arms]]\nstore = \"alpha\"\n"),
              "two arms are named 'alpha'");
  EXPECT_SAYS(refusal(head() + "[[arms]]\nstore = \"alpha\"\nname = \"../x\"\n"),
              "cannot be a name");
}

TEST_F(PlanFile, reads_hypotheses_and_refuses_arms_that_are_not_there) {
  const std::string arms = "[[arms]]\nstore = \"alpha\"\n[[arms]]\nstore = \"beta\"\n";
  const Plan plan = read(head() + arms +
                         "[[hypotheses]]\na = \"beta\"\nb = \"alpha\"\nkind = \"equivalence\"\n"
                         "margin_percent = 5\n");
  ASSERT_EQ(plan.hypotheses.size(), 1U);
  EXPECT_EQ(plan.hypotheses[0].kind, HypothesisKind::equivalence);
  EXPECT_TRUE(plan.hypotheses[0].declared);
  const std::string message =
      refusal(head() + arms + "[[hypotheses]]\na = \"betta\"\nb = \"alpha\"\n");
  EXPECT_SAYS(message, "p.toml:8");
  EXPECT_SAYS(message, "did you mean 'beta'");
  EXPECT_SAYS(refusal(head() + arms +
                      "[[hypotheses]]\na = \"beta\"\nb = \"alpha\"\n"
                      "margin_percent = 5\n"),
              "take a margin");
}

TEST_F(PlanFile, checks_that_a_latency_is_one_of_the_measured_phase) {
  const std::string arms = "[[arms]]\nstore = \"alpha\"\n";
  const std::string latency = "metric = \"latency\"\nlatency_percentile = \"p99\"\n";
  EXPECT_SAYS(refusal(head() + latency + "latency_class = \"read\"\n" + arms),
              "does no 'read'; it does: update");
  const Plan plan = read(head() + latency + "latency_class = \"update\"\n" + arms);
  EXPECT_EQ(plan.metric.name(), "latency p99 of update");
  EXPECT_EQ(plan.metric.unit(), "ns");
  EXPECT_SAYS(refusal(head() + "latency_class = \"update\"\n" + arms), "needs metric");
}

TEST_F(PlanFile, takes_windows_only_with_their_design) {
  const std::string arms = "[[arms]]\nstore = \"alpha\"\n";
  EXPECT_SAYS(refusal(head() + arms + "[windows]\nsets = 5\n"), "needs design = \"windows\"");
  const Plan plan = read("design = \"windows\"\n" + head() + arms + "[windows]\nsets = 5\n");
  EXPECT_EQ(plan.trials, 5U);
  EXPECT_SAYS(
      refusal("design = \"windows\"\ntrials = 4\n" + head() + arms + "[windows]\nsets = 5\n"),
      "same figure");
}

TEST_F(PlanFile, notes_blocks_that_cannot_be_balanced) {
  const std::string arms = "[[arms]]\nstore = \"alpha\"\n[[arms]]\nstore = \"beta\"\n";
  EXPECT_TRUE(read("design = \"blocks\"\ntrials = 10\n" + head() + arms).notes.empty());
  const Plan odd = read("design = \"blocks\"\ntrials = 12\n" + head() + arms);
  ASSERT_EQ(odd.notes.size(), 1U);
  EXPECT_SAYS(odd.notes[0], "12 blocks are no multiple of the 10 rows");
}

TEST_F(PlanFile, gives_a_reference_the_strongest_class_it_claims) {
  stores_.driver("null").can_.durability = {DurabilityClass::volatile_, DurabilityClass::process};
  const Plan plan = read(head() + "[[arms]]\nstore = \"alpha\"\n");
  EXPECT_EQ(plan.find_arm("null")->durability, DurabilityClass::process);
  EXPECT_EQ(plan.find_arm("raw-file")->durability, DurabilityClass::power);
}

TEST_F(PlanFile, applies_overrides_to_the_workload) {
  const Plan plan = read(head() +
                         "[[arms]]\nstore = \"alpha\"\n[workload_overrides]\n"
                         "keys.count = 77\n\"phases.run.operations\" = 5\n");
  EXPECT_EQ(plan.workload.keys.count, 77U);
  EXPECT_EQ(plan.workload.phases[1].operations, 5U);
  EXPECT_NE(refusal(head() + "[[arms]]\nstore = \"alpha\"\n[workload_overrides]\n"
                             "\"keys.cuont\" = 77\n")
                .find("count"),
            std::string::npos);
}

TEST_F(PlanFile, finds_a_workload_relative_to_itself) {
  const auto parsed =
      parse_plan("name = \"exp\"\nworkload = \"./tiny.toml\"\n[[arms]]\nstore = \"alpha\"\n",
                 folder_ + "/p.toml", stores_.environment());
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->workload.name, "tiny");
}

TEST_F(PlanFile, without_arms_or_name_is_refused) {
  EXPECT_SAYS(refusal(head()), "at least one [[arms]]");
  EXPECT_SAYS(refusal("workload = \"x\"\n[[arms]]\nstore = \"alpha\"\n"), "name");
}

TEST_F(PlanFile, made_of_flags_obeys_the_same_rules) {
  const nlohmann::json flags = {{"name", "compare"},
                                {"workload", folder_ + "/tiny.toml"},
                                {"trials", 3},
                                {"arms", {{{"store", "alpha"}}, {{"store", "beta"}}}}};
  const auto plan = plan_from_json(flags, stores_.environment());
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->trials, 3U);
  nlohmann::json wrong = flags;
  wrong["trails"] = 3;
  EXPECT_FALSE(plan_from_json(wrong, stores_.environment()));
}

TEST_F(PlanFile, a_wrong_override_is_told_with_file_and_line) {
  const std::string text = head() + "[[arms]]\nstore = \"alpha\"\n[workload_overrides]\n";
  const auto line = std::to_string(std::count(text.begin(), text.end(), '\n') + 2);
  for (const char* key : {"keys.count", "\"keys.count\""}) {
    const std::string said = refusal(text + "values.bytes = 20\n" + key + " = 0\n");
    EXPECT_TRUE(said.starts_with("p.toml:" + line + ": workload_overrides, keys.count: ")) << said;
    EXPECT_EQ(said.find("--set"), std::string::npos) << said;
  }
}

TEST_F(PlanFile, an_override_may_be_an_array) {
  const Plan plan = read(head() +
                         "[[arms]]\nstore = \"alpha\"\n[workload_overrides]\n"
                         "phases.run.roles.0.cpus = [0, 1]\n");
  ASSERT_FALSE(plan.workload.phases.back().roles.empty());
  EXPECT_EQ(plan.workload.phases.back().roles.front().cpus, (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace assay
