// What a store must contain after a trial: the streams replayed for as many operations as each
// thread had acknowledged. Used by the validating process, which is not the measured one.
//
// The key space is gone through range by range, in key order, with so many keys a range as fit into
// a table of fixed size: for each range the streams are replayed, keeping only what belongs to it,
// and the store is read. So memory is bounded whatever the number of keys, the store is read once,
// and the streams are made as often as there are ranges (a complete load is not replayed: every
// loaded key has the same version). Keys that only a trace names are kept whole, but of one range.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "adapters/store.h"
#include "workloads/stream.h"
#include "workloads/version_table.h"
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
  static constexpr std::size_t kTableBytes = std::size_t{14} << 20;

  /// `table_bytes`: memory for the keys of a range.
  Model(const Workload& workload, std::uint64_t seed, std::size_t table_bytes = kTableBytes);
  /// Adds one phase; phases in the order in which they ran.
  void apply(const Executed& executed);
  /// Entries that the store must have. Replays everything.
  [[nodiscard]] std::uint64_t entries() const;
  /// Reads the whole store: by scans where the store is ordered (order, ghosts and every value are
  /// checked), else by a get of every key that there could be.
  [[nodiscard]] Result<ModelCheck> check(Session& session, bool ordered) const;

 private:
  class Checker;

  /// A key that a trace wrote last. A key is here or in the table, never in both.
  struct Foreign {
    std::uint64_t index = 0;
    std::uint32_t version = 0;
    std::uint32_t bytes = 0;  ///< of the value, as the trace says
  };

  /// Key numbers [first, last] and what the model has of them. The first range begins with the
  /// lowest key there is, the last one ends with the highest, whatever their bytes.
  struct Range {
    explicit Range(VersionTable made) : table(std::move(made)) {}
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::string lower;  ///< keys below it belong to the range before; empty = no bound
    std::string upper;  ///< it and keys above it belong to the next range; empty = no bound
    VersionTable table;
    std::map<std::string, Foreign, std::less<>> foreign;  ///< by key
    [[nodiscard]] bool holds(std::string_view key) const {
      return key >= lower && (upper.empty() || key < upper);
    }
    [[nodiscard]] std::uint64_t entries() const;
  };
  class Replay;

  /// Calls visit(range) for each range in key order; an error ends it.
  [[nodiscard]] Status for_each_range(const std::function<Status(Range&)>& visit) const;
  /// Sets the range's bounds and replays into it. False when it has more keys than fit.
  [[nodiscard]] bool fill(Range& range, std::uint64_t first, std::uint64_t last) const;
  /// Bytes that every key with a number of at least `number` is not below, and every other is.
  [[nodiscard]] std::string bound_of(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t highest_number() const;
  /// Neighbouring indices, [first, end).
  struct Indices {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
  };
  /// Where every index that was ever written lies, ascending.
  [[nodiscard]] std::vector<Indices> written() const;

  Workload workload_;
  std::uint64_t seed_;
  std::size_t table_bytes_;
  KeyCodec keys_;
  std::vector<Executed> executed_;
};

}  // namespace assay
