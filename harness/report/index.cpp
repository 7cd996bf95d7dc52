#include "harness/report/index.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/ledger/durable_file.h"
#include "harness/ledger/named_output.h"
#include "harness/report/content.h"
#include "harness/report/html.h"
#include "harness/report/page_style.h"
#include "harness/report/record_reading.h"

namespace assay::report {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// More than these are folded below a line that counts the wins and the losses among them.
constexpr std::size_t kComparisonsInSight = 8;

constexpr const char* kIndexStyle = R"css(
article{border:1px solid var(--line);border-radius:8px;padding:.8rem 1rem;margin:1rem 0}
article h2{border:0;margin:.35rem 0 .1rem;padding:0;overflow-wrap:anywhere}
article .headline{font-size:1.05rem;margin:.6rem 0;overflow-wrap:anywhere}
article ul.statements li{overflow-wrap:anywhere}
.facts{color:var(--faint);font-size:.82rem;overflow-wrap:anywhere}
.facts span{display:inline-block;margin-right:1rem;max-width:100%}
.stamp.bad{color:var(--bad)}
a{color:var(--same)}
)css";

std::string text_at(const json& tree, const char* pointer) {
  const json::json_pointer at(pointer);
  if (!tree.is_object() || !tree.contains(at)) return {};
  const json& found = tree.at(at);
  return found.is_string() ? found.get<std::string>() : std::string();
}

