// The tree behind toml_reader.h: values with the place where they were written. Internal to the
// reader; its only users are toml_parse.cpp (text to tree) and toml_reader.cpp (tree to values).
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/result.h"

namespace assay {

struct TomlNode {
  enum Kind : int { boolean, integer, number, text, array, table, date };

  Kind kind = table;
  bool truth = false;
  bool negative = false;  ///< integer: sign; the magnitude covers all of 64 bits
  std::uint64_t magnitude = 0;
  double real = 0.0;
  std::string string;
  std::vector<std::unique_ptr<TomlNode>> items;                            ///< array
  std::vector<std::pair<std::string, std::unique_ptr<TomlNode>>> members;  ///< in written order

  int line = 0;        ///< 0 = unknown
  std::string origin;  ///< override or canonical form: what to show instead of file:line
  bool consumed = false;
  std::set<std::string, std::less<>> asked;  ///< table: every name that a getter asked for

  [[nodiscard]] TomlNode* member(std::string_view name) const;
  [[nodiscard]] double as_number() const;
};

struct TomlState {
  std::string file;
  TomlNode root;
  std::vector<Error> errors;  ///< in the order in which the getters found them

  [[nodiscard]] std::string where(const TomlNode& node) const;
};

[[nodiscard]] Result<std::shared_ptr<TomlState>> parse_toml_tree(std::string_view text,
                                                                 const std::string& file);
/// A value as a message shows it.
[[nodiscard]] std::string shown(const TomlNode& node);
/// A hint: the nearest of `names`, or all of them; empty when there are none.
[[nodiscard]] std::string did_you_mean(std::string_view given,
                                       const std::vector<std::string_view>& names);
/// One TOML value on its own, for overrides. Null when `text` is not one.
[[nodiscard]] std::unique_ptr<TomlNode> parse_toml_value(std::string_view text);

}  // namespace assay
