// A Driver over the function table of a plug-in (adapters/plugin.h).
//
// Invariants: a call into the plug-in is always marked (crash_note.h), so that a crash names the
// call; an exception that the plug-in lets out becomes an Error; what the plug-in has not declared
// is refused here with ErrorKind::unsupported and never reaches it.
// Threads: as store.h says; the table is read only.
#pragma once

#include <memory>
#include <string>

#include "adapters/plugin.h"
#include "adapters/store.h"

namespace assay {

/// `table` is complete and checked (see check_table); its name and the plug-in it points into live
/// as long as the process. `path` is shown in messages.
[[nodiscard]] std::unique_ptr<const Driver> make_plugin_driver(const assay_plugin& table,
                                                               std::string path);

/// Copies the table that the plug-in at `path` returned, as far as it reaches, and refuses one that
/// speaks another version, has no valid name, or lacks a function that its capabilities demand.
[[nodiscard]] Result<assay_plugin> check_table(const assay_plugin& given, const std::string& path);

}  // namespace assay
