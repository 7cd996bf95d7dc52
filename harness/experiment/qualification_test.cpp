#include "harness/experiment/qualification.h"

#include <fstream>
#include <iterator>

#include "harness/experiment/fake_trial_test.h"

namespace assay {
namespace {

using nlohmann::json;

class Qualifying : public FakeRun {
 protected:
  /// A ledger of the tree that holds these qualification records.
  void qualify(const std::vector<json>& bodies) const {
    std::filesystem::create_directories(folder_ + "/ledgers/qualify");
    auto ledger = LedgerWriter::open(folder_ + "/ledgers/qualify/ledger.jsonl");
    ASSERT_TRUE(ledger);
    for (const json& body : bodies) ASSERT_TRUE(ledger->append("qualification", body));
  }
  [[nodiscard]] static json body(const std::string& outcome, const std::string& durability) {
    return {{"store", "alpha"},    {"version", "1.0"},          {"settings", {{"sync", "full"}}},
            {"class", durability}, {"binary_sha256", "binary"}, {"outcome", outcome}};
  }
  json row_of_alpha() {
    change_ = [](const TrialRequest& trial, json& raw) -> Status {
      raw["store"] = {{"name", trial.arm.store},
                      {"version", "1.0"},
                      {"settings_effective", {{"sync", "full"}}}};
      return {};
    };
    const auto outcome = run(plan("a_a = false\n"));
    EXPECT_TRUE(outcome) << outcome.error().message();
    return outcome->verdict["rows"][0];
  }
};

TEST_F(Qualifying, leaves_a_class_declared_until_a_record_proves_it) {
  json row = row_of_alpha();
  EXPECT_EQ(row["proof"], "declared");
  EXPECT_FALSE(row.contains("proof_record"));
  qualify({body("proven", "power")});
  row = row_of_alpha();
  EXPECT_EQ(row["proof"], "proven");
  EXPECT_EQ(row["proof_record"], qualification_records(folder_).front().hash);
  EXPECT_EQ(row["proof_ledger"], "ledgers/qualify/ledger.jsonl");
}

TEST_F(Qualifying, takes_no_record_of_another_version_setting_binary_or_store) {
  for (const char* key : {"store", "version", "binary_sha256"}) {
    json other = body("proven", "power");
    other[key] = "other";
    qualify({other});
  }
  json other = body("proven", "power");
  other["settings"]["sync"] = "off";
  json partial = body("proven", "power");
  partial["settings"] = json::object();
  qualify({other, partial, body("proven", "process")});
  EXPECT_EQ(row_of_alpha()["proof"], "declared");
}

TEST(QualificationKey, leaves_out_what_follows_from_the_budget_and_what_is_only_read_back) {
  const json store = {
      {"name", "alpha"},
      {"version", "1"},
      {"settings_effective", {{"sync", "full"}, {"cache", "33554432"}, {"map_bytes", "17"}}}};
  const json declared = {{"sync", "full"}, {"cache", "auto"}};
  EXPECT_EQ(qualification_key(DurabilityClass::power, store, declared, "b").settings,
            (Settings{{"sync", "full"}}));
  EXPECT_EQ(qualification_key(DurabilityClass::power, store, json(), "b").settings.size(), 3U);
}

TEST_F(Qualifying, that_was_refuted_says_so_and_the_newest_record_decides) {
  qualify({body("proven", "power"), body("refuted", "process")});
  EXPECT_EQ(row_of_alpha()["proof"], "refuted");
  qualify({body("proven", "power")});
  EXPECT_EQ(row_of_alpha()["proof"], "proven");
}

TEST_F(Qualifying, by_a_ledger_that_was_edited_proves_nothing) {
  qualify({body("refuted", "power"), body("refuted", "power")});
  const std::string path = folder_ + "/ledgers/qualify/ledger.jsonl";
  std::string text;
  {
    std::ifstream file(path);
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  text.replace(text.find("refuted"), 7, "proven");
  write(path, text);
  EXPECT_EQ(row_of_alpha()["proof"], "declared");
}

}  // namespace
}  // namespace assay
