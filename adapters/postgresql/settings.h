// PostgreSQL's settings: what a class maps to, and the options that its server is started with.
//
// Private to the adapter; stateless.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "adapters/store.h"

namespace assay::postgresql {

inline constexpr const char* kName = "postgresql";

struct Plan {
  std::string programs;              ///< as the user wrote it
  std::vector<std::string> options;  ///< "name=value", for the server
  std::string value_storage;
  bool fsync = true;
  std::uint64_t connections = 0;  ///< sessions that fit
};

[[nodiscard]] std::vector<Setting> settings_for(DurabilityClass durability);
/// The strongest class that the settings keep.
[[nodiscard]] DurabilityClass durability_of(const Settings& settings);
/// `open` says what "auto" comes to: the memory budget and the data expected in it.
[[nodiscard]] Result<Plan> plan_of(const Settings& settings, const OpenOptions& open);

}  // namespace assay::postgresql
