// Checkpoint markers: where they point, what a crash leaves of them, what they cost.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "engine/base/coding.h"
#include "engine/base/crc32c.h"
#include "engine/store/root.h"
#include "engine/store/store_fixture.h"

namespace lode {
namespace {

using Marks = std::vector<std::pair<std::string, std::uint64_t>>;  // oldest first

Marks marks_of(const Store& store) {
  Marks marks;
  for (const Marker& marker : store.markers()) marks.emplace_back(marker.name, marker.sequence);
  return marks;
}

TEST(Markers, name_the_commit_that_they_are_and_move_when_named_again) {
  const auto disk = SimDisk::make();
  auto store = open_small(disk);
  ASSERT_TRUE(store->put("a", "1", Durability::volatile_));
  const auto first = store->mark("first", Durability::volatile_);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->sequence, 2U);
  EXPECT_FALSE(first->durable);
  ASSERT_TRUE(store->put("a", "2", Durability::volatile_));
  ASSERT_TRUE(store->mark("second", Durability::sync)->durable);
  ASSERT_EQ(marks_of(*store), (Marks{{"first", 2}, {"second", 4}}));
  EXPECT_EQ(store->snapshot().sequence(), 4U);
  ASSERT_TRUE(store->mark("first", Durability::buffered));
  ASSERT_TRUE(store->mark("third", Durability::window));
  EXPECT_EQ(marks_of(*store), (Marks{{"second", 4}, {"first", 5}, {"third", 6}}));
  EXPECT_EQ(contents_of(store->snapshot()), (Model{{"a", "2"}}));
  ASSERT_TRUE(store->close());
  Options reader = small_options();
  reader.read_only = true;
  auto again = Store::open(disk->killed(), reader).value();
  EXPECT_EQ(marks_of(*again), (Marks{{"second", 4}, {"first", 5}, {"third", 6}}));
  EXPECT_EQ(again->mark("x", Durability::sync).error().kind, ErrorKind::unsupported);
}

TEST(Markers, have_names_of_1_to_200_bytes_and_the_newest_256_are_kept) {
  auto store = open_small(SimDisk::make());
  EXPECT_EQ(store->mark("", Durability::sync).error().kind, ErrorKind::bad_input);
  EXPECT_EQ(store->mark(std::string(201, 'n'), Durability::sync).error().kind,
            ErrorKind::bad_input);
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(store->mark("m" + std::to_string(i), Durability::volatile_));
  }
  ASSERT_EQ(store->markers().size(), most_markers);
  EXPECT_EQ(store->markers().front().name, "m44");
  ASSERT_TRUE(store->checkpoint());
  EXPECT_EQ(store->statistics().at("marks"), 300.0);
}

TEST(Markers, cost_a_record_in_the_log_whatever_the_number_of_entries) {
  double bytes[2] = {0, 0};
  for (const int entries : {10, 3000}) {
    auto store = open_small(SimDisk::make());
    for (int i = 0; i < entries; ++i) {
      ASSERT_TRUE(store->put("key" + std::to_string(i), "value", Durability::volatile_));
    }
    ASSERT_TRUE(store->checkpoint());
    const auto before = store->statistics();
    ASSERT_TRUE(store->mark("here", Durability::sync));
    const auto after = store->statistics();
    bytes[entries == 10 ? 0 : 1] =
        after.at("log_requested_bytes") - before.at("log_requested_bytes");
    EXPECT_EQ(after.at("log_barriers"), before.at("log_barriers") + 1);
    EXPECT_EQ(after.at("data_barriers"), before.at("data_barriers"));
    EXPECT_EQ(after.at("checkpoints"), before.at("checkpoints"));
    EXPECT_GT(after.at("mark_memory_nanoseconds"), 0.0);
    EXPECT_GT(after.at("mark_durable_nanoseconds"), 0.0);
  }
  EXPECT_EQ(bytes[0], bytes[1]);
  EXPECT_LT(bytes[0], 16.0);
}

