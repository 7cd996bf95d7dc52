#include "harness/provenance/provenance.h"

#include <array>
#include <ctime>

#include "harness/provenance/sha256.h"
#include "harness/provenance/system_files.h"

namespace assay {
namespace {

using nlohmann::json;

std::string utc_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

/// The item at a JSON pointer; null where it is missing or unknown, so that the fingerprint does
/// not depend on the wording of a reason.
json known(const json& provenance, const char* pointer) {
  const json::json_pointer at(pointer);
  if (!provenance.contains(at)) return nullptr;
  const json& item = provenance.at(at);
  return item.is_object() && item.contains("unknown") ? json() : item;
}

}  // namespace

json collect_provenance(const ProvenanceOptions& options) {
  using namespace provenance;
  const SystemFiles files(options.system_root);
  json all = {{"source", describe_source()},
              {"build", describe_build()},
              {"binary", describe_binary()},
              {"libraries", describe_libraries()},
              {"packages", describe_packages(files)},
              {"os", describe_os(files)},
              {"cpu", describe_cpu(files)},
              {"memory", describe_memory(files)},
              {"cgroup", describe_cgroup(files)},
              {"virtualisation", describe_virtualisation(files)},
              {"storage", describe_storage(files, options.benchmark_root, options.device_number)},
              {"clock", describe_clock(files)},
              {"process", describe_process(options.command_line)},
              {"collected", utc_time()}};
  all["fingerprint"] = machine_fingerprint(all);
  return all;
}

std::string machine_fingerprint(const json& provenance) {
  constexpr std::uint64_t kMemoryStep = std::uint64_t{64} << 20;
  json memory = known(provenance, "/memory/total_bytes");
  if (memory.is_number()) memory = memory.get<std::uint64_t>() / kMemoryStep;
  const json identity = {{"cpu", known(provenance, "/cpu/model")},
                         {"cpus", known(provenance, "/cpu/logical")},
                         {"kernel", known(provenance, "/os/kernel_release")},
                         {"memory", memory},
                         {"file_system", known(provenance, "/storage/file_system/type")},
                         {"device_model", known(provenance, "/storage/device/model")},
                         {"device_bytes", known(provenance, "/storage/device/size_bytes")}};
  return sha256_hex(identity.dump());
}

}  // namespace assay
