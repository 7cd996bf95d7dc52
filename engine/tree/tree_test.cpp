#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <thread>

#include "engine/file/sim_disk.h"
#include "engine/overlay/readers.h"
#include "engine/tree/page_search.h"
#include "engine/tree/tree.h"

namespace lode {
namespace {

struct Entry {
  EntryKind kind = EntryKind::value;
  std::string value;
};
using Model = std::map<std::string, Entry>;

std::string random_text(std::mt19937_64& random, std::size_t most) {
  std::string text(random() % (most + 1), '\0');
  for (char& c : text) c = static_cast<char>(random() % 3 == 0 ? random() : 'a' + random() % 4);
  return text;
}

struct Fixture {
  explicit Fixture(std::size_t pool_bytes = 0)
      : file(disk->open("data", {.create = true}).value()), space(2), pool(*file, pool_bytes) {}
  TreeSpace tree_space() { return {*file, space, pool}; }

  std::shared_ptr<const Tree> build(const Model& model, std::uint64_t number = 1,
                                    KeyKind keys = KeyKind::bytes) {
    TreeBuilder builder(tree_space(), number, keys);
    for (const auto& [key, entry] : model) {
      EXPECT_TRUE(builder.add(key, entry.kind, entry.value));
    }
    return builder.finish().value();
  }

  std::shared_ptr<SimDisk> disk = SimDisk::make();
  std::unique_ptr<File> file;
  ExtentAllocator space;
  PagePool pool;
};

Model random_model(std::mt19937_64& random, std::size_t count) {
  Model model;
  while (model.size() < count) {
    Entry entry;
    switch (random() % 20) {
      case 0:
        entry.kind = EntryKind::tombstone;
        break;
      case 1:
        entry.value = random_text(random, 30000);
        break;
      case 2:
        entry.value = random_text(random, 1100);
        break;
      default:
        entry.value = random_text(random, 40);
        break;
    }
    std::string key = random() % 2 == 0    ? "user" + std::to_string(random() % 100000)
                      : random() % 30 == 0 ? random_text(random, max_key_bytes)
                                           : random_text(random, 12);
    model[key] = entry;
  }
  return model;
}

void expect_entry(TreeCursor& cursor, const std::string& key, const Entry& entry) {
  ASSERT_TRUE(cursor.valid());
  ASSERT_EQ(cursor.key(), key);
  ASSERT_EQ(cursor.kind(), entry.kind);
  ASSERT_EQ(cursor.value().value(), entry.value);
}

std::string big_endian(std::uint64_t number) {
  std::string key(8, '\0');
  store(reinterpret_cast<std::byte*>(key.data()), __builtin_bswap64(number));
  return key;
}

// Numbers close together, far apart, and at both ends of the range.
Model random_u64_model(std::mt19937_64& random, std::size_t count, unsigned shift) {
  Model model;
  for (auto& [key, entry] : random_model(random, count)) {
    std::uint64_t number = random() >> shift;
    if (random() % 50 == 0) number = random() % 2 == 0 ? random() % 4 : ~(random() % 4);
    model[big_endian(number)] = entry;
  }
  return model;
}

void expect_tree(const Model& model, const std::shared_ptr<const Tree>& tree,
                 std::mt19937_64& random);

TEST(Tree, gives_back_what_was_built_by_key_and_in_order_both_ways) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Fixture fixture;
    const Model model = random_model(random, seed == 1 ? 1 : seed == 2 ? 50 : 3000);
    expect_tree(model, fixture.build(model), random);
  }
}

TEST(Tree, of_u64_keys_gives_back_what_was_built_with_keys_of_every_width) {
  for (const unsigned shift : {0U, 16U, 32U, 40U, 48U, 52U}) {
    SCOPED_TRACE("shift " + std::to_string(shift));
    std::mt19937_64 random(shift + 1);
    Fixture fixture;
    const Model model = random_u64_model(random, 4000, shift);
    expect_tree(model, fixture.build(model, 1, KeyKind::u64), random);
  }
}

