// The bounded arena: what the admission policies promise, what a full arena leaves, and what makes
// room again.
#include "engine/store/store_fixture.h"

namespace lode {
namespace {

constexpr std::uint64_t arena_bytes = std::uint64_t{1} << 20;

Options bounded(Admission admission, std::uint64_t max_bytes = arena_bytes) {
  Options options = small_options();
  options.tree_bytes = 200000;
  options.max_bytes = max_bytes;
  options.admission = admission;
  return options;
}

std::unique_ptr<Store> open_bounded(const std::shared_ptr<SimDisk>& disk, const Options& options) {
  auto store = Store::open(disk, options);
  EXPECT_TRUE(store) << store.error().what;
  return store ? std::move(*store) : nullptr;
}

std::string key_of(std::uint64_t i) {
  return "key" + std::to_string(1000000 + i);
}

// Puts of one key after the other until one is refused; how many went in. Many of a size a page and
// more a commit.
std::uint64_t fill(Store& store, Model& model, std::uint64_t first, std::size_t value_bytes,
                   std::uint64_t keys_a_commit = 4) {
  std::uint64_t next = first;
  while (true) {
    WriteBatch batch;
    Model after = model;
    for (std::uint64_t i = 0; i < keys_a_commit; ++i) {
      const std::string value = std::string(value_bytes, 'v') + std::to_string(next + i);
      batch.put(key_of(next + i), value);
      after[key_of(next + i)] = value;
    }
    const auto receipt = store.commit(batch, Durability::volatile_);
    if (!receipt) {
      EXPECT_EQ(receipt.error().kind, ErrorKind::arena_full) << receipt.error().what;
      EXPECT_NE(receipt.error().what.find(std::to_string(arena_bytes)), std::string::npos);
      return next - first;
    }
    model = std::move(after);
    next += keys_a_commit;
    if (next - first > 100000) {
      ADD_FAILURE() << "nothing is refused";
      return next - first;
    }
  }
}

std::uint64_t data_file_bytes(SimDisk& disk) {
  return disk.contents("data")->size();
}

class Arena : public testing::TestWithParam<Admission> {};
INSTANTIATE_TEST_SUITE_P(both, Arena, testing::Values(Admission::recount, Admission::weighted),
                         [](const auto& of) {
                           return of.param == Admission::recount ? "recount" : "weighted";
                         });

std::string arena_value(std::mt19937_64& random) {
  const std::size_t bytes = random() % 12 == 0  ? random() % 30000
                            : random() % 4 == 0 ? random() % 1500
                                                : random() % 100;
  return std::string(bytes, static_cast<char>('a' + random() % 26)) + std::to_string(random());
}

WriteBatch arena_batch(std::mt19937_64& random, Model& model, KeyKind keys) {
  WriteBatch batch;
  for (std::size_t n = 1 + random() % (random() % 4 == 0 ? 40 : 6); n > 0; --n) {
    std::string key = keys == KeyKind::u64 ? u64_key((random() % 3000) << (random() % 3 * 20))
                                           : "k" + std::to_string(random() % 3000);
    if (keys == KeyKind::bytes && random() % 20 == 0) key += std::string(random() % 900, 'x');
    const std::uint64_t what = random() % 16;
    if (what == 0 && !model.empty()) {
      const std::string last = key.substr(0, key.size() - 1) + '\xff';
      if (keys == KeyKind::u64 && last.size() != 8) continue;
      batch.erase_range(key, last);
      erase_range(model, key, last);
    } else if (what < 4) {
      batch.erase(key);
      model.erase(key);
    } else {
      const std::string value = arena_value(random);
      batch.put(key, value);
      model[key] = value;
    }
  }
  if (batch.empty()) {
    batch.erase("fillings");
    model.erase("fillings");
  }
  return batch;
}

// Whatever was acknowledged can be flushed and merged: looked at on a copy of the disk, after each
// acknowledged commit of random histories that fill the arena again and again.
void run_full_history(std::uint64_t seed, const Options& options, std::uint64_t& refused) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::shared_ptr<SimDisk> disk = SimDisk::make();
  auto store = open_bounded(disk, options);
  Model model;
  for (int step = 0; step < 400; ++step) {
    Model next = model;
    const WriteBatch batch = arena_batch(random, next, options.key_kind);
    const auto receipt = store->commit(batch, random_durability(random));
    if (receipt) {
      model = std::move(next);
    } else {
      ASSERT_EQ(receipt.error().kind, ErrorKind::arena_full) << receipt.error().what;
      ++refused;
    }
    const std::uint64_t what = random() % 60;
    if (what == 0) {
      const auto status = store->checkpoint();
      ASSERT_TRUE(status) << status.error().what;
    } else if (what == 1) {
      const auto status = store->drain();
      ASSERT_TRUE(status) << status.error().what;
    } else if (what == 2 || (!receipt && random() % 8 == 0)) {
      const auto status = store->compact();
      ASSERT_TRUE(status) << status.error().what;
    } else if (what == 3) {
      ASSERT_TRUE(store->close());
      disk = disk->killed();
      store = open_bounded(disk, options);
      ASSERT_NE(store, nullptr);
    } else if (receipt && (what < 7 || refused % 40 == 1)) {
      ASSERT_TRUE(store->sync());
      const auto copy = disk->killed();
      auto twin = open_bounded(copy, options);
      ASSERT_NE(twin, nullptr);
      const auto drained = random() % 2 == 0 ? twin->drain() : twin->compact();
      ASSERT_TRUE(drained) << drained.error().what;
      ASSERT_EQ(contents_of(twin->snapshot()), model);
    }
    ASSERT_LE(data_file_bytes(*disk), options.max_bytes);
  }
  const auto drained = store->drain();
  ASSERT_TRUE(drained) << drained.error().what;
  ASSERT_EQ(contents_of(store->snapshot()), model);
  const auto verified = store->verify();
  ASSERT_TRUE(verified) << verified.error().what;
}

TEST_P(Arena, what_was_acknowledged_can_always_be_flushed_and_merged) {
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Options options = bounded(GetParam());
    if (seed % 3 == 0) options.key_kind = KeyKind::u64;
    run_full_history(seed, options, refused);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(refused, 20U) << "the arena was never full";
}

TEST_P(Arena, a_refused_commit_leaves_no_trace_and_the_store_usable) {
  const auto disk = SimDisk::make();
  auto store = open_bounded(disk, bounded(GetParam()));
  Model model;
  EXPECT_GT(fill(*store, model, 0, 300), 500U);
  const auto before = store->statistics();
  EXPECT_GE(before.at("admission_refused_commits"), 1.0);
  const std::uint64_t sequence = store->snapshot().sequence();
  WriteBatch large;
  large.put("large", std::string(arena_bytes, 'x'));
  const auto refused = store->commit(large, Durability::sync);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::arena_full);
  EXPECT_NE(refused.error().what.find("max_bytes"), std::string::npos) << refused.error().what;
  EXPECT_EQ(store->snapshot().sequence(), sequence);
  EXPECT_EQ(store->statistics().at("log_requested_bytes"), before.at("log_requested_bytes"));
  EXPECT_EQ(contents_of(store->snapshot()), model);
  ASSERT_TRUE(store->drain());
  EXPECT_LE(data_file_bytes(*disk), arena_bytes);
  EXPECT_EQ(contents_of(store->snapshot()), model);
}

