// TOML text to tree, by toml++ (the only file that includes it).
#include <algorithm>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <fmt/format.h>
#include <toml++/toml.h>

#include "workloads/toml_node.h"

namespace assay {
namespace {

void set_integer(TomlNode& node, std::int64_t value) {
  node.negative = value < 0;
  const auto bits = static_cast<std::uint64_t>(value);
  node.magnitude = node.negative ? ~bits + 1 : bits;
}

void set_scalar(TomlNode& node, const toml::node& from) {
  switch (from.type()) {
    case toml::node_type::string:
      node.kind = TomlNode::text;
      node.string = from.as_string()->get();
      break;
    case toml::node_type::integer:
      node.kind = TomlNode::integer;
      set_integer(node, from.as_integer()->get());
      break;
    case toml::node_type::floating_point:
      node.kind = TomlNode::number;
      node.real = from.as_floating_point()->get();
      break;
    case toml::node_type::boolean:
      node.kind = TomlNode::boolean;
      node.truth = from.as_boolean()->get();
      break;
    default:
      node.kind = TomlNode::date;
      break;
  }
}

std::unique_ptr<TomlNode> convert(const toml::node& from);

void convert_table(TomlNode& node, const toml::table& from) {
  node.kind = TomlNode::table;
  std::vector<std::pair<toml::source_position, std::string>> order;  // toml++ sorts by name
  for (const auto& [key, value] : from) {
    order.emplace_back(key.source().begin, std::string(key.str()));
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.line, a.first.column) < std::pair(b.first.line, b.first.column);
  });
  for (auto& [position, name] : order) {
    auto child = convert(*from.get(name));
    if (position.line != 0) child->line = static_cast<int>(position.line);
    node.members.emplace_back(name, std::move(child));
  }
}

std::unique_ptr<TomlNode> convert(const toml::node& from) {
  auto node = std::make_unique<TomlNode>();
  node->line = static_cast<int>(from.source().begin.line);
  if (const toml::table* table = from.as_table()) {
    convert_table(*node, *table);
  } else if (const toml::array* array = from.as_array()) {
    node->kind = TomlNode::array;
    for (const toml::node& item : *array) node->items.push_back(convert(item));
  } else {
    set_scalar(*node, from);
  }
  return node;
}

/// toml++ says "Error while parsing key-value pair: cannot redefine existing integer 'count'".
Error syntax_error(const toml::parse_error& error, const std::string& file) {
  std::string what(error.description());
  if (const auto colon = what.find(": "); colon != std::string::npos) what.erase(0, colon + 2);
  std::string hint;
  if (const auto at = what.find("cannot redefine existing "); at != std::string::npos) {
    const auto quote = what.find('\'', at);
    const std::string name = quote == std::string::npos ? "" : what.substr(quote);
    what = fmt::format("duplicate key {}", name);
    hint = "it was already given above; keep one of them";
  }
  Error result(ErrorKind::bad_input, std::move(what));
  result.at(fmt::format("{}:{}", file, error.source().begin.line));
  if (!hint.empty()) result.hint(std::move(hint));
  return result;
}

/// toml++ nests one level a part of a dotted key and takes its tables apart recursively: tens of
/// thousands of parts overflow the stack. Returns the line of such a key, or 0. Text between two
/// separators that is no key counts as well, which no declaration comes near.
int line_of_a_bottomless_key(std::string_view text) {
  constexpr int kMaxParts = 200;
  int line = 1;
  int dots = 0;
  bool comment = false;
  for (const char c : text) {
    if (c == '\n') {
      ++line;
      comment = false;
    }
    comment = comment || c == '#';
    if (comment || std::string_view("\n=,{}[]").find(c) != std::string_view::npos) {
      dots = 0;
    } else if (c == '.' && ++dots > kMaxParts) {
      return line;
    }
  }
  return 0;
}

}  // namespace

Result<std::shared_ptr<TomlState>> parse_toml_tree(std::string_view text, const std::string& file) {
  if (const int line = line_of_a_bottomless_key(text); line != 0) {
    return fail(Error(ErrorKind::bad_input, "a key has more than 200 parts")
                    .at(fmt::format("{}:{}", file, line)));
  }
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) return fail(syntax_error(parsed.error(), file));
  auto state = std::make_shared<TomlState>();
  state->file = file;
  convert_table(state->root, parsed.table());
  state->root.line = 1;
  return state;
}

std::unique_ptr<TomlNode> parse_toml_value(std::string_view text) {
  if (text.find('\n') != std::string_view::npos) return nullptr;
  if (line_of_a_bottomless_key(text) != 0) return nullptr;
  const toml::parse_result parsed = toml::parse(fmt::format("v = {}\n", text));
  if (!parsed || parsed.table().size() != 1) return nullptr;
  return convert(*parsed.table().get("v"));
}

}  // namespace assay
