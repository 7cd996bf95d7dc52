// Shards of one campaign put together again (`assay qualify merge`).
//
// A shard has the cases of its own, by their numbers, and leaves its outcome and identity in
// `out`/campaign.json. Put together they are recorded as the unsharded campaign would be: the same
// identity without a shard, sums of what they counted, and a verdict anew, for shards that each saw
// too little may have seen enough together.
// Threads: as run_campaign().
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/qualify/campaign.h"

namespace assay::qualify {

/// What a shard left at `place`.
struct ShardFound {
  std::string place;
  nlohmann::json identity;  ///< without the shard
  nlohmann::json budget;
  Shard shard;
  std::vector<LevelOutcome> levels;
};

/// Errors: bad_input where there is no campaign, or one that has not ended.
[[nodiscard]] Result<ShardFound> read_shard(const std::string& place);

/// All shards of one campaign, each once: the same identity and budget. Error: bad_input with what
/// is missing, doubled or different.
[[nodiscard]] Status check_shards(const std::vector<ShardFound>& shards);

/// The plan of the unsharded campaign, as far as an identity tells; without its places.
[[nodiscard]] Result<CampaignPlan> plan_of_identity(const nlohmann::json& identity,
                                                    const Driver& driver);

/// The outcome of every level and profile of checked shards.
[[nodiscard]] Result<std::vector<LevelOutcome>> merge_shards(const CampaignPlan& whole,
                                                             const std::vector<ShardFound>& shards);

/// Sums of counts, the worst of losses, all bundles; texts and what all shards have in common as
/// the first one has them. Of shards one of which was skipped: the skipped one's verdict. Else the
/// verdict is the level's to give.
[[nodiscard]] LevelOutcome add_up(const std::vector<LevelOutcome>& shards);

}  // namespace assay::qualify
