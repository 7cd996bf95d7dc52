// Which stores there are. The only way for the harness to get at a Driver.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "adapters/store.h"

namespace assay {

/// Names of the stores compiled in, in the order in which they are shown.
[[nodiscard]] std::vector<std::string> store_names();

/// The driver of a compiled-in store, or of the plug-in at a path (anything with a '/' or ending
/// in ".so"). Plug-ins are loaded once and stay loaded. Unknown names get the nearest valid one.
/// "served-" before any of them: the same store through a daemon (served/served_store.h); "served"
/// alone is that of lode. They are ways to a store, not stores: store_names() has none.
[[nodiscard]] Result<const Driver*> find_driver(std::string_view name_or_path);

/// True for a store that works in a process of its own: what this one uses of CPU, memory and files
/// is not what the store uses.
[[nodiscard]] bool works_elsewhere(const Driver& driver);

/// Refuses what the store would refuse of `given` when it is opened for `durability` and used by
/// `sessions` threads at once (0: not known), without opening a directory: unknown names, values
/// outside of their choices or range, settings that exclude each other. The error names setting,
/// value and what is valid. What only a plug-in's own open() can know stays unknown here.
[[nodiscard]] Status validate_settings(std::string_view name_or_path, DurabilityClass durability,
                                       const Settings& given, std::uint32_t sessions);

}  // namespace assay
