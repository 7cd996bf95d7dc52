// What a store must contain after a trial: the streams replayed for as many operations as each
// thread had acknowledged. Used by the validating process, which is not the measured one; it
// keeps 4 bytes a key (the version), never the data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "adapters/store.h"
#include "workloads/stream.h"
#include "workloads/workload.h"

namespace assay {

/// How far each thread of a phase got: operations acknowledged, warm-up included.
struct Executed {
  std::size_t phase = 0;
  std::vector<std::uint64_t> operations;  ///< by thread
};

struct ModelCheck {
  bool ok = false;
  std::uint64_t entries = 0;  ///< entries found
  std::uint64_t expected_entries = 0;
  std::string digest;  ///< order-independent digest of what was found
  std::string expected_digest;
  std::string first_difference;  ///< a sentence, empty when ok
};

class Model {
 public:
  Model(const Workload& workload, std::uint64_t seed);
  /// Applies one phase; phases in the order in which they ran.
  void apply(const Executed& executed);
  [[nodiscard]] std::uint64_t entries() const;
  /// Reads the whole store: by a scan where the store is ordered (order, ghosts and every value
  /// are checked), else by a get of every key.
  [[nodiscard]] Result<ModelCheck> check(Session& session, bool ordered) const;

 private:
  /// Versions of a run of neighbouring key indices; 0 = absent.
  class Checker;
  struct Region {
    std::uint64_t first = 0;
    std::uint64_t span = 0;  ///< indices that belong here; `versions` grows up to it
    std::vector<std::uint32_t> versions;
  };

  /// A key that a trace wrote last. A key is here or in a region, never in both.
  struct Foreign {
    std::uint64_t index = 0;
    std::uint32_t version = 0;
    std::uint32_t bytes = 0;  ///< of the value, as the trace says
  };

  void put(std::uint64_t index, std::uint32_t version);
  void set_region(std::uint64_t index, std::uint32_t version);
  void apply_trace(const Executed& executed, std::uint32_t thread);
  /// Where `index` belongs, or null when no phase so far puts it there.
  [[nodiscard]] const Region* region_of(std::uint64_t index) const;
  [[nodiscard]] std::uint32_t version_of(std::uint64_t index) const;

  Workload workload_;
  std::uint64_t seed_;
  KeyCodec keys_;
  std::map<std::string, Foreign, std::less<>> foreign_;  ///< by key
  std::vector<Region> regions_;  ///< the loaded keys, then the inserts of each phase; ascending
  std::uint64_t entries_ = 0;
};

}  // namespace assay
