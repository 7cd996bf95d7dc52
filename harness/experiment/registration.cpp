#include "harness/experiment/registration.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "harness/experiment/result_place.h"
#include "harness/ledger/durable_file.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMostDifferences = 6;

std::string text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Registration from_record(const LedgerRecord& record) {
  Registration registration;
  registration.digest = text(record.body, "digest");
  registration.hash = record.hash;
  registration.time = record.time;
  registration.by = record.kind == "plan" ? "plan record" : text(record.body, "by");
  registration.experiment = migrated_plan(record.body.value("experiment", json::object()));
  return registration;
}

/// Results of this name whose raw records are there and which the ledger does not know: what they
/// found was known before the registration.
std::string unregistered_result(const std::string& tree, const std::string& name,
                                const std::vector<LedgerRecord>& records) {
  std::set<std::string> known;
  for (const LedgerRecord& record : records) known.insert(text(record.body, "result"));
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fs::path(tree) / "results" / name, error)) {
    if (known.contains(entry.path().filename().string())) continue;
    const fs::path trials = entry.path() / "trials";
    if (fs::is_directory(trials, error) && !fs::is_empty(trials, error)) {
      return entry.path().lexically_normal().string();
    }
  }
  return {};
}

Status check_no_samples(const std::vector<LedgerRecord>& records, const Plan& plan,
                        const std::string& tree, const std::string& ledger_path) {
  for (const LedgerRecord& record : records) {
    if (record.kind != "trial" && record.kind != "verdict") continue;
    return fail(Error(ErrorKind::plan_changed,
                      fmt::format("record {} of {} is a sample that no registration came before",
                                  record.seq, plan.name))
                    .at(ledger_path)
                    .hint("a plan is registered before its first sample: give the experiment a new "
                          "name and folder"));
  }
  const std::string found = unregistered_result(tree, plan.name, records);
  if (found.empty()) return {};
  return fail(Error(ErrorKind::plan_changed,
                    fmt::format("samples of {} are there already, and its ledger does not know "
                                "them",
                                plan.name))
                  .at(found)
                  .hint("a plan is registered before its first sample: put the ledger back that "
                        "names them, or give the experiment a new name and folder"));
}

/// Exploratory runs of the same name that are still there: what they told came before the plan.
std::size_t explored_before(const Plan& plan, const std::string& tree) {
  RunRequest request;
  request.tree = tree;
  return earlier_runs(plan, request).size();
}

/// What decides whether two parts of a run may be one result, by name.
json conditions_in(const json& provenance) {
  json found = json::object();
  if (!provenance.is_object()) return found;
  for (const char* key : {"libraries", "conditions"}) {
    if (provenance.contains(key)) found[key] = provenance[key];
  }
  found["binary.sha256"] = provenance.value("binary", json::object()).value("sha256", json());
  return found;
}

/// The parts of a machine's fingerprint, so that a change can be named.
json machine_in(const json& provenance) {
  json found = json::object();
  for (const char* path :
       {"/cpu/model", "/cpu/logical", "/os/kernel_release", "/memory/total_bytes",
        "/storage/file_system/type", "/storage/device/model", "/storage/device/size_bytes"}) {
    const json::json_pointer at(path);
    if (provenance.contains(at)) found[path + 1] = provenance[at];
  }
  return found;
}

std::vector<std::string> changes_between(const json& before, const json& now) {
  std::vector<std::string> changes = differences(conditions_in(before), conditions_in(now));
  const json then_machine = before.value("fingerprint", json());
  const json now_machine = now.value("fingerprint", json());
  if (then_machine == now_machine) return changes;
  for (std::string& one : differences(machine_in(before), machine_in(now))) {
    changes.push_back("machine " + std::move(one));
  }
  for (std::string& one : differences({{"machine", then_machine}}, {{"machine", now_machine}})) {
    changes.push_back(std::move(one));
  }
  return changes;
}

/// Of a sweep that changed, what it changes in every cell is not told beside it.
std::vector<std::string> plan_changes(json before, json now) {
  if (before.value("sweep", json()) != now.value("sweep", json())) {
    for (const char* follows : {"arms", "cells", "hypotheses", "workload", "a_a"}) {
      before.erase(follows);
      now.erase(follows);
    }
  }
  return differences(before, now);
}

}  // namespace

std::optional<Registration> registration_of(const std::vector<LedgerRecord>& records) {
  for (const LedgerRecord& record : records) {
    const bool old = record.kind == "plan" && text(record.body, "status") == "registered" &&
                     !record.body.contains("registration");
    if (record.kind == "registration" || old) return from_record(record);
  }
  return std::nullopt;
}

