// What a transaction holds: a snapshot, its own writes, and what it has read.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/store/engine.h"

namespace lode {

struct Transaction::Body {
  struct Range {
    std::string first;
    std::optional<std::string> last;
  };
  std::shared_ptr<Engine> engine;
  std::shared_ptr<const SnapshotCore> core;
  Isolation isolation = Isolation::snapshot;
  std::map<std::string, std::optional<std::string>, std::less<>> writes;  // nullopt: erased
  std::set<std::string, std::less<>> reads;
  std::vector<Range> ranges;

  /// An error of kind conflict when `current` differs from the snapshot in what matters.
  [[nodiscard]] Status check(const State& current) const;
  Result<Receipt> commit(Durability durability) const;
  Result<std::vector<std::pair<std::string, std::string>>> scan(
      std::string_view first, std::optional<std::string_view> last);
};

}  // namespace lode
