#include "workloads/workload.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "workloads/spellings.h"
#include "workloads/toml_reader.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

/// Where the shipped declarations are: the source tree that this was built from, or beside an
/// installed program (PREFIX/bin/assay and PREFIX/share/assay/workloads).
std::vector<fs::path> search_path() {
  std::vector<fs::path> path{fs::path(ASSAY_WORKLOADS)};
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (!failed) {
    path.push_back(program.parent_path().parent_path() / "share" / "assay" / "workloads");
  }
  return path;
}

bool is_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".toml");
}

}  // namespace

std::string_view to_string(OpKind kind) {
  return spelling_of(kOpKindNames, kind);
}
std::string_view to_string(PhaseKind kind) {
  return spelling_of(kPhaseKinds, kind);
}
std::string_view to_string(DistributionKind kind) {
  return spelling_of(kDistributions, kind);
}
std::string_view to_string(WarmUpPolicy policy) {
  return spelling_of(kWarmUpPolicies, policy);
}
std::string_view to_string(CachePolicy policy) {
  return spelling_of(kCachePolicies, policy);
}
std::string_view to_string(RestartHow how) {
  return spelling_of(kRestartHows, how);
}

std::string_view to_string(TableOperation operation) {
  return spelling_of(kTableOperations, operation);
}

bool uses_tables(const Workload& workload) {
  return std::ranges::any_of(workload.phases,
                             [](const Phase& phase) { return uses_tables(phase.kind); });
}

std::vector<std::string> shipped_workloads() {
  std::vector<std::string> names;
  for (const fs::path& folder : search_path()) {
    std::error_code failed;
    for (const auto& file : fs::directory_iterator(folder, failed)) {
      if (file.path().extension() == ".toml") names.push_back(file.path().stem().string());
    }
    if (!names.empty()) break;
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<Workload> load_workload(const std::string& name_or_path, const Overrides& overrides) {
  if (is_path(name_or_path)) {
    const Result<std::string> text = read_text_file(name_or_path);
    if (!text) return std::unexpected(text.error());
    return parse_workload(*text, name_or_path, overrides);
  }
  for (const fs::path& folder : search_path()) {
    const fs::path file = folder / (name_or_path + ".toml");
    std::error_code failed;
    if (!fs::exists(file, failed)) continue;
    const Result<std::string> text = read_text_file(file.string());
    if (!text) return std::unexpected(text.error());
    return parse_workload(*text, file.filename().string(), overrides);
  }
  const std::vector<std::string> names = shipped_workloads();
  const std::string nearest = nearest_name(name_or_path, names);
  return fail(Error(ErrorKind::bad_input, fmt::format("there is no workload '{}'", name_or_path))
                  .hint(nearest.empty()
                            ? "'assay workload list' shows them; a file's name ends in .toml"
                            : fmt::format("did you mean '{}'?", nearest)));
}

}  // namespace assay