TEST(Tree, of_u64_keys_takes_less_space_than_the_same_keys_as_bytes) {
  Fixture fixture;
  std::mt19937_64 random(3);
  Model close;
  Model far;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    close[big_endian(i * 7)] = {EntryKind::value, "12345678"};
    far[big_endian(random())] = {EntryKind::value, "12345678"};
  }
  const auto pages = [&](const Model& model, KeyKind keys) {
    return fixture.build(model, 1, keys)->info().pages();
  };
  EXPECT_LT(pages(close, KeyKind::u64) * 10, pages(close, KeyKind::bytes) * 9);
  EXPECT_LT(pages(far, KeyKind::u64), pages(far, KeyKind::bytes));
}

void expect_tree(const Model& model, const std::shared_ptr<const Tree>& tree,
                 std::mt19937_64& random) {
  {
    ASSERT_TRUE(tree->verify());
    TreeCursor cursor(tree);
    cursor.seek_first();
    for (const auto& [key, entry] : model) {
      expect_entry(cursor, key, entry);
      cursor.next();
    }
    EXPECT_FALSE(cursor.valid());
    cursor.seek_last();
    for (auto at = model.rbegin(); at != model.rend(); ++at) {
      expect_entry(cursor, at->first, at->second);
      cursor.prev();
    }
    EXPECT_FALSE(cursor.valid());
    for (int i = 0; i < 3000; ++i) {
      const std::string key =
          random() % 2 == 0
              ? std::next(model.begin(), static_cast<std::ptrdiff_t>(random() % model.size()))
                    ->first
          : random() % 3 == 0 ? random_text(random, 8) + random_text(random, 4)
                              : random_text(random, 8);
      const auto found = model.find(key);
      std::string value;
      const Lookup lookup = tree->get(key, filter_hash(key), value).value();
      ASSERT_EQ(lookup.found, found != model.end());
      if (lookup.found) {
        ASSERT_EQ(lookup.deleted, found->second.kind == EntryKind::tombstone);
        if (!lookup.deleted) {
          ASSERT_EQ(value, found->second.value);
        }
      }
      const auto bound = model.lower_bound(key);
      cursor.seek(key);
      ASSERT_EQ(cursor.valid(), bound != model.end());
      if (!cursor.valid()) continue;
      ASSERT_EQ(cursor.key(), bound->first);
      cursor.prev();
      ASSERT_EQ(cursor.valid(), bound != model.begin());
      if (cursor.valid()) {
        ASSERT_EQ(cursor.key(), std::prev(bound)->first);
      }
    }
  }
}

TEST(Tree, comes_back_from_its_manifest_entry) {
  std::mt19937_64 random(4);
  Fixture fixture;
  const Model model = random_model(random, 500);
  const auto tree = fixture.build(model, 77);
  std::string stored;
  Encoder encoder(stored);
  tree->info().encode(encoder);
  Decoder decoder(as_bytes(stored));
  const auto info = TreeInfo::decode(decoder);
  ASSERT_TRUE(info);
  PagePool pool(*fixture.file, 0);
  ExtentAllocator space(2);
  for (const Extent& extent : info->extents) ASSERT_TRUE(space.claim(extent));
  const auto again = std::make_shared<const Tree>(TreeSpace{*fixture.file, space, pool}, *info);
  EXPECT_TRUE(again->verify());
  for (std::size_t cut = 0; cut < stored.size(); ++cut) {
    Decoder part(as_bytes(std::string_view(stored).substr(0, cut)));
    EXPECT_FALSE(TreeInfo::decode(part)) << cut;
  }
}

