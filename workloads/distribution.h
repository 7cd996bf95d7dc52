// Draws of a key index in [0, keys.count) by one thread, as declared by a Distribution.
//
// `latest` draws an age (0 = newest); the caller maps it to an index, because only the caller knows
// the thread's own inserts. `sequential` has a cursor: reading threads start at equal distances
// from each other, writing threads walk over the keys they own.
#pragma once

#include <cstdint>
#include <optional>

#include "workloads/key_bijection.h"
#include "workloads/random.h"
#include "workloads/workload.h"
#include "workloads/zipfian.h"

namespace assay {

class IndexSampler {
 public:
  /// `thread` of `threads` places the cursor of `sequential`.
  IndexSampler(const Distribution& distribution, const KeySpec& keys, std::uint64_t seed,
               std::uint32_t thread, std::uint32_t threads);

  /// An index, or an age for `latest`; `step` moves the cursor of `sequential`.
  [[nodiscard]] std::uint64_t draw(Random& random, std::uint64_t step = 1) {
    switch (kind_) {
      case DistributionKind::uniform:
        return random.bounded(count_);
      case DistributionKind::zipfian:
        return draw_zipfian(random);
      case DistributionKind::latest:
        return zipfian_->draw(random);
      case DistributionKind::sequential:
        return advance(step);
      case DistributionKind::hot_prefix:
        return draw_hot_prefix(random);
      case DistributionKind::hot_set:
        return draw_hot_set(random);
    }
    return 0;
  }
  [[nodiscard]] std::uint64_t draw_zipfian(Random& random) const {
    return zipfian_sampler().draw(random);
  }
  /// draw_zipfian() apart from the rest, small enough for registers: for draws in a loop.
  struct Zipfian {
    const ZipfianSampler* ranks;
    bool scrambled;
    RangeBijection order;
    [[nodiscard]] std::uint64_t draw(Random& random) const {
      const std::uint64_t rank = ranks->draw(random);
      return scrambled ? order.forward(rank) : rank;
    }
  };
  [[nodiscard]] Zipfian zipfian_sampler() const { return {&*zipfian_, scrambled_, order_}; }
  [[nodiscard]] DistributionKind kind() const { return kind_; }
  [[nodiscard]] bool sequential() const { return kind_ == DistributionKind::sequential; }
  /// The cursor before it moves by `step`, modulo the key count.
  [[nodiscard]] std::uint64_t advance(std::uint64_t step) {
    const std::uint64_t here = cursor_;
    cursor_ += step;
    if (cursor_ >= count_) cursor_ %= count_;
    return here;
  }
  /// Walks over `keys` keys instead, from the first: a writer's own ones.
  void restrict_cursor(std::uint64_t keys) {
    count_ = keys;
    cursor_ = 0;
  }

 private:
  [[nodiscard]] std::uint64_t draw_hot_prefix(Random& random) const;
  [[nodiscard]] std::uint64_t draw_hot_set(Random& random) const;

  DistributionKind kind_;
  bool scrambled_;
  bool hashed_;
  std::uint64_t count_;
  std::uint64_t cursor_ = 0;
  std::uint64_t hot_threshold_ = 0;
  std::uint64_t hot_keys_ = 0;      ///< hot_set: size of the set
  std::uint64_t first_prefix_ = 0;  ///< hot_prefix: the first of `prefixes_` neighbouring ones
  std::uint64_t prefixes_ = 1;
  RangeBijection order_;
  KeyBijection keys_;
  std::optional<ZipfianSampler> zipfian_;
};

}  // namespace assay
