// A tree of JSON as a list of paths and leaves, for comparing and for tables.
// Stateless; any thread.
#pragma once

#include <map>
#include <string>

#include <nlohmann/json.hpp>

namespace assay {

/// {"a": {"b": 1}} becomes {"a.b": 1}. Elements of an array of objects go by their `name`, else by
/// their number; arrays of plain values and {"unknown": why} are leaves. Empty without members.
[[nodiscard]] std::map<std::string, nlohmann::json> flatten(const nlohmann::json& tree);

/// A leaf in words: texts without quotes, "unknown: why", anything else as JSON.
[[nodiscard]] std::string leaf_text(const nlohmann::json& leaf);

/// Whether it is {"unknown": why}: a figure that could not be had.
[[nodiscard]] bool is_unknown(const nlohmann::json& value);

}  // namespace assay