TEST_P(Arena, erases_and_a_compaction_make_room_in_a_full_one) {
  const auto disk = SimDisk::make();
  auto store = open_bounded(disk, bounded(GetParam()));
  Model model;
  const std::uint64_t count = fill(*store, model, 0, 300);
  ASSERT_TRUE(store->compact());
  const std::uint64_t more = fill(*store, model, count, 300);
  // Some room is kept for erases; when it is used up, a compaction gives it back.
  int compactions = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto receipt = store->erase(key_of(i), Durability::volatile_);
    if (!receipt) {
      ASSERT_GT(i, 100U);
      ASSERT_LT(++compactions, 10);
      ASSERT_TRUE(store->compact());
      receipt = store->erase(key_of(i), Durability::volatile_);
    }
    ASSERT_TRUE(receipt) << i << " of " << count << ": " << receipt.error().what;
    model.erase(key_of(i));
  }
  const auto compacted = store->compact();
  ASSERT_TRUE(compacted) << compacted.error().what;
  EXPECT_EQ(contents_of(store->snapshot()), model);
  EXPECT_GE(fill(*store, model, count + more, 300), count * 3 / 4);
  EXPECT_EQ(contents_of(store->snapshot()), model);
}

TEST_P(Arena, a_range_erase_needs_room_for_the_keys_that_it_finds) {
  const auto disk = SimDisk::make();
  auto store = open_bounded(disk, bounded(GetParam()));
  Model model;
  fill(*store, model, 0, 300);
  for (std::uint64_t first = model.size(); first > 0;) {
    first = first > 150 ? first - 150 : 0;
    WriteBatch batch;
    batch.erase_from(key_of(first));
    const auto erased = store->commit(batch, Durability::sync);
    ASSERT_TRUE(erased) << erased.error().what;
    const double pages = store->statistics().at("admission_reserved_pages");
    EXPECT_GT(pages, 0.0);
    ASSERT_TRUE(store->compact());
  }
  EXPECT_TRUE(contents_of(store->snapshot()).empty());
  EXPECT_LE(store->statistics().at("data_pages_used"), 8.0);
}

