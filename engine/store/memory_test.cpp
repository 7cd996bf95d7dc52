// Memory that runs out, at each allocation of a history in turn: an error each time, nothing
// acknowledged is lost, nothing is half there, and nothing hangs.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <random>
#include <thread>

#include "engine/store/store_fixture.h"

namespace lode {
namespace {

std::atomic<bool> counting{false};
std::atomic<bool> for_good{false};   // not only the chosen allocation fails, but all from it on
std::atomic<std::int64_t> until{0};  // allocations before the one that fails
std::atomic<std::int64_t> counted{0};
thread_local int pauses = 0;

struct Pause {
  Pause() { ++pauses; }
  ~Pause() { --pauses; }
};

bool fails() {
  if (!counting.load() || pauses != 0) return false;
  const std::int64_t number = counted.fetch_add(1);
  return number == until.load() || (for_good.load() && number > until.load());
}

}  // namespace
}  // namespace lode

// The engine's calls, by the linker's --wrap.
extern "C" {
void* __real_malloc(std::size_t bytes);
void* __real_aligned_alloc(std::size_t alignment, std::size_t bytes);
void* __wrap_malloc(std::size_t bytes) {
  return lode::fails() ? nullptr : __real_malloc(bytes);
}
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return lode::fails() ? nullptr : __real_aligned_alloc(alignment, bytes);
}
}

void* operator new(std::size_t bytes) {
  void* const memory = lode::fails() ? nullptr : __real_malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}

namespace lode {
namespace {

/// A file, or a disk, of which the memory is not the engine's.
class CalmFile final : public File {
 public:
  explicit CalmFile(std::unique_ptr<File> file) : file_(std::move(file)) {}
  Result<std::size_t> read_at(Bytes out, std::uint64_t offset) override {
    const Pause pause;
    return file_->read_at(out, offset);
  }
  Status write_at(ConstBytes data, std::uint64_t offset) override {
    const Pause pause;
    return file_->write_at(data, offset);
  }
  Status sync() override {
    const Pause pause;
    return file_->sync();
  }
  Result<std::uint64_t> size() override {
    const Pause pause;
    return file_->size();
  }
  Status resize(std::uint64_t bytes) override {
    const Pause pause;
    return file_->resize(bytes);
  }

 private:
  std::unique_ptr<File> file_;
};

class CalmDisk final : public Disk {
 public:
  explicit CalmDisk(std::shared_ptr<Disk> disk) : disk_(std::move(disk)) {}
  Result<std::unique_ptr<File>> open(std::string_view name, OpenMode mode) override {
    const Pause pause;
    auto file = disk_->open(name, mode);
    if (!file) return file;
    return std::make_unique<CalmFile>(std::move(*file));
  }
  Result<std::vector<std::string>> list() override {
    const Pause pause;
    return disk_->list();
  }
  Status remove(std::string_view name) override {
    const Pause pause;
    return disk_->remove(name);
  }
  Status rename(std::string_view from, std::string_view to) override {
    const Pause pause;
    return disk_->rename(from, to);
  }
  Status sync_directory() override {
    const Pause pause;
    return disk_->sync_directory();
  }
  Status lock(bool exclusive) override {
    const Pause pause;
    return disk_->lock(exclusive);
  }
  [[nodiscard]] std::string name() const override {
    const Pause pause;
    return disk_->name();
  }

 private:
  std::shared_ptr<Disk> disk_;
};

class FailingAllocation {
 public:
  FailingAllocation(std::int64_t number, bool from_then_on) {
    counted = 0;
    until = number;
    for_good = from_then_on;
    counting = true;
  }
  ~FailingAllocation() { counting = false; }
};

struct Step {
  WriteBatch batch;
  Durability durability = Durability::sync;
  Model after;
};

/// Commits of all kinds; what the model holds behind each.
std::vector<Step> steps_of(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<Step> steps;
  Model model;
  for (std::size_t i = 0; i < count; ++i) {
    Step step;
    step.batch = random_batch(random, model);
    if (i % 6 == 4) {  // large enough to be applied while it is written
      for (int more = 0; more < 20; ++more) {
        const std::string key = "more" + std::to_string(more);
        step.batch.put(key, std::string(100, 'm'));
        model[key] = std::string(100, 'm');
      }
    }
    step.durability = i % 3 == 2 ? Durability::volatile_ : Durability::sync;
    step.after = model;
    steps.push_back(std::move(step));
  }
  return steps;
}

/// A history in which memory runs out once, or from then on, and what may be there afterwards.
class History {
 public:
  explicit History(const std::vector<Step>& steps) : steps_(steps) {}

