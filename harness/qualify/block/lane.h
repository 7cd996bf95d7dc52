// One lane of a campaign: a disk of its own, a mount namespace of its own, and a process that does
// what the campaign asks for on it. What has been recorded by one lane is seen by all, for the base
// and the log are shared memory.
//
// A lane is two processes: the one that serves the disk, and its child, which has the loop device
// and the mount and forks those that open the store. When the campaign's process dies, all of them
// die with it, and mounts and loop devices go with them.
// Threads: the caller must not have started any; one thread uses an object.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "adapters/store.h"
#include "harness/qualify/block/disk_server.h"
#include "harness/qualify/block/file_system.h"
#include "harness/qualify/block/noted_receipts.h"
#include "harness/qualify/history.h"
#include "harness/qualify/oracle.h"

namespace assay::qualify::block {

/// What all lanes of a campaign have in common.
struct LanePlan {
  const Driver* driver = nullptr;
  DurabilityClass durability = DurabilityClass::power;
  Settings settings;
  HistoryShape shape;
  FileSystem system;
  DiskFault fault;
  std::uint64_t transactions = 16;  ///< of each writer
  std::uint32_t checkpoint_every = 16;
  std::uint32_t transactions_after = 1;
  std::chrono::milliseconds patience{30'000};
};

/// A history that was performed on the disk; the disk's writes are in the log.
struct Recorded {
  TimedAcknowledgements timed;
  /// Lengths of the log after which a first and a second flushed file of the harness must be there.
  std::vector<std::uint32_t> canaries;
  nlohmann::json file_system;
  Settings settings_in_force;
  std::vector<Extent> extents;
  double seconds = 0.0;
};
[[nodiscard]] Result<Recorded> recorded_from_json(const nlohmann::json& json);

/// What a crash state turned out to be.
struct Checked {
  std::string not_mounted;  ///< why; empty: it was
  std::uint32_t canaries = 0;
  Judgement judgement;
};
[[nodiscard]] Result<Checked> checked_from_json(const nlohmann::json& json);

class Lane {
 public:
  /// `directory`: of its own, for mount points.
  [[nodiscard]] static Result<Lane> start(const LanePlan& plan, SharedDisk& disk,
                                          const std::string& directory);
  Lane(Lane&& other) noexcept;
  Lane& operator=(Lane&&) = delete;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane();

  /// Makes a file system and a store, and performs the history of `seed`. Answered by a Recorded.
  [[nodiscard]] Status ask_to_record(std::uint64_t seed);
  /// Cuts: `state`, judged by `known`. `image`: where the store's directory is kept as the file
  /// system gave it back; empty = nowhere. Answered by a Checked.
  [[nodiscard]] Status ask_to_check(std::uint64_t seed, const DiskState& state,
                                    const Acknowledgements& known, const std::string& image);
  /// The answer if it is there within `timeout`; null when it is not.
  [[nodiscard]] Result<nlohmann::json> answer(std::chrono::milliseconds timeout);
  /// Waits until one of `lanes` has something to say, or `timeout`.
  static void wait_for_any(const std::vector<Lane>& lanes, std::chrono::milliseconds timeout);

  [[nodiscard]] bool busy() const { return busy_; }

 private:
  Lane(pid_t pid, int fd) : pid_(pid), fd_(fd) {}
  [[nodiscard]] Status send(const nlohmann::json& message);
  pid_t pid_;  ///< of the server, which leads the lane's group
  int fd_;
  bool busy_ = false;
  std::string unread_;
};

}  // namespace assay::qualify::block
