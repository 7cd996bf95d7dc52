// The first step of reading a plan: what was written, with the place of each part, before stores,
// settings, workload and machine are asked. Internal to the plan reader.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/experiment/plan.h"
#include "workloads/toml_reader.h"

namespace assay {

/// What was written, and where each part stands.
struct Declaration {
  Plan plan;
  std::string workload;
  Overrides overrides;
  std::vector<std::string> references;
  bool a_a_wanted = true;
  std::string a_a_name;
  std::vector<TomlTable> arm_tables;
  std::vector<TomlTable> hypothesis_tables;
  bool control_wanted = false;
};

/// Reads every key; what is wrong is reported by TomlDocument::finish().
[[nodiscard]] Declaration read_declaration(TomlTable& root);

/// An error at the place of `key` in `table`.
[[nodiscard]] std::unexpected<Error> refuse(Error error, const TomlTable& table,
                                            std::string_view key);
[[nodiscard]] std::unexpected<Error> refuse(std::string what, const TomlTable& table,
                                            std::string_view key);

}  // namespace assay
