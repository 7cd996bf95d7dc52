// What can be refused before anything is measured: settings, capabilities, sizes, CPUs, space.
#pragma once

#include <cstdint>
#include <string>

#include "adapters/store.h"
#include "workloads/workload.h"

namespace assay {

/// Bytes of keys and values after the load and every insert that can be foreseen.
[[nodiscard]] std::uint64_t expected_data_bytes(const Workload& workload);

/// Error of kind bad_input when the workload kills a process whose durability class promises
/// nothing after that: what is found then could not be judged.
[[nodiscard]] Status check_kills(const Workload& workload, DurabilityClass durability,
                                 const Capabilities& can);

/// What the workload asks for and the store declares it cannot do (operations, sizes, data beyond
/// memory): error of kind unsupported.
[[nodiscard]] Status check_capabilities(const Driver& driver, const Workload& workload);
/// Error of kind unsupported when the class is not among those the driver claims.
[[nodiscard]] Status check_class(const Driver& driver, DurabilityClass durability);

/// The first reason for which `workload` cannot be run on the store below `directory`.
[[nodiscard]] Status check_before_trial(const Driver& driver, DurabilityClass durability,
                                        const Settings& settings, const Workload& workload,
                                        const std::string& directory);

}  // namespace assay
