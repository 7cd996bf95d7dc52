#include "harness/ledger/raw_files.h"

#include <filesystem>

#include "harness/ledger/durable_file.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

fs::path absolute_normal(const fs::path& path) {
  std::error_code ignored;
  return fs::absolute(path, ignored).lexically_normal();
}

/// The folder that paths of a ledger in `folder` are relative to.
fs::path base_of(const fs::path& folder) {
  const fs::path above = folder.parent_path();
  return above.filename() == "ledgers" ? above.parent_path() : folder;
}

}  // namespace

RawFiles::RawFiles(const std::string& ledger_path) {
  folders_[{}] = absolute_normal(folder_of(ledger_path)).string();
}

RawFiles::Route RawFiles::route_of(const nlohmann::json& source) {
  Route route;
  for (const nlohmann::json* level = &source; !level->is_null(); level = &level->at("source")) {
    route.push_back(level->at("ledger").get<std::uint64_t>());
  }
  return route;
}

void RawFiles::take(const LedgerRecord& record) {
  if (record.kind != "merge") return;
  const Route route = route_of(record.source);
  const auto folder = folders_.find(route);
  const auto sources = record.body.find("sources");
  if (folder == folders_.end() || sources == record.body.end() || !sources->is_array()) return;
  const fs::path base(folder->second);
  for (std::uint64_t i = 0; i < sources->size(); ++i) {
    const nlohmann::json& source = (*sources)[i];
    if (!source.is_object() || !source.contains("folder") || !source["folder"].is_string())
      continue;
    Route below = route;
    below.push_back(i);
    const fs::path told(source["folder"].get<std::string>());
    std::string path = (base / told).lexically_normal().string();
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    folders_[below] = path;
  }
}

std::string RawFiles::file_of(const LedgerRecord& trial, const std::string& raw) const {
  auto known = folders_.find(route_of(trial.source));
  if (known == folders_.end()) known = folders_.find({});
  const fs::path folder(known->second);
  const fs::path belongs = (base_of(folder) / raw).lexically_normal();
  const fs::path own = fs::path(folders_.at({}));
  const fs::path candidates[] = {belongs,
                                 folder / raw,
                                 folder.parent_path() / raw,
                                 folder.parent_path().parent_path() / raw,
                                 base_of(own) / raw,
                                 raw};
  std::error_code ignored;
  for (const fs::path& candidate : candidates) {
    if (fs::is_regular_file(candidate, ignored)) return candidate.lexically_normal().string();
  }
  return belongs.string();
}

std::string as_named(const std::string& path) {
  std::error_code ignored;
  const fs::path relative =
      absolute_normal(path).lexically_relative(absolute_normal(fs::current_path(ignored)));
  const std::string text = relative.string();
  return text.empty() || text.starts_with("..") ? path : text;
}

}  // namespace assay