TEST(Tree, reports_every_flipped_bit_of_its_pages_and_values) {
  std::mt19937_64 random(9);
  Fixture fixture;
  const auto tree = fixture.build(random_model(random, 400));
  const std::string image = *fixture.disk->contents("data");
  int found_in_values = 0;
  for (int i = 0; i < 400; ++i) {
    std::string changed = image;
    const std::size_t at = 2 * page_bytes + random() % (image.size() - 2 * page_bytes);
    changed[at] = static_cast<char>(changed[at] ^ (1 << random() % 8));
    fixture.disk->set_contents("data", changed);
    PagePool pool(*fixture.file, 0);
    ExtentAllocator space(2);
    for (const Extent& extent : tree->info().extents) ASSERT_TRUE(space.claim(extent));
    const Tree again(TreeSpace{*fixture.file, space, pool}, tree->info());
    const auto status = again.verify();
    const bool in_page =
        load<std::uint32_t>(as_bytes(image).data() + at / page_bytes * page_bytes) == page_magic;
    if (status) {
      EXPECT_FALSE(in_page) << "flip at " << at;  // else: the padding of an extent of values
    } else {
      EXPECT_EQ(status.error().kind, ErrorKind::corruption);
      if (!in_page) ++found_in_values;
    }
  }
  EXPECT_GT(found_in_values, 100);
}

TEST(Tree, finds_lost_and_misdirected_writes_by_the_parents_checksum) {
  Fixture fixture;
  Model old_model;
  Model new_model;
  for (int i = 0; i < 5000; ++i) {
    old_model["key" + std::to_string(i)] = {EntryKind::value, "old"};
    new_model["key" + std::to_string(i)] = {EntryKind::value, "new"};
  }
  std::string old_image;
  Extent place;
  {
    const auto old_tree = fixture.build(old_model, 1);
    place = old_tree->info().extents.front();
    old_image = *fixture.disk->contents("data");
  }
  const auto tree = fixture.build(new_model, 1);  // even the same number, in the same pages
  ASSERT_EQ(tree->info().extents.front().first, place.first);
  const std::string image = *fixture.disk->contents("data");
  const std::size_t at = place.first.value * page_bytes;
  std::string lost = image;
  lost.replace(at, page_bytes, old_image, at, page_bytes);
  std::string astray = image;
  astray.replace(at, page_bytes, image, at + page_bytes, page_bytes);
  for (const std::string& damaged : {lost, astray}) {
    fixture.disk->set_contents("data", damaged);
    PagePool pool(*fixture.file, 0);
    ExtentAllocator space(2);
    for (const Extent& extent : tree->info().extents) ASSERT_TRUE(space.claim(extent));
    const Tree again(TreeSpace{*fixture.file, space, pool}, tree->info());
    EXPECT_EQ(again.verify().error().kind, ErrorKind::corruption);
  }
}

TEST(ExtentAllocator, reuses_what_was_freed_and_never_hands_out_a_page_twice) {
  std::mt19937_64 random(11);
  ExtentAllocator space(2);
  std::map<std::uint64_t, std::uint64_t> held;
  for (int i = 0; i < 3000; ++i) {
    if (random() % 2 == 0 || held.empty()) {
      const std::uint64_t least = 1 + random() % 20;
      const Extent extent = space.allocate(least, least + random() % 50).value();
      ASSERT_GE(extent.pages, least);
      ASSERT_GE(extent.first.value, 2U);
      for (const auto& [first, pages] : held) {
        ASSERT_TRUE(first + pages <= extent.first.value ||
                    extent.first.value + extent.pages <= first);
      }
      held[extent.first.value] = extent.pages;
    } else {
      auto victim = std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
      space.free({PageId(victim->first), victim->second});
      held.erase(victim);
    }
  }
  for (const auto& [first, pages] : held) space.free({PageId(first), pages});
  EXPECT_EQ(space.used_pages(), 0U);
  EXPECT_EQ(space.allocate(1, 1)->first, PageId(2));
}

