#include "workloads/distribution.h"

#include <algorithm>
#include <cmath>

#include "workloads/codec.h"

namespace assay {

IndexSampler::IndexSampler(const Distribution& distribution, const KeySpec& keys,
                           std::uint64_t seed, std::uint32_t thread, std::uint32_t threads)
    : kind_(distribution.kind),
      scrambled_(distribution.scrambled),
      hashed_(keys.hashed),
      count_(keys.count),
      order_(keys.count, derive_seed(seed, 0x736372)),
      keys_(KeyCodec(keys, seed).bijection()) {
  const auto count = static_cast<double>(count_);
  switch (kind_) {
    case DistributionKind::zipfian:
    case DistributionKind::latest:
      zipfian_.emplace(count_, distribution.theta);
      break;
    case DistributionKind::sequential:
      cursor_ = count_ / threads * thread;
      break;
    case DistributionKind::hot_prefix:
      prefixes_ = static_cast<std::uint64_t>(std::lround(distribution.hot_fraction * 64.0));
      prefixes_ = std::clamp<std::uint64_t>(prefixes_, 1, KeyBijection::kPrefixes);
      first_prefix_ =
          Random(derive_seed(seed, 0x707265)).bounded(KeyBijection::kPrefixes - prefixes_ + 1);
      break;
    case DistributionKind::hot_set:
      hot_keys_ = static_cast<std::uint64_t>(std::llround(distribution.hot_fraction * count));
      hot_keys_ = std::clamp<std::uint64_t>(hot_keys_, 1, count_);
      break;
    case DistributionKind::uniform:
      break;
  }
  hot_threshold_ = threshold_of(distribution.hot_probability);
}

std::uint64_t IndexSampler::draw_hot_prefix(Random& random) const {
  if (hot_threshold_ != ~std::uint64_t{0} && random.next() >= hot_threshold_) {
    return random.bounded(count_);
  }
  if (!hashed_) {  // key order is index order: the prefix is a run of neighbours
    const std::uint64_t first = static_cast<std::uint64_t>(
        (static_cast<Wide>(count_) * first_prefix_) / KeyBijection::kPrefixes);
    const std::uint64_t keys = std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>((static_cast<Wide>(count_) * prefixes_) /
                                      KeyBijection::kPrefixes));
    return first + random.bounded(keys);
  }
  const std::uint64_t groups = (count_ + KeyBijection::kPrefixes - 1) / KeyBijection::kPrefixes;
  while (true) {
    const std::uint64_t prefix = first_prefix_ + (prefixes_ == 1 ? 0 : random.bounded(prefixes_));
    const std::uint64_t index = keys_.index_with_prefix(random.bounded(groups), prefix);
    if (index < count_) return index;  // only the last group can be incomplete
  }
}

std::uint64_t IndexSampler::draw_hot_set(Random& random) const {
  const bool hot = hot_keys_ == count_ || random.next() < hot_threshold_;
  const std::uint64_t item =
      hot ? random.bounded(hot_keys_) : hot_keys_ + random.bounded(count_ - hot_keys_);
  return scrambled_ ? order_.forward(item) : item;
}

}  // namespace assay
