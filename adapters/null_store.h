// The reference arm `null`: accepts everything, keeps nothing, returns at once.
//
// What a run over it costs is the harness's own cost. Stateless, so any number of threads.
#pragma once

#include "adapters/store.h"

namespace assay {

[[nodiscard]] const Driver& null_driver();

}  // namespace assay
