// What the parent of a kill campaign tells its server.
//
// The parent writes a request (JSON) and starts `assay qualify-worker FILE`. The server says
// {"ready": {...}} on its standard output, then runs what it is told: "case N BUNDLE" (BUNDLE:
// where a failure is to be kept, "-" = nowhere) gives one {"round": {...}} a check and {"done": N}.
// The end of its input ends it. What it cannot do is {"error": {...}}.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "adapters/store.h"
#include "harness/qualify/history.h"
#include "harness/qualify/oracle.h"

namespace assay::qualify {

struct KillRequest {
  std::string store;
  DurabilityClass durability = DurabilityClass::power;
  Settings settings;
  std::uint64_t seed = 1;  ///< of the campaign
  HistoryShape shape;      ///< odd cases; even ones have one writer
  Loss allowed = Loss::intact;
  std::string directory;  ///< scratch; everything the server makes is below
  std::uint32_t open_timeout_ms = 30'000;
};
[[nodiscard]] nlohmann::json to_json(const KillRequest& request);
[[nodiscard]] Result<KillRequest> kill_request_from_json(const nlohmann::json& json);

using FindDriver = std::function<Result<const Driver*>(std::string_view)>;

/// Entry of the server: `assay qualify-worker REQUEST-FILE`. Returns its exit status. `find` is for
/// tests with stores of their own; empty = the registry.
int kill_server_main(const std::string& request_path, const FindDriver& find = {});

}  // namespace assay::qualify