  void live(std::int64_t number, bool from_then_on) {
    const auto calm = std::make_shared<CalmDisk>(disk_);
    auto store = [&] {
      const FailingAllocation failing(number, from_then_on);
      auto opened = Store::open(calm, small_options());
      if (opened) use(**opened);
      return opened;
    }();
    if (!store) {
      EXPECT_EQ(store.error().kind, ErrorKind::out_of_memory) << store.error().what;
      return;
    }
    look_through_the_same_handle(**store);
  }

  /// After the handle has gone: the process was killed, or the power was cut.
  void look_at_what_is_left() {
    for (const auto& left : {disk_->killed(), disk_->crashed(keep_none)}) {
      auto store = Store::open(left, small_options());
      ASSERT_TRUE(store) << store.error().what;
      ASSERT_TRUE((*store)->verify());
      const Model found = contents_of((*store)->snapshot());
      bool known = false;
      for (std::size_t made = durable_; made <= made_ && !known; ++made) {
        known = found == state(made);
      }
      ASSERT_TRUE(known || (maybe_ && found == steps_[made_].after)) << made_ << " " << durable_;
    }
  }

 private:
  [[nodiscard]] const Model& state(std::size_t made) const {
    static const Model nothing;
    return made == 0 ? nothing : steps_[made - 1].after;
  }

  /// True when it was made; else the history ends, for what follows builds on it.
  bool commit(Store& store, const Step& step) {
    const auto receipt = store.commit(step.batch, step.durability);
    if (receipt) {
      ++made_;
      if (receipt->durable) durable_ = made_;
      return true;
    }
    maybe_ = receipt.error().kind == ErrorKind::outcome_unknown;
    poisoned_ = poisoned_ || maybe_ || receipt.error().kind == ErrorKind::poisoned;
    EXPECT_TRUE(poisoned_ || receipt.error().kind == ErrorKind::out_of_memory)
        << receipt.error().what;
    return false;
  }

  void note(const Status& status) {
    if (status) return;
    const ErrorKind kind = status.error().kind;
    EXPECT_TRUE(kind == ErrorKind::out_of_memory || kind == ErrorKind::poisoned ||
                kind == ErrorKind::outcome_unknown)
        << status.error().what;
  }

  void read(Store& store) {
    std::string value;
    const auto found = store.get("k7", value);
    if (found) {
      const auto expected = state(made_).find("k7");
      EXPECT_EQ(*found, expected != state(made_).end());
      if (*found) {
        EXPECT_EQ(value, expected->second);
      }
    }
    try {
      const Snapshot snapshot = store.snapshot();
      Cursor cursor = snapshot.cursor();
      for (cursor.seek_first(); cursor.valid(); cursor.next()) (void)cursor.value();
    } catch (const std::bad_alloc&) {
    }
  }

  void use(Store& store) {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (!commit(store, steps_[i])) return;
      if (i % 4 == 1) read(store);
      if (i % 5 == 4) note(store.checkpoint());
      if (i % 7 == 6) note(store.drain());
      if (i == 11) note(store.compact());
      if (i % 8 == 3 && store.sync()) durable_ = made_;
    }
  }

