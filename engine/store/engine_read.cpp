// Reading: look-ups, snapshots, verification.
#include "engine/base/check.h"
#include "engine/store/engine.h"

namespace lode {

SnapshotCore::SnapshotCore(std::shared_ptr<Engine> of, const Version& version)
    : engine(std::move(of)),
      generation(version.generation),
      sequence(version.sequence),
      state(version.state) {
  engine->readers_.pin(generation);
  engine->handles_.fetch_add(1);
}

SnapshotCore::~SnapshotCore() {
  engine->readers_.unpin(generation);
  engine->handles_.fetch_sub(1);
}

// First from what is in memory, without a lock or a pin; what is not there is read with pins, after
// the right to look at pages without them is given up (I14).
Result<bool> Engine::get(std::string_view key, std::string& value) {
  return guarded([&]() -> Result<bool> {
    if (ahead_.load(std::memory_order_acquire)) publish_ahead();
    ShortRead read(readers_, published_, true);
    const Version* version = current_.load(std::memory_order_seq_cst);
    std::uint64_t pages = 0;
    const Resident answer = look_up_resident(version->state, key, value, pages);
    read.count_pages(pages);
    if (answer != Resident::unknown) [[likely]] {
      return answer == Resident::value;
    }
    read.stop_reading_pages();
    return look_up(version->state, key, value);
  });
}

Result<bool> Engine::get(const State& state, std::string_view key, std::string& value) {
  return guarded([&]() -> Result<bool> {
    Resident answer = Resident::unknown;
    {
      ShortRead read(readers_, published_, true);
      std::uint64_t pages = 0;
      answer = look_up_resident(state, key, value, pages);
      read.count_pages(pages);
    }
    if (answer != Resident::unknown) return answer == Resident::value;
    return look_up(state, key, value);
  });
}

std::shared_ptr<const SnapshotCore> Engine::snapshot() {
  if (ahead_.load(std::memory_order_acquire)) {
    const Status shown = guarded([this]() -> Status {
      publish_ahead();
      return {};
    });
    if (!shown) throw std::bad_alloc();
  }
  const ShortRead read(readers_, published_);  // until the generation is pinned
  const Version* version = current_.load(std::memory_order_seq_cst);
  return std::make_shared<const SnapshotCore>(shared_from_this(), *version);
}

Status Engine::verify() {
  return guarded([&]() -> Status {
    const auto core = snapshot();
    for (const auto& run : core->state.shape->runs) {
      const Tree* before = nullptr;
      for (const auto& tree : run->trees) {
        LODE_TRY(tree->verify());
        if (before != nullptr && before->info().last_key >= tree->info().first_key) {
          return fail(ErrorKind::corruption, "the trees of a run overlap");
        }
        before = tree.get();
      }
    }
    return {};
  });
}

}  // namespace lode
