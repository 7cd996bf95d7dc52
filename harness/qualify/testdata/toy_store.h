// A small store with a switch for each mistake that a kill can show, for the tests of level K.
//
// It keeps a map in memory, a log of commits and, after a checkpoint, a snapshot. Without a mistake
// it is correct after SIGKILL (it never syncs, so it claims nothing after power loss). The setting
// `mistake` chooses one; toy_mistakes() lists them.
// Threads: sessions share one mutex.
#pragma once

#include <string>
#include <vector>

#include "adapters/store.h"

namespace assay::qualify {

[[nodiscard]] const Driver& toy_driver();

/// A mistake, and what the oracle is to call it: one of these kinds of finding.
struct ToyMistake {
  std::string name;
  std::vector<std::string> shows_as;
};
[[nodiscard]] const std::vector<ToyMistake>& toy_mistakes();

}  // namespace assay::qualify
