#include "harness/experiment/qualification.h"

#include <algorithm>
#include <filesystem>

#include "harness/ledger/durable_file.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool speaks_of(const json& body, const QualificationKey& key) {
  const json settings = body.value("settings", json());
  if (!settings.is_object() || key.version.empty() || key.binary_sha256.empty()) return false;
  return text(body, "store") == key.store && text(body, "version") == key.version &&
         text(body, "binary_sha256") == key.binary_sha256 &&
         std::all_of(key.settings.begin(), key.settings.end(), [&](const auto& one) {
           return text(settings, one.first.c_str()) == one.second;
         });
}

}  // namespace

std::vector<QualificationRecord> qualification_records(const std::string& tree) {
  std::vector<QualificationRecord> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fs::path(tree) / "ledgers", error)) {
    const fs::path path = entry.path() / "ledger.jsonl";
    if (!fs::is_regular_file(path, error)) continue;
    // Most ledgers hold none: looking is cheaper than checking their chains.
    const auto bytes = read_whole_file(path.string());
    if (!bytes || bytes->find("\"kind\":\"qualification\"") == std::string::npos) continue;
    const auto contents = parse_ledger(*bytes, path.string());
    if (!contents) continue;
    const std::string name = (fs::path("ledgers") / entry.path().filename() / path.filename());
    for (const LedgerRecord& record : contents->records) {
      if (record.kind != "qualification" || !record.body.is_object()) continue;
      found.push_back({record.body, record.hash, record.time, name});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  return found;
}

Qualification find_qualification(const std::vector<QualificationRecord>& records,
                                 const QualificationKey& key) {
  for (auto record = records.rbegin(); record != records.rend(); ++record) {
    if (!speaks_of(record->body, key)) continue;
    const auto about = parse_durability(text(record->body, "class"));
    if (!about) continue;
    const std::string outcome = text(record->body, "outcome");
    if (outcome == "proven" && *about >= key.durability) {
      return {Qualification::State::proven, record->hash, record->ledger};
    }
    if (outcome == "refuted" && *about <= key.durability) {
      return {Qualification::State::refuted, record->hash, record->ledger};
    }
  }
  return {};
}

QualificationKey qualification_key(DurabilityClass durability, const json& store,
                                   const json& declared, const std::string& binary_sha256) {
  QualificationKey key;
  key.store = text(store, "name");
  key.version = text(store, "version");
  key.durability = durability;
  key.binary_sha256 = binary_sha256;
  const json settings = store.value("settings_effective", json::object());
  for (const auto& [name, value] : settings.items()) {
    if (declared.is_object() && (!declared.contains(name) || declared[name] == "auto")) continue;
    key.settings[name] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return key;
}

void add_proof(const Qualification& found, json& row) {
  switch (found.state) {
    case Qualification::State::declared:
      row["proof"] = "declared";
      return;
    case Qualification::State::proven:
      row["proof"] = "proven";
      break;
    case Qualification::State::refuted:
      row["proof"] = "refuted";
      break;
  }
  row["proof_record"] = found.record;
  row["proof_ledger"] = found.ledger;
}

}  // namespace assay
