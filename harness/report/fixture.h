// A ledger with raw records as a run would leave it, made up for the tests of reports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "adapters/temporary_directory.h"

namespace assay::report::fixture {

struct ArmShape {
  std::string arm;
  std::string store;
  std::string version;
  double rate = 1000.0;  ///< operations a second
  double cv = 0.05;
  double barriers = 1.0;
  double bytes_per_entry = 150.0;
  bool reference = false;
};

struct Shape {
  std::string experiment = "demo";
  std::string status = "registered";
  std::uint64_t trials = 20;  ///< an arm
  std::uint64_t seed = 1;
  std::uint64_t seconds = 12;  ///< length of the timed phase, slots of the series
  bool histograms = true;
  std::vector<ArmShape> arms;
  std::string machine = {};  ///< fingerprint; empty = not recorded
};

/// Five rows: sqlite, rocksdb, lmdb, and the references null and raw-file.
[[nodiscard]] Shape five_rows();

struct Made {
  std::string ledger;
  std::string result;
  std::vector<std::string> raw_files;
};
/// Writes DIRECTORY/ledger.jsonl and DIRECTORY/trials/.
[[nodiscard]] Made write(const Shape& shape, const std::string& directory);

}  // namespace assay::report::fixture
