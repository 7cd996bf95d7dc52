// A store whose every session call takes longer by a fixed time: the difference that a positive
// control injects, and that a sound experiment must see.
//
// The wait is busy, so that it is as long as asked whatever the scheduler's timer does. All else is
// the inner store's. Threads: as the inner store's.
#pragma once

#include <cstdint>
#include <memory>

#include "adapters/store.h"

namespace assay {

/// `inner`, which lives in `directory`, with `delay_ns` before the return of each session call.
[[nodiscard]] std::unique_ptr<Store> delayed_store(std::unique_ptr<Store> inner,
                                                   const std::string& directory,
                                                   std::uint64_t delay_ns);

}  // namespace assay
