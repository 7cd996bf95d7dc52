// Settings whose legal loss is known from the stores' own documentation: the harness's own test.
//
// A control has a maximum (what it may lose) and something that a campaign of the standard budget
// has to reach. One that does not reach it means that the harness, not the store, has failed.
// One table serves every level and the matrix: its rows, in order, of which the first that fits the
// settings in force counts.
// Stateless; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

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

/// The worst that a campaign may reach: what is claimed allows, and no more than what the store's
/// own documentation says where that is known.
[[nodiscard]] Loss contract_of(const std::string& store, const Settings& settings_in_force,
                               DurabilityClass claimed, Crash crash);

/// How many acknowledged commits these settings (in force) may lose at once, where they bound it: a
/// window of so many operations, of which each commit has at least one.
[[nodiscard]] std::optional<std::uint64_t> bound_of_loss(const std::string& store,
                                                         const Settings& settings);

/// A row of `assay qualify matrix`: a store of the tree under one setting.
struct MatrixRow {
  std::string name;
  std::string store;
  Settings settings;  ///< given; opened for durability class power
};
[[nodiscard]] std::vector<MatrixRow> matrix_rows();

/// `given` with the sizes of a short history where nothing else was asked for: a store that
/// prepares megabytes of log at each opening does the same calls with kilobytes, and a crash costs
/// a hundredth. What is in force is in the record.
[[nodiscard]] Settings small_scale(const std::string& store, const Settings& given);

}  // namespace assay::qualify
