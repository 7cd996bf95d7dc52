// The process that damages closed stores, one place a case, and has each read in a fresh fork.
//
// It is the server of kill_request.h with other cases. Case N follows from the campaign's seed and
// N alone: the kinds of damage take turns, a history serves 64 cases, then comes the next.
// The process has one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "adapters/store.h"
#include "harness/qualify/kill/forked.h"
#include "harness/qualify/kill/kill_request.h"
#include "harness/qualify/receipts.h"

namespace assay::qualify::rot {

/// What came of a damage.
enum class Effect : std::uint8_t {
  harmless,     ///< everything is there
  repaired,     ///< ... and the file is as it was before the damage
  detected,     ///< the store said so: it did not open, or a read or its close failed
  lost_an_end,  ///< it opened and said nothing, but the last commits are gone
  wrong_data,   ///< it said nothing, and what it gave back is in part or by nobody
  crashed,
  hung,
};
[[nodiscard]] std::string_view to_string(Effect effect);

/// `request` as level K has it; `allowed` is what may be lost without an error.
[[nodiscard]] nlohmann::json rot_request_json(const KillRequest& request);
[[nodiscard]] bool is_rot_request(const nlohmann::json& json);

class RotServer {
 public:
  [[nodiscard]] static Result<RotServer> make(KillRequest request, const Driver& driver);

  /// {"store", "version", "settings"}.
  [[nodiscard]] Result<nlohmann::json> describe();
  /// Runs one case and tells its round, or nothing when this kind of damage found no place.
  [[nodiscard]] Status run_case(std::uint64_t number, const std::string& bundle,
                                const std::function<void(const nlohmann::json&)>& say);

 private:
  RotServer(KillRequest request, const Driver& driver, SharedReceipts receipts, SharedText text)
      : request_(std::move(request)),
        driver_(driver),
        receipts_(std::move(receipts)),
        text_(std::move(text)) {}

  [[nodiscard]] std::string base() const { return request_.directory + "/base"; }
  [[nodiscard]] std::string data() const { return request_.directory + "/data"; }
  [[nodiscard]] History history_of(std::uint64_t index) const;
  /// A store of this history that was closed in order, at base().
  Status make_base(std::uint64_t index);

  KillRequest request_;
  const Driver& driver_;
  SharedReceipts receipts_;
  SharedText text_;
  std::uint64_t base_is_ = 0;  ///< history + 1 whose store is at base()
  Acknowledgements known_;     ///< of it
};

}  // namespace assay::qualify::rot
