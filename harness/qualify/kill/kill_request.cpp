#include "harness/qualify/kill/kill_request.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay::qualify {

nlohmann::json to_json(const KillRequest& request) {
  return {{"store", request.store},          {"durability", to_string(request.durability)},
          {"settings", request.settings},    {"seed", request.seed},
          {"shape", to_json(request.shape)}, {"allowed", to_string(request.allowed)},
          {"directory", request.directory},  {"open_timeout_ms", request.open_timeout_ms}};
}

Result<KillRequest> kill_request_from_json(const nlohmann::json& json) {
  KillRequest request;
  try {
    request.store = json.at("store");
    const auto durability = parse_durability(json.at("durability").get<std::string>());
    if (!durability) return fail(durability.error());
    request.durability = *durability;
    request.settings = json.at("settings").get<Settings>();
    request.seed = json.at("seed");
    const Result<HistoryShape> shape = history_shape_from_json(json.at("shape"));
    if (!shape) return fail(shape.error());
    request.shape = *shape;
    const Result<Loss> allowed = parse_loss(json.at("allowed").get<std::string>());
    if (!allowed) return fail(allowed.error());
    request.allowed = *allowed;
    request.directory = json.at("directory");
    request.open_timeout_ms = json.at("open_timeout_ms");
  } catch (const nlohmann::json::exception& exception) {
    return fail(ErrorKind::bad_input, fmt::format("not a request: {}", exception.what()));
  }
  return request;
}

}  // namespace assay::qualify
