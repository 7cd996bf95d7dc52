// Which levels there are.
#include "harness/qualify/block/block_level.h"
#include "harness/qualify/campaign.h"
#include "harness/qualify/error/error_level.h"
#include "harness/qualify/kill/kill_level.h"
#include "harness/qualify/power/power_level.h"
#include "harness/qualify/rot/rot_level.h"

namespace assay::qualify {

RunLevel find_level(Level level) {
  switch (level) {
    case Level::kill:
      return run_kill_level;
    case Level::power_files:
      return power::run_power_level;
    case Level::power_blocks:
      return block::run_block_level;
    case Level::errors:
      return error::run_error_level;
    case Level::rot:
      return rot::run_rot_level;
  }
  return nullptr;
}

MergeLevel find_merge(Level level) {
  switch (level) {
    case Level::kill:
      return merge_kill_level;
    case Level::power_files:
      return power::merge_power_level;
    case Level::power_blocks:
      return block::merge_block_level;
    case Level::errors:
      return error::merge_error_level;
    case Level::rot:
      return rot::merge_rot_level;
  }
  return nullptr;
}

}  // namespace assay::qualify
