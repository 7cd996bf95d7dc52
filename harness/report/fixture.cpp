#include "harness/report/fixture.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/provenance/sha256.h"

namespace assay::report::fixture {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Ledger {
 public:
  void add(const std::string& kind, json body) {
    const json record{{"body", std::move(body)}, {"kind", kind},
                      {"previous", previous_},   {"schema", 1},
                      {"seq", sequence_},        {"time", "2026-01-02T12:00:00Z"}};
    const std::string line = record.dump();
    text_ += line + "\n";
    previous_ = sha256_hex(line);
    ++sequence_;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::string previous_ = std::string(64, '0');
  int sequence_ = 0;
};

double normal(std::mt19937_64& random) {
  // Sum of twelve uniform numbers: near enough, and the same with every standard library.
  double sum = -6.0;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(random() >> 11) * 0x1p-53;
  return sum;
}

json histogram_of(double typical_ns, std::mt19937_64& random) {
  std::map<std::uint64_t, std::uint64_t> counts;
  for (int i = 0; i < 3000; ++i) {
    double latency = typical_ns * std::exp(0.2 * normal(random));
    if (i % 100 == 0) latency *= 3.0;
    if (i % 1000 == 0) latency *= 6.0;
    const double step = std::pow(10.0, std::floor(std::log10(latency)) - 2);
    ++counts[static_cast<std::uint64_t>(std::max(1.0, std::ceil(latency / step) * step))];
  }
  json buckets = json::array();
  for (const auto& [value, count] : counts) buckets.push_back({value, count});
  return buckets;
}

json phase_of(const Shape& shape, const ArmShape& arm, double rate, std::mt19937_64& random) {
  const auto operations = static_cast<std::uint64_t>(rate * static_cast<double>(shape.seconds));
  json series = json::array();
  for (std::uint64_t t = 1; t <= shape.seconds; ++t) {
    series.push_back(
        {{"t_ms", t * 1000},
         {"operations",
          static_cast<std::uint64_t>(std::max(0.0, rate * (1 + 0.06 * normal(random))))},
         {"p99_ns",
          static_cast<std::uint64_t>(2e9 / rate * (1 + 0.15 * std::fabs(normal(random))))}});
  }
  json classes = json::object();
  if (shape.histograms) classes["update"] = {{"histogram", histogram_of(1e9 / rate, random)}};
  return {{"name", "run"},
          {"kind", "run"},
          {"timed", true},
          {"wall_ns", shape.seconds * 1'000'000'000},
          {"operations", operations},
          {"throughput_per_s", rate},
          {"classes", classes},
          {"series", shape.seconds > 1 ? series : json::array()},
          {"cpu", {{"user_ns", 1000}, {"system_ns", 1000}, {"foreign_ns", 12'000'000}}},
          {"barriers", {{"fdatasync", arm.barriers}}}};
}

json row_of(const ArmShape& arm, const std::vector<double>& values) {
  double sum = 0.0;
  double squares = 0.0;
  for (const double value : values) sum += std::log(value);
  const double n = static_cast<double>(values.size());
  for (const double value : values) squares += std::pow(std::log(value) - sum / n, 2);
  const double half = 2.09 * std::sqrt(squares / (n - 1) / n);
  const double mean = std::exp(sum / n);
  json row{{"arm", arm.arm},
           {"store", arm.store},
           {"version", arm.version},
           {"durability", arm.store == "null" ? "volatile" : "power"},
           {"proof", "declared"},
           {"reference", arm.reference},
           {"n", values.size()},
           {"void", 0},
           {"disqualified", false},
           {"reason", ""},
           {"values", values},
           {"geometric_mean", mean},
           {"interval", {mean * std::exp(-half), mean * std::exp(half)}},
           {"median", mean},
           {"cv", arm.cv},
           {"share_of_raw", mean / 1790.0},
           {"p50_ns", 1e9 / mean},
           {"p90_ns", 1.4e9 / mean},
           {"p99_ns", 2e9 / mean},
           {"p999_ns", 9e9 / mean},
           {"max_ns", 2e10 / mean},
           {"barriers_per_operation", arm.barriers},
           {"device_bytes_per_operation", arm.barriers * 8400},
           {"write_amplification", arm.barriers * 8400 / 144},
           {"disk_bytes_per_entry", arm.bytes_per_entry},
           {"rss_peak_bytes", 48'000'000 + arm.bytes_per_entry * 1e5},
           {"cpu_ns_per_operation", 5e8 / mean / 10},
           {"drain_ns", 12'000'000},
           {"recovery_ns", {{"unknown", "no opening after the run was recorded"}}}};
  if (arm.store == "null") {
    row["write_amplification"] = {{"unknown", "nothing is written"}};
    row["disk_bytes_per_entry"] = {{"unknown", "nothing is kept"}};
  }
  return row;
}

json comparison_of(const json& a, const json& b, std::uint64_t n) {
  const double ratio = a["geometric_mean"].get<double>() / b["geometric_mean"].get<double>();
  const bool more = ratio > 1.0;
  return {{"a", a["arm"]},
          {"b", b["arm"]},
          {"kind", "superiority"},
          {"ratio", ratio},
          {"interval", {ratio * 0.96, ratio * 1.04}},
          {"p", 3.2e-8},
          {"p_adjusted", 9.6e-8},
          {"test", "welch"},
          {"degrees_of_freedom", 37.25},
          {"mann_whitney_p", 1.1e-7},
          {"disagreement", false},
          {"verdict", more ? "superior" : "inferior"},
          {"sentence", fmt::format("{} is {:.2f}x {} ({:.2f} to {:.2f}), p = 3e-8, n = {}",
                                   a["arm"].get<std::string>(), ratio, b["arm"].get<std::string>(),
                                   ratio * 0.96, ratio * 1.04, n)}};
}

json provenance(const Shape& shape) {
  json told = {{"source", {{"commit", "0123456789abcdef"}, {"dirty", false}}},
               {"cpu", {{"model", "Example CPU <fast & small>"}, {"cores", 2}}},
               {"kernel", "6.1.0"},
               {"storage",
                {{"file_system", "ext4"},
                 {"mount_options", "rw,relatime"},
                 {"write_cache", {{"unknown", "the device does not say"}}}}},
               {"process", {{"command_line", {"assay", "run", "ledgers/demo/my plan.toml"}}}}};
  if (!shape.machine.empty()) told["fingerprint"] = shape.machine;
  return told;
}

json verdict_of(const Shape& shape, const std::string& result, const json& rows) {
  json comparisons = json::array();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = i + 1; k < rows.size(); ++k) {
      if (rows[i]["reference"] == true || rows[k]["reference"] == true) continue;
      comparisons.push_back(comparison_of(rows[i], rows[k], shape.trials));
    }
  }
  return {{"result", result},
          {"experiment", shape.experiment},
          {"status", shape.status},
          {"design", "random"},
          {"alpha", 0.05},
          {"metric", "throughput"},
          {"unit", "operations/s"},
          {"n", shape.trials},
          {"workload", "durable-put"},
          {"mixed_durability", false},
          {"rows", rows},
          {"comparisons", comparisons},
          {"a_a",
           {{"a", rows[0]["arm"]},
            {"b", "again"},
            {"ratio", 1.003},
            {"interval", {0.98, 1.02}},
            {"p", 0.61},
            {"ok", true},
            {"sentence", rows[0]["arm"].get<std::string>() +
                             " is 1.00x itself (0.98 to 1.02), p = 0.61, n = 20"}}},
          {"smallest_detectable_ratio", 1.07},
          {"power", {{"source", "the A/A arm"}, {"effect_percent", 2}, {"trials_needed", 50}}},
          {"warnings", {"the device acknowledges a flush in 21 us: its cache may be volatile"}},
          {"stream_digest", "feedc0de"}};
}

void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

Shape five_rows() {
  Shape shape;
  shape.arms = {{"sqlite", "sqlite", "3.40.1", 1010, 0.06, 1.0, 140},
                {"rocksdb", "rocksdb", "7.8.3", 1240, 0.05, 1.0, 128},
                {"lmdb", "lmdb", "0.9.24", 720, 0.08, 2.0, 266},
                {"null", "null", "1", 22e6, 0.02, 0.0, 0, true},
                {"raw-file", "raw-file", "pwrite+fdatasync", 1790, 0.04, 1.0, 116, true}};
  return shape;
}

Made write(const Shape& shape, const std::string& directory) {
  Made made{directory + "/ledger.jsonl", "20260102T120000Z-1a2b3c4d", {}};
  fs::create_directories(fs::path(directory) / "trials");
  std::mt19937_64 random(shape.seed);
  Ledger ledger;
  ledger.add("plan", {{"result", made.result},
                      {"experiment", {{"name", shape.experiment}, {"trials", shape.trials}}},
                      {"digest", std::string(64, 'd')},
                      {"status", shape.status},
                      {"provenance", provenance(shape)},
                      {"stream_digest", "feedc0de"}});
  std::map<std::string, std::vector<double>> values;
  std::uint64_t index = 0;
  for (std::uint64_t trial = 0; trial < shape.trials; ++trial) {
    for (const ArmShape& arm : shape.arms) {
      const double rate = arm.rate * std::exp(arm.cv * normal(random));
      values[arm.arm].push_back(rate);
      json raw{{"schema", 1},
               {"result", made.result},
               {"experiment", shape.experiment},
               {"arm", arm.arm},
               {"index", index},
               {"seed", 1000 + trial},
               {"status", "ok"},
               {"reason", ""},
               {"started", "2026-01-02T11:00:00Z"},
               {"store", {{"settings_effective", {{"journal_mode", "wal"}}}}},
               {"phases", json::array({phase_of(shape, arm, rate, random)})}};
      const std::string name = fmt::format("trials/{:04}-{}.json", index, trial * 10 + index % 7);
      const std::string bytes = raw.dump();
      write_bytes(fs::path(directory) / name, bytes);
      made.raw_files.push_back(directory + "/" + name);
      json body = raw;
      for (json& phase : body["phases"]) {
        phase.erase("series");
        for (auto& figures : phase["classes"]) figures.erase("histogram");
      }
      body["raw"] = {{"path", name}, {"sha256", sha256_hex(bytes)}};
      ledger.add("trial", std::move(body));
      ++index;
    }
  }
  json rows = json::array();
  for (const ArmShape& arm : shape.arms) rows.push_back(row_of(arm, values[arm.arm]));
  ledger.add("verdict", verdict_of(shape, made.result, rows));
  write_bytes(made.ledger, ledger.text());
  return made;
}

}  // namespace assay::report::fixture
