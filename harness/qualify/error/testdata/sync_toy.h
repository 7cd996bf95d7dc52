// A small log store that syncs every commit, with a switch for each classic way to mishandle an
// error of the system, for the tests of level E.
//
// An index in memory points into the log; values are read from the file. Without a mistake it takes
// an error for what it is: a commit that failed is cut off again, and after a failed sync nothing
// is taken before the store is opened anew. The setting `mistake` chooses one; sync_mistakes()
// lists them. `writes_again` is no mistake but the other right answer to a failed sync.
// Threads: sessions share one mutex.
#pragma once

#include <string>
#include <vector>

#include "adapters/store.h"

namespace assay::qualify::error {

[[nodiscard]] const Driver& sync_toy_driver();

/// A mistake, and what level E is to call it.
struct SyncMistake {
  std::string name;
  std::string shows_as;
};
[[nodiscard]] const std::vector<SyncMistake>& sync_mistakes();

}  // namespace assay::qualify::error
