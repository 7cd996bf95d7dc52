#include "harness/experiment/run_parts.h"

#include <cctype>
#include <map>

#include <fmt/format.h>

#include "harness/experiment/timed_batches.h"
#include "harness/ledger/durable_file.h"
#include "harness/provenance/sha256.h"
#include "harness/trial/trial_directory.h"

namespace assay {

nlohmann::json ledger_form(nlohmann::json raw) {
  const auto phases = raw.find("phases");
  if (phases == raw.end() || !phases->is_array()) return raw;
  for (nlohmann::json& phase : *phases) {
    phase.erase("series");
    const auto classes = phase.find("classes");
    if (classes == phase.end() || !classes->is_object()) continue;
    for (auto& [name, figures] : classes->items()) {
      if (figures.is_object()) figures.erase("histogram");
    }
  }
  return raw;
}

Status prepare_root(const std::string& root) {
  constexpr std::string_view kRemedy = "--root, or root = in a plan, takes a directory of your own";
  if (Status made = make_directories_durably(root); !made) {
    Error error = made.error();
    return fail(error.in("the benchmark root").hint(std::string(kRemedy)));
  }
  // Only making something tells; permission bits do not know of read-only file systems.
  const Result<TrialDirectory> probe = TrialDirectory::make(root);
  if (probe) return {};
  Error error = probe.error();
  return fail(error.in("nothing can be made in the benchmark root").hint(std::string(kRemedy)));
}

nlohmann::json declared_settings(const nlohmann::json& provenance, const std::string& arm) {
  const nlohmann::json conditions = provenance.value("conditions", nlohmann::json::object());
  const nlohmann::json arms = conditions.value("arms", nlohmann::json::object());
  return arms.value(arm, nlohmann::json::object()).value("settings", nlohmann::json());
}

nlohmann::json timed_batches_of_cells(
    const std::map<std::string, std::vector<TimedBatchChoice>>& batches) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& [cell, choices] : batches) {
    for (nlohmann::json one : to_json(choices)) {
      if (!cell.empty()) one["cell"] = cell;
      all.push_back(std::move(one));
    }
  }
  return all;
}

std::uint64_t seed_of_set(const Plan& plan, const std::string& cell, std::uint64_t round) {
  std::uint64_t number = 0;
  while (number < plan.cells.size() && plan.cells[number].name != cell) ++number;
  return plan.seed ^ (round + 1) * 0x9e3779b9ULL ^ (number << 48U);
}

void void_whole_set(std::vector<nlohmann::json>& raws, const std::vector<TrialRequest>& trials) {
  for (std::size_t i = 0; i < raws.size(); ++i) {
    if (raws[i].value("status", "") != "void") continue;
    for (nlohmann::json& other : raws) {
      if (other.value("status", "") != "ok") continue;
      other["status"] = "void";
      other["reason"] = fmt::format("{} of the same set was void", trials[i].arm.name);
    }
    return;
  }
}

std::vector<std::string> void_reasons_of(const Plan& plan, const RunState& state) {
  std::map<std::string, std::pair<std::string, int>> reasons;  // without figures -> an example
  bool loaded = false;
  for (const TrialEntry& trial : state.trials()) {
    if (trial.status != "void") continue;
    const std::string reason = trial.arm + ": " + trial.reason;
    std::string kind = reason;
    std::erase_if(kind, [](unsigned char letter) { return std::isdigit(letter) != 0; });
    auto& [example, times] = reasons[kind];
    if (times++ == 0) example = reason;
    loaded = loaded || trial.reason.find("other processes used") != std::string::npos;
  }
  std::vector<std::string> told = {
      fmt::format("{} void {} where the plan allows {} (void_trials_max)", state.void_turns(),
                  plan.design == Design::windows ? "sets" : "trials", plan.void_trials_max)};
  for (const auto& [kind, reason] : reasons) {
    told.push_back(fmt::format("{} x {}", reason.second, reason.first));
  }
  if (loaded) {
    told.emplace_back(
        "free the CPUs of other work and run again, or raise foreign_cpus_max (0 only records it)");
  }
  return told;
}

Result<nlohmann::json> load_raw(const ResultPlace& place, const TrialEntry& trial) {
  const std::string path = actual_path(place, trial.raw_path);
  auto text = read_whole_file(path);
  if (!text) return fail(Error(ErrorKind::ledger, "the raw record of a trial is missing").at(path));
  if (sha256_hex(*text) != trial.raw_sha256) {
    return fail(
        Error(ErrorKind::ledger, "the raw record differs from the digest in the ledger").at(path));
  }
  auto raw = nlohmann::json::parse(*text, nullptr, false);
  if (raw.is_discarded()) return fail(Error(ErrorKind::ledger, "no JSON").at(path));
  return raw;
}

}  // namespace assay
