#include "harness/ledger/flatten.h"

namespace assay {
namespace {

using nlohmann::json;

std::string element_name(const json& element, std::size_t index) {
  if (element.is_object() && element.contains("name") && element["name"].is_string()) {
    return element["name"].get<std::string>();
  }
  return std::to_string(index);
}

void flatten_into(const json& tree, const std::string& prefix, std::map<std::string, json>& flat) {
  const auto below = [&](const std::string& key) {
    return prefix.empty() ? key : prefix + "." + key;
  };
  if (tree.is_object() && !tree.empty() && !is_unknown(tree)) {
    for (const auto& [key, value] : tree.items()) flatten_into(value, below(key), flat);
  } else if (tree.is_array() && !tree.empty() && tree[0].is_structured()) {
    for (std::size_t i = 0; i < tree.size(); ++i) {
      flatten_into(tree[i], below(element_name(tree[i], i)), flat);
    }
  } else {
    flat[prefix] = tree;
  }
}

}  // namespace

std::map<std::string, json> flatten(const json& tree) {
  std::map<std::string, json> flat;
  if (tree.is_structured() && !tree.empty()) flatten_into(tree, "", flat);
  return flat;
}

std::string leaf_text(const json& leaf) {
  if (leaf.is_string()) return leaf.get<std::string>();
  if (is_unknown(leaf)) return "unknown: " + leaf_text(leaf["unknown"]);
  return leaf.dump(-1, ' ', false, json::error_handler_t::replace);
}

bool is_unknown(const json& value) {
  return value.is_object() && value.size() == 1 && value.contains("unknown");
}

}  // namespace assay