  // Nothing is shown but whole commits, and all that were acknowledged.
  void look_through_the_same_handle(Store& store) {
    try {
      const Model found = contents_of(store.snapshot());
      EXPECT_TRUE(found == state(made_) || (maybe_ && found == steps_[made_].after));
    } catch (const std::bad_alloc&) {
      EXPECT_FALSE(
          store.put("x", "y", Durability::sync));  // only a store that was poisoned shows nothing
      poisoned_ = true;
    }
    if (poisoned_) return;
    // What failed has left nothing behind that the next commit would show.
    const auto written = store.put("zz-behind", "all", Durability::sync);
    ASSERT_TRUE(written) << written.error().what;
    Model now = state(made_);
    now["zz-behind"] = "all";
    EXPECT_EQ(contents_of(store.snapshot()), now);
    EXPECT_TRUE(store.erase("zz-behind", Durability::sync));
    durable_ = made_;
  }

  const std::vector<Step>& steps_;
  std::shared_ptr<SimDisk> disk_ = SimDisk::make();
  std::size_t made_ = 0;     // steps that were acknowledged
  std::size_t durable_ = 0;  // ... the last of them as durable
  bool maybe_ = false;       // the next step may be there, whole
  bool poisoned_ = false;
};

#ifdef __SANITIZE_THREAD__
constexpr std::int64_t kLookedAt = 8;  // one thread: little to see, and slow
#else
constexpr std::int64_t kLookedAt = 60;
#endif

TEST(Memory, EachAllocationThatFailsIsAnErrorAndLosesNothing) {
  const std::vector<Step> steps = steps_of(11, 18);
  std::int64_t allocations = 0;
  {
    History whole(steps);
    whole.live(INT64_MAX, false);
    allocations = counted.load();
    whole.look_at_what_is_left();
  }
  ASSERT_GT(allocations, 500);
  const bool every_one = std::getenv("LODE_TEST_ALLOCATIONS") != nullptr;
  for (const bool from_then_on : {false, true}) {
    // A part of them, another one for each kind; LODE_TEST_ALLOCATIONS=all looks at all.
    const std::int64_t stride = every_one ? 1 : allocations / kLookedAt;
    for (std::int64_t number = from_then_on ? stride / 2 : 0; number < allocations;
         number += stride) {
      SCOPED_TRACE((from_then_on ? "all from " : "only ") + std::to_string(number));
      History history(steps);
      history.live(number, from_then_on);
      history.look_at_what_is_left();
      if (HasFailure()) return;
    }
  }
}

std::string filled_calmly() {
  const Pause pause;
  return std::string(900, 'v');
}

TEST(Memory, WritersAndReadersGoOnOrAreToldWhenItRunsOut) {
  for (std::int64_t number = 0; number < 2000; number += 37) {
    SCOPED_TRACE(number);
    const auto disk = SimDisk::make();
    std::array<std::atomic<int>, 3> acknowledged{};
    {
      Options options = small_options();
      options.background = true;
      options.overlay_bytes = 16384;
      auto store = Store::open(std::make_shared<CalmDisk>(disk), options);
      ASSERT_TRUE(store) << store.error().what;
      const FailingAllocation failing(number, number % 2 == 0);
      std::vector<std::thread> threads;
      {
        const Pause pause;
        for (int writer = 0; writer < 3; ++writer) {
          threads.emplace_back([&, writer] {
            const std::string key(1, static_cast<char>('a' + writer));
            std::string value = filled_calmly();
            std::string found;
            for (int i = 1; i <= 40; ++i) {
              value[0] = static_cast<char>(i);
              if (!(*store)->put(key, value, i % 4 == 0 ? Durability::window : Durability::sync)) {
                return;
              }
              if (i % 4 != 0) acknowledged[static_cast<std::size_t>(writer)] = i;
              (void)(*store)->get(key, found);
            }
          });
        }
      }
      for (std::thread& thread : threads) thread.join();
    }
    auto again = Store::open(disk->crashed(keep_none), small_options());
    ASSERT_TRUE(again) << again.error().what;
    for (int writer = 0; writer < 3; ++writer) {
      const int least = acknowledged[static_cast<std::size_t>(writer)];
      std::string value;
      const auto found = (*again)->get(std::string(1, static_cast<char>('a' + writer)), value);
      ASSERT_TRUE(found);
      ASSERT_TRUE(*found || least == 0);
      if (*found) {
        ASSERT_GE(value[0], least);
      }
    }
  }
}

}  // namespace
}  // namespace lode
