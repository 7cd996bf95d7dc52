#include "harness/qualify/oracle.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay::qualify {
namespace {

using Kind = Finding::Kind;

constexpr std::array<std::pair<Loss, std::string_view>, 6> kLossNames{{
    {Loss::intact, "intact"},
    {Loss::last, "last"},
    {Loss::suffix, "suffix"},
    {Loss::hole, "hole"},
    {Loss::torn, "torn"},
    {Loss::unopenable, "unopenable"},
}};

constexpr std::array<std::pair<Kind, std::string_view>, 18> kFindingNames{{
    {Kind::lost_commits, "lost-commits"},
    {Kind::lost_after_sync, "lost-after-sync"},
    {Kind::hole, "hole"},
    {Kind::torn_transaction, "torn-transaction"},
    {Kind::resurrected_erase, "resurrected-erase"},
    {Kind::wrong_value, "wrong-value"},
    {Kind::ghost_key, "ghost-key"},
    {Kind::rolled_back_visible, "rolled-back-visible"},
    {Kind::never_begun_visible, "never-begun-visible"},
    {Kind::scan_disagrees, "scan-disagrees"},
    {Kind::refuses_to_open, "refuses-to-open"},
    {Kind::fails_while_reading, "fails-while-reading"},
    {Kind::not_usable, "not-usable"},
    {Kind::lost_after_reopen, "lost-after-reopen"},
    {Kind::crashed, "crashed"},
    {Kind::hung, "hung"},
    {Kind::creation_not_atomic, "creation-not-atomic"},
    {Kind::lost_beyond_bound, "lost-beyond-bound"},
}};

/// A scan's entries in the order in which they came.
class Collector final : public ScanSink {
 public:
  bool entry(std::string_view key, std::string_view value) override {
    entries.emplace_back(key, value);
    return entries.size() < kMost;
  }
  /// A damaged store may scan for ever.
  static constexpr std::size_t kMost = 4'000'000;
  std::vector<std::pair<std::string, std::string>> entries;
};

Status check_scans(Session& session, Contents& contents) {
  Collector forward;
  const Result<std::uint64_t> visited = session.scan({}, forward);
  if (!visited) return fail(visited.error());
  for (std::size_t at = 0; at < forward.entries.size(); ++at) {
    if (at > 0 && forward.entries[at - 1].first >= forward.entries[at].first &&
        contents.findings.empty())
      contents.findings.push_back(
          {Kind::scan_disagrees, "a scan gives keys out of order or twice"});
    contents.entries.insert(forward.entries[at]);
  }
  Collector backward;
  ScanRange range;
  range.backward = true;
  const Result<std::uint64_t> again = session.scan(range, backward);
  if (!again) return fail(again.error());
  std::reverse(backward.entries.begin(), backward.entries.end());
  if (backward.entries != forward.entries)
    contents.findings.push_back(
        {Kind::scan_disagrees, fmt::format("a scan gives {} entries, a backward scan {}, or others",
                                           forward.entries.size(), backward.entries.size())});
  return {};
}

Status check_gets(Session& session, bool scanned, const History& history, Contents& contents) {
  for (std::uint32_t writer = 0; writer < history.shape().writers; ++writer) {
    for (std::uint32_t index = 0; index < history.keys_of_writer(); ++index) {
      const std::string key = history.key_bytes({writer, index});
      std::string_view value;
      const Result<bool> found = session.get(key, value);
      if (!found) return fail(found.error());
      if (!scanned) {
        if (*found) contents.entries.emplace(key, value);
        continue;
      }
      const auto entry = contents.entries.find(key);
      const bool listed = entry != contents.entries.end();
      if (*found == listed && (!listed || entry->second == value)) continue;
      contents.findings.push_back(
          {Kind::scan_disagrees, fmt::format("a get of key {} and a scan differ", key)});
      return {};
    }
  }
  return {};
}

}  // namespace

std::string_view to_string(Loss loss) {
  for (const auto& [value, name] : kLossNames)
    if (value == loss) return name;
  return "unopenable";
}

Result<Loss> parse_loss(std::string_view text) {
  for (const auto& [value, name] : kLossNames)
    if (name == text) return value;
  return fail(ErrorKind::bad_input, fmt::format("'{}' is no loss", text));
}

std::string_view to_string(Finding::Kind kind) {
  for (const auto& [value, name] : kFindingNames)
    if (value == kind) return name;
  return "failed-while-running";
}

