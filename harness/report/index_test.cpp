#include "harness/report/index.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace assay::report {
namespace {

using nlohmann::json;

IndexEntry entry_of(const std::string& name, const std::string& verdict, const std::string& time) {
  const json comparison = {{"a", "x"},
                           {"b", "y"},
                           {"kind", "superiority"},
                           {"verdict", verdict},
                           {"claim", verdict == "superior" ? "shown" : "refuted"},
                           {"declared", true},
                           {"ratio", 0.5},
                           {"interval", {0.4, 0.6}},
                           {"p", 0.001},
                           {"p_adjusted", 0.001},
                           {"disagreement", false},
                           {"sentence", "x is " + verdict + " here"}};
  IndexEntry entry;
  entry.ledger = "ledgers/" + name + "/ledger.jsonl";
  LedgerResult& result = entry.result;
  result.result = name + "-1";
  result.experiment = name;
  result.machine = "0123456789abcdef";
  result.status = "registered";
  result.outcome = verdict == "superior" ? "judged" : "rejected";
  result.began = result.ended = time;
  result.verdict_hash = "fedcba9876543210ff";
  result.verdicts[verdict] = 1;
  result.plan = {{"experiment", {{"design", "blocks"}}},
                 {"provenance", {{"cpu", {{"model", "A <fast> CPU"}}}}}};
  result.verdict = {{"result", result.result},
                    {"experiment", name},
                    {"status", "registered"},
                    {"question", "is x faster?"},
                    {"outcome", result.outcome},
                    {"n", 20},
                    {"alpha", 0.05},
                    {"rows", json::array()},
                    {"comparisons", {comparison}},
                    {"metric", "throughput"},
                    {"unit", "operations/s"},
                    {"design", "blocks"}};
  return entry;
}

TEST(Index, shows_a_loss_as_large_as_a_win_and_the_newest_first) {
  const std::string html = index_html({entry_of("won", "superior", "2026-01-01T00:00:00Z"),
                                       entry_of("lost", "inferior", "2026-01-02T00:00:00Z")},
                                      {});
  const std::size_t lost = html.find("<p class=\"headline\">Rejected: x is inferior here.</p>");
  const std::size_t won = html.find("<p class=\"headline\">Confirmed: x is superior here.</p>");
  ASSERT_NE(lost, std::string::npos) << html;
  ASSERT_NE(won, std::string::npos);
  EXPECT_LT(lost, won);
  for (const char* part : {"is x faster?", "n = 20 blocks", "machine 0123456789ab<",
                           "record <code>fedcba9876543210</code>", "2026-01-02T00:00:00Z",
                           "A &lt;fast&gt; CPU", "REJECTED", "1 inferior, 1 superior"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("http"), std::string::npos);
}

TEST(Index, lists_a_run_without_a_verdict_and_says_what_could_not_be_read) {
  IndexEntry open = entry_of("open", "superior", "2026-01-01T00:00:00Z");
  open.result.verdict = nullptr;
  open.result.verdict_hash.clear();
  open.result.outcome = "interrupted";
  open.result.ended.clear();
  open.result.trials = 7;
  const std::string html = index_html({open}, {"x/ledger.jsonl:3: a broken <line>"});
  EXPECT_NE(html.find("No verdict: interrupted."), std::string::npos) << html;
  EXPECT_NE(html.find("7 trials recorded"), std::string::npos);
  EXPECT_NE(html.find("Left out: x/ledger.jsonl:3: a broken &lt;line&gt;."), std::string::npos);
}

}  // namespace
}  // namespace assay::report
