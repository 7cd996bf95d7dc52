// Where a result comes from: source, binary, libraries, machine, storage, process.
//
// Everything is read from files of the running system (/proc, /sys, /etc, dpkg's status), below
// `system_root`, so that tests can show it another machine. An item that cannot be had is
// {"unknown": "why"}, never left out. Nothing here needs root. Stateless; any thread.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace assay {

struct ProvenanceOptions {
  std::string benchmark_root;  ///< the directory whose file system and device are described
  std::vector<std::string> command_line;
  std::string system_root = "/";
  /// "major:minor" of the device under benchmark_root; empty = ask stat(2).
  std::string device_number;
};

/// Keys: source, build, binary, libraries, packages, os, cpu, memory, cgroup, virtualisation,
/// storage, clock, process, fingerprint, collected (UTC).
[[nodiscard]] nlohmann::json collect_provenance(const ProvenanceOptions& options);

/// Identity of hardware and operating system that outlives a boot: SHA-256 over CPU model and
/// count, kernel release, memory size (in steps of 64 MiB, since the kernel's own share of it
/// varies), file system and device model and size.
[[nodiscard]] std::string machine_fingerprint(const nlohmann::json& provenance);

}  // namespace assay
