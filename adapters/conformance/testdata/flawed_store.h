// A store in memory that keeps every promise of adapters/store.h but one: its flaw. It shows that
// each check of the conformance suite can fail. For tests only.
//
// The contents live in the driver, by directory, so that a reopen finds them.
// Threads: as store.h says, by one mutex; the flaws of threads let go of it on purpose.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "adapters/store.h"

namespace assay::conformance {

enum class Flaw {
  none,
  no_version,
  no_reason,
  get_fails,
  nothing_read_back,
  any_setting,
  any_durability,
  erase_does_nothing,
  views_into_the_map,
  shorter_value_ignored,
  erase_of_absent_fails,
  empty_value_is_absent,
  empty_key_refused,
  long_key_accepted,
  value_cut,
  key_cut,
  key_ends_at_nul,
  shorter_keys_first,
  last_excluded,
  limit_off_by_one,
  sink_not_heard,
  live_scan,
  signed_order,
  batch_drops_last,
  batch_first_wins,
  batch_half_made,
  rollback_leaves_last,
  rollback_undeclared,
  reopen_loses_last_key,
  opens_nothing,
  checkpoint_loses,
  no_footprint,
  torn_batches,
  writers_lose,
  forgets_some,
};

class FlawedDriver final : public Driver {
 public:
  explicit FlawedDriver(Flaw flaw) : flaw_(flaw) {}
  std::string name() const override { return "flawed"; }
  std::string version() const override { return flaw_ == Flaw::no_version ? "" : "1"; }
  Capabilities capabilities() const override;
  std::vector<Setting> settings(DurabilityClass durability) const override;
  Result<std::unique_ptr<Store>> open(const OpenOptions& options) const override;

  /// What one directory holds.
  struct Contents {
    std::map<std::string, std::string> entries;
    std::mutex mutex;
    int writers = 0;           // inside put at this moment
    std::uint64_t writes = 0;  // so far
  };

 private:
  Flaw flaw_;
  mutable std::map<std::string, std::unique_ptr<Contents>> directories_;
};

}  // namespace assay::conformance