TEST_P(Arena, a_reopened_store_admits_what_it_would_have_admitted) {
  std::shared_ptr<SimDisk> disk = SimDisk::make();
  const Options options = bounded(GetParam());
  auto store = open_bounded(disk, options);
  Model model;
  std::uint64_t next = 0;
  for (; next < 400; next += 4) {
    WriteBatch batch;
    for (std::uint64_t i = next; i < next + 4; ++i) {
      batch.put(key_of(i), std::string(300, 'v'));
      model[key_of(i)] = std::string(300, 'v');
    }
    ASSERT_TRUE(store->commit(batch, Durability::volatile_));
  }
  ASSERT_TRUE(store->drain());
  ASSERT_TRUE(store->close());
  const auto twin = disk->killed();
  Model of_twin = model;
  store = open_bounded(twin->killed(), options);
  const std::uint64_t reopened = fill(*store, of_twin, next, 300);
  EXPECT_GT(reopened, 50U);
  store = open_bounded(twin->killed(), options);
  ASSERT_TRUE(store->compact());  // trees of this opening, whose weights are known
  Model of_compacted = model;
  const std::uint64_t compacted = fill(*store, of_compacted, next, 300);
  EXPECT_LE(reopened > compacted ? reopened - compacted : compacted - reopened, 100U);
}

TEST_P(Arena, large_commits_are_admitted_before_they_are_applied) {
  const auto disk = SimDisk::make();
  Options options = bounded(GetParam());
  options.log_segment_bytes = 65536;
  auto store = open_bounded(disk, options);
  std::uint64_t next = 0;
  while (true) {
    WriteBatch batch;
    for (std::uint64_t i = next; i < next + 32; ++i) batch.put(key_of(i), std::string(50, 'v'));
    if (!store->commit(batch, Durability::sync)) break;
    next += 32;
    ASSERT_LT(next, 1000000U);
  }
  EXPECT_GT(next, 1000U);
  const auto drained = store->drain();
  ASSERT_TRUE(drained) << drained.error().what;
  EXPECT_EQ(contents_of(store->snapshot()).size(), next);
}

