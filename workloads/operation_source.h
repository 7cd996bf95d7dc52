// Logical operations of one thread: kinds, key indices and versions, no bytes. The stream encodes
// them, the model replays them, the digest hashes them: one definition for all three.
//
// Invariants: a source is a pure function of (workload, seed, phase, thread). A writing thread
// touches only indices that are its number modulo the number of writing threads of the phase.
// A version is never 0, and two writes to one index in one phase never have the same version
// (2^32 operations a thread apart).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "workloads/distribution.h"
#include "workloads/random.h"
#include "workloads/workload.h"

namespace assay {

struct LogicalOperation {
  OpKind kind = OpKind::read;
  std::uint32_t entries = 1;  ///< as Operation::entries
  std::uint32_t version = 0;  ///< of what a write writes; 0 for reads and erases
  std::uint64_t index = 0;
  std::span<const std::uint64_t> batch;  ///< batch and rollback: indices; valid until next()
};

/// An operation on one key, or a scan: what is left of a LogicalOperation without batches.
struct Point {
  std::uint64_t index = 0;
  std::uint32_t entries = 1;
  std::uint32_t version = 0;
  OpKind kind = OpKind::read;
};

/// Fresh indices of a phase. A phase that inserts has [first, first + span) to itself: keys.count
/// for the first such phase, behind the phases before it for the next ones.
struct InsertRange {
  std::uint64_t first = 0;
  std::uint64_t span = 0;  ///< 0: the phase does not insert
};
/// The span of a phase whose number of inserts is not bounded by a count.
inline constexpr std::uint64_t kOpenInsertSpan = std::uint64_t{1} << 40;
[[nodiscard]] InsertRange insert_range(const Workload& workload, std::size_t phase);

inline constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();
/// Operations in the stream of a thread; kEndless when something else ends the phase (a duration,
/// a warm-up that is not a count of operations, or the end of the measured roles).
[[nodiscard]] std::uint64_t operation_limit(const Workload& workload, std::size_t phase,
                                            std::uint32_t thread);
/// Version of what operation number `ordinal` of a stream of phase number `phase` writes.
[[nodiscard]] std::uint32_t version_of_write(std::size_t phase, std::uint64_t ordinal);
/// True when the role can change the contents.
[[nodiscard]] bool writes(const Role& role);

class OperationSource {
 public:
  virtual ~OperationSource() = default;
  /// False at the end, `operation` is then unchanged.
  virtual bool next(LogicalOperation& operation) = 0;
};

/// Puts the keys [0, keys.count): an insert each, or batches of load_batch.
class LoadSource final : public OperationSource {
 public:
  LoadSource(const Workload& workload, std::uint64_t seed, std::size_t phase, std::uint32_t thread);
  bool next(LogicalOperation& operation) override;
  /// Version of everything that load phase number `phase` puts.
  [[nodiscard]] static std::uint32_t version_of(std::size_t phase);

 private:
  std::uint64_t position_;
  std::uint64_t end_;
  std::uint32_t batch_;
  std::uint32_t version_;
  bool random_order_;
  RangeBijection order_;
  std::vector<std::uint64_t> indices_;
};

class RunSource final : public OperationSource {
 public:
  RunSource(const Workload& workload, std::uint64_t seed, std::size_t phase, std::uint32_t thread);
  bool next(LogicalOperation& operation) override;
  /// True when the role has no batches and no rollbacks; then draw() may stand in for next().
  [[nodiscard]] bool points_only() const { return points_only_; }
  /// The next operations, as next() would give them, but many at once; fewer only at the end.
  [[nodiscard]] std::size_t draw(std::span<Point> points);

 private:
  [[nodiscard]] OpKind draw_kind(Random& random) const;
  [[nodiscard]] std::uint64_t draw_any(Random& random, std::uint64_t step);
  /// The index of this thread's own that stands for `index` when it writes.
  [[nodiscard]] std::uint64_t owned(std::uint64_t index) const;
  template <class Draw>
  void draw_point(Random& random, Point& point, OpKind kind, const Draw& draw);
  template <class Draw>
  void draw_all(std::span<Point> points, const Draw& draw);
  [[nodiscard]] std::uint64_t newest(std::uint64_t rank) const;

  Random random_;
  IndexSampler sampler_;
  bool latest_;
  bool points_only_ = true;
  std::array<std::uint64_t, kOpKinds> thresholds_{};  ///< cumulative, for one draw
  std::array<OpKind, kOpKinds> kinds_{};
  std::size_t kind_count_ = 0;
  std::uint64_t count_;
  std::uint64_t writer_ = 0;   ///< number among the writing threads
  std::uint64_t writers_ = 1;  ///< writing threads of the phase
  InsertRange inserts_;
  std::uint64_t inserted_ = 0;
  std::uint64_t ordinal_ = 0;
  std::uint64_t limit_;
  std::uint32_t version_base_;
  std::uint32_t scan_min_;
  std::uint32_t scan_max_;
  std::uint32_t batch_keys_;
  std::vector<std::uint64_t> indices_;
};

[[nodiscard]] std::unique_ptr<OperationSource> make_source(const Workload& workload,
                                                           std::uint64_t seed, std::size_t phase,
                                                           std::uint32_t thread);

}  // namespace assay
