#include "harness/experiment/result_place.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "harness/ledger/durable_file.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLedgerName = "ledger.jsonl";

std::string compact_time() {
  std::string time = utc_now();
  std::erase_if(time, [](char letter) { return letter == '-' || letter == ':'; });
  return time;
}

std::string base_of(const RunRequest& request, const std::string& ledger_path) {
  return request.registered ? request.tree : folder_of(ledger_path);
}

/// The newest folder runs/NAME-* whose ledger can be resumed; empty when there is none.
std::string resumable_run(const Plan& plan, const RunRequest& request,
                          const RunIdentity& identity) {
  for (const std::string& ledger : earlier_runs(plan, request)) {
    const auto contents = read_ledger(ledger);
    if (contents && resumable_plan(contents->records, identity) != nullptr) return ledger;
  }
  return {};
}

/// First of path, path-2, path-3, ... that is not there yet.
std::string free_name(const std::string& path) {
  std::string name = path;
  std::error_code error;
  for (int number = 2; fs::exists(name, error); ++number) {
    name = fmt::format("{}-{}", path, number);
  }
  return name;
}

/// Makes the first of path, path-2, path-3, ... that is not there yet: mkdir() decides between runs
/// that begin in the same second.
Result<std::string> claim_folder(const std::string& path) {
  for (int number = 1;; ++number) {
    const std::string name = number == 1 ? path : fmt::format("{}-{}", path, number);
    if (::mkdir(name.c_str(), 0755) == 0) {
      ASSAY_TRY(flush_directory(folder_of(name)));
      return name;
    }
    if (errno != EEXIST) return fail(system_error("cannot make the directory", errno).at(name));
  }
}

}  // namespace

std::vector<std::string> earlier_runs(const Plan& plan, const RunRequest& request) {
  std::vector<std::string> found;
  std::error_code error;
  const fs::path runs = (fs::path(request.tree) / "runs").lexically_normal();
  for (const auto& entry : fs::directory_iterator(runs, error)) {
    const std::string ledger = (entry.path() / kLedgerName).string();
    const std::string folder = entry.path().filename().string();
    if (folder.starts_with(plan.name + "-") && fs::exists(ledger, error)) found.push_back(ledger);
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::string new_result_id(const std::string& digest) {
  return compact_time() + "-" + digest.substr(0, 8);
}

RunIdentity identity_of(const std::string& digest, const nlohmann::json& provenance) {
  RunIdentity identity;
  identity.plan_digest = digest;
  if (!provenance.is_object()) return identity;
  const auto text = [](const nlohmann::json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  if (const auto binary = provenance.find("binary"); binary != provenance.end()) {
    identity.binary_sha256 = text(binary->value("sha256", nlohmann::json()));
  }
  identity.libraries = text(provenance.value("libraries", nlohmann::json()));
  identity.fingerprint = text(provenance.value("fingerprint", nlohmann::json()));
  identity.conditions = text(provenance.value("conditions", nlohmann::json()));
  return identity;
}

const LedgerRecord* resumable_plan(const std::vector<LedgerRecord>& records,
                                   const RunIdentity& identity) {
  std::set<std::string> judged;
  for (const LedgerRecord& record : records) {
    if (record.kind == "verdict") judged.insert(record.body.value("result", ""));
  }
  for (auto record = records.rbegin(); record != records.rend(); ++record) {
    if (record->kind != "plan" || judged.contains(record->body.value("result", ""))) continue;
    const RunIdentity theirs = identity_of(record->body.value("digest", ""),
                                           record->body.value("provenance", nlohmann::json()));
    if (theirs.plan_digest == identity.plan_digest &&
        theirs.binary_sha256 == identity.binary_sha256 && theirs.libraries == identity.libraries &&
        theirs.fingerprint == identity.fingerprint && theirs.conditions == identity.conditions) {
      return &*record;
    }
  }
  return nullptr;
}

Result<std::string> choose_ledger(const Plan& plan, const RunRequest& request,
                                  const RunIdentity& identity) {
  const fs::path tree(request.tree);
  if (request.registered) {
    return (tree / "ledgers" / plan.name / kLedgerName).lexically_normal().string();
  }
  std::error_code error;
  if (!request.out.empty()) {
    const fs::path out(request.out);
    if (fs::exists(out, error) && !fs::is_directory(out, error)) {
      return fail(Error(ErrorKind::bad_input, "this is a file, and --out takes a directory")
                      .at(request.out)
                      .hint("give --out a new or empty directory"));
    }
    const bool empty = !fs::exists(out, error) || fs::is_empty(out, error);
    if (!empty && !fs::exists(out / kLedgerName, error)) {
      return fail(Error(ErrorKind::bad_input, "this directory holds files that are not ours")
                      .at(request.out)
                      .hint("give --out a new or empty directory"));
    }
    return (out / kLedgerName).string();
  }
  const fs::path runs = (tree / "runs").lexically_normal();
  if (!request.fresh) {
    std::string ledger = resumable_run(plan, request, identity);
    if (!ledger.empty()) return ledger;
  }
  ASSAY_TRY(make_directories_durably(runs.string()));
  const auto folder = claim_folder((runs / (plan.name + "-" + compact_time())).string());
  if (!folder) return fail(folder.error());
  return (fs::path(*folder) / kLedgerName).string();
}

ResultPlace new_place(const Plan& plan, const RunRequest& request, const std::string& ledger_path,
                      const std::string& digest) {
  ResultPlace place;
  place.ledger_path = ledger_path;
  place.base = base_of(request, ledger_path);
  const std::string id = new_result_id(digest);
  const fs::path results = (fs::path(request.tree) / "results" / plan.name).lexically_normal();
  if (!request.registered) {
    // A second result in one folder (--out of a complete run) gets a folder of its own.
    std::error_code error;
    const bool taken = fs::exists(fs::path(place.base) / "trials", error);
    place.directory = taken ? free_name((fs::path(place.base) / id).string()) : place.base;
    place.result = taken ? fs::path(place.directory).filename().string() : id;
    return place;
  }
  place.directory = request.out.empty() ? free_name((results / id).string())
                                        : free_name((fs::path(request.out) / id).string());
  place.result = fs::path(place.directory).filename().string();
  return place;
}

ResultPlace place_of(const LedgerRecord& plan_record, const RunRequest& request,
                     const std::string& ledger_path) {
  ResultPlace place;
  place.ledger_path = ledger_path;
  place.base = base_of(request, ledger_path);
  place.result = plan_record.body.value("result", "");
  place.directory = actual_path(place, plan_record.body.value("directory", ""));
  place.resumed = true;
  return place;
}

std::string recorded_path(const ResultPlace& place, const std::string& path) {
  const std::string relative = fs::absolute(path)
                                   .lexically_normal()
                                   .lexically_relative(fs::absolute(place.base).lexically_normal())
                                   .string();
  const bool below = !relative.empty() && !relative.starts_with("..");
  return below ? relative : fs::absolute(path).lexically_normal().string();
}

std::string actual_path(const ResultPlace& place, const std::string& recorded) {
  if (recorded.starts_with('/')) return recorded;
  std::string path = (fs::path(place.base) / recorded).lexically_normal().string();
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();  // of "."
  return path;
}

}  // namespace assay
