// The stream of a thread of a trace phase.
#pragma once

#include <memory>

#include "workloads/stream.h"

namespace assay {

[[nodiscard]] std::unique_ptr<Stream> make_trace_stream(const Workload& workload,
                                                        std::uint64_t seed, std::size_t phase,
                                                        std::uint32_t thread);

}  // namespace assay
