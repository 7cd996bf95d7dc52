// What stores of the tree may lose with the power, by setting, as their own documentation has it.
// Stateless; any thread.
#pragma once

#include <optional>
#include <string>

#include "harness/qualify/controls.h"

namespace assay::qualify::power {

/// `settings` are those in force. Nothing where the documentation says nothing.
[[nodiscard]] std::optional<Control> power_control(const std::string& store,
                                                   const Settings& settings);

/// `given` with the sizes of a short history where nothing else was asked for: a store that
/// prepares megabytes of log at each opening does the same calls with kilobytes, and a state costs
/// a hundredth.
[[nodiscard]] Settings small_scale(const std::string& store, const Settings& given);

}  // namespace assay::qualify::power
