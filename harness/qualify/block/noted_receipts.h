// Receipts that also note how far the disk's log was when each was written.
//
// A transaction's beginning is sampled before the store hears of it, an acknowledgement after the
// store has returned. So an acknowledgement noted at length n surely came before entry n was
// answered, and nothing of a transaction that began at length n can be in an entry below n.
// Threads: as SharedReceipts. The notes are in shared memory: a fork writes them, the process that
// made the object reads them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/qualify/receipts.h"

namespace assay::qualify::block {

/// All of a life's acknowledgements, and when they came.
struct TimedAcknowledgements {
  struct At {
    std::uint32_t begun = 0;  ///< length of the log
    std::uint32_t acknowledged = 0;
  };
  Acknowledgements all;
  std::vector<std::vector<At>> at;  ///< a writer each, as `all`'s receipts
  /// Store::sync() returned: the place up to which it covers, and when.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> syncs;

  /// What was known when the disk was about to answer entry `cut`.
  [[nodiscard]] Acknowledgements before(std::uint32_t cut) const;
};
[[nodiscard]] nlohmann::json to_json(const TimedAcknowledgements& timed);
[[nodiscard]] Result<TimedAcknowledgements> timed_acknowledgements_from_json(
    const nlohmann::json& json);

class NotedReceipts final : public ReceiptSink {
 public:
  /// For transactions `first` and on, up to `capacity` a writer. `receipts` and `length` must
  /// outlive it.
  [[nodiscard]] static Result<NotedReceipts> make(SharedReceipts& receipts,
                                                  const std::atomic<std::uint32_t>& length,
                                                  std::uint32_t writers, std::uint64_t first,
                                                  std::uint64_t capacity);
  NotedReceipts(NotedReceipts&& other) noexcept;
  NotedReceipts& operator=(NotedReceipts&&) = delete;
  NotedReceipts(const NotedReceipts&) = delete;
  NotedReceipts& operator=(const NotedReceipts&) = delete;
  ~NotedReceipts() override;

  /// Called after each acknowledgement of writer 0 has been noted.
  void then(std::function<void(std::uint64_t number)> after) { after_ = std::move(after); }

  void begun(std::uint32_t writer, std::uint64_t number) override;
  void acknowledged(std::uint32_t writer, std::uint64_t number) override;
  std::uint64_t sync_begins() override { return receipts_->sync_begins(); }
  void synced(std::uint64_t begun_at) override;
  void stage(Stage now) override { receipts_->stage(now); }

  [[nodiscard]] TimedAcknowledgements read() const;

 private:
  struct Shared;
  NotedReceipts(SharedReceipts& receipts, const std::atomic<std::uint32_t>& length, Shared* shared,
                std::uint32_t writers, std::uint64_t first, std::uint64_t capacity);
  struct Sample;
  [[nodiscard]] Sample& sample(std::uint32_t writer, std::uint64_t number) const;

  SharedReceipts* receipts_;
  const std::atomic<std::uint32_t>* length_;
  Shared* shared_;
  std::uint64_t bytes_;
  std::uint32_t writers_;
  std::uint64_t first_;
  std::uint64_t capacity_;
  std::function<void(std::uint64_t)> after_;
};

}  // namespace assay::qualify::block
