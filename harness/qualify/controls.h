// Settings whose legal loss is known from the stores' own documentation: the harness's own test.
//
// A control has a maximum (what it may lose) and something that a campaign of the standard budget
// has to reach. One that does not reach it means that the harness, not the store, has failed.
// Stateless; any thread.
#pragma once

#include <optional>
#include <string>

#include "adapters/store.h"
#include "harness/qualify/oracle.h"

namespace assay::qualify {

struct Control {
  Loss most = Loss::intact;
  std::optional<Loss> must_reach;  ///< nothing: a safe control, which must lose nothing
  std::string source;              ///< the store's own documentation that says so
};

/// The control that a store with these settings is after such a crash; nothing where none is known.
/// `settings` are those in force.
[[nodiscard]] std::optional<Control> find_control(const std::string& store,
                                                  const Settings& settings, Crash crash);

}  // namespace assay::qualify
