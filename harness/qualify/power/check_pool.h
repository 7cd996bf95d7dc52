// Puts crash states on the disk and has each looked at by a forked child, several at a time.
//
// The parent has the store's library loaded; a child starts with it and opens the state's directory
// at once. What a child does to its directory is thrown away with it.
// Invariants: a child that crashes or hangs costs its own state only; all children are gone when
// the pool is destroyed. Threads: the caller must not have started any; one pool at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/qualify/oracle.h"
#include "harness/qualify/power/tree.h"

namespace assay::qualify::power {

/// Looks at a directory; runs in the child.
using Check = std::function<Judgement(const std::string& directory, const Acknowledgements&)>;

class CheckPool {
 public:
  struct Plan {
    std::string directory;  ///< ours; on a file system in memory where there is one
    std::uint32_t jobs = 2;
    std::chrono::milliseconds timeout{30'000};
    Check check;
  };
  /// Told of each verdict, in the parent, in the order in which children end.
  using Done = std::function<void(std::uint64_t token, Judgement judgement)>;

  CheckPool(Plan plan, Done done);
  ~CheckPool();
  CheckPool(const CheckPool&) = delete;
  CheckPool& operator=(const CheckPool&) = delete;

  /// Starts a child on `tree`; waits for a free place first.
  Status submit(const Tree& tree, const Acknowledgements& known, std::uint64_t token);
  /// Waits for all that were submitted.
  void drain();

 private:
  struct Place {
    std::string directory;
    int child = 0;  ///< 0 = free
    int pipe = -1;
    std::uint64_t token = 0;
    std::string answer;
    bool created = false;
    std::chrono::steady_clock::time_point deadline;
  };

  void wait_for_one();
  void read_from(Place& place);
  void finish(Place& place, bool hung);
  [[nodiscard]] Judgement verdict(const Place& place, int status, bool hung) const;

  Plan plan_;
  Done done_;
  std::vector<Place> places_;
};

/// A directory for crash states: below /dev/shm where there is room, else below `otherwise`.
[[nodiscard]] Result<std::string> make_state_directory(const std::string& otherwise);

}  // namespace assay::qualify::power