TEST(ArenaPolicies, weighted_admits_nothing_that_recount_refuses_and_nearly_all_it_admits) {
  for (const std::size_t bytes : {30, 300, 1000, 3000, 20000}) {
    const std::uint64_t keys = bytes < 1000 ? 1000 / bytes : 1;
    Model of_weighted;
    Model of_recount;
    auto weighted = open_bounded(SimDisk::make(), bounded(Admission::weighted));
    auto recount = open_bounded(SimDisk::make(), bounded(Admission::recount));
    const std::uint64_t by_weight = fill(*weighted, of_weighted, 0, bytes, keys);
    const std::uint64_t by_count = fill(*recount, of_recount, 0, bytes, keys);
    EXPECT_EQ(by_weight, by_count) << bytes;  // the fallback decides where the bound does not fit
    const auto statistics = weighted->statistics();
    EXPECT_GT(statistics.at("admission_fast_accepts"), 0.6 * static_cast<double>(by_weight / keys));
    EXPECT_EQ(statistics.at("admission_full_recounts"), statistics.at("admission_exact_fallbacks"));
    EXPECT_EQ(recount->statistics().at("admission_fast_accepts"), 0.0);
    EXPECT_EQ(recount->statistics().at("admission_full_recounts"),
              static_cast<double>(by_count / keys + 1));
  }
}

TEST(ArenaPolicies, unreserved_acknowledges_more_than_a_flush_finds_room_for_and_loses_nothing) {
  std::shared_ptr<SimDisk> disk = SimDisk::make();
  Options options = bounded(Admission::unreserved);
  auto store = open_bounded(disk, options);
  Model model;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    ASSERT_TRUE(store->put(key_of(i), std::string(400, 'v'), Durability::volatile_));
    model[key_of(i)] = std::string(400, 'v');
  }
  const auto full = store->checkpoint();
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().kind, ErrorKind::arena_full) << full.error().what;
  const auto refused = store->put("more", "", Durability::sync);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::arena_full) << refused.error().what;
  EXPECT_EQ(contents_of(store->snapshot()), model);
  EXPECT_LE(data_file_bytes(*disk), arena_bytes);
  ASSERT_TRUE(store->close());
  // A larger bound: everything is there, and goes on.
  disk = disk->killed();
  auto twin = open_bounded(disk->killed(), [&] {
    Options larger = options;
    larger.max_bytes *= 16;
    return larger;
  }());
  EXPECT_EQ(contents_of(twin->snapshot()), model);
  ASSERT_TRUE(twin->drain());
  ASSERT_TRUE(twin->put("more", "", Durability::sync));
  // Erases: those of what is pending need less than what they erase.
  store = open_bounded(disk, options);
  ASSERT_FALSE(store->checkpoint());
  for (std::uint64_t i = 1000; i < 4000; ++i) {
    ASSERT_TRUE(store->erase(key_of(i), Durability::volatile_));
    model.erase(key_of(i));
  }
  const auto flushed = store->checkpoint();
  ASSERT_TRUE(flushed) << flushed.error().what;
  ASSERT_TRUE(store->put("more", "", Durability::sync));
  model["more"] = "";
  EXPECT_EQ(contents_of(store->snapshot()), model);
}

TEST(ArenaPolicies, a_merge_that_meets_a_full_arena_leaves_everything_readable) {
  std::shared_ptr<SimDisk> disk = SimDisk::make();
  auto store = open_bounded(disk, bounded(Admission::unreserved));
  Model model;
  // Two thirds of the arena in overlapping runs: their merge does not fit beside them.
  for (std::uint64_t round = 0; round < 2; ++round) {
    for (std::uint64_t i = 0; i < 1700; i += 2) {
      ASSERT_TRUE(store->put(key_of(i + round), std::string(380, 'v'), Durability::volatile_));
      model[key_of(i + round)] = std::string(380, 'v');
    }
    ASSERT_TRUE(store->checkpoint());
  }
  const auto merged = store->compact();
  ASSERT_FALSE(merged);
  EXPECT_EQ(merged.error().kind, ErrorKind::arena_full) << merged.error().what;
  const double used = store->statistics().at("data_pages_used");
  EXPECT_EQ(contents_of(store->snapshot()), model);
  ASSERT_FALSE(store->compact());
  EXPECT_EQ(store->statistics().at("data_pages_used"), used) << "a failed merge keeps pages";
  ASSERT_TRUE(store->verify());
  ASSERT_TRUE(store->close());
  Options larger = bounded(Admission::unreserved);
  larger.max_bytes *= 2;
  store = open_bounded(disk->killed(), larger);
  const auto again = store->compact();
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(contents_of(store->snapshot()), model);
}