Status check_registered(const Registration& registration, const json& canonical, const Plan& plan,
                        const std::string& ledger_path) {
  const auto changed = plan_changes(registration.experiment, canonical);
  if (changed.empty()) return {};
  return fail(Error(ErrorKind::plan_changed,
                    fmt::format("the plan of {} is not the one registered at {}: {}", plan.name,
                                registration.time, difference_text(changed, kMostDifferences)))
                  .at(plan.file.empty() ? ledger_path : plan.file)
                  .hint("undo the change, or give the changed plan a name and folder of its own"));
}

Result<Registration> ensure_registered(LedgerWriter& ledger, const Plan& plan,
                                       const std::string& tree, const std::string& by,
                                       const json& provenance) {
  const json canonical = to_json(plan);
  if (auto registration = registration_of(ledger.records())) {
    ASSAY_TRY(check_registered(*registration, canonical, plan, ledger.path()));
    return std::move(*registration);
  }
  ASSAY_TRY(check_no_samples(ledger.records(), plan, tree, ledger.path()));
  const auto hash =
      ledger.append("registration", {{"name", plan.name},
                                     {"experiment", canonical},
                                     {"digest", plan_digest(canonical)},
                                     {"by", by},
                                     {"exploratory_runs", explored_before(plan, tree)},
                                     {"notes", plan.notes},
                                     {"provenance", provenance}});
  if (!hash) return fail(hash.error());
  return from_record(ledger.records().back());
}

Result<Registered> register_experiment(const Plan& plan, const std::string& tree,
                                       const json& provenance) {
  Registered done;
  done.ledger_path =
      (fs::path(tree) / "ledgers" / plan.name / "ledger.jsonl").lexically_normal().string();
  auto ledger = LedgerWriter::open(done.ledger_path);
  if (!ledger) return fail(ledger.error());
  if (Status clock = check_clock(ledger->records(), utc_now(), done.ledger_path); !clock) {
    return fail(clock.error());
  }
  const std::size_t before = ledger->records().size();
  auto registration = ensure_registered(*ledger, plan, tree, "assay register", provenance);
  if (!registration) {
    ledger->remove_if_empty();
    return fail(registration.error());
  }
  done.registration = std::move(*registration);
  done.head = ledger->head();
  done.is_new = ledger->records().size() != before;
  return done;
}

std::string why_new_result(const std::vector<LedgerRecord>& records, const std::string& digest,
                           const json& provenance) {
  std::set<std::string> judged;
  for (const LedgerRecord& record : records) {
    if (record.kind == "verdict") judged.insert(text(record.body, "result"));
  }
  for (auto record = records.rbegin(); record != records.rend(); ++record) {
    const std::string result = text(record->body, "result");
    if (record->kind != "plan" || judged.contains(result)) continue;
    std::vector<std::string> changes =
        changes_between(record->body.value("provenance", json::object()), provenance);
    if (text(record->body, "digest") != digest) changes.emplace_back("the form of the plan");
    if (changes.empty()) return {};
    return fmt::format("a new result begins, {} is not gone on with: {}", result,
                       difference_text(changes, kMostDifferences));
  }
  return {};
}

Status check_clock(const std::vector<LedgerRecord>& records, const std::string& now,
                   const std::string& ledger_path) {
  const auto latest = std::max_element(
      records.begin(), records.end(),
      [](const LedgerRecord& a, const LedgerRecord& b) { return a.time < b.time; });
  if (latest == records.end() || now >= latest->time) return {};
  return fail(
      Error(ErrorKind::environment,
            fmt::format("the clock stands at {}, before record {} of the ledger ({})", now,
                        latest->seq, latest->time))
          .at(ledger_path)
          .hint("set the clock right: what comes later must not look as if it came before"));
}

std::vector<std::string> clock_warnings(const std::vector<LedgerRecord>& records,
                                        const std::string& result) {
  std::vector<std::string> warnings;
  for (std::size_t i = 1; i < records.size(); ++i) {
    if (text(records[i].body, "result") != result || records[i].time >= records[i - 1].time) {
      continue;
    }
    warnings.push_back(fmt::format(
        "the clock was set back during the run: record {} says {}, the one before it {}; the order "
        "of the records is that of the chain, and durations come from another clock",
        records[i].seq, records[i].time, records[i - 1].time));
  }
  return warnings;
}

std::vector<std::string> unnamed_raw_records(const std::string& directory,
                                             const std::vector<LedgerRecord>& records,
                                             const std::string& result) {
  std::set<std::string> named;
  for (const LedgerRecord& record : records) {
    if (record.kind != "trial" || text(record.body, "result") != result) continue;
    const std::string path = text(record.body.value("raw", json::object()), "path");
    named.insert(fs::path(path).filename().string());
  }
  std::vector<std::string> unnamed;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory + "/trials", error)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".json") && !named.contains(name)) unnamed.push_back(name);
  }
  std::sort(unnamed.begin(), unnamed.end());
  return unnamed;
}

}  // namespace assay
