// JSON on standard output, the same way for every verb with --json. What is no UTF-8 is replaced.
#pragma once

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace assay::cli {

inline void print_json(const nlohmann::json& value) {
  fmt::print("{}\n", value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace assay::cli