TEST(ArenaPolicies, a_snapshot_keeps_its_pages_and_closing_it_gives_them_back) {
  auto store = open_bounded(SimDisk::make(), bounded(Admission::weighted));
  Model model;
  const std::uint64_t count = fill(*store, model, 0, 300);
  ASSERT_TRUE(store->compact());
  {
    const Snapshot held = store->snapshot();
    const Model seen = model;
    WriteBatch batch;
    batch.erase_range(key_of(0), key_of(200));
    ASSERT_TRUE(store->commit(batch, Durability::sync));
    erase_range(model, key_of(0), key_of(200));
    (void)store->compact();
    EXPECT_EQ(contents_of(held), seen);
    EXPECT_LT(fill(*store, model, count, 300), 100U);
    EXPECT_EQ(contents_of(store->snapshot()), model);
  }
  ASSERT_TRUE(store->compact());
  EXPECT_GE(fill(*store, model, 2 * count, 300), 100U);
  // The refused commit finds by itself what a snapshot that was closed since gives back.
  EXPECT_LE(store->statistics().at("data_pages_used") - store->statistics().at("tree_pages"), 2.0);
}

TEST(ArenaPolicies, the_log_lies_outside_of_the_bound) {
  const auto disk = SimDisk::make();
  Options options = bounded(Admission::weighted, std::uint64_t{1} << 20);
  options.log_segment_bytes = 65536;
  auto store = open_bounded(disk, options);
  // Four times the bound in the log, of one key: one entry is pending.
  for (int i = 0; i < 4200; ++i) {
    const auto receipt = store->put("key", std::string(1000, 'v'), Durability::volatile_);
    ASSERT_TRUE(receipt) << i << ": " << receipt.error().what;
  }
  ASSERT_TRUE(store->sync());
  EXPECT_LE(data_file_bytes(*disk), std::uint64_t{1} << 20);
  ASSERT_TRUE(store->drain());
}

TEST(ArenaPolicies, a_bound_that_is_too_small_is_refused) {
  const auto store = Store::open(SimDisk::make(), bounded(Admission::weighted, 8192));
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::bad_input);
  EXPECT_NE(store.error().what.find("max_bytes"), std::string::npos);
}

TEST(ArenaPolicies, a_store_larger_than_its_new_bound_reads_and_refuses_puts) {
  std::shared_ptr<SimDisk> disk = SimDisk::make();
  Model model;
  {
    auto store = open_bounded(disk, bounded(Admission::weighted, 4 * arena_bytes));
    for (std::uint64_t i = 0; i < 4000; ++i) {
      ASSERT_TRUE(store->put(key_of(i), std::string(300, 'v'), Durability::volatile_));
      model[key_of(i)] = std::string(300, 'v');
    }
    ASSERT_TRUE(store->compact());
    ASSERT_TRUE(store->close());
    disk = disk->killed();
  }
  for (const Admission admission : {Admission::recount, Admission::weighted}) {
    auto store = open_bounded(disk->killed(), bounded(admission, arena_bytes));
    ASSERT_NE(store, nullptr);
    EXPECT_EQ(contents_of(store->snapshot()), model);
    EXPECT_EQ(store->put("more", "", Durability::sync).error().kind, ErrorKind::arena_full);
  }
}

}  // namespace
}  // namespace lode
