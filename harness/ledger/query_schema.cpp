#include "harness/ledger/query_schema.h"

namespace assay {
namespace {

/// What every table begins with: where the row comes from, and whose it is.
std::vector<ColumnSource> with_place(std::vector<ColumnSource> columns) {
  std::vector<ColumnSource> all = {{"ledger", "record:ledger"},
                                   {"line", "record:line"},
                                   {"result", "record:result"},
                                   {"machine", "record:machine"}};
  all.insert(all.end(), columns.begin(), columns.end());
  return all;
}

TableSource records() {
  return {"records",
          "every record, one a line of a ledger",
          "",
          "",
          "",
          with_place({{"seq", "record:seq"},
                      {"time", "record:time"},
                      {"kind", "record:kind"},
                      {"schema", "record:schema"},
                      {"hash", "record:hash"},
                      {"previous", "record:previous"},
                      {"origin", "record:origin"},
                      {"body", "record:body"}})};
}

TableSource plans() {
  return {"plans",
          "what was to be run, and on what",
          "plan",
          "",
          "",
          with_place({{"time", "record:time"},
                      {"hash", "record:hash"},
                      {"experiment", "/experiment/name"},
                      {"question", "/experiment/question"},
                      {"status", "/status"},
                      {"digest", "/digest"},
                      {"workload", "/experiment/workload/name"},
                      {"design", "/experiment/design"},
                      {"trials", "/experiment/trials"},
                      {"alpha", "/experiment/alpha"},
                      {"effect_percent", "/experiment/effect_percent"},
                      {"measured_phase", "/experiment/workload/measured_phase"},
                      {"directory", "/directory"},
                      {"commit_id", "/provenance/source/commit"},
                      {"dirty", "/provenance/source/dirty"},
                      {"binary_sha256", "/provenance/binary/sha256"},
                      {"compiler", "/provenance/build/compiler"},
                      {"cpu", "/provenance/cpu/model"},
                      {"cores", "/provenance/cpu/cores"},
                      {"memory_bytes", "/provenance/memory/total_bytes"},
                      {"os", "/provenance/os/name"},
                      {"kernel", "/provenance/os/kernel_release"},
                      {"file_system", "/provenance/storage/file_system/type"},
                      {"device", "/provenance/storage/device/name"}})};
}

TableSource trials() {
  return {"trials",
          "every trial process, void ones too",
          "trial",
          "",
          "",
          with_place({{"hash", "record:hash"},
                      {"experiment", "/experiment"},
                      {"arm", "/arm"},
                      {"number", "/index"},
                      {"round", "/round"},
                      {"attempt", "/attempt"},
                      {"block", "/block"},
                      {"seed", "/seed"},
                      {"status", "/status"},
                      {"reason", "/reason"},
                      {"started", "/started"},
                      {"store", "/store/name"},
                      {"version", "/store/version"},
                      {"durability", "/store/durability"},
                      {"wall_ns", "/wall_ns"},
                      {"fixed_cost_ns", "/fixed_cost_ns"},
                      {"open_ns", "/open_ns"},
                      {"close_ns", "/close_ns"},
                      {"drain_ns", "/drain_ns"},
                      {"files", "/space/files"},
                      {"apparent_bytes", "/space/apparent_bytes"},
                      {"allocated_bytes", "/space/allocated_bytes"},
                      {"entries", "/space/entries"},
                      {"memory_peak_bytes", "/memory/peak_bytes"},
                      {"validated", "/validation/ok"},
                      {"raw_path", "/raw/path"},
                      {"raw_sha256", "/raw/sha256"},
                      {"cell", "/cell"}})};
}

TableSource phases() {
  return {"phases",
          "every phase of every trial",
          "trial",
          "/phases",
          "",
          with_place({{"arm", "body:/arm"},
                      {"round", "body:/round"},
                      {"attempt", "body:/attempt"},
                      {"status", "body:/status"},
                      {"phase", "/name"},
                      {"kind", "/kind"},
                      {"timed", "/timed"},
                      {"wall_ns", "/wall_ns"},
                      {"operations", "/operations"},
                      {"mutations", "/mutations"},
                      {"failed", "/failed"},
                      {"throughput_per_s", "/throughput_per_s"},
                      {"store_ns", "/store_ns"},
                      {"operations_per_sample", "/operations_per_sample"},
                      {"logical_bytes_written", "/logical_bytes_written"},
                      {"logical_bytes_read", "/logical_bytes_read"},
                      {"requested_write_bytes", "/io/requested_write_bytes"},
                      {"device_write_bytes", "/io/device_write_bytes"},
                      {"device_read_bytes", "/io/device_read_bytes"},
                      {"device_flushes", "/io/device_flushes"},
                      {"fsync", "/barriers/fsync"},
                      {"fdatasync", "/barriers/fdatasync"},
                      {"msync", "/barriers/msync"},
                      {"dsync_writes", "/barriers/dsync_writes"},
                      {"cpu_user_ns", "/cpu/user_ns"},
                      {"cpu_system_ns", "/cpu/system_ns"},
                      {"foreign_ns", "/cpu/foreign_ns"},
                      {"faults_major", "/faults/major"},
                      {"rss_peak_bytes", "/rss/peak_bytes"}})};
}

TableSource latencies() {
  return {"latencies",
          "latencies of every class of operations of every phase",
          "trial",
          "/phases",
          "/classes",
          with_place({{"arm", "body:/arm"},
                      {"round", "body:/round"},
                      {"attempt", "body:/attempt"},
                      {"status", "body:/status"},
                      {"phase", "parent:/name"},
                      {"class", "key:"},
                      {"count", "/count"},
                      {"mean_ns", "/mean_ns"},
                      {"p50_ns", "/p50_ns"},
                      {"p90_ns", "/p90_ns"},
                      {"p99_ns", "/p99_ns"},
                      {"p999_ns", "/p999_ns"},
                      {"p9999_ns", "/p9999_ns"},
                      {"max_ns", "/max_ns"}})};
}

TableSource verdicts() {
  return {"verdicts",
          "what was found, one a result",
          "verdict",
          "",
          "",
          with_place({{"time", "record:time"},
                      {"hash", "record:hash"},
                      {"experiment", "/experiment"},
                      {"question", "/question"},
                      {"status", "/status"},
                      {"outcome", "/outcome"},
                      {"workload", "/workload"},
                      {"design", "/design"},
                      {"metric", "/metric"},
                      {"unit", "/unit"},
                      {"n", "/n"},
                      {"alpha", "/alpha"},
                      {"mixed_durability", "/mixed_durability"},
                      {"smallest_detectable_ratio", "/smallest_detectable_ratio"},
                      {"a_a_ok", "/a_a/ok"},
                      {"a_a_ratio", "/a_a/ratio"}})};
}

TableSource rows() {
  return {"rows",
          "the arms of every verdict",
          "verdict",
          "/rows",
          "",
          with_place({{"experiment", "body:/experiment"},
                      {"status", "body:/status"},
                      {"unit", "body:/unit"},
                      {"arm", "/arm"},
                      {"store", "/store"},
                      {"version", "/version"},
                      {"durability", "/durability"},
                      {"proof", "/proof"},
                      {"reference", "/reference"},
                      {"a_a", "/a_a"},
                      {"n", "/n"},
                      {"void", "/void"},
                      {"disqualified", "/disqualified"},
                      {"reason", "/reason"},
                      {"geometric_mean", "/geometric_mean"},
                      {"low", "/interval/0"},
                      {"high", "/interval/1"},
                      {"median", "/median"},
                      {"cv", "/cv"},
                      {"share_of_raw", "/share_of_raw"},
                      {"p50_ns", "/p50_ns"},
                      {"p90_ns", "/p90_ns"},
                      {"p99_ns", "/p99_ns"},
                      {"p999_ns", "/p999_ns"},
                      {"max_ns", "/max_ns"},
                      {"barriers_per_operation", "/barriers_per_operation"},
                      {"device_bytes_per_operation", "/device_bytes_per_operation"},
                      {"write_amplification", "/write_amplification"},
                      {"read_amplification", "/read_amplification"},
                      {"disk_bytes_per_entry", "/disk_bytes_per_entry"},
                      {"rss_peak_bytes", "/rss_peak_bytes"},
                      {"cpu_ns_per_operation", "/cpu_ns_per_operation"},
                      {"store_ns_per_operation", "/store_ns_per_operation"},
                      {"store_ns_above_null", "/store_ns_above_null"},
                      {"drain_ns", "/drain_ns"},
                      {"recovery_ns", "/recovery_ns"},
                      {"cell", "/cell"}})};
}

TableSource row_values() {
  return {"row_values",
          "the value of every trial that a verdict counts",
          "verdict",
          "/rows",
          "/values",
          with_place({{"experiment", "body:/experiment"},
                      {"unit", "body:/unit"},
                      {"arm", "parent:/arm"},
                      {"position", "key:"},
                      {"value", ""}})};
}

TableSource comparisons() {
  return {"comparisons",
          "the comparisons of every verdict",
          "verdict",
          "/comparisons",
          "",
          with_place({{"experiment", "body:/experiment"},
                      {"status", "body:/status"},
                      {"unit", "body:/unit"},
                      {"a", "/a"},
                      {"b", "/b"},
                      {"kind", "/kind"},
                      {"declared", "/declared"},
                      {"n", "/n"},
                      {"ratio", "/ratio"},
                      {"low", "/interval/0"},
                      {"high", "/interval/1"},
                      {"p", "/p"},
                      {"p_adjusted", "/p_adjusted"},
                      {"test", "/test"},
                      {"rank_test", "/rank_test"},
                      {"rank_p", "/mann_whitney_p"},
                      {"disagreement", "/disagreement"},
                      {"verdict", "/verdict"},
                      {"sentence", "/sentence"},
                      {"cell", "/cell"}})};
}

TableSource flattened(std::string_view name, std::string_view what, std::string_view place) {
  return {name, what, "plan", place, "flatten", with_place({{"path", "key:"}, {"value", ""}})};
}

}  // namespace

const std::vector<TableSource>& table_sources() {
  static const std::vector<TableSource> kAll = {
      records(),
      plans(),
      trials(),
      phases(),
      latencies(),
      verdicts(),
      rows(),
      row_values(),
      comparisons(),
      flattened("plan_values", "every value of the canonical plan: path such as keys.count",
                "/experiment"),
      flattened("provenance", "every value of the provenance: path such as cpu.model",
                "/provenance")};
  return kAll;
}

}  // namespace assay
