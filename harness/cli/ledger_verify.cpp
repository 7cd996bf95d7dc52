// assay ledger verify and merge.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/cli/ledger_verb.h"
#include "harness/cli/print_json.h"
#include "harness/cli/terminal_width.h"
#include "harness/ledger/merge.h"
#include "harness/ledger/verify.h"

namespace assay::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kMostFindingsShown = 25;

RawCheck raw_check(const std::string& name) {
  if (name == "none") return RawCheck::none;
  return name == "present" ? RawCheck::present : RawCheck::all;
}

std::string counted(std::uint64_t number, std::string_view one) {
  return fmt::format("{} {}{}", number, one, number == 1 ? "" : "s");
}

std::string raw_text(const Verification& one, const std::string& mode) {
  if (mode == "none") return "raw records not read";
  if (one.raw_named == 0) return "no raw records named";
  if (one.raw_sound == one.raw_named) return fmt::format("all {} raw records fit", one.raw_named);
  return fmt::format("{} of {} raw records fit, {} missing", one.raw_sound, one.raw_named,
                     one.raw_missing);
}

/// A head that no ledger holds is a finding of the ledger, where there is one.
void find_lost_heads(const std::vector<std::string>& heads, std::vector<Verification>& all) {
  for (const std::string& head : heads) {
    const bool found = std::any_of(
        all.begin(), all.end(), [&](const Verification& one) { return one.heads.contains(head); });
    if (found) continue;
    Verification& of = all.front();
    const std::string what =
        all.size() == 1
            ? fmt::format("{} is no record here, and the ledger ends in {}", head, of.head)
            : fmt::format("{} is no record of any of these {} ledgers", head, all.size());
    of.findings.push_back({all.size() == 1 ? of.path : "--head", "head",
                           what + ": a tail was cut, or it was written anew"});
  }
}

json findings_json(const std::vector<Finding>& findings) {
  json list = json::array();
  for (const Finding& one : findings) {
    list.push_back({{"where", one.where}, {"code", one.code}, {"what", one.what}});
  }
  return list;
}

json to_json(const std::vector<Verification>& all, const std::vector<std::string>& heads) {
  json ledgers = json::array();
  json places = json::object();
  for (const std::string& head : heads) places[head] = nullptr;
  bool sound = true;
  for (const Verification& one : all) {
    sound = sound && one.findings.empty();
    ledgers.push_back(
        {{"ledger", one.path},
         {"sound", one.findings.empty()},
         {"records", one.records},
         {"head", one.head},
         {"findings", findings_json(one.findings)},
         {"notes", findings_json(one.notes)},
         {"raw",
          {{"named", one.raw_named}, {"sound", one.raw_sound}, {"missing", one.raw_missing}}}});
    for (const auto& [head, place] : one.heads) {
      places[head] = {{"ledger", one.path},
                      {"line", place.line},
                      {"follow", place.follow},
                      {"of_source", place.of_source}};
    }
  }
  return {{"sound", sound}, {"ledgers", ledgers}, {"heads", places}};
}

void print_verification(const Verification& one, const std::string& raw_mode) {
  for (std::size_t i = 0; i < std::min(one.findings.size(), kMostFindingsShown); ++i) {
    const Finding& finding = one.findings[i];
    print_hanging(printable(finding.where) + ": ", finding.what, 4);
  }
  if (one.findings.size() > kMostFindingsShown) {
    fmt::print("{}: {} more findings; --json lists them all\n", printable(one.path),
               one.findings.size() - kMostFindingsShown);
  }
  for (const Finding& note : one.notes) {
    print_hanging(printable(note.where) + ": note: ", note.what, 4);
  }
  for (const auto& [head, place] : one.heads) {
    fmt::print("{}:{}: {:.12}... is here{}{}\n", printable(one.path), place.line, head,
               place.of_source ? ", as a record of a source" : "",
               place.follow == 0
                   ? ", at the end"
                   : fmt::format("; {} appended since", counted(place.follow, "record")));
  }
  fmt::print("{}: {}: {}, {}\n  head {}\n", printable(one.path),
             one.findings.empty()
                 ? "sound"
                 : fmt::format("NOT SOUND, {}", counted(one.findings.size(), "finding")),
             counted(one.records, "record"), raw_text(one, raw_mode), one.head);
}

}  // namespace

Result<ExitStatus> ledger_verify(const LedgerOptions& options) {
  for (const std::string& head : options.heads) ASSAY_TRY(check_is_head(head));
  const auto ledgers = find_ledgers(options.ledgers);
  if (!ledgers) return fail(ledgers.error());
  std::vector<Verification> all;
  for (const std::string& ledger : *ledgers) {
    auto one = verify_ledger(ledger, raw_check(options.raw), options.heads);
    if (!one) return fail(one.error());
    all.push_back(std::move(*one));
  }
  find_lost_heads(options.heads, all);
  if (options.json) {
    print_json(to_json(all, options.heads));
  } else {
    for (const Verification& one : all) print_verification(one, options.raw);
  }
  const bool sound = std::all_of(all.begin(), all.end(),
                                 [](const Verification& one) { return one.findings.empty(); });
  return sound ? ExitStatus::done : ExitStatus::ledger_damaged;
}

Result<ExitStatus> ledger_merge(const LedgerOptions& options) {
  std::vector<std::string> paths;
  for (const std::string& name : options.ledgers) {
    auto found = find_ledgers({name});
    if (!found) return fail(found.error());
    paths.insert(paths.end(), found->begin(), found->end());
  }
  const auto merged = merge_ledgers(paths, options.out);
  if (!merged) return fail(merged.error());
  if (options.json) {
    json sources = json::array();
    for (const MergedSource& source : merged->sources) {
      sources.push_back({{"ledger", source.path},
                         {"records", source.records},
                         {"carried", source.carried},
                         {"machines", source.machines},
                         {"torn", source.torn}});
    }
    print_json({{"ledger", options.out},
                {"records", merged->records},
                {"head", merged->head},
                {"sources", sources}});
    return ExitStatus::done;
  }
  for (const MergedSource& source : merged->sources) {
    std::vector<std::string> machines;
    for (const std::string& machine : source.machines) machines.push_back(machine.substr(0, 12));
    fmt::print("{}: {} carried{}{}{}\n", printable(source.path), counted(source.carried, "record"),
               source.carried == source.records
                   ? ""
                   : fmt::format(" of {}, the rest is in a ledger before it", source.records),
               machines.empty() ? "" : fmt::format("; machine {}", fmt::join(machines, ", ")),
               source.torn ? "; its unfinished last line was left out" : "");
  }
  fmt::print("{}: {}\n  head {}\n", printable(options.out), counted(merged->records, "record"),
             merged->head);
  return ExitStatus::done;
}

}  // namespace assay::cli
