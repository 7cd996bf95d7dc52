// A store that is a program of somebody else's, driven over a pipe (README.md, "Any program").
//
// Its name is "exec:" and a command line for /bin/sh. The program is started when the store is
// opened and told to end when it is closed; it gets one command a line on its standard input and
// answers on its standard output. Keys and values travel in hexadecimal digits.
// Only what the protocol has is claimed: one writer at a time, batches, ordered scans of
// everything. Backward and partial scans are taken from a whole one, which the program must give in
// key order. Threads: sessions share the pipe; a batch goes through it undivided.
#pragma once

#include <string>
#include <string_view>

#include "adapters/store.h"

namespace assay::qualify::block {

inline constexpr std::string_view kExecPrefix = "exec:";

/// The driver of "exec:COMMAND", else of the registry. Lives as long as the process.
[[nodiscard]] Result<const Driver*> find_block_store(const std::string& name);

}  // namespace assay::qualify::block
