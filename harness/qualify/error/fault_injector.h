// Lets chosen system calls of a fork fail, without the fork's doing.
//
// The fork installs a seccomp filter that hands the calls of fault.h to the server (user
// notification); the server counts those that concern the store's directory and lets them go on, or
// answers an error in the kernel's place: the call is not made. Of a short write the server makes
// the first half itself, through the fork's own file.
// The fork tells the server two things by syncs of no file: fdatasync(-1) ends a fault that stays
// (the disk works again), fsync(-1) asks for the directory as the disk has it now (disk_below.h).
// One thread, and the only one of the process, uses these.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "adapters/result.h"
#include "harness/qualify/error/disk_below.h"
#include "harness/qualify/error/fault.h"
#include "harness/qualify/kill/forked.h"
#include "harness/qualify/receipts.h"

namespace assay::qualify::error {

/// A fault of one life: at the `number`-th call of its sort.
struct Fault {
  FaultShape shape;
  std::uint64_t number = 0;  ///< from 1; 0 = never
};

/// What the server saw of a life.
struct InjectorSeen {
  std::array<std::uint64_t, kCallSorts> calls{};  ///< of each sort, that concern the directory
  std::uint64_t times = 0;                        ///< calls that failed by us
  std::string call;                               ///< the first of them: "fdatasync"
  std::string file;                               ///< its name below the directory
  std::string stage;                              ///< what the life was doing
  /// Place in the receipts of the first failed sync; 0 = none has failed.
  std::uint64_t sync_failed_at = 0;
  std::uint64_t notes_at_cut = 0;        ///< place in the receipts when the cut was taken
  std::optional<std::uint64_t> dropped;  ///< pages that the cut lacks; nothing: no cut
  bool unseen_calls = false;             ///< io_uring: nothing can be said about the disk
  bool timed_out = false;
  bool failed = false;  ///< the kernel refused the filter, or never handed it over
};

class FaultInjector {
 public:
  [[nodiscard]] static Result<FaultInjector> make();
  FaultInjector(FaultInjector&& other) noexcept;
  FaultInjector& operator=(FaultInjector&&) = delete;
  FaultInjector(const FaultInjector&) = delete;
  FaultInjector& operator=(const FaultInjector&) = delete;
  ~FaultInjector();

  /// In the fork, before the store is opened: from here on its calls are counted, all sorts of them
  /// where `fault` is none, else those that bear on it: each call that is seen costs a switch to
  /// the server and back.
  [[nodiscard]] Status install(const Fault& fault) const;
  /// In the fork: the disk works again.
  static void tell_repaired();
  /// In the fork: power is lost here, as far as the disk is concerned. The fork goes on.
  static void tell_cut();

  struct Watch {
    std::string directory;      ///< the store's
    std::string cut_directory;  ///< where the cut goes; empty = none is wanted
    Fault fault;
    std::chrono::milliseconds timeout{10'000};
  };
  /// In the server: serves the fork's calls until it ends or `timeout`, which kills it.
  [[nodiscard]] Result<InjectorSeen> serve(Forked& fork, const Watch& watch,
                                           const SharedReceipts& receipts);

 private:
  FaultInjector(int server, int fork) : server_(server), fork_(fork) {}
  int server_;
  int fork_;
};

}  // namespace assay::qualify::error
