#include "harness/cli/qualify_output.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/cli/terminal_width.h"
#include "harness/experiment/progress.h"

namespace assay::cli {
namespace {

void write(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

/// "drop one 7, states (legal 200, picked 7)": names and counts, however deep, without the signs of
/// JSON.
std::string counts_text(const nlohmann::json& value) {
  if (value.is_string()) return printable(value.get<std::string>());
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  if (!value.is_object()) return value.dump();
  std::string text;
  for (const auto& [name, inner] : value.items()) {
    std::string words = name;
    std::ranges::replace(words, '_', ' ');
    const std::string counted = counts_text(inner);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", words,
                        inner.is_object() ? fmt::format("({})", counted) : counted);
  }
  return text;
}

}  // namespace

std::string printable_lines(const std::string& text) {
  std::string shown;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    shown += printable(std::string_view(text).substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return shown;
}

CampaignLine::CampaignLine() : terminal_(::isatty(STDERR_FILENO) != 0) {}

void CampaignLine::level_begins(qualify::Level level, const std::string& profile) {
  level_ = fmt::format("level {}{}{}", to_string(level), profile.empty() ? "" : ", ", profile);
  began_ = Clock::now();
  first_fraction_.reset();
}

void CampaignLine::progress(double fraction, const std::string& sentence) {
  const auto now = Clock::now();
  if (!first_fraction_) first_fraction_ = fraction;
  const auto quiet = terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(5);
  if (now - shown_ < quiet) return;
  shown_ = now;
  const double done = fraction - *first_fraction_;
  const double took = std::chrono::duration<double>(now - began_).count();
  std::string text = fmt::format("{}: {:3.0f} %, {}", level_, fraction * 100.0, sentence);
  if (done > 0.01)
    text += fmt::format(", {} left",
                        duration_text(static_cast<std::uint64_t>(took / done * (1.0 - fraction))));
  write(terminal_ ? "\r\x1b[2K" + text : text + "\n");
}

void CampaignLine::level_ends(const qualify::LevelOutcome& /*outcome*/) {
  if (terminal_) write("\r\x1b[2K");
}

void CampaignLine::note(const std::string& sentence) {
  write(printable(sentence) + "\n");
}

void print_outcome(const qualify::CampaignPlan& plan, const qualify::LevelOutcome& outcome) {
  // A part of the budget says less than the whole, whatever it says.
  fmt::print("level {}{}  {}{}\n", to_string(outcome.level),
             outcome.profile.empty() ? "" : " (" + outcome.profile + ")",
             outcome.finished ? "" : "STOPPED, so far ", to_string(outcome.verdict));
  fmt::print("  claimed   {} (may lose here: {})\n", to_string(plan.claimed),
             to_string(outcome.allowed));
  fmt::print("  observed  {}", to_string(outcome.observed));
  if (outcome.lost_most > 0) fmt::print(", {} acknowledged commits at once", outcome.lost_most);
  fmt::print("\n  proven    {}\n",
             outcome.proven ? to_string(*outcome.proven) : std::string_view("nothing"));
  if (!outcome.reason.empty()) fmt::print("  why       {}\n", printable(outcome.reason));
  fmt::print("  cases     {} in {:.1f} s ({:.1f}/s), {} beyond the contract\n", outcome.cases,
             outcome.elapsed_s,
             static_cast<double>(outcome.cases) / std::max(0.001, outcome.elapsed_s),
             outcome.failures);
  fmt::print("  coverage\n");
  for (const auto& [name, value] : outcome.coverage.items()) {
    std::string words = name;
    std::ranges::replace(words, '_', ' ');
    print_hanging(fmt::format("    {}: ", words), counts_text(value), 6);
  }
  for (const std::string& bundle : outcome.bundles)
    fmt::print("  bundle    {}  (assay qualify replay {})\n", bundle, bundle);
}

void print_campaign(const qualify::CampaignPlan& plan, const qualify::CampaignOutcome& outcome,
                    bool as_json) {
  if (as_json) {
    nlohmann::json levels = nlohmann::json::array();
    for (const qualify::LevelOutcome& level : outcome.levels) levels.push_back(to_json(level));
    for (nlohmann::json& level : levels) level.erase("resume");
    fmt::print("{}\n", nlohmann::json{{"levels", std::move(levels)},
                                      {"verdict", to_string(worst_verdict(outcome.levels))},
                                      {"interrupted", outcome.interrupted},
                                      {"out", plan.out},
                                      {"ledger", outcome.ledger_path}}
                           .dump(2));
  } else {
    std::string settings;
    for (const auto& [name, value] : plan.settings) settings += fmt::format(" {}={}", name, value);
    fmt::print("{}{}, opened for durability {}, seed {}\n", printable(plan.store),
               printable(settings), to_string(plan.durability), plan.seed);
    for (const qualify::LevelOutcome& level : outcome.levels) print_outcome(plan, level);
    if (!outcome.interrupted) fmt::print("record    {}\n", outcome.ledger_path);
  }
}

std::string matrix_forecast(const qualify::MatrixPlan& plan) {
  const std::size_t left = rows_left(plan);
  std::string levels;
  for (const qualify::Level level : plan.levels)
    levels += fmt::format("{}{}", levels.empty() ? "" : ",", to_string(level));
  std::string text = fmt::format("{} setting{} to look at", left, left == 1 ? "" : "s");
  if (left < plan.rows.size())
    text += fmt::format(" ({} of {} have ended here)", plan.rows.size() - left, plan.rows.size());
  text += fmt::format(", level{} {}, budget {} each: ", plan.levels.size() == 1 ? "" : "s", levels,
                      plan.budget_text);
  const auto time = plan.budget.time;
  text += time ? fmt::format("about {}", duration_text(static_cast<std::uint64_t>(
                                             static_cast<double>(left * plan.levels.size()) *
                                             std::chrono::duration<double>(*time).count())))
               : "as long as so many cases take";
  text += fmt::format("; records go to {}, all else to {}",
                      plan.ledger.empty() ? plan.out + "/ledger.jsonl" : plan.ledger, plan.out);
  return text;
}

}  // namespace assay::cli
