// A control: a map in memory that is written to one file as a whole, as simple programs keep their
// state. The setting `flush` says when: at each commit (with or without a sync), or only when it
// is closed, synced or checkpointed. So its bytes are quadratic in the number of commits, or a kill
// takes everything; both are there to be seen by the harness (results/reference/cubelog.json).
#pragma once

#include "adapters/store.h"

namespace assay {

[[nodiscard]] const Driver& rewrite_driver();

}  // namespace assay
