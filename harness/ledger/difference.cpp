#include "harness/ledger/difference.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "harness/ledger/flatten.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 11> kReadings = {"clock.now",
                                                        "collected",
                                                        "cpu.mhz_now",
                                                        "memory.available_bytes",
                                                        "memory.free_bytes",
                                                        "os.boot_id",
                                                        "os.load_average",
                                                        "memory.swap_free_bytes",
                                                        "process.pid",
                                                        "process.command_line",
                                                        "storage.space.free_bytes"};

/// Measured figures to six digits: no difference is in the others.
json rounded(const json& figure) {
  if (figure.is_number_float()) return fmt::format("{:.6g}", figure.get<double>());
  if (!figure.is_array()) return figure;
  std::string text;
  for (const json& element : figure) {
    text += (text.empty() ? "" : " to ") + leaf_text(rounded(element));
  }
  return text;
}

void compare(const std::string& section, const json& a, const json& b,
             std::vector<Difference>& into) {
  const auto left = flatten(a);
  const auto right = flatten(b);
  auto keys = left;
  keys.insert(right.begin(), right.end());
  for (const auto& [key, ignored] : keys) {
    const auto at_a = left.find(key);
    const auto at_b = right.find(key);
    if (at_a != left.end() && at_b != right.end() && at_a->second == at_b->second) continue;
    const bool reading = section == "environment" &&
                         std::find(kReadings.begin(), kReadings.end(), key) != kReadings.end();
    into.push_back({section, key, at_a == left.end() ? "-" : leaf_text(at_a->second),
                    at_b == right.end() ? "-" : leaf_text(at_b->second), reading});
  }
}

json part(const json& whole, const char* key) {
  return whole.is_object() && whole.contains(key) ? whole[key] : json::object();
}

/// What of the provenance tells of the program, and what of the machine.
std::pair<json, json> split(const json& provenance) {
  json binary = json::object();
  json rest = provenance;
  for (const char* key : {"binary", "build", "libraries", "packages", "source"}) {
    if (!rest.is_object() || !rest.contains(key)) continue;
    binary[key] = rest[key];
    rest.erase(key);
  }
  return {std::move(binary), std::move(rest)};
}

/// The figures of the rows that a reader compares; values of single trials always differ.
json figures(const json& verdict) {
  json found = json::object();
  if (!verdict.is_object()) return found;
  for (const char* key : {"outcome", "n", "unit", "metric"}) {
    if (verdict.contains(key)) found[key] = verdict[key];
  }
  for (const json& row : part(verdict, "rows")) {
    if (!row.is_object() || !row.contains("arm") || !row["arm"].is_string()) continue;
    json& into = found[row["arm"].get<std::string>()];
    for (const char* key : {"geometric_mean", "interval", "cv", "version", "durability"}) {
      if (row.contains(key)) into[key] = rounded(row[key]);
    }
  }
  for (const json& one : part(verdict, "comparisons")) {
    if (!one.is_object() || !one.contains("a") || !one.contains("b")) continue;
    const std::string name = one.value("a", "") + " vs " + one.value("b", "");
    for (const char* key : {"ratio", "interval", "verdict"}) {
      if (one.contains(key)) found[name][key] = rounded(one[key]);
    }
  }
  return found;
}

}  // namespace

std::vector<Difference> differences(const LedgerResult& a, const LedgerResult& b) {
  std::vector<Difference> found;
  compare("plan", part(a.plan, "experiment"), part(b.plan, "experiment"), found);
  const auto [binary_a, machine_a] = split(part(a.plan, "provenance"));
  const auto [binary_b, machine_b] = split(part(b.plan, "provenance"));
  compare("binary", binary_a, binary_b, found);
  compare("settings", a.arms, b.arms, found);
  compare("environment", machine_a, machine_b, found);
  compare("verdict", figures(a.verdict), figures(b.verdict), found);
  return found;
}

}  // namespace assay
