#include "workloads/toml_reader.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "workloads/toml_node.h"

namespace assay {
namespace {

std::string list(const std::vector<std::string_view>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

/// What was asked of no getter, deepest first in written order.
void find_unknown(const TomlState& state, const TomlNode& node, std::vector<Error>& unknown) {
  for (const auto& item : node.items) find_unknown(state, *item, unknown);
  for (const auto& [name, child] : node.members) {
    if (child->consumed) {
      find_unknown(state, *child, unknown);
      continue;
    }
    const std::vector<std::string_view> valid(node.asked.begin(), node.asked.end());
    Error error(ErrorKind::bad_input, fmt::format("unknown key '{}'", name));
    error.at(state.where(*child));
    if (auto hint = did_you_mean(name, valid); !hint.empty()) error.hint(std::move(hint));
    unknown.push_back(std::move(error));
  }
}

void consume(TomlNode& node) {
  node.consumed = true;
  for (auto& item : node.items) consume(*item);
  for (auto& member : node.members) consume(*member.second);
}

std::unique_ptr<TomlNode> convert_json(const nlohmann::json& json) {
  auto node = std::make_unique<TomlNode>();
  if (json.is_object()) {
    for (const auto& [name, value] : json.items()) {
      node->members.emplace_back(name, convert_json(value));
    }
  } else if (json.is_array()) {
    node->kind = TomlNode::array;
    for (const auto& value : json) node->items.push_back(convert_json(value));
  } else if (json.is_boolean()) {
    node->kind = TomlNode::boolean;
    node->truth = json.get<bool>();
  } else if (json.is_number_unsigned()) {
    node->kind = TomlNode::integer;
    node->magnitude = json.get<std::uint64_t>();
  } else if (json.is_number_integer()) {
    node->kind = TomlNode::integer;
    const auto value = json.get<std::int64_t>();
    node->negative = value < 0;
    node->magnitude =
        node->negative ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
  } else if (json.is_number_float()) {
    node->kind = TomlNode::number;
    node->real = json.get<double>();
  } else if (json.is_string()) {
    node->kind = TomlNode::text;
    node->string = json.get<std::string>();
  } else {
    node->kind = TomlNode::date;  // null: no getter takes it
  }
  return node;
}

}  // namespace

TomlNode* TomlNode::member(std::string_view name) const {
  for (const auto& [key, child] : members) {
    if (key == name) return child.get();
  }
  return nullptr;
}

double TomlNode::as_number() const {
  if (kind == number) return real;
  const auto value = static_cast<double>(magnitude);
  return negative ? -value : value;
}

std::string TomlState::where(const TomlNode& node) const {
  if (!node.origin.empty()) return node.origin;
  return node.line > 0 ? fmt::format("{}:{}", file, node.line) : file;
}

TomlTable::TomlTable(std::shared_ptr<TomlState> state, TomlNode* node, int parent_line)
    : state_(std::move(state)), node_(node), parent_line_(parent_line) {}

const TomlNode* TomlTable::ask(std::string_view name) const {
  if (node_ == nullptr) return nullptr;
  node_->asked.emplace(name);
  return node_->member(name);
}

bool TomlTable::has(std::string_view name) const {
  return ask(name) != nullptr;
}

bool TomlTable::has_text(std::string_view name) const {
  const TomlNode* const node = ask(name);
  return node != nullptr && node->kind == TomlNode::text;
}

bool TomlTable::present() const {
  return node_ != nullptr;
}

namespace {

/// 1e3 is a thousand to people and a float to TOML.
std::string integer_hint(double value) {
  if (value < 0.0 || value >= 0x1p53 || value != std::floor(value)) return {};
  return fmt::format("write {:.0f}; in TOML a number with a point or an exponent is a float",
                     value);
}

}  // namespace

TomlNode* TomlTable::ask_as(std::string_view name, int kind, std::string_view wanted) {
  if (ask(name) == nullptr) return nullptr;
  TomlNode* child = node_->member(name);
  child->consumed = true;
  const bool fits =
      child->kind == kind || (kind == TomlNode::number && child->kind == TomlNode::integer);
  if (fits) return child;
  const bool real = kind == TomlNode::integer && child->kind == TomlNode::number;
  reject(name,
         fmt::format("'{}' must be {}, not {}{}", name, wanted, real ? "the float " : "",
                     shown(*child)),
         real ? integer_hint(child->real) : std::string());
  return nullptr;
}

bool TomlTable::take(std::string_view name) {
  if (ask(name) == nullptr) return false;
  consume(*node_->member(name));
  return true;
}

void TomlTable::missing(std::string_view name) {
  reject({}, fmt::format("'{}' is missing", name));
}

std::string TomlTable::where(std::string_view name) const {
  if (node_ == nullptr) return fmt::format("{}:{}", state_->file, parent_line_);
  const TomlNode* child = name.empty() ? nullptr : node_->member(name);
  return state_->where(child != nullptr ? *child : *node_);
}

void TomlTable::reject(std::string_view name, std::string what, std::string hint) {
  Error error(ErrorKind::bad_input, std::move(what));
  error.at(where(name));
  if (!hint.empty()) error.hint(std::move(hint));
  state_->errors.push_back(std::move(error));
}

void TomlTable::reject(Error error) {
  state_->errors.push_back(std::move(error));
}

bool TomlTable::boolean(std::string_view name, bool otherwise) {
  const TomlNode* node = ask_as(name, TomlNode::boolean, "true or false");
  return node != nullptr ? node->truth : otherwise;
}

std::string TomlTable::text(std::string_view name, std::string_view otherwise) {
  const TomlNode* node = ask_as(name, TomlNode::text, "a text in quotes");
  return node != nullptr ? node->string : std::string(otherwise);
}

std::string TomlTable::required_text(std::string_view name) {
  if (!has(name)) missing(name);
  return text(name);
}

std::uint64_t TomlTable::integer(std::string_view name, std::uint64_t otherwise, std::uint64_t min,
                                 std::uint64_t max) {
  const TomlNode* node = ask_as(name, TomlNode::integer, "an integer");
  if (node == nullptr) return otherwise;
  if ((node->negative && node->magnitude != 0) || node->magnitude < min || node->magnitude > max) {
    const std::string range = max == kNoLimit ? fmt::format("at least {}", min)
                                              : fmt::format("between {} and {}", min, max);
    reject(name, fmt::format("'{}' must be {}, not {}", name, range, shown(*node)));
    return otherwise;
  }
  return node->magnitude;
}

std::uint64_t TomlTable::required_integer(std::string_view name, std::uint64_t min,
                                          std::uint64_t max) {
  if (!has(name)) missing(name);
  return integer(name, min, min, max);
}

std::uint32_t TomlTable::integer32(std::string_view name, std::uint32_t otherwise,
                                   std::uint32_t min, std::uint32_t max) {
  return static_cast<std::uint32_t>(integer(name, otherwise, min, max));
}

double TomlTable::number(std::string_view name, double otherwise, double min, double max) {
  const TomlNode* node = ask_as(name, TomlNode::number, "a number");
  if (node == nullptr) return otherwise;
  const double value = node->as_number();
  if (!(value >= min && value <= max)) {
    const std::string range = max == kNoBound    ? fmt::format("at least {}", min)
                              : min == -kNoBound ? fmt::format("at most {}", max)
                                                 : fmt::format("between {} and {}", min, max);
    reject(name, fmt::format("'{}' must be {}, not {}", name, range, shown(*node)));
    return otherwise;
  }
  return value;
}

double TomlTable::required_number(std::string_view name, double min, double max) {
  if (!has(name)) missing(name);
  return number(name, 0.0, min, max);
}

int TomlTable::choose(std::string_view name, const std::vector<std::string_view>& names) {
  const TomlNode* node = ask_as(name, TomlNode::text, fmt::format("one of {}", list(names)));
  if (node == nullptr) return -1;
  const auto found = std::find(names.begin(), names.end(), node->string);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  const std::string nearest = nearest_name(node->string, names);
  reject(name, fmt::format("'{}' must be one of {}, not \"{}\"", name, list(names), node->string),
         nearest.empty() ? "" : fmt::format("did you mean '{}'?", nearest));
  return -1;
}

std::vector<std::string> TomlTable::texts(std::string_view name) {
  std::vector<std::string> values;
  const TomlNode* node = ask_as(name, TomlNode::array, "an array of texts");
  if (node == nullptr) return values;
  for (const auto& item : node->items) {
    if (item->kind != TomlNode::text) {
      reject(name, fmt::format("'{}' must hold texts in quotes, not {}", name, shown(*item)));
      break;
    }
    values.push_back(item->string);
  }
  return values;
}

std::vector<std::int64_t> TomlTable::integers(std::string_view name, std::int64_t min,
                                              std::int64_t max) {
  std::vector<std::int64_t> values;
  const TomlNode* node = ask_as(name, TomlNode::array, "an array of integers");
  if (node == nullptr) return values;
  for (const auto& item : node->items) {
    const auto value =
        static_cast<std::int64_t>(item->negative ? ~item->magnitude + 1 : item->magnitude);
    const bool overflow = !item->negative && value < 0;
    if (item->kind != TomlNode::integer || overflow || value < min || value > max) {
      reject(name, fmt::format("'{}' must hold integers from {} to {}, not {}", name, min, max,
                               shown(*item)));
      break;
    }
    values.push_back(value);
  }
  return values;
}

std::vector<double> TomlTable::numbers(std::string_view name) {
  std::vector<double> values;
  const TomlNode* node = ask_as(name, TomlNode::array, "an array of numbers");
  if (node == nullptr) return values;
  for (const auto& item : node->items) {
    if (item->kind != TomlNode::integer && item->kind != TomlNode::number) {
      reject(name, fmt::format("'{}' must hold numbers, not {}", name, shown(*item)));
      break;
    }
    values.push_back(item->as_number());
  }
  return values;
}

TomlTable TomlTable::table(std::string_view name) {
  TomlNode* node = ask_as(name, TomlNode::table, "a table");
  const int line = node_ != nullptr ? node_->line : parent_line_;
  return {state_, node, line};
}

std::vector<TomlTable> TomlTable::tables(std::string_view name) {
  std::vector<TomlTable> tables;
  TomlNode* node = ask_as(name, TomlNode::array, fmt::format("an array of tables, [[{}]]", name));
  if (node == nullptr) return tables;
  for (auto& item : node->items) {
    if (item->kind != TomlNode::table) {
      reject(name, fmt::format("'{}' must hold tables, not {}", name, shown(*item)));
      break;
    }
    tables.push_back(TomlTable(state_, item.get(), item->line));
  }
  return tables;
}

std::vector<std::string> TomlTable::names() const {
  std::vector<std::string> names;
  if (node_ == nullptr) return names;
  for (const auto& member : node_->members) names.push_back(member.first);
  return names;
}

namespace {

/// Whether every element is a text, a number, true or false.
bool is_flat(const TomlNode& array) {
  return std::all_of(array.items.begin(), array.items.end(),
                     [](const auto& item) { return item->kind <= TomlNode::text; });
}

std::string array_text(const TomlNode& array) {
  std::vector<std::string> items;
  for (const auto& item : array.items) items.push_back(shown(*item));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

/// The node that a dotted path names below `table`, however much of it was quoted.
const TomlNode* at_path(const TomlNode& table, std::string_view path) {
  for (const auto& [key, child] : table.members) {
    if (key == path) return child.get();
    const bool below = path.size() > key.size() && path.starts_with(key) && path[key.size()] == '.';
    if (!below) continue;
    if (const TomlNode* found = at_path(*child, path.substr(key.size() + 1))) return found;
  }
  return nullptr;
}

}  // namespace

std::string TomlTable::where_setting(std::string_view name, std::string_view path) const {
  const TomlNode* const table = node_ != nullptr ? node_->member(name) : nullptr;
  const TomlNode* const setting = table != nullptr ? at_path(*table, path) : nullptr;
  return setting != nullptr ? state_->where(*setting) : where(name);
}

std::vector<std::pair<std::string, std::string>> TomlTable::settings(std::string_view name,
                                                                     bool arrays) {
  std::vector<std::pair<std::string, std::string>> values;
  const TomlNode* node = ask_as(name, TomlNode::table, "a table");
  if (node == nullptr) return values;
  // a.b = 1 and "a.b" = 1 mean the same here, though TOML makes a table of the first.
  const auto collect = [&](const auto& self, const TomlNode& table,
                           const std::string& path) -> void {
    for (const auto& [key, child] : table.members) {
      child->consumed = true;
      const std::string whole = path + key;
      if (child->kind == TomlNode::table) {
        self(self, *child, whole + ".");
      } else if (child->kind <= TomlNode::text) {
        values.emplace_back(whole, child->kind == TomlNode::text ? child->string : shown(*child));
      } else if (arrays && child->kind == TomlNode::array && is_flat(*child)) {
        values.emplace_back(whole, array_text(*child));
      } else {
        state_->errors.push_back(
            Error(ErrorKind::bad_input,
                  fmt::format("'{}.{}' must be a text, a number, true or false{}", name, whole,
                              arrays ? ", or an array of them" : ""))
                .at(state_->where(*child)));
      }
    }
  };
  collect(collect, *node, "");
  return values;
}

std::vector<std::pair<std::string, std::vector<std::string>>> TomlTable::lists(
    std::string_view name) {
  std::vector<std::pair<std::string, std::vector<std::string>>> lists;
  const TomlNode* node = ask_as(name, TomlNode::table, "a table");
  if (node == nullptr) return lists;
  const auto collect = [&](const auto& self, const TomlNode& table,
                           const std::string& path) -> void {
    for (const auto& [key, child] : table.members) {
      consume(*child);
      const std::string whole = path + key;
      if (child->kind == TomlNode::table) {
        self(self, *child, whole + ".");
        continue;
      }
      std::vector<std::string> values;
      bool sound = child->kind == TomlNode::array;
      for (const auto& item : child->items) {
        const bool flat = item->kind == TomlNode::array && is_flat(*item);
        const bool finite = item->kind != TomlNode::number || std::isfinite(item->real);
        sound = sound && finite && (flat || item->kind <= TomlNode::text);
        values.push_back(item->kind == TomlNode::array  ? array_text(*item)
                         : item->kind == TomlNode::text ? nlohmann::json(item->string).dump()
                                                        : shown(*item));
      }
      if (sound) {
        lists.emplace_back(whole, std::move(values));
        continue;
      }
      state_->errors.push_back(
          Error(
              ErrorKind::bad_input,
              fmt::format("'{}.{}' must be an array of texts, numbers, true or false", name, whole))
              .at(state_->where(*child)));
    }
  };
  collect(collect, *node, "");
  return lists;
}

Result<TomlDocument> TomlDocument::parse(std::string_view text, const std::string& file) {
  auto state = parse_toml_tree(text, file);
  if (!state) return std::unexpected(std::move(state).error());
  return TomlDocument(std::move(*state));
}

Result<TomlDocument> TomlDocument::load(const std::string& path) {
  const Result<std::string> text = read_text_file(path);
  if (!text) return std::unexpected(text.error());
  return parse(*text, path);
}

Result<TomlDocument> TomlDocument::from_json(const nlohmann::json& json,
                                             const std::string& origin) {
  if (!json.is_object()) {
    return fail(Error(ErrorKind::bad_input, "must be a JSON object").at(origin));
  }
  auto state = std::make_shared<TomlState>();
  state->file = origin;
  state->root = std::move(*convert_json(json));
  return TomlDocument(std::move(state));
}

TomlTable TomlDocument::root() {
  return {state_, &state_->root, 1};
}

Status TomlDocument::finish() {
  std::vector<Error> unknown;
  find_unknown(*state_, state_->root, unknown);
  // A misspelt key is the cause of the "missing" that it leaves behind, so it is told first.
  if (!unknown.empty()) return fail(unknown.front());
  if (!state_->errors.empty()) return fail(state_->errors.front());
  return {};
}

}  // namespace assay