TEST(Markers, and_range_erases_of_nothing_do_not_fill_the_log_for_ever) {
  const auto disk = SimDisk::make();
  auto store = open_small(disk);
  WriteBatch nothing;
  nothing.erase_range("a", std::string(1000, 'z'));
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(store->mark("here", Durability::volatile_));
    ASSERT_TRUE(store->commit(nothing, Durability::buffered));
    if (i % 20 == 19) {
      ASSERT_TRUE(store->checkpoint());
    }
  }
  std::size_t logs = 0;
  const std::vector<std::string> names = disk->list().value();
  for (const std::string& name : names) logs += name.starts_with("log-") ? 1 : 0;
  EXPECT_LE(logs, 10U) << "there are 200 kB of log, 8 kB a segment";
  auto again = open_small(disk->killed());
  EXPECT_EQ(marks_of(*again), (Marks{{"here", 399}}));
  EXPECT_EQ(again->snapshot().sequence(), 400U);
}

TEST(Markers, go_along_into_a_backup) {
  auto store = open_small(SimDisk::make());
  ASSERT_TRUE(store->mark("empty", Durability::volatile_));
  const auto bare = SimDisk::make();
  ASSERT_TRUE(store->snapshot().backup(*bare));
  EXPECT_EQ(marks_of(*open_small(bare->crashed(keep_none))), (Marks{{"empty", 1}}));
  ASSERT_TRUE(store->put("a", "1", Durability::volatile_));
  const Snapshot snapshot = store->snapshot();
  ASSERT_TRUE(store->mark("later", Durability::volatile_));
  const auto target = SimDisk::make();
  ASSERT_TRUE(snapshot.backup(*target));
  EXPECT_EQ(marks_of(*open_small(target->crashed(keep_none))), (Marks{{"empty", 1}}));
}

// Markers by sequence; the last one may be in flight.
struct History {
  std::vector<Marks> states{Marks{}};
  std::uint64_t durable = 0;
  bool finished = false;
};

void run(Store& store, History& history) {
  const auto step = [&](const std::string& name, Durability durability) {
    Marks next = history.states.back();
    const std::uint64_t sequence = history.states.size();
    if (!name.empty()) {
      std::erase_if(next, [&](const auto& mark) { return mark.first == name; });
      next.emplace_back(name, sequence);
    }
    history.states.push_back(std::move(next));
    const auto receipt =
        name.empty() ? store.put("k" + std::to_string(sequence % 7),
                                 std::string(700, 'v') + std::to_string(sequence), durability)
                     : store.mark(name, durability);
    if (!receipt) return false;
    EXPECT_EQ(receipt->sequence, sequence);
    if (durability == Durability::sync) history.durable = sequence;
    return true;
  };
  for (int round = 0; round < 4; ++round) {
    if (!step("m" + std::to_string(round % 3), Durability::sync)) return;
    if (!step("", Durability::volatile_)) return;
    if (!step("again", Durability::volatile_)) return;
    if (!step("", Durability::buffered)) return;
    if (!store.checkpoint()) return;
    history.durable = history.states.size() - 1;
    if (!step("again", Durability::volatile_)) return;
    if (round % 2 == 1 && !store.drain()) return;  // merges write a root of the sequence before
    if (!step("b" + std::to_string(round), Durability::sync)) return;
  }
  history.finished = true;
}