/// What the report of this result says; nothing where there is no verdict, or one that is no more
/// than a name.
std::optional<Content> content_of(const IndexEntry& entry) {
  if (!entry.result.verdict.is_object()) return std::nullopt;
  try {
    ReportModel model;
    read_verdict(entry.result.verdict, model);
    model.ledger_path = entry.ledger;
    return make_content(model);
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::string counted(const std::map<std::string, std::uint64_t>& verdicts) {
  std::vector<std::string> parts;
  for (const auto& [verdict, times] : verdicts) {
    parts.push_back(fmt::format("{} {}", times, verdict.empty() ? "without verdict" : verdict));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string comparisons_html(const Content& content, const LedgerResult& result) {
  // One comparison is the headline already.
  if (content.comparisons.size() < 2) return {};
  if (content.comparisons.size() <= kComparisonsInSight) {
    return statements_html(content.comparisons);
  }
  return fmt::format("<details><summary>All {} comparisons: {}</summary>\n{}</details>\n",
                     content.comparisons.size(), html_escaped(counted(result.verdicts)),
                     statements_html(content.comparisons));
}

std::string unit_of(const json& plan) {
  const std::string design = text_at(plan, "/experiment/design");
  if (design == "blocks") return "blocks";
  return design == "windows" ? "sets" : "trials an arm";
}

std::string facts_html(const IndexEntry& entry) {
  const LedgerResult& result = entry.result;
  std::vector<std::string> facts;
  if (result.verdict.is_object() && result.verdict.contains("n")) {
    facts.push_back(fmt::format("n = {} {}", result.verdict["n"].dump(), unit_of(result.plan)));
  } else {
    facts.push_back(fmt::format("{} trials recorded", result.trials));
  }
  if (result.void_trials > 0) facts.push_back(fmt::format("{} void", result.void_trials));
  facts.push_back(result.ended.empty() ? "begun " + result.began : result.ended);
  const std::string cpu = text_at(result.plan, "/provenance/cpu/model");
  facts.push_back(cpu.empty() ? "CPU unknown" : cpu);
  facts.push_back(
      fmt::format("machine {:.12}", result.machine.empty() ? "unknown" : result.machine));
  std::string html = "<p class=\"facts\">";
  for (const std::string& fact : facts) html += "<span>" + html_escaped(fact) + "</span>";
  html +=
      fmt::format("<span>{}, {}</span>", html_escaped(entry.ledger), html_escaped(result.result));
  if (!result.verdict_hash.empty()) {
    html +=
        fmt::format("<span>record <code>{:.16}</code></span>", html_escaped(result.verdict_hash));
  }
  return html + "</p>\n";
}

std::string headline_of(const IndexEntry& entry, const std::optional<Content>& content) {
  if (content) return content->headline;
  const std::string& outcome = entry.result.outcome;
  return fmt::format("No verdict: {}.", outcome.empty() ? "the run is not complete" : outcome);
}

std::string article(const IndexEntry& entry) {
  const LedgerResult& result = entry.result;
  const auto content = content_of(entry);
  const bool registered = result.status == "registered";
  std::string stamp = content ? content->stamp : registered ? "REGISTERED" : "EXPLORATORY";
  std::string html = fmt::format("<article>\n<span class=\"stamp{}\">{}</span>\n",
                                 registered ? " registered" : "", html_escaped(stamp));
  if (result.outcome != "judged") {
    std::string outcome = result.outcome;
    std::transform(outcome.begin(), outcome.end(), outcome.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
    html += fmt::format("<span class=\"stamp bad\">{}</span>\n", html_escaped(outcome));
  }
  const std::string name =
      html_escaped(result.experiment.empty() ? result.result : result.experiment);
  html += entry.page.empty()
              ? fmt::format("<h2>{}</h2>\n", name)
              : fmt::format("<h2><a href=\"{}\">{}</a></h2>\n", html_escaped(entry.page), name);
  const std::string question = content ? content->question : result.question;
  if (!question.empty()) html += "<p class=\"question\">" + html_escaped(question) + "</p>\n";
  html += fmt::format("<p class=\"headline\">{}</p>\n", html_escaped(headline_of(entry, content)));
  if (content) html += comparisons_html(*content, result);
  html += facts_html(entry);
  if (entry.page.empty() && content) {
    html += fmt::format("<pre>assay report {} --result {}{} --format html</pre>\n",
                        html_escaped(entry.ledger), html_escaped(result.result),
                        entry.merged ? fmt::format(" --machine {:.12}", result.machine) : "");
  }
  return html + "</article>\n";
}

std::string overview(const std::vector<IndexEntry>& entries) {
  std::map<std::string, std::uint64_t> verdicts;
  std::size_t registered = 0;
  std::size_t judged = 0;
  for (const IndexEntry& entry : entries) {
    registered += entry.result.status == "registered" ? 1U : 0U;
    judged += entry.result.outcome == "judged" ? 1U : 0U;
    for (const auto& [verdict, times] : entry.result.verdicts) verdicts[verdict] += times;
  }
  std::string html = fmt::format(
      "<p>{} results, {} of them registered, {} judged. Comparisons, each told from its first "
      "arm: {}.</p>\n",
      entries.size(), registered, judged, verdicts.empty() ? "none" : counted(verdicts));
  return html;
}

/// Where the report of a result is, if it is: beside its trials, below the ledger's folder or, of a
/// registered experiment, below the tree that holds ledgers/.
/// Of a merged ledger it is beside that ledger, in a folder that names the machine.
std::string page_of(const std::string& ledger, const LedgerResult& result, bool merged,
                    const fs::path& from) {
  const fs::path directory = merged ? fmt::format("{}-{:.12}", result.result, result.machine)
                                    : text_at(result.plan, "/directory");
  const fs::path folder = fs::absolute(ledger).lexically_normal().parent_path();
  std::error_code error;
  for (const fs::path& base : {folder, folder.parent_path().parent_path()}) {
    const fs::path page = (base / directory / "report.html").lexically_normal();
    if (!directory.empty() && fs::is_regular_file(page, error)) {
      return page.lexically_relative(fs::absolute(from).lexically_normal()).generic_string();
    }
  }
  return {};
}

}  // namespace

std::string index_html(std::vector<IndexEntry> entries, const std::vector<std::string>& notes) {
  std::stable_sort(entries.begin(), entries.end(), [](const IndexEntry& a, const IndexEntry& b) {
    const auto time = [](const LedgerResult& one) {
      return one.ended.empty() ? one.began : one.ended;
    };
    return time(a.result) > time(b.result);
  });
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>assay: all results</title>\n<style>{}{}</style></head>\n<body>\n"
      "<header><h1>All results</h1></header>\n",
      kPageStyle, kIndexStyle);
  html += overview(entries);
  for (const std::string& note : notes) {
    html += fmt::format("<p class=\"question\">Left out: {}.</p>\n", html_escaped(note));
  }
  for (const IndexEntry& entry : entries) html += article(entry);
  return html + "</body></html>\n";
}

Result<WrittenIndex> write_index(const std::vector<std::string>& ledgers,
                                 const std::string& directory) {
  WrittenIndex written;
  std::vector<IndexEntry> entries;
  for (const std::string& ledger : ledgers) {
    auto all = read_results(ledger);
    if (!all) {
      written.notes.push_back(all.error().message());
      continue;
    }
    for (LedgerResult& one : all->results) {
      const bool merged = all->merged_from > 0;
      std::string page = page_of(ledger, one, merged, directory);
      written.linked += page.empty() ? 0U : 1U;
      entries.push_back({std::move(one), ledger, std::move(page), merged});
    }
  }
  written.results = entries.size();
  ASSAY_TRY(make_directories_durably(directory));
  written.html = (fs::path(directory) / "index.html").lexically_normal().string();
  ASSAY_TRY(write_named_output(written.html, index_html(std::move(entries), written.notes)));
  return written;
}

}  // namespace assay::report
