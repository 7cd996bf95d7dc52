// Whether a store's durability class was proven: the records of kind "qualification" in the ledgers
// of the tree (harness/FORMATS.md), which `assay qualify` writes.
//
// A class is "declared" until a record for the same store, version, settings and binary says that
// it holds; then "proven", with that record's hash. A record that proves a class proves the weaker
// ones, one that refutes it refutes the stronger ones. The newest record that says anything
// decides. Plain values; any thread.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/result.h"
#include "adapters/store.h"
#include "harness/ledger/ledger.h"

namespace assay {

/// What has to be the same for a qualification to say anything about an arm.
struct QualificationKey {
  std::string store;
  std::string version;
  Settings settings;  ///< in force, read back; the record must hold each of them with this value
  DurabilityClass durability = DurabilityClass::power;
  std::string binary_sha256;
};

struct Qualification {
  enum class State : std::uint8_t { declared, proven, refuted };
  State state = State::declared;
  std::string record;  ///< hash of the record that decided; empty while declared
  std::string ledger;  ///< where it is
};

/// A qualification record with its place.
struct QualificationRecord {
  nlohmann::json body;
  std::string hash;
  std::string time;
  std::string ledger;
};

/// Every record of kind "qualification" in ledgers/*/ledger.jsonl below `tree`, oldest first; a
/// ledger that cannot be trusted proves nothing and is left out.
[[nodiscard]] std::vector<QualificationRecord> qualification_records(const std::string& tree);

[[nodiscard]] Qualification find_qualification(const std::vector<QualificationRecord>& records,
                                               const QualificationKey& key);

/// The key of an arm as a trial's record describes its store. `declared` (an object, or null where
/// it is not known): the settings that the store declares, as the arm resolves them. Those that are
/// "auto" follow from the memory budget and the data, which a qualification has of its own; they
/// and what else a store tells when it is read back are no part of the key.
[[nodiscard]] QualificationKey qualification_key(DurabilityClass durability,
                                                 const nlohmann::json& store,
                                                 const nlohmann::json& declared,
                                                 const std::string& binary_sha256);

/// "proof" of a verdict's row, and where something decided "proof_record" and "proof_ledger".
void add_proof(const Qualification& found, nlohmann::json& row);

}  // namespace assay
