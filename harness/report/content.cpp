#include "harness/report/content.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/report/sweep.h"
#include "harness/report/units.h"
#include "harness/stats/p_text.h"
#include "harness/stats/trials_text.h"

namespace assay::report {
namespace {

using stats::p_phrase;

/// "1.24 to 1.29 k/s": the unit once where both ends have the same one.
std::string interval_text(const ReportModel& model, const std::optional<Interval>& interval) {
  if (!interval) return "?";
  std::string low = format_metric(interval->low, model.unit);
  const std::string high = format_metric(interval->high, model.unit);
  const auto unit_of = [](const std::string& text) {
    const std::size_t at = text.find_first_not_of("0123456789.-");
    return at == std::string::npos ? std::string() : text.substr(at);
  };
  const std::string unit = unit_of(high);
  if (unit_of(low) == unit) low.resize(low.size() - unit.size());
  return fmt::format("{} to {}", low, high);
}

/// A reference may be thousands of times as fast: no percentage then.
std::string format_share(double share) {
  return share >= 10 ? format_number(share) + "x" : format_percent(share);
}

/// What n counts: sets of processes, blocks, or trials of each arm.
std::string unit_of_n(const ReportModel& model) {
  if (model.design == "windows") return "sets";
  return model.design == "blocks" ? "blocks" : "trials an arm";
}

std::string name_of_test(const std::string& test) {
  if (test == "welch") return "Welch's t-test";
  if (test == "paired") return "paired t-test";
  if (test == "mann-whitney") return "Mann-Whitney test";
  if (test == "wilcoxon") return "Wilcoxon's signed rank test";
  return test;
}

std::string metric_text(const ReportModel& model, const Row& row) {
  if (row.disqualified) return "disqualified";
  if (!row.geometric_mean.value) return "?";
  return format_metric(*row.geometric_mean.value, model.unit);
}

/// Where the arms promise unequal things, the limit itself has a class that must be said.
std::string of_raw_file(const ReportModel& model) {
  for (const Row& row : model.rows) {
    if (model.mixed_durability && row.arm == "raw-file" && row.reference) {
      return fmt::format("of raw-file ({})", row.durability);
    }
  }
  return "of raw-file";
}

std::vector<Column> columns_of(const ReportModel& model) {
  const std::string confidence = fmt::format("{:.3g} %", (1.0 - model.alpha) * 100.0);
  return {
      {"store", "the arm, its store and the version that the store reports", false},
      {"durability", "what an acknowledged commit survives, and who says so", false},
      {model.metric, model.median_of_trials ? "median over the trial processes"
                                            : "geometric mean over the trial processes"},
      {confidence + " interval", "confidence interval of that figure, from processes"},
      {"", "the same as a bar, beside the other arms", false, true},
      {of_raw_file(model), "share of the fastest plain way to make the same bytes durable here"},
      {"n", "trial processes that count"},
      {"p50", "latency that half of the operations stay below"},
      {"p99", "latency that 99 % of the operations stay below"},
      {"p99.9", "latency that 99.9 % of the operations stay below"},
      {"barriers/op", "flush calls an operation", true, false, true},
      {"device B/op", "bytes that reached the block layer an operation", true, false, true},
      {"write amp", "bytes to the device a byte of the user's data", true, false, true},
      {"read amp", "bytes from the device a byte that was read", true, false, true},
      {"B/entry", "bytes allocated on disk an entry, after the drain", true, false, true},
      {"CPU/op", "processor time an operation, user and system", true, false, true},
      {"peak RSS", "largest resident memory of the process", true, false, true},
      {"drain", "time to bring log or compaction debt to rest", true, false, true},
      {"recovery", "time to open again after the run", true, false, true},
  };
}

TableLine table_line(const ReportModel& model, const Row& row, double longest) {
  TableLine line;
  line.reference = row.reference;
  if (row.geometric_mean.value && !row.disqualified && longest > 0 &&
      *row.geometric_mean.value > 0) {
    line.bar = *row.geometric_mean.value / longest;
  }
  line.cells = {row_title(row),
                durability_text(row),
                metric_text(model, row),
                row.disqualified ? "" : interval_text(model, row.interval),
                "",
                shown(row.share_of_raw, format_share),
                row.void_trials == 0 ? fmt::format("{}", row.n)
                                     : fmt::format("{} + {} void", row.n, row.void_trials),
                shown(row.p50_ns, format_time_ns),
                shown(row.p99_ns, format_time_ns),
                shown(row.p999_ns, format_time_ns),
                shown(row.barriers_per_operation, format_number),
                shown(row.device_bytes_per_operation, format_bytes),
                shown(row.write_amplification, format_number),
                shown(row.read_amplification, format_number),
                shown(row.disk_bytes_per_entry, format_number),
                shown(row.cpu_ns_per_operation, format_time_ns),
                shown(row.rss_peak_bytes, format_bytes),
                shown(row.drain_ns, format_time_ns),
                shown(row.recovery_ns, format_time_ns)};
  // What an arm does with wrong contents is no performance.
  if (row.disqualified) std::fill(line.cells.begin() + 3, line.cells.end(), "");
  return line;
}

/// A column without a single figure only takes room; add_unknowns() says why it is not there.
void drop_unknown_columns(Table& table) {
  for (std::size_t c = table.columns.size(); c-- > 3;) {
    const bool known =
        table.columns[c].bar ||
        std::any_of(table.lines.begin(), table.lines.end(), [c](const TableLine& line) {
          return line.cells[c] != "?" && !line.cells[c].empty();
        });
    if (known) continue;
    const auto offset = static_cast<std::ptrdiff_t>(c);
    table.columns.erase(table.columns.begin() + offset);
    for (TableLine& line : table.lines) line.cells.erase(line.cells.begin() + offset);
  }
}

Table make_table(const ReportModel& model) {
  Table table;
  table.columns = columns_of(model);
  constexpr double kFar = 2.5;  // a reference beyond this many times the best arm is off the scale
  std::map<std::string, double> longest_by_cell;
  for (const Row& row : model.rows) {  // the references come last
    double& longest = longest_by_cell[row.cell];
    if (row.disqualified || !row.geometric_mean.value) continue;
    if (row.reference && longest > 0 && *row.geometric_mean.value > longest * kFar) continue;
    longest = std::max(longest, *row.geometric_mean.value);
  }
  for (const Row& row : model.rows) {
    table.lines.push_back(table_line(model, row, longest_by_cell[row.cell]));
  }
  group_by_cell(model, table);
  drop_unknown_columns(table);
  return table;
}

/// Whether the sentence begins with the second arm: it puts the larger figure first.
bool is_turned(const Comparison& comparison) {
  const auto begins_with = [&](const std::string& arm) {
    return comparison.sentence.starts_with(arm + " ") ||
           comparison.sentence.starts_with(arm + "'s ");
  };
  return begins_with(comparison.b) && !begins_with(comparison.a);
}

/// "adjusted p = 0.03 (p = 0.01 and the interval are not adjusted)"; only p where both are equal.
std::string p_values_text(const Comparison& comparison) {
  const double adjusted = *comparison.p_adjusted.value;
  if (!comparison.p.value) return "adjusted " + p_phrase(adjusted);
  const std::string raw = p_phrase(*comparison.p.value);
  if (*comparison.p.value == adjusted) return raw;
  if (raw == p_phrase(adjusted)) return "adjusted " + raw;
  return fmt::format("adjusted {} ({} and the interval are not adjusted)", p_phrase(adjusted), raw);
}

std::string rank_test_text(const Comparison& comparison, double alpha) {
  const bool wilcoxon = comparison.rank_test == "wilcoxon";
  std::string text = fmt::format("{} {}", wilcoxon ? "Wilcoxon" : "Mann-Whitney",
                                 p_phrase(*comparison.mann_whitney_p.value));
  const auto& smallest = comparison.rank_p_smallest.value;
  if (comparison.disagreement) {
    text += ", which DISAGREES";
  } else if (smallest && *smallest >= alpha) {
    text += *comparison.mann_whitney_p.value <= *smallest
                ? ", the least that so few trials allow"
                : fmt::format(" (so few trials allow no less than {})", stats::p_text(*smallest));
  }
  return text;
}

Statement judged(const Comparison& comparison, double alpha) {
  Statement statement;
  // The sentence may begin with the second arm, the recorded verdict is about the first: both are
  // told from the side that the sentence takes.
  const bool decided = comparison.verdict == "superior" || comparison.verdict == "inferior";
  const bool turned = decided && is_turned(comparison);
  std::string verdict = comparison.verdict;
  if (turned) verdict = verdict == "superior" ? "inferior" : "superior";
  statement.tone = verdict == "superior"                                  ? Tone::better
                   : verdict == "inferior"                                ? Tone::worse
                   : verdict == "equivalent" || verdict == "non-inferior" ? Tone::same
                   : verdict == "void"                                    ? Tone::bad
                                                                          : Tone::open;
  static constexpr const char* kMarks[] = {"+", "-", "=", "?", "!"};
  statement.mark = kMarks[static_cast<std::size_t>(statement.tone)];
  statement.sentence = comparison.sentence;
  if (statement.sentence.empty()) {
    statement.sentence = fmt::format("{} is {} {}", comparison.a,
                                     shown(comparison.ratio, format_ratio), comparison.b);
  }
  const std::string& about = turned ? comparison.b : comparison.a;
  // A comparison that may not be judged has no verdict that a test came to.
  std::vector<std::string> parts{
      verdict == "void" ? fmt::format("void: no verdict on the claim of {}", comparison.kind)
                        : fmt::format("{}{} by a test of {}", decided ? about + " is " : "",
                                      verdict, comparison.kind)};
  if (!comparison.test.empty()) parts.push_back(name_of_test(comparison.test));
  if (comparison.degrees_of_freedom.value) {
    parts.push_back(fmt::format("df = {}", format_number(*comparison.degrees_of_freedom.value)));
  }
  if (comparison.p_adjusted.value) parts.push_back(p_values_text(comparison));
  if (comparison.mann_whitney_p.value) parts.push_back(rank_test_text(comparison, alpha));
  statement.detail = fmt::format("{}", fmt::join(parts, "; "));
  return statement;
}

/// Trials that were lost to the same cause share a line, whatever the figures in it: an arm may
/// have lost dozens.
void add_void_trials(const ReportModel& model, Content& content) {
  std::map<std::array<std::string, 3>, std::vector<const Trial*>> alike;
  for (const Trial& trial : model.trials) {
    if (trial.status == "ok" || trial.status == "disqualified") continue;
    std::string cause = trial.reason;
    std::erase_if(cause, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
    alike[{trial.arm, trial.status, cause}].push_back(&trial);
  }
  for (const auto& [key, trials] : alike) {
    const Trial& first = *trials.front();
    if (trials.size() == 1) {
      content.checks.push_back(
          {Tone::bad, "!",
           fmt::format("Trial {} of {} is {}", first.index, first.arm, first.status),
           first.reason});
      continue;
    }
    content.checks.push_back({Tone::bad, "!",
                              fmt::format("{} trials of {} are {} (the first: trial {})",
                                          trials.size(), first.arm, first.status, first.index),
                              first.reason});
  }
}

void add_checks(const ReportModel& model, Content& content) {
  for (const Row& row : model.rows) {
    if (!row.disqualified) continue;
    content.checks.push_back({Tone::bad, "!", fmt::format("{} is disqualified", row.arm),
                              row.reason.empty() ? "its contents were wrong" : row.reason});
  }
  for (const std::string& reason : model.void_reasons) {
    // A gate that was not passed has a line of its own below.
    const bool told =
        (model.a_a && model.a_a->verdict != "ok" && reason.starts_with("A/A gate: ")) ||
        (model.control && model.control->verdict != "ok" &&
         reason.starts_with("positive control: "));
    if (told) continue;
    content.checks.push_back({Tone::bad, "!", "Void: " + reason, ""});
  }
  if (model.a_a) {
    const bool ok = model.a_a->verdict == "ok";
    std::string sentence = model.a_a->sentence;
    if (sentence.empty()) {
      sentence =
          fmt::format("{} against itself: {}", model.a_a->a, shown(model.a_a->ratio, format_ratio));
    }
    content.checks.push_back(
        {ok ? Tone::same : Tone::bad, ok ? "=" : "!", "A/A: " + sentence,
         ok ? "the same arm under two names does not differ" : "the A/A gate is NOT passed"});
  } else if (!model.cells.empty()) {
    add_cell_checks(model, content);
  } else {
    content.checks.push_back({Tone::open, "?", "A/A: no arm was run twice under two names",
                              "nothing shows that equal arms come out equal here"});
  }
  if (model.control) {
    const bool ok = model.control->verdict == "ok";
    content.checks.push_back(
        {ok ? Tone::same : Tone::bad, ok ? "=" : "!",
         "Positive control: " + model.control->sentence,
         ok ? "a difference that was put in is seen" : "a difference that was put in is NOT seen"});
  }
  if (model.smallest_detectable_ratio.value) {
    const double ratio = *model.smallest_detectable_ratio.value;
    std::string detail = fmt::format("a smaller difference than {} stays inconclusive",
                                     format_percent(ratio > 1 ? ratio - 1 : 1 - ratio));
    if (model.trials_needed.value && model.effect_percent.value) {
      detail += fmt::format(
          "; at the scatter of {}, the {:g} % of the plan {} {} {}", model.power_source,
          *model.effect_percent.value,
          *model.trials_needed.value > static_cast<double>(model.n) ? "would have taken" : "takes",
          stats::trials_text(static_cast<std::uint64_t>(*model.trials_needed.value)),
          unit_of_n(model));
    }
    content.checks.push_back({Tone::open, "~",
                              fmt::format("Smallest effect that {} {} can see: {}", model.n,
                                          unit_of_n(model), format_ratio(ratio)),
                              std::move(detail)});
  } else {
    content.checks.push_back({Tone::open, "~", "Smallest detectable effect: not known",
                              model.smallest_detectable_ratio.why});
  }
  add_void_trials(model, content);
}

bool compared(const ReportModel& model, const std::string& one, const std::string& other) {
  return std::any_of(model.comparisons.begin(), model.comparisons.end(), [&](const Comparison& c) {
    return (c.a == one && c.b == other) || (c.b == one && c.a == other);
  });
}

/// The best arm, which of the others it was shown to beat, and which nothing was declared about.
std::string leader_sentence(const ReportModel& model) {
  std::vector<const Row*> arms;
  for (const Row& row : model.rows) {
    const bool counts = !row.reference && !row.disqualified && !row.a_a_twin && !row.control;
    if (counts && row.geometric_mean.value) arms.push_back(&row);
  }
  if (arms.empty()) return "No arm has a figure that counts.";
  const std::string figure = metric_text(model, *arms.front());
  if (arms.size() == 1) return fmt::format("{} reaches {}.", arms.front()->arm, figure);
  std::vector<std::string> beaten;
  std::vector<std::string> open;
  std::vector<std::string> untold;
  for (std::size_t i = 1; i < arms.size(); ++i) {
    const double ours = *arms.front()->geometric_mean.value;
    const double theirs = *arms[i]->geometric_mean.value;
    const double ratio = model.lower_is_better ? theirs / ours : ours / theirs;
    const std::string& best = arms.front()->arm;
    auto& list = shows_ahead(model, best, arms[i]->arm) ? beaten
                 : compared(model, best, arms[i]->arm)  ? open
                                                        : untold;
    list.push_back(fmt::format("{} ({})", arms[i]->arm, format_ratio(ratio)));
  }
  std::string sentence = fmt::format("{} leads with {}", arms.front()->arm, figure);
  if (!beaten.empty()) sentence += fmt::format("; ahead of {}", fmt::join(beaten, ", "));
  if (!open.empty()) {
    sentence += fmt::format("; not shown to differ from {}", fmt::join(open, ", "));
  }
  if (!untold.empty()) {
    sentence += fmt::format("; the plan compares it with none of {}", fmt::join(untold, ", "));
  }
  return sentence + ".";
}

/// What became of a declared hypothesis; records from before claims say it by their verdict.
std::string claim_of(const Comparison& comparison) {
  if (!comparison.claim.empty()) return comparison.claim;
  if (comparison.verdict == "inferior") return "refuted";
  return comparison.verdict == "inconclusive" ? "open" : "shown";
}

/// A void experiment says so and nothing else; one declared hypothesis is the answer; else the
/// leader.
std::string make_headline(const ReportModel& model) {
  if (model.outcome == "void") {
    return model.void_reasons.empty()
               ? "Void: the experiment may not be judged."
               : fmt::format("Void, may not be judged: {}.", model.void_reasons.front());
  }
  if (!model.cells.empty()) return sweep_headline(model);
  const Comparison* only = model.comparisons.size() == 1 ? &model.comparisons.front() : nullptr;
  std::size_t declared = 0;
  for (const Comparison& comparison : model.comparisons) {
    if (!comparison.declared) continue;
    only = ++declared == 1 ? &comparison : nullptr;
  }
  if (only == nullptr || only->verdict == "void") return leader_sentence(model);
  const std::string sentence = judged(*only, model.alpha).sentence + ".";
  if (!only->declared) return sentence;
  const std::string claim = claim_of(*only);
  if (claim == "refuted") return "Rejected: " + sentence;
  if (claim == "open") return "Not shown: " + sentence;
  return "Confirmed: " + sentence;
}

/// Every figure that is not known, with its reason; rows that share one are named together.
void add_unknowns(const ReportModel& model, Content& content) {
  const std::pair<const char*, Quantity Row::*> figures[] = {
      {"share of raw-file", &Row::share_of_raw},
      {"p50", &Row::p50_ns},
      {"p99", &Row::p99_ns},
      {"p99.9", &Row::p999_ns},
      {"barriers/op", &Row::barriers_per_operation},
      {"device B/op", &Row::device_bytes_per_operation},
      {"write amp", &Row::write_amplification},
      {"B/entry", &Row::disk_bytes_per_entry},
      {"CPU/op", &Row::cpu_ns_per_operation},
      {"peak RSS", &Row::rss_peak_bytes},
      {"drain", &Row::drain_ns},
      {"recovery", &Row::recovery_ns}};
  for (const auto& [name, figure] : figures) {
    std::map<std::string, std::vector<std::string>> arms_by_reason;
    for (const Row& row : model.rows) {
      const Quantity& quantity = row.*figure;
      if (!quantity.value) arms_by_reason[quantity.why].push_back(row.arm);
    }
    for (const auto& [why, arms] : arms_by_reason) {
      const std::string who =
          arms.size() == model.rows.size() ? "any arm" : fmt::format("{}", fmt::join(arms, ", "));
      content.unknowns.push_back(fmt::format("{} of {}: {}", name, who, why));
    }
  }
}

Table make_trials(const ReportModel& model) {
  Table table;
  table.columns = {{"trial", "order in which it ran"},
                   {"arm", "", false},
                   {"block", ""},
                   {"seed", ""},
                   {"status", "", false},
                   {"operations/s", "of the timed phases"},
                   {"timed for", ""},
                   {"foreign CPU", "processor time of everything else while it ran"},
                   {"started", "", false},
                   {"raw record", "", false},
                   {"SHA-256", "", false}};
  for (const Trial& trial : model.trials) {
    TableLine line;
    line.cells = {fmt::format("{}", trial.index),
                  trial.arm,
                  trial.block ? fmt::format("{}", *trial.block) : "",
                  fmt::format("{}", trial.seed),
                  trial.reason.empty() ? trial.status : trial.status + ": " + trial.reason,
                  shown(trial.throughput_per_s, format_count),
                  shown(trial.wall_ns, format_time_ns),
                  shown(trial.foreign_cpu_ns, format_time_ns),
                  trial.started,
                  trial.raw_path,
                  fmt::format("{:.12}", trial.raw_sha256)};
    table.lines.push_back(std::move(line));
  }
  return table;
}

void add_facts(const ReportModel& model, Content& content) {
  content.facts = {
      {"result", model.result},
      {"machine", model.machine},
      {"workload", model.workload},
      {"unit of analysis", model.design == "windows"
                               ? "one set of processes that take turns, one value an arm from each"
                               : "one process a value"},
      {"n", fmt::format("{} {}", model.n, unit_of_n(model))},
      {"metric", fmt::format("{} in {}", model.metric, model.unit)},
      {"design", fmt::format("{}, alpha = {}", model.design, format_number(model.alpha))},
      {"recorded", model.verdict_time},
      {"ledger", model.ledger_path},
      {"this record", model.verdict_hash},
      {"head of the ledger", model.head_hash},
      {"plan", model.plan_digest},
      {"operation stream", model.stream_digest},
  };
  std::erase_if(content.facts, [](const auto& fact) { return fact.second.empty(); });
}

}  // namespace

Table part_of(const Table& table, bool cost) {
  Table part;
  std::vector<std::size_t> kept;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (c != 0 && table.columns[c].cost != cost) continue;
    kept.push_back(c);
    part.columns.push_back(table.columns[c]);
  }
  for (const TableLine& line : table.lines) {
    TableLine shorter{{}, line.bar, line.reference, line.group};
    for (const std::size_t c : kept) shorter.cells.push_back(line.cells[c]);
    part.lines.push_back(std::move(shorter));
  }
  return part;
}

Content make_content(const ReportModel& model) {
  Content content;
  content.title = model.experiment;
  content.stamp = model.status == "registered" ? "REGISTERED" : "EXPLORATORY";
  if (model.mixed_durability) content.stamp += ", MIXED DURABILITY";
  content.question = model.question;
  if (content.question.empty()) {
    std::vector<std::string> names;
    for (const Row& row : model.rows) {
      const bool told = std::find(names.begin(), names.end(), row.base) != names.end();
      if (!row.reference && !row.a_a_twin && !row.control && !told) names.push_back(row.base);
    }
    content.question =
        fmt::format("{} of {} on {}", model.metric, fmt::join(names, ", "), model.workload);
  }
  content.headline = make_headline(model);
  content.table = make_table(model);
  for (const Comparison& comparison : model.comparisons) {
    content.comparisons.push_back(judged(comparison, model.alpha));
  }
  add_checks(model, content);
  add_unknowns(model, content);
  content.warnings = model.warnings;
  add_facts(model, content);
  const std::string folder = std::filesystem::path(model.ledger_path).parent_path().string();
  if (!model.command_line.empty()) {
    content.commands.push_back(model.command_line);
  } else if (model.status == "registered") {
    content.commands.push_back(fmt::format("assay run {}/experiment.toml", folder));
  }
  const std::string which = fmt::format("{} --result {}{}", model.ledger_path, model.result,
                                        model.machine.empty() ? "" : " --machine " + model.machine);
  content.commands.push_back("assay report " + which);
  content.commands.push_back("assay plot " + which);
  content.trials = make_trials(model);
  return content;
}

}  // namespace assay::report
