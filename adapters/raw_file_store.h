// The reference arm `raw-file`: a plain log that makes the same bytes durable as fast as a file
// can.
//
// It is the floor for what a durable write costs here, not a store to choose: reads go through an
// index in memory that is built at the first read, there is no order and no rollback. Sessions may
// be used at the same time; the writer that is first in the queue writes and syncs for those that
// wait behind it.
#pragma once

#include "adapters/store.h"

namespace assay {

[[nodiscard]] const Driver& raw_file_driver();

}  // namespace assay
