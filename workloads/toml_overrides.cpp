// Overrides of single values of a parsed document, and what the reader says about values.
#include <cerrno>
#include <charconv>
#include <cstdio>

#include <fmt/format.h>

#include "workloads/regular_file.h"
#include "workloads/toml_node.h"
#include "workloads/toml_reader.h"

namespace assay {
namespace {

std::string_view kind_name(int kind) {
  switch (kind) {
    case TomlNode::boolean:
      return "true or false";
    case TomlNode::integer:
      return "an integer";
    case TomlNode::number:
      return "a number";
    case TomlNode::text:
      return "a text in quotes";
    case TomlNode::array:
      return "an array";
    case TomlNode::table:
      return "a table";
    default:
      return "a date or time";
  }
}

void mark(TomlNode& node, const std::string& origin) {
  node.origin = origin;
  for (auto& item : node.items) mark(*item, origin);
  for (auto& member : node.members) mark(*member.second, origin);
}

}  // namespace

std::string shown(const TomlNode& node) {
  switch (node.kind) {
    case TomlNode::boolean:
      return node.truth ? "true" : "false";
    case TomlNode::integer:
      return fmt::format("{}{}", node.negative ? "-" : "", node.magnitude);
    case TomlNode::number:
      return fmt::format("{}", node.real);
    case TomlNode::text:
      return fmt::format("\"{}\"", node.string);
    default:
      return std::string(kind_name(node.kind));
  }
}

std::string did_you_mean(std::string_view given, const std::vector<std::string_view>& names) {
  const std::string nearest = nearest_name(given, names);
  if (!nearest.empty()) return fmt::format("did you mean '{}'?", nearest);
  return names.empty() ? std::string() : fmt::format("valid here: {}", fmt::join(names, ", "));
}

namespace {

/// The element of `array` called `part`: by number, or by the `name` (without one, the `kind`) of
/// its tables.
Result<TomlNode*> element(const TomlNode& array, std::string_view part, const std::string& where) {
  std::vector<std::string_view> names;
  for (const auto& item : array.items) {
    if (item->kind != TomlNode::table) continue;
    const TomlNode* name = item->member("name");
    if (name == nullptr) name = item->member("kind");
    if (name == nullptr || name->kind != TomlNode::text) continue;
    if (name->string == part) return item.get();
    names.push_back(name->string);
  }
  std::size_t index = 0;
  const auto parsed = std::from_chars(part.data(), part.data() + part.size(), index);
  if (parsed.ec == std::errc{} && parsed.ptr == part.data() + part.size()) {
    if (index < array.items.size()) return array.items[index].get();
    return fail(Error(ErrorKind::bad_input, fmt::format("there is no element {}", index))
                    .at(where)
                    .hint(fmt::format("there are {}, counted from 0", array.items.size())));
  }
  Error error(ErrorKind::bad_input, fmt::format("there is no element named '{}'", part));
  error.at(where);
  auto hint = did_you_mean(part, names);
  error.hint(hint.empty() ? "they have no names; use a number, from 0" : std::move(hint));
  return fail(std::move(error));
}

}  // namespace

Status TomlDocument::set(std::string_view path, std::string_view value) {
  const std::string where = fmt::format("--set {}", path);
  auto fresh = parse_toml_value(value);
  if (fresh == nullptr) {
    fresh = std::make_unique<TomlNode>();
    fresh->kind = TomlNode::text;
    fresh->string = std::string(value);
  }
  mark(*fresh, where);

  TomlNode* node = &state_->root;
  std::string_view rest = path;
  while (true) {
    const auto dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const bool last = dot == std::string_view::npos;
    if (part.empty()) {
      return fail(Error(ErrorKind::bad_input, "a part of the path is empty").at(where));
    }
    TomlNode* child = nullptr;
    if (node->kind == TomlNode::array) {
      const Result<TomlNode*> found = element(*node, part, where);
      if (!found) return std::unexpected(found.error());
      child = *found;
    } else if (node->kind == TomlNode::table) {
      child = node->member(part);
      if (child == nullptr) {
        node->members.emplace_back(std::string(part), std::make_unique<TomlNode>());
        child = node->members.back().second.get();
        child->origin = where;
      }
    } else {
      return fail(
          Error(ErrorKind::bad_input, fmt::format("nothing is below {}", shown(*node))).at(where));
    }
    if (last) {
      *child = std::move(*fresh);
      return {};
    }
    node = child;
    rest.remove_prefix(dot + 1);
  }
}

Status TomlDocument::set_assignment(std::string_view assignment) {
  const auto split = split_assignment(assignment);
  if (!split) return std::unexpected(split.error());
  return set(split->first, split->second);
}

Result<std::pair<std::string, std::string>> split_assignment(std::string_view assignment) {
  const auto equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return fail(Error(ErrorKind::bad_input, fmt::format("'{}' sets nothing", assignment))
                    .at("--set")
                    .hint("write it as path=value, for example keys.count=1000"));
  }
  return std::pair(std::string(assignment.substr(0, equals)),
                   std::string(assignment.substr(equals + 1)));
}

/// A data file or a device given by mistake must not be read for minutes.
constexpr std::size_t kMaxDeclarationBytes = 1U << 20;

Result<std::string> read_text_file(const std::string& path) {
  const Result<std::FILE*> opened = open_regular_file(path);
  if (!opened) {
    Error error = opened.error();
    return fail(error.at(path));
  }
  std::FILE* const file = *opened;
  std::string text;
  char buffer[16384];
  std::size_t got = 0;
  while (text.size() <= kMaxDeclarationBytes &&
         (got = std::fread(buffer, 1, sizeof buffer, file)) > 0) {
    text.append(buffer, got);
  }
  const int failure = std::ferror(file) != 0 ? errno : 0;
  std::fclose(file);
  if (failure != 0) return fail(Error(ErrorKind::environment, "cannot read the file").at(path));
  if (text.size() > kMaxDeclarationBytes) {
    return fail(
        Error(ErrorKind::bad_input, "the file is longer than 1 MiB, so no declaration").at(path));
  }
  return text;
}

}  // namespace assay
