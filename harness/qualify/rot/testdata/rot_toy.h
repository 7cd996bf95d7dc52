// The toy store with checksums over its files at rest, and ways to get them wrong, for the tests of
// level R.
//
// Closing writes the sum of every file to `sums`; opening compares and removes it. The setting
// `checksums` says what is claimed, `mistake` what is done where a sum differs: `none` refuses to
// open, `ignores` goes on, `crashes` and `hangs` do so.
#pragma once

#include "adapters/store.h"

namespace assay::qualify::rot {

[[nodiscard]] const Driver& rot_toy_driver();

}  // namespace assay::qualify::rot
