// Reports of merged ledgers: results stay apart by machine, and their raw records are found.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"
#include "harness/ledger/durable_file.h"
#include "harness/ledger/merge.h"
#include "harness/report/fixture.h"
#include "harness/report/index.h"
#include "harness/report/model.h"
#include "harness/report/write_report.h"

namespace assay::report {
namespace {

namespace fs = std::filesystem;

class MergedLedger : public ::testing::Test {
 protected:
  void SetUp() override {
    fixture::Shape shape = fixture::five_rows();
    shape.trials = 3;
    shape.machine = "machine-one's fingerprint";
    one_ = fixture::write(shape, own_.file("one"));
    shape.machine = "another machine's fingerprint";
    shape.seed = 7;
    for (fixture::ArmShape& arm : shape.arms) arm.rate *= 2.0;
    two_ = fixture::write(shape, own_.file("two"));
    ASSERT_EQ(one_.result, two_.result);  // begun in the same second
    const auto merged = merge_ledgers({one_.ledger, two_.ledger}, merged_);
    ASSERT_TRUE(merged) << merged.error().message();
  }
  [[nodiscard]] ReportModel model(const std::string& ledger, const std::string& machine) const {
    auto loaded = load_report(ledger, one_.result, machine);
    EXPECT_TRUE(loaded) << loaded.error().message();
    return std::move(*loaded);
  }

  const TemporaryDirectory own_;
  const std::string merged_ = own_.file("merged.jsonl");
  fixture::Made one_;
  fixture::Made two_;
};

TEST_F(MergedLedger, asks_which_machine_is_meant_where_two_share_a_name) {
  const auto loaded = load_report(merged_, one_.result);
  ASSERT_FALSE(loaded);
  const std::string said = loaded.error().message();
  EXPECT_NE(said.find("2 machines have a result"), std::string::npos) << said;
  EXPECT_NE(said.find("--machine takes one of"), std::string::npos) << said;
  EXPECT_NE(said.find("another mach"), std::string::npos) << said;
}

TEST_F(MergedLedger, keeps_the_trials_of_two_machines_apart) {
  for (const auto& [made, machine] :
       {std::pair(one_, std::string("machine-")), std::pair(two_, std::string("another "))}) {
    const ReportModel alone = model(made.ledger, "");
    const ReportModel carried = model(merged_, machine);
    EXPECT_EQ(carried.trials.size(), alone.trials.size());
    EXPECT_EQ(carried.verdict_json, alone.verdict_json);
    EXPECT_EQ(carried.plan_json, alone.plan_json);
    for (std::size_t i = 0; i < alone.trials.size(); ++i) {
      EXPECT_FALSE(carried.trials[i].raw_missing);
      EXPECT_EQ(carried.trials[i].raw_sha256, alone.trials[i].raw_sha256);
      EXPECT_EQ(carried.trials[i].latencies, alone.trials[i].latencies);
    }
  }
}

TEST_F(MergedLedger, draws_the_pictures_of_its_sources_byte_for_byte_each_naming_its_record) {
  const ReportModel carried = model(merged_, "another ");
  const auto before = write_plots(model(two_.ledger, ""), own_.file("before"));
  const auto after = write_plots(carried, own_.file("after"));
  ASSERT_TRUE(before && after);
  ASSERT_FALSE(before->figures.empty());
  ASSERT_EQ(before->figures.size(), after->figures.size());
  for (const auto& entry : fs::directory_iterator(own_.file("before"))) {
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(read_whole_file(own_.file("before") + "/" + name).value(),
              read_whole_file(own_.file("after") + "/" + name).value())
        << name;
  }
  EXPECT_GE(after->figures.size(), 6U);
  for (const plots::Drawing& figure : after->figures) {
    const auto svg = read_whole_file(own_.file("after") + "/" + figure.name + ".svg");
    EXPECT_NE(svg.value().find("record " + carried.verdict_hash.substr(0, 12)), std::string::npos)
        << figure.name;
  }
}

TEST_F(MergedLedger, has_pages_of_its_own_and_leaves_those_of_its_sources) {
  const ReportModel carried = model(merged_, "another ");
  EXPECT_EQ(carried.result_directory, own_.file(one_.result + "-another mach"));
  const auto written = write_report(carried, carried.result_directory);
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_FALSE(fs::exists(own_.file("two") + "/report.html"));
  EXPECT_NE(read_whole_file(written->markdown).value().find("--machine"), std::string::npos);
  const auto index = write_index({merged_}, own_.path());
  ASSERT_TRUE(index) << index.error().message();
  EXPECT_EQ(index->results, 2U);
  EXPECT_EQ(index->linked, 1U);
}

TEST_F(MergedLedger, says_so_when_the_folders_of_its_sources_are_not_here) {
  fs::remove_all(own_.file("two"));
  const ReportModel carried = model(merged_, "another ");
  EXPECT_EQ(missing_raws_text(carried).substr(0, 8), "15 of 15");
  EXPECT_EQ(missing_raws_text(model(merged_, "machine-")), "");
}

}  // namespace
}  // namespace assay::report
