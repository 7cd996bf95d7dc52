// The process that forks lives of a store, lets one call of each fail, and has what is left checked
// in fresh forks.
//
// It is the server of kill_request.h with other cases. Case N follows from the campaign's seed and
// N alone as far as the store makes the same calls each time: the sorts of faults take turns, each
// is put at every call of its sort once (spread()), in a life that creates its store and in one
// that recovers it, then in the next history.
// The process has one thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "adapters/store.h"
#include "harness/qualify/error/error_life.h"
#include "harness/qualify/error/fault_injector.h"
#include "harness/qualify/kill/forked.h"
#include "harness/qualify/kill/kill_request.h"

namespace assay::qualify::error {

/// What the parent wants, as level K says it, and what a power loss may take.
struct ErrorRequest {
  KillRequest base;
  Loss allowed_after_power_loss = Loss::intact;
};
[[nodiscard]] nlohmann::json to_json(const ErrorRequest& request);
[[nodiscard]] Result<ErrorRequest> error_request_from_json(const nlohmann::json& json);
/// Whether a request is one of level E.
[[nodiscard]] bool is_error_request(const nlohmann::json& json);

class ErrorServer {
 public:
  [[nodiscard]] static Result<ErrorServer> make(ErrorRequest request, const Driver& driver);

  /// {"store", "version", "settings", "calls": whether calls can be made to fail here,
  /// "calls_of_a_life": by sort}.
  [[nodiscard]] Result<nlohmann::json> describe();
  /// Runs one case and tells its round, or nothing when the store makes no call of this sort. A
  /// failure is kept at `bundle` unless that is empty.
  [[nodiscard]] Status run_case(std::uint64_t number, const std::string& bundle,
                                const std::function<void(const nlohmann::json&)>& say);

 private:
  struct Case;
  using Counts = std::array<std::uint64_t, kCallSorts>;
  ErrorServer(ErrorRequest request, const Driver& driver, SharedReceipts receipts, SharedText text)
      : request_(std::move(request)),
        driver_(driver),
        receipts_(std::move(receipts)),
        text_(std::move(text)) {}

  [[nodiscard]] std::string data() const { return request_.base.directory + "/data"; }
  /// A copy of a directory as it was before it was looked at.
  [[nodiscard]] static std::string image_of(const std::string& directory) {
    return directory + "-image";
  }
  [[nodiscard]] std::string cut() const { return request_.base.directory + "/cut"; }
  [[nodiscard]] std::chrono::milliseconds patience() const;
  [[nodiscard]] bool has_writers(std::uint64_t index) const;
  [[nodiscard]] History history_of(std::uint64_t index) const;
  [[nodiscard]] Result<std::string> recovered_base(std::uint64_t index);
  [[nodiscard]] Result<Counts> count_calls(bool recovers);

  Status begin(Case& now);
  Status live(Case& now, bool wants_cut);
  void judge_life(Case& now);
  Status check(Case& now, const std::string& directory, Loss allowed, const std::string& kind);
  [[nodiscard]] nlohmann::json told(const Case& now, std::uint64_t number) const;
  [[nodiscard]] std::string again(std::uint64_t number) const;
  Status keep(const Case& now, std::uint64_t number, const std::string& bundle) const;

  ErrorRequest request_;
  const Driver& driver_;
  SharedReceipts receipts_;
  SharedText text_;
  std::array<Counts, 2> counts_{};        ///< of a life that creates, that recovers
  std::array<std::uint64_t, 8> bases_{};  ///< history + 1 whose image is in this place
};

}  // namespace assay::qualify::error
