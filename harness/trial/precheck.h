// What can be refused before anything is measured: settings, capabilities, sizes, CPUs, space.
#pragma once

#include <cstdint>
#include <string>

#include "adapters/store.h"
#include "workloads/workload.h"

namespace assay {

/// Bytes of keys and values after the load and every insert that can be foreseen.
[[nodiscard]] std::uint64_t expected_data_bytes(const Workload& workload);

/// The first reason for which `workload` cannot be run on the store below `directory`.
[[nodiscard]] Status check_before_trial(const Driver& driver, DurabilityClass durability,
                                        const Settings& settings, const Workload& workload,
                                        const std::string& directory);

}  // namespace assay
