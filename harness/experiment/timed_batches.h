// The decided timed batches of a run as they stand in its plan record, so that a run that goes on
// uses the ones it began with.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/trial/timed_batch.h"

namespace assay {

/// [{"phase", "operations", "null_ns": [[operations, ns], ...]}]
[[nodiscard]] nlohmann::json to_json(const std::vector<TimedBatchChoice>& choices);
/// Those of a plan record's body, of one cell where it is of a sweep ("cell" of each); none where
/// it has none.
[[nodiscard]] std::vector<TimedBatchChoice> timed_batches_from_json(const nlohmann::json& body,
                                                                    const std::string& cell = {});

}  // namespace assay