TEST(Markers, after_a_crash_at_any_call_are_those_of_the_prefix_that_is_left) {
  History history;
  std::uint64_t call = 1;
  for (; !history.finished; ++call) {
    const auto disk = SimDisk::make();
    disk->fail_at(call, Fault::power_cut);
    history = {};
    {
      auto store = Store::open(disk, small_options());
      if (store) run(**store, history);
    }
    for (const std::uint64_t seed : {0U, 1U, 2U}) {
      SCOPED_TRACE("power cut at call " + std::to_string(call) + ", choice " +
                   std::to_string(seed));
      const auto image = disk->crashed(seed == 0   ? keep_none
                                       : seed == 1 ? keep_all
                                                   : keep_some(call, 60));
      auto store = open_small(image);
      ASSERT_NE(store, nullptr);
      const std::uint64_t sequence = store->snapshot().sequence();
      ASSERT_GE(sequence, history.durable);
      ASSERT_LT(sequence, history.states.size());
      ASSERT_EQ(marks_of(*store), history.states[sequence]);
      ASSERT_TRUE(store->checkpoint());
      ASSERT_EQ(marks_of(*open_small(image->crashed(keep_none))), history.states[sequence]);
    }
  }
  EXPECT_GT(call, 40U);
}

TEST(Markers, of_a_root_are_those_up_to_its_sequence_however_many_are_made_meanwhile) {
  const auto disk = SimDisk::make();
  auto store = open_small(disk);
  ASSERT_TRUE(store->mark("moving", Durability::sync));
  std::atomic<bool> stop{false};
  std::atomic<int> made{0};
  std::thread writer([&] {
    while (!stop.load() && store->mark("moving", Durability::volatile_)) ++made;
  });
  for (int round = 0; round < 4; ++round) {
    const int before = made.load();
    while (made.load() == before && !testing::Test::HasFailure()) std::this_thread::yield();
    for (int i = 0; i < 120; ++i) {  // enough for the checkpoint to take a while
      EXPECT_TRUE(
          store->put("k" + std::to_string(i), std::string(3000, 'v'), Durability::volatile_));
    }
    EXPECT_TRUE(store->checkpoint());
    auto crashed = open_small(disk->crashed(keep_none));
    if (crashed == nullptr) break;
    const Marks marks = marks_of(*crashed);
    EXPECT_EQ(marks.size(), 1U);
    if (marks.size() == 1) {
      EXPECT_LE(marks[0].second, crashed->snapshot().sequence());
    }
    if (testing::Test::HasFailure()) break;
  }
  stop.store(true);
  writer.join();
}

// A disk that calls back before each write to a log segment.
class WatchedDisk final : public Disk {
 public:
  explicit WatchedDisk(std::shared_ptr<SimDisk> below) : below_(std::move(below)) {}
  std::function<void()> before_log_write;

  Result<std::unique_ptr<File>> open(std::string_view name, OpenMode mode) override {
    LODE_ASSIGN(auto file, below_->open(name, mode));
    return std::make_unique<WatchedFile>(*this, std::move(file), name.starts_with("log-"));
  }
  Result<std::vector<std::string>> list() override { return below_->list(); }
  Status remove(std::string_view name) override { return below_->remove(name); }
  Status rename(std::string_view from, std::string_view to) override {
    return below_->rename(from, to);
  }
  Status sync_directory() override { return below_->sync_directory(); }
  Status lock(bool exclusive) override { return below_->lock(exclusive); }
  [[nodiscard]] std::string name() const override { return below_->name(); }

 private:
  class WatchedFile final : public File {
   public:
    WatchedFile(WatchedDisk& disk, std::unique_ptr<File> below, bool log)
        : disk_(disk), below_(std::move(below)), log_(log) {}
    Result<std::size_t> read_at(Bytes out, std::uint64_t offset) override {
      return below_->read_at(out, offset);
    }
    Status write_at(ConstBytes data, std::uint64_t offset) override {
      if (log_ && disk_.before_log_write) disk_.before_log_write();
      return below_->write_at(data, offset);
    }
    Status sync() override { return below_->sync(); }
    Result<std::uint64_t> size() override { return below_->size(); }
    Status resize(std::uint64_t bytes) override { return below_->resize(bytes); }

   private:
    WatchedDisk& disk_;
    std::unique_ptr<File> below_;
    bool log_;
  };
  std::shared_ptr<SimDisk> below_;
};

