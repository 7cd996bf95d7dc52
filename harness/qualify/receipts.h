// What a worker has begun and what its store has acknowledged, kept where no kill can lose it.
//
// The receipts lie in shared memory outside of the store's directory: the worker's process may be
// killed at any instruction, what it has noted stays. All notes take their place in one order over
// all writers, so that "acknowledged before the other began" can be told afterwards.
// Invariants: a transaction is noted as begun before the store hears of it, and as acknowledged
// only after the store has returned; places are unique and grow with time.
// Threads: each writer notes its own transactions; reading while writers run gives a state that
// was true in between.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "adapters/result.h"
#include "harness/qualify/history.h"

namespace assay::qualify {

/// What the worker is doing, as far as one word can tell.
enum class Stage : std::uint32_t { starting, opening, open, checkpoint, closing, closed };
[[nodiscard]] std::string_view to_string(Stage stage);

/// Where a worker notes what it does. A recorder puts the notes into its own order of events.
class ReceiptSink {
 public:
  virtual ~ReceiptSink() = default;
  virtual void begun(std::uint32_t writer, std::uint64_t number) = 0;
  virtual void acknowledged(std::uint32_t writer, std::uint64_t number) = 0;
  /// Store::sync() is about to be called; returns what synced() takes when it has returned.
  virtual std::uint64_t sync_begins() = 0;
  virtual void synced(std::uint64_t begun_at) = 0;
  virtual void stage(Stage now) = 0;
};

/// Receipts that nobody asks for.
class SilentReceipts final : public ReceiptSink {
 public:
  void begun(std::uint32_t /*writer*/, std::uint64_t /*number*/) override {}
  void acknowledged(std::uint32_t /*writer*/, std::uint64_t /*number*/) override {}
  std::uint64_t sync_begins() override { return 0; }
  void synced(std::uint64_t /*begun_at*/) override {}
  void stage(Stage /*now*/) override {}
};

/// One transaction: its places in the order; 0 = not.
struct Receipt {
  std::uint64_t begun = 0;
  std::uint64_t acknowledged = 0;
};

/// The settled state of one writer's keys: which transactions are in it need not be known any more.
struct Baseline {
  std::uint64_t number = 0;    ///< transactions up to this one are settled
  std::vector<Version> state;  ///< by key index; number 0 = the key is not there
  bool operator==(const Baseline&) const = default;
};

/// Everything that a verdict about a reopened store may rest on.
struct Acknowledgements {
  struct Writer {
    Baseline base;
    std::vector<Receipt> since;  ///< of transactions base.number + 1 and on
  };
  std::vector<Writer> writers;
  /// What was acknowledged at or before this place was put beyond power loss by Store::sync().
  std::uint64_t synced = 0;
  /// Places after which the worker was killed and another one went on without a check in between:
  /// each crash may lose what its contract allows, so a hole is one within a life.
  std::vector<std::uint64_t> crashes;
  /// What `synced` was at each of `crashes`: a sync covers what its own life acknowledged. What a
  /// crash before it took was gone by then.
  std::vector<std::uint64_t> synced_at_crashes;
  /// A store was once open: from then on it must be there. Until then only its creation can fail.
  bool created = false;

  /// Nothing begun yet.
  [[nodiscard]] static Acknowledgements none(const History& history);
  /// What was known at `place`: later beginnings and acknowledgements have not happened.
  [[nodiscard]] Acknowledgements at(std::uint64_t place) const;
  [[nodiscard]] std::uint64_t acknowledged_commits() const;
  /// Which life a place belongs to, from 0.
  [[nodiscard]] std::size_t life_of(std::uint64_t place) const;
  /// What the life of `place` acknowledged at or before this place was synced by that life.
  [[nodiscard]] std::uint64_t synced_in_life_of(std::uint64_t place) const;
};
[[nodiscard]] nlohmann::json to_json(const Acknowledgements& acknowledgements);
[[nodiscard]] Result<Acknowledgements> acknowledgements_from_json(const nlohmann::json& json);
[[nodiscard]] nlohmann::json to_json(const Baseline& base);
[[nodiscard]] Baseline baseline_from_json(const nlohmann::json& json);  ///< throws what json throws

/// The receipts in memory that processes share: made before the fork, inherited by it.
class SharedReceipts final : public ReceiptSink {
 public:
  /// Room for `capacity` transactions a writer between two settle() calls.
  [[nodiscard]] static Result<SharedReceipts> make(const History& history, std::uint64_t capacity);
  SharedReceipts(SharedReceipts&& other) noexcept;
  SharedReceipts& operator=(SharedReceipts&&) = delete;
  SharedReceipts(const SharedReceipts&) = delete;
  SharedReceipts& operator=(const SharedReceipts&) = delete;
  ~SharedReceipts() override;

  void begun(std::uint32_t writer, std::uint64_t number) override;
  void acknowledged(std::uint32_t writer, std::uint64_t number) override;
  std::uint64_t sync_begins() override;
  void synced(std::uint64_t begun_at) override;
  void stage(Stage now) override;

  [[nodiscard]] Stage stage() const;
  /// When a stage was last entered, by the monotonic clock; 0 = never since the last settle().
  [[nodiscard]] std::uint64_t stage_began_ns(Stage stage) const;
  /// Notes of beginnings and acknowledgements so far: how far the worker is.
  [[nodiscard]] std::uint64_t notes() const;
  /// The last transaction of a writer that was begun.
  [[nodiscard]] std::uint64_t last_begun(std::uint32_t writer) const;
  /// Numbers of a writer that still have room.
  [[nodiscard]] std::uint64_t room(std::uint32_t writer) const;
  [[nodiscard]] Acknowledgements read() const;
  /// Starts anew from `bases`, one a writer: what was found there is what counts from now on.
  void settle(const std::vector<Baseline>& bases);
  /// Begins with another history of the same number of keys and not more writers, as if just made.
  void restart(const History& history);

 private:
  struct Header;
  struct Slot;
  SharedReceipts(void* memory, std::size_t bytes, const History& history, std::uint64_t capacity);
  [[nodiscard]] Header& header() const;
  [[nodiscard]] Slot& slot(std::uint32_t writer, std::uint64_t number) const;

  void* memory_;
  std::size_t bytes_;
  std::uint64_t capacity_;
  std::vector<Baseline> bases_;  ///< of this process; a fork has a copy
};

}  // namespace assay::qualify
