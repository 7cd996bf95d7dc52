// The page of a matrix shows every line and reason, and nothing of a name or reason as markup.
#include "harness/cli/matrix_page.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace assay::cli {
namespace {

TEST(MatrixPage, shows_settings_verdicts_reasons_and_bundles_as_text) {
  qualify::MatrixEntry failing;
  failing.row = {"toy <b>row</b>", "toy", {}};
  failing.outcome.level = qualify::Level::power_files;
  failing.outcome.profile = "ordered";
  failing.outcome.coverage = {
      {"profiles",
       {{"ordered", {{"worst", "torn"}, {"passes", false}, {"states_checked", 300}}},
        {"strict", {{"worst", "torn"}, {"passes", false}, {"states_checked", 21}}}}}};
  failing.outcome.bundles = {"out/bundle"};
  failing.verdict = qualify::Verdict::fail;
  failing.reason = "lost a & b";
  qualify::Matrix matrix;
  matrix.entries.push_back(failing);
  matrix.ledger_path = "out/ledger.jsonl";
  qualify::MatrixPlan plan;
  plan.budget_text = "10s";
  const std::string page = matrix_page(plan, matrix);
  for (const char* const text :
       {"toy &lt;b&gt;row&lt;/b&gt;", "lost a &amp; b", "assay qualify replay out/bundle", "1 FAIL",
        "out/ledger.jsonl", "<td>(worse)</td>", "prefers-color-scheme:dark"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(page.find("<b>row"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos) << "it must need no network";
}

}  // namespace
}  // namespace assay::cli