TEST(Markers, whose_record_is_being_written_are_durable_after_a_checkpoint_beside_that) {
  const auto sim = SimDisk::make();
  const auto disk = std::make_shared<WatchedDisk>(sim);
  auto store = Store::open(disk, small_options()).value();
  std::atomic<bool> writing{false};
  std::atomic<bool> checked{false};
  disk->before_log_write = [&] {
    if (writing.exchange(true)) return;  // the first write only
    // A checkpoint that does not wait for this write returns meanwhile; one that does is waited for
    // in vain.
    for (int i = 0; i < 200 && !checked.load(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  std::thread writer([&] { EXPECT_TRUE(store->mark("here", Durability::buffered)); });
  while (!writing.load()) std::this_thread::yield();
  EXPECT_TRUE(store->checkpoint());
  const Marks marks = marks_of(*open_small(sim->crashed(keep_none)));
  checked.store(true);
  writer.join();
  disk->before_log_write = {};
  EXPECT_EQ(marks, (Marks{{"here", 1}}));
}

// The roots and manifests of version 3 without markers, made into those of version 2: these end one
// byte earlier.
void make_version_2(std::string& data) {
  auto* bytes = reinterpret_cast<std::byte*>(data.data());
  for (std::size_t slot = 0; slot < root_slots; ++slot) {
    std::byte* record = bytes + slot * page_bytes;
    if (load<std::uint64_t>(record) != root_magic) continue;
    ValueRef manifest = decode_value_ref(record + 80);
    if (manifest.bytes > 0) {
      --manifest.bytes;
      manifest.checksum = crc32c(ConstBytes(bytes + manifest.offset, manifest.bytes));
      encode_value_ref(manifest, record + 80);
    }
    lode::store(record + 8, std::uint32_t{2});
    lode::store(record + 12, std::uint32_t{0});
    lode::store(record + 12, crc32c(ConstBytes(record, root_record_bytes)));
  }
}

TEST(Markers, can_be_made_in_a_store_of_version_2_which_is_of_version_3_then) {
  auto disk = SimDisk::make();
  {
    auto store = open_small(disk);
    ASSERT_TRUE(store->put("a", "1", Durability::sync));
    ASSERT_TRUE(store->checkpoint());
    ASSERT_TRUE(store->put("b", "2", Durability::sync));
    ASSERT_TRUE(store->close());
  }
  disk = disk->killed();
  std::string data = disk->contents("data").value();
  make_version_2(data);
  disk->set_contents("data", data);
  Options reader = small_options();
  reader.read_only = true;
  EXPECT_EQ(contents_of(Store::open(disk->killed(), reader).value()->snapshot()),
            (Model{{"a", "1"}, {"b", "2"}}));
  {
    auto store = open_small(disk);
    ASSERT_TRUE(store->mark("new", Durability::sync));
  }
  data = disk->contents("data").value();
  const std::uint32_t first = static_cast<unsigned char>(data[8]);
  const std::uint32_t second = static_cast<unsigned char>(data[page_bytes + 8]);
  EXPECT_EQ(std::max(first, second), 3U) << "before anything that version 2 does not know";
  auto again = open_small(disk->crashed(keep_none));
  EXPECT_EQ(marks_of(*again), (Marks{{"new", 3}}));
  EXPECT_EQ(contents_of(again->snapshot()), (Model{{"a", "1"}, {"b", "2"}}));
  EXPECT_TRUE(again->verify());
}

TEST(Markers, are_missing_from_a_manifest_of_version_2_which_is_read_all_the_same) {
  Manifest manifest;
  manifest.markers = {{"name", 7}};
  std::string bytes = encode_manifest(manifest);
  EXPECT_EQ(decode_manifest(as_bytes(bytes))->markers[0].name, "name");
  bytes.resize(1);  // the count of runs, 0, is all that version 2 has of a store without trees
  ASSERT_TRUE(decode_manifest(as_bytes(bytes)));
  EXPECT_TRUE(decode_manifest(as_bytes(bytes))->markers.empty());
  EXPECT_FALSE(decode_manifest({}));
}

}  // namespace
}  // namespace lode
