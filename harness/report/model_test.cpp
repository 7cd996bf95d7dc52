#include "harness/report/model.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/report/fixture.h"
#include "harness/report/record_reading.h"

namespace assay::report {
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

class LoadReport : public ::testing::Test {
 protected:
  LoadReport() {
    shape_.trials = 3;
    made_ = fixture::write(shape_, directory_.path());
  }
  void rewrite(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  TemporaryDirectory directory_;
  fixture::Shape shape_ = fixture::five_rows();
  fixture::Made made_;
};

TEST_F(LoadReport, orders_rows_by_the_metric_and_puts_references_last) {
  const Result<ReportModel> model = load_report(made_.ledger, "");
  ASSERT_TRUE(model) << model.error().message();
  std::vector<std::string> names;
  for (const Row& row : model->rows) names.push_back(row.arm);
  EXPECT_EQ(names, (std::vector<std::string>{"rocksdb", "sqlite", "lmdb", "null", "raw-file"}));
  EXPECT_EQ(model->trials.size(), 15U);
  EXPECT_EQ(model->result_directory, directory_.path());
  EXPECT_EQ(model->head_hash, model->verdict_hash);
  EXPECT_EQ(model->command_line, "assay run 'ledgers/demo/my plan.toml'");
  ASSERT_TRUE(model->a_a);
  EXPECT_EQ(model->a_a->verdict, "ok");
}

TEST_F(LoadReport, keeps_why_a_figure_is_unknown) {
  const Result<ReportModel> model = load_report(made_.ledger, made_.result);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_FALSE(model->rows[0].recovery_ns.value);
  EXPECT_EQ(model->rows[0].recovery_ns.why, "no opening after the run was recorded");
}

TEST_F(LoadReport, reads_histograms_and_series_of_the_timed_phases) {
  const Result<ReportModel> model = load_report(made_.ledger, "");
  ASSERT_TRUE(model) << model.error().message();
  const Trial& trial = model->trials.front();
  ASSERT_TRUE(trial.latencies.contains("update"));
  std::uint64_t total = 0;
  for (const auto& [latency, count] : trial.latencies.at("update")) total += count;
  EXPECT_EQ(total, 3000U);
  EXPECT_EQ(trial.series.size(), 11U);  // twelve slots, the last one is cut short by the end
}

TEST_F(LoadReport, names_a_raw_file_that_was_changed) {
  rewrite(made_.raw_files[4], bytes_of(made_.raw_files[4]) + " ");
  const Result<ReportModel> model = load_report(made_.ledger, "");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind(), ErrorKind::ledger);
  EXPECT_EQ(model.error().where(), made_.raw_files[4]);
  EXPECT_NE(model.error().message().find("changed"), std::string::npos);
}

TEST_F(LoadReport, names_a_changed_raw_file_as_the_ledger_was_named) {
  rewrite(made_.raw_files[4], bytes_of(made_.raw_files[4]) + " ");
  const std::string here = std::filesystem::proximate(made_.ledger).string();
  const Result<ReportModel> model = load_report(here, "");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().where(), std::filesystem::proximate(made_.raw_files[4]).string());
}

TEST_F(LoadReport, takes_from_the_ledger_what_it_holds_when_the_raw_records_are_missing) {
  for (const std::string& raw : made_.raw_files) std::filesystem::remove(raw);
  const Result<ReportModel> model = load_report(made_.ledger, "");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->rows.size(), 5U);
  ASSERT_EQ(model->trials.size(), 15U);
  const Trial& trial = model->trials.front();
  EXPECT_TRUE(trial.raw_missing);
  EXPECT_TRUE(trial.throughput_per_s.value);
  EXPECT_TRUE(trial.latencies.empty() || trial.latencies.at("update").empty());
  EXPECT_TRUE(model->warnings.back().starts_with("15 of 15 raw records are missing (the first: " +
                                                 trial.raw_path))
      << model->warnings.back();
  EXPECT_EQ(model->result_directory, directory_.path());
}

TEST_F(LoadReport, of_a_registered_run_without_its_results_goes_where_they_belong) {
  const std::string root = directory_.path() + "/tree";
  std::filesystem::create_directories(root + "/ledgers/demo");
  const fixture::Made made = fixture::write(shape_, root + "/ledgers/demo");
  for (const std::string& raw : made.raw_files) std::filesystem::remove(raw);
  const Result<ReportModel> model = load_report(made.ledger, "");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->result_directory, root);  // the raw paths of a fixture are trials/FILE
}

TEST_F(LoadReport, names_the_line_that_breaks_the_chain) {
  std::string text = bytes_of(made_.ledger);
  text.replace(text.find("\"seed\":1000"), 11, "\"seed\":1001");
  rewrite(made_.ledger, text);
  const Result<ReportModel> model = load_report(made_.ledger, "");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind(), ErrorKind::ledger);
  EXPECT_EQ(model.error().where(), made_.ledger + ":3");  // line 2 was changed, line 3 shows it
}

TEST_F(LoadReport, warns_of_an_unfinished_record_at_the_end) {
  rewrite(made_.ledger, bytes_of(made_.ledger) + "{\"body\":{");
  const Result<ReportModel> model = load_report(made_.ledger, "");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_NE(model->warnings.back().find("unfinished"), std::string::npos);
}

TEST_F(LoadReport, lists_the_valid_results_for_an_unknown_one) {
  const Result<ReportModel> model = load_report(made_.ledger, "20260102T120000Z-1a2b3c4e");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind(), ErrorKind::bad_input);
  EXPECT_NE(model.error().hint_text().find("did you mean " + made_.result), std::string::npos);
}

TEST_F(LoadReport, says_when_no_verdict_is_there_yet) {
  std::string text = bytes_of(made_.ledger);
  text.resize(text.rfind("{\"body\":{\"a_a\""));
  rewrite(made_.ledger, text);
  const Result<ReportModel> newest = load_report(made_.ledger, "");
  ASSERT_FALSE(newest);
  EXPECT_NE(newest.error().what().find("no verdict yet"), std::string::npos);
  const Result<ReportModel> named = load_report(made_.ledger, made_.result);
  ASSERT_FALSE(named);
  EXPECT_NE(named.error().what().find("its run is not complete"), std::string::npos);
}

TEST(FindLedger, takes_a_file_or_its_directory) {
  const TemporaryDirectory directory;
  fixture::Shape shape = fixture::five_rows();
  shape.trials = 2;
  const fixture::Made made = fixture::write(shape, directory.path());
  EXPECT_EQ(find_ledger(made.ledger).value(), made.ledger);
  EXPECT_EQ(find_ledger(directory.path()).value(), made.ledger);
  const Result<std::string> missing = find_ledger(directory.path() + "/nothing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind(), ErrorKind::bad_input);
}

TEST(RowTitle, of_a_plug_in_is_its_files_name_and_not_its_path) {
  const Row row = read_row({{"arm", "mine"}, {"store", "/some/where/mine.so"}, {"version", "3"}});
  EXPECT_EQ(row_title(row), "mine 3");
}

}  // namespace
}  // namespace assay::report
