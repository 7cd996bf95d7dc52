// lode: the engine of this tree, through its public interface.
//
// Sessions may be used at the same time; lode groups the commits of concurrent writers.
#pragma once

#include "adapters/store.h"

namespace assay {

[[nodiscard]] const Driver& lode_driver();

}  // namespace assay
