// Loads a store from a shared object that exports the C interface of adapters/plugin.h.
//
// Invariants: a plug-in is loaded once a process and stays loaded; the same file reached by two
// paths gives the same Driver. Loading runs code of the plug-in: a crash in it is noted on stderr
// (crash_note.h), whose signal handlers the first load installs.
// Threads: may be called from any thread.
#pragma once

#include <string>

#include "adapters/store.h"

namespace assay {

/// The driver of the plug-in at `path`; it lives as long as the process. An error is one line that
/// names the path and says what is wrong: no such file, not a shared object, no entry symbol,
/// another ABI version, a missing function, an unusable name.
[[nodiscard]] Result<const Driver*> load_plugin(const std::string& path);

}  // namespace assay