Loss allowed_loss(DurabilityClass durability, Crash crash) {
  switch (durability) {
    case DurabilityClass::volatile_:
      return Loss::unopenable;
    case DurabilityClass::process:
      return crash == Crash::kill ? Loss::intact : Loss::unopenable;
    case DurabilityClass::power_prefix:
      return crash == Crash::kill ? Loss::intact : Loss::suffix;
    case DurabilityClass::power_last:
      return crash == Crash::kill ? Loss::intact : Loss::last;
    case DurabilityClass::power:
      return Loss::intact;
  }
  return Loss::intact;
}

Result<Contents> read_contents(Session& session, const Capabilities& capabilities,
                               const History& history) {
  Contents contents;
  if (capabilities.ordered) ASSAY_TRY(check_scans(session, contents));
  ASSAY_TRY(check_gets(session, capabilities.ordered, history, contents));
  return contents;
}

nlohmann::json to_json(const Judgement& judgement) {
  nlohmann::json findings = nlohmann::json::array();
  for (const Finding& finding : judgement.findings)
    findings.push_back({{"kind", to_string(finding.kind)}, {"text", finding.text}});
  nlohmann::json found = nlohmann::json::array();
  for (const Baseline& base : judgement.found) found.push_back(to_json(base));
  return {{"loss", to_string(judgement.loss)},
          {"acknowledged", judgement.acknowledged},
          {"lost_acknowledged", judgement.lost_acknowledged},
          {"lost_after_sync", judgement.lost_after_sync},
          {"in_flight", judgement.in_flight},
          {"in_flight_kept", judgement.in_flight_kept},
          {"creation_not_atomic", judgement.creation_not_atomic},
          {"broken", judgement.broken},
          {"findings", std::move(findings)},
          {"found", std::move(found)}};
}

Result<Judgement> judgement_from_json(const nlohmann::json& json) {
  Judgement judgement;
  try {
    const Result<Loss> loss = parse_loss(json.at("loss").get<std::string>());
    if (!loss) return fail(loss.error());
    judgement.loss = *loss;
    judgement.acknowledged = json.at("acknowledged");
    judgement.lost_acknowledged = json.at("lost_acknowledged");
    judgement.lost_after_sync = json.at("lost_after_sync");
    judgement.in_flight = json.at("in_flight");
    judgement.in_flight_kept = json.at("in_flight_kept");
    judgement.creation_not_atomic = json.at("creation_not_atomic");
    judgement.broken = json.at("broken");
    for (const nlohmann::json& finding : json.at("findings")) {
      Kind kind = Kind::failed_while_running;
      for (const auto& [value, name] : kFindingNames)
        if (finding.at("kind") == name) kind = value;
      judgement.findings.push_back({kind, finding.at("text")});
    }
    for (const nlohmann::json& base : json.at("found"))
      judgement.found.push_back(baseline_from_json(base));
  } catch (const nlohmann::json::exception& exception) {
    return fail(ErrorKind::bad_input, fmt::format("not a judgement: {}", exception.what()));
  }
  return judgement;
}

void hold_to_bound(Judgement& judgement, std::uint64_t most) {
  if (judgement.lost_acknowledged <= most) return;
  judgement.broken = true;
  judgement.findings.insert(
      judgement.findings.begin(),
      {Kind::lost_beyond_bound,
       fmt::format("{} acknowledged commits are missing, and the settings bound a loss to {}",
                   judgement.lost_acknowledged, most)});
}

Judgement judge_unopened(const Acknowledgements& acknowledgements, Finding::Kind kind,
                         const std::string& why) {
  Judgement judgement;
  for (const Acknowledgements::Writer& writer : acknowledgements.writers)
    for (const Receipt& receipt : writer.since) {
      judgement.acknowledged += receipt.acknowledged != 0 ? 1 : 0;
      judgement.in_flight += receipt.begun != 0 && receipt.acknowledged == 0 ? 1 : 0;
    }
  if (!acknowledgements.created && judgement.acknowledged == 0) {
    judgement.creation_not_atomic = true;
    judgement.findings.push_back({Kind::creation_not_atomic, why});
    return judgement;
  }
  judgement.loss = Loss::unopenable;
  judgement.lost_acknowledged = judgement.acknowledged;
  judgement.findings.push_back({kind, why});
  return judgement;
}

}  // namespace assay::qualify
