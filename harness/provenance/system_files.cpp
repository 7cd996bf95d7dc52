#include "harness/provenance/system_files.h"

#include <charconv>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

namespace assay::provenance {
namespace {

std::string trimmed(std::string text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string::npos) return {};
  const std::size_t last = text.find_last_not_of(" \t\n");
  return text.substr(first, last - first + 1);
}

nlohmann::json cannot_read(std::string_view path) {
  return unknown(fmt::format("cannot read {}", path));
}

}  // namespace

nlohmann::json unknown(std::string_view why) {
  return {{"unknown", why}};
}

std::string SystemFiles::at(std::string_view path) const {
  return (root_.ends_with('/') ? root_.substr(0, root_.size() - 1) : root_) + std::string(path);
}

std::optional<std::string> SystemFiles::text(std::string_view path) const {
  std::ifstream file(at(path), std::ios::binary);
  if (!file) return std::nullopt;
  std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) return std::nullopt;
  return trimmed(std::move(all));
}

std::vector<std::string> SystemFiles::lines(std::string_view path) const {
  std::ifstream file(at(path), std::ios::binary);
  std::vector<std::string> all;
  for (std::string line; std::getline(file, line);) all.push_back(line);
  return all;
}

nlohmann::json SystemFiles::text_or_unknown(std::string_view path) const {
  const auto found = text(path);
  return found ? nlohmann::json(*found) : cannot_read(path);
}

nlohmann::json SystemFiles::integer_or_unknown(std::string_view path) const {
  const auto found = text(path);
  if (!found) return cannot_read(path);
  std::int64_t value = 0;
  const char* end = found->data() + found->size();
  const auto [stop, error] = std::from_chars(found->data(), end, value);
  if (error != std::errc() || stop != end) return unknown(fmt::format("{} is no number", path));
  return value;
}

nlohmann::json SystemFiles::chosen_or_unknown(std::string_view path) const {
  const auto found = text(path);
  if (!found) return cannot_read(path);
  const std::size_t open = found->find('[');
  const std::size_t close = found->find(']', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) return *found;
  return found->substr(open + 1, close - open - 1);
}

nlohmann::json SystemFiles::field(std::string_view path, std::string_view key,
                                  char separator) const {
  for (const std::string& line : lines(path)) {
    const std::size_t at_separator = line.find(separator);
    if (at_separator == std::string::npos) continue;
    if (trimmed(line.substr(0, at_separator)) == key) return trimmed(line.substr(at_separator + 1));
  }
  return unknown(fmt::format("{} has no line {}", path, key));
}

}  // namespace assay::provenance
