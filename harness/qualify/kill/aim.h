// When a life of a store is killed.
//
// A life kills itself, so that the moment is exact: by SIGKILL at a chosen note of its receipts, or
// by a timer of the kernel whose signal is SIGKILL, set when the life begins or reaches a stage.
// A kill at a chosen system call is the server's (call_stop.h).
#pragma once

#include <csignal>
#include <ctime>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "harness/qualify/receipts.h"

namespace assay::qualify {

struct Aim {
  enum class Kind : std::uint8_t {
    time,        ///< `delay_us` after the life begins
    note,        ///< right after the `number`-th note (a transaction begun or acknowledged)
    recovery,    ///< `delay_us` after opening begins
    checkpoint,  ///< `delay_us` after the first checkpoint begins
    closing,     ///< `delay_us` after closing begins
    call,        ///< before the `number`-th call that changes files, counted within `stage`
    none,        ///< never: the life closes its store and ends
  };
  Kind kind = Kind::time;
  std::uint64_t number = 0;
  std::uint64_t delay_us = 0;
  Stage stage = Stage::starting;  ///< Kind::call: counted from this stage on; starting = all
  bool tear = false;              ///< Kind::call: part of a long write is done before the kill
  /// "3 ms after opening began".
  [[nodiscard]] std::string text() const;
};
[[nodiscard]] std::string_view to_string(Aim::Kind kind);

/// Receipts that kill the process when the aim is reached.
class AimedReceipts final : public ReceiptSink {
 public:
  /// Begins the life: a timer of Kind::time is set here.
  AimedReceipts(SharedReceipts& receipts, const Aim& aim);

  void begun(std::uint32_t writer, std::uint64_t number) override;
  void acknowledged(std::uint32_t writer, std::uint64_t number) override;
  std::uint64_t sync_begins() override { return receipts_.sync_begins(); }
  void synced(std::uint64_t begun_at) override { receipts_.synced(begun_at); }
  void stage(Stage now) override;

 private:
  void count_note();
  void kill_after(std::uint64_t delay_us);

  SharedReceipts& receipts_;
  Aim aim_;
  std::atomic<std::uint64_t> notes_{0};
  bool armed_ = false;
};

}  // namespace assay::qualify
