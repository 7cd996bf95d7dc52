#include "harness/ledger/difference.h"

#include <string>

#include <gtest/gtest.h>

namespace assay {
namespace {

LedgerResult result_with(const std::string& model, int free_bytes, const char* sync) {
  LedgerResult one;
  one.plan = {{"experiment", {{"trials", 20}, {"arms", {{{"name", "x"}}}}}},
              {"provenance",
               {{"cpu", {{"model", model}}},
                {"memory", {{"available_bytes", free_bytes}}},
                {"binary", {{"sha256", "b"}}}}}};
  one.arms = {{"x", {{"settings_effective", {{"sync", sync}}}}}};
  one.verdict = nullptr;
  return one;
}

TEST(Differences, are_only_what_differs_each_in_its_section) {
  const LedgerResult a = result_with("A", 1, "full");
  EXPECT_TRUE(differences(a, a).empty());
  LedgerResult b = result_with("B", 2, "off");
  b.plan["provenance"]["binary"] = {{"unknown", "no such file"}};
  const auto found = differences(a, b);
  ASSERT_EQ(found.size(), 5U);
  EXPECT_EQ(found[0].section, "binary");
  EXPECT_EQ(found[0].what, "binary");
  EXPECT_EQ(found[0].b, "unknown: no such file");
  EXPECT_EQ(found[1].what, "binary.sha256");
  EXPECT_EQ(found[1].b, "-");
  EXPECT_EQ(found[2].what, "x.settings_effective.sync");
  EXPECT_EQ(found[3].what, "cpu.model");
  EXPECT_FALSE(found[3].reading);
  EXPECT_EQ(found[4].what, "memory.available_bytes");
  EXPECT_TRUE(found[4].reading);
}

TEST(Differences, name_elements_of_a_list_so_that_one_more_does_not_shift_all) {
  LedgerResult a = result_with("A", 1, "full");
  LedgerResult b = a;
  b.plan["experiment"]["arms"] = {{{"name", "w"}}, {{"name", "x"}}};
  const auto found = differences(a, b);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].what, "arms.w.name");
}

}  // namespace
}  // namespace assay