TEST(PagePool, reads_a_tree_far_larger_than_itself_with_many_cursors) {
  Fixture fixture;  // 64 frames
  Model model;
  for (int i = 0; i < 40000; ++i) {
    model["key" + std::to_string(i)] = {EntryKind::value, std::string(60, 'v')};
  }
  const auto tree = fixture.build(model);
  ASSERT_GT(tree->info().pages(), 4 * fixture.pool.frames());
  std::deque<TreeCursor> cursors;
  for (int i = 0; i < 100; ++i) {
    cursors.emplace_back(tree);
    cursors.back().seek("key" + std::to_string(i * 397));
    ASSERT_TRUE(cursors.back().valid());
  }
  EXPECT_GT(fixture.pool.counters().overflows.load(), 0U) << "every frame is pinned";
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(cursors[static_cast<std::size_t>(i)].key(), "key" + std::to_string(i * 397));
  }
  cursors.clear();
  TreeCursor all(tree);
  std::size_t count = 0;
  for (all.seek_first(); all.valid(); all.next()) ++count;
  EXPECT_EQ(count, model.size());
}

TEST(PagePool, serves_readers_side_by_side_while_pages_come_and_go) {
  Fixture fixture;
  Model model;
  for (int i = 0; i < 20000; ++i) {
    model["key" + std::to_string(i)] = {EntryKind::value, std::string(50, 'v') + std::to_string(i)};
  }
  const auto tree = fixture.build(model);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      std::string value;
      for (int i = 0; i < 4000; ++i) {
        const std::string number = std::to_string(random() % 20000);
        const std::string key = "key" + number;
        const auto lookup = tree->get(key, filter_hash(key), value);
        ASSERT_TRUE(lookup && lookup->found);
        ASSERT_EQ(value, std::string(50, 'v') + number);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(fixture.pool.counters().misses.load(), fixture.pool.frames());
}

TEST(PagePool, leaves_a_page_as_it_is_until_its_announced_reader_ends) {
  Fixture fixture;
  Readers readers;
  std::atomic<std::uint64_t> published{1};
  PagePool pool(*fixture.file, 0, [&] { readers.wait_for_page_readers(); });
  Model model;
  for (int i = 0; i < 20000; ++i) {
    model["key" + std::to_string(i)] = {EntryKind::value, std::string(60, 'v')};
  }
  ExtentAllocator space(2);  // the tree reads through the other pool
  const auto built = fixture.build(model);
  for (const Extent& extent : built->info().extents) ASSERT_TRUE(space.claim(extent));
  const auto tree =
      std::make_shared<const Tree>(TreeSpace{*fixture.file, space, pool}, built->info());
  ASSERT_GT(tree->info().pages(), 2 * pool.frames());
  {
    TreeCursor first(tree);
    first.seek_first();
  }
  const std::size_t slot = readers.enter(published, true);
  const PageId place = tree->info().extents.front().first;  // the first leaf
  const std::byte* page = pool.resident(place);
  ASSERT_NE(page, nullptr);
  const std::string before(as_text(ConstBytes(page, page_bytes)));
  std::atomic<bool> done{false};
  std::thread other([&] {
    TreeCursor all(tree);
    for (all.seek_first(); all.valid(); all.next()) {
    }
    for (all.seek_first(); all.valid(); all.next()) {
    }
    done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(done) << "frames were used again beside a reader";
  EXPECT_TRUE(as_text(ConstBytes(page, page_bytes)) == before) << "the page has changed";
  readers.stop_reading_pages(slot);
  other.join();
  readers.leave(slot);
}

TEST(PagePool, reports_a_read_error_and_goes_on_when_it_is_gone) {
  Fixture fixture;
  const auto tree = fixture.build({{"a", {EntryKind::value, "1"}}});
  std::string value;
  fixture.disk->fail_reads_of("data");
  EXPECT_EQ(tree->get("a", filter_hash("a"), value).error().kind, ErrorKind::io);
  fixture.disk->fail_reads_of("");
  EXPECT_TRUE(tree->get("a", filter_hash("a"), value)->found);
}

TEST(Filter, never_denies_a_key_and_is_wrong_rarely) {
  std::vector<std::uint64_t> hashes;
  for (int i = 0; i < 20000; ++i) hashes.push_back(filter_hash("in" + std::to_string(i)));
  const Filter filter(hashes);
  const Filter stored(filter.bytes());
  int wrong = 0;
  for (int i = 0; i < 20000; ++i) {
    ASSERT_TRUE(stored.may_hold(filter_hash("in" + std::to_string(i))));
    if (filter.may_hold(filter_hash("out" + std::to_string(i)))) ++wrong;
  }
  EXPECT_LT(wrong, 500) << "2.5 % of 20,000";
  EXPECT_TRUE(Filter().may_hold(1));
}

TEST(Filter, hashes_as_it_always_did) {
  // The hash is part of the format: a change makes filters of existing stores deny their keys.
  // The numbers come from a second implementation, in Python's integers.
  EXPECT_EQ(filter_hash(""), 0xE220A8397B1DCDAFU);
  EXPECT_EQ(filter_hash("a"), 0x6232969000262121U);
  EXPECT_EQ(filter_hash("user0000000000000001"), 0x444A802104A02B3DU);
}

TEST(PageSearch, gives_the_answers_of_its_scalar_twin) {
  std::mt19937_64 random(17);
  const auto compare = [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t count = 0; count < 700; count = count < 70 ? count + 1 : count + 37) {
      std::vector<T> numbers(count);
      // Few different ones as well, so that there are equal ones.
      const std::uint64_t range = random() % 2 == 0 ? 0 : 1 + random() % 40;
      for (T& number : numbers) {
        number = static_cast<T>(range == 0 ? random() : std::uint64_t{250} + random() % range);
      }
      std::sort(numbers.begin(), numbers.end());
      std::string bytes(1, ' ');  // not aligned
      bytes.append(reinterpret_cast<const char*>(numbers.data()), count * sizeof(T));
      const std::byte* at = as_bytes(bytes).data() + 1;
      for (int i = 0; i < 60; ++i) {
        T target = static_cast<T>(random());
        if (i == 0) target = 0;
        if (i == 1) target = static_cast<T>(~std::uint64_t{0});
        if (i > 20 && count > 0) target = static_cast<T>(numbers[random() % count] + random() % 2);
        const auto right = static_cast<std::size_t>(
            std::lower_bound(numbers.begin(), numbers.end(), target) - numbers.begin());
        ASSERT_EQ(count_below_scalar<T>(at, count, target), right);
        ASSERT_EQ(count_below<T>(at, count, target), right) << sizeof(T) << " " << count;
      }
    }
  };
  compare(std::uint8_t{});
  compare(std::uint16_t{});
  compare(std::uint32_t{});
  compare(std::uint64_t{});
}

TEST(Page, refuses_malformed_structures_instead_of_reading_beyond) {
  for (const auto kind :
       {PageKind::leaf, PageKind::inner, PageKind::leaf_u64, PageKind::inner_u64}) {
    PageBuilder builder(kind);
    std::vector<std::byte> page(page_bytes);
    const std::string data(page_ref_bytes, 'r');
    for (int i = 0; i < 50; ++i) {
      const std::string text = "key" + std::to_string(10000 + i);
      ASSERT_TRUE(builder.add(text, CellKind::value, data));
    }
    builder.finish(0, PageId(5), 1, page.data());
    ASSERT_TRUE(check_page_structure(page.data()));
    std::mt19937_64 random(13);
    for (int i = 0; i < 20000; ++i) {
      std::vector<std::byte> changed = page;
      for (std::size_t n = 1 + random() % 4; n > 0; --n) {
        changed[24 + random() % 1200] = static_cast<std::byte>(random());
      }
      if (!check_page_structure(changed.data())) continue;
      // What passes the check can be read without leaving the page (ASan watches).
      const PageView view(changed.data());
      std::array<char, key_buffer_bytes> key;
      bool equal = false;
      (void)view.lower_bound("key10020", equal);
      for (std::size_t c = 0; c < view.count(); ++c) {
        ASSERT_LE(view.key(c, key.data()), max_key_bytes);
        if (view.leaf()) {
          (void)view.cell(c);
        } else {
          (void)view.child(c);
        }
      }
    }
  }
}

}  // namespace
}  // namespace lode
