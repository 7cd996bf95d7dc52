// Damaged trees are built anew from their leaves; damaged leaves are reported and cost nothing
// else.
#include <algorithm>

#include "engine/store/store_fixture.h"
#include "engine/tree/page.h"

namespace lode {
namespace {

// Trees of three levels: keys in groups with a long prefix of their own, so that separators are
// long. Several runs, tombstones, some large values.
struct Scene {
  Options options = small_options();
  Model model;
  std::string data;  // the data file
  std::shared_ptr<SimDisk> disk;
};

Scene make_scene(KeyKind keys, bool tail_in_log) {
  Scene scene;
  scene.options.tree_bytes = 2000000;
  scene.options.log_segment_bytes = 1 << 20;
  scene.options.key_kind = keys;
  auto disk = SimDisk::make();
  auto store = Store::open(disk, scene.options).value();
  std::mt19937_64 random(5);
  const auto put = [&](WriteBatch& batch, int i) {
    std::string key = u64_key(static_cast<std::uint64_t>(i) * 1000003);
    if (keys == KeyKind::bytes) key = std::to_string(i / 40) + std::string(300, 'g') + key;
    std::string value(1000, static_cast<char>('a' + i % 26));
    if (i % 97 == 0) value = std::string(5000, 'L') + std::to_string(random());
    batch.put(key, value);
    scene.model[key] = value;
    if (i % 31 != 0 || i == 0) return;
    const std::string gone = scene.model.begin()->first;
    batch.erase(gone);
    scene.model.erase(gone);
  };
  for (int round = 0; round < 2; ++round) {
    WriteBatch batch;
    for (int i = 0; i < (round == 0 ? 900 : 60); ++i) put(batch, i * (round == 0 ? 1 : 13));
    EXPECT_TRUE(store->commit(batch, Durability::volatile_));
    EXPECT_TRUE(store->checkpoint());
  }
  if (tail_in_log) {
    WriteBatch batch;
    batch.erase_range(scene.model.begin()->first, std::next(scene.model.begin(), 50)->first);
    scene.model.erase(scene.model.begin(), std::next(scene.model.begin(), 50));
    put(batch, 5000);
    EXPECT_TRUE(store->commit(batch, Durability::sync));
  }
  EXPECT_TRUE(store->close());
  store.reset();
  scene.disk = disk->crashed(keep_none);
  scene.data = scene.disk->contents("data").value();
  return scene;
}

// Offsets of the pages of a kind: leaves, or else inner pages.
std::vector<std::size_t> pages_of(const std::string& data, bool leaves) {
  std::vector<std::size_t> found;
  for (std::size_t at = 2 * page_bytes; at + page_bytes <= data.size(); at += page_bytes) {
    if (data.compare(at, 4, "lPag") != 0) continue;
    const auto kind = static_cast<unsigned char>(data[at + 24]);
    if ((kind % 2 == 1) == leaves) found.push_back(at);
  }
  return found;
}

std::shared_ptr<SimDisk> with_flips(const Scene& scene, const std::vector<std::size_t>& offsets) {
  auto image = scene.disk->killed();
  std::string data = scene.data;
  for (const std::size_t at : offsets) data[at] = static_cast<char>(data[at] ^ 16);
  image->set_contents("data", std::move(data));
  return image;
}

void expect_whole(const std::shared_ptr<SimDisk>& disk, const Scene& scene) {
  auto store = Store::open(disk, scene.options);
  ASSERT_TRUE(store) << store.error().what;
  const auto verified = (*store)->verify();
  ASSERT_TRUE(verified) << verified.error().what;
  ASSERT_TRUE(contents_of((*store)->snapshot()) == scene.model);
}

TEST(Rebuild, makes_a_store_whole_whichever_inner_page_is_damaged) {
  for (const KeyKind keys : {KeyKind::bytes, KeyKind::u64}) {
    const Scene scene = make_scene(keys, false);
    const auto inner = pages_of(scene.data, false);
    ASSERT_GE(inner.size(), keys == KeyKind::bytes ? 4U : 2U);
    std::vector<std::vector<std::size_t>> choices;
    std::vector<std::size_t> all;
    for (const std::size_t at : inner) {
      choices.push_back({at + 3000});  // contents
      all.push_back(at + 40);
    }
    choices.push_back({inner[0] + 4});   // the checksum itself
    choices.push_back({inner[0] + 16});  // the tree's number
    choices.push_back(all);
    for (const auto& choice : choices) {
      SCOPED_TRACE("flip at " + std::to_string(choice[0]));
      const auto image = with_flips(scene, choice);
      {
        auto store = Store::open(image, scene.options).value();
        ASSERT_EQ(store->verify().error().kind, ErrorKind::corruption);
      }
      const auto disk = image->killed();
      const auto report = Store::rebuild(disk, scene.options, {});
      ASSERT_TRUE(report) << report.error().what;
      EXPECT_TRUE(report->lost.empty());
      EXPECT_EQ(report->lost_entries, 0U);
      EXPECT_GE(report->rebuilt_trees, 1U);
      EXPECT_EQ(report->rebuilt_trees, report->damaged_trees);
      expect_whole(disk->crashed(keep_none), scene);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Rebuild, makes_every_inner_page_anew_that_was_dropped) {
  for (const bool tail_in_log : {false, true}) {
    const Scene scene = make_scene(KeyKind::u64, tail_in_log);
    const auto disk = scene.disk->killed();
    const auto dropped = Store::drop_inner_pages(disk, scene.options);
    ASSERT_TRUE(dropped) << dropped.error().what;
    EXPECT_EQ(*dropped, pages_of(scene.data, false).size());
    const std::string left = disk->contents("data").value();
    EXPECT_TRUE(pages_of(left, false).empty());
    EXPECT_EQ(pages_of(left, true), pages_of(scene.data, true)) << "no leaf is touched";
    const auto again = disk->crashed(keep_none);
    const auto report = Store::rebuild(again, scene.options, {});
    ASSERT_TRUE(report) << report.error().what;
    EXPECT_TRUE(report->lost.empty());
    EXPECT_EQ(report->restored_pages, *dropped) << "each at its own place";
    EXPECT_GT(report->rebuilt_entries, 0U);
    EXPECT_EQ(again->contents("data").value().substr(2 * page_bytes),
              scene.data.substr(2 * page_bytes))
        << "byte for byte what was there";
    expect_whole(again->crashed(keep_none), scene);
  }
}

TEST(Rebuild, of_a_store_without_damage_changes_nothing) {
  const Scene scene = make_scene(KeyKind::bytes, false);
  const auto report = Store::rebuild(scene.disk->killed(), scene.options, {});
  ASSERT_TRUE(report);
  EXPECT_GE(report->trees, 2U);
  EXPECT_EQ(report->damaged_trees, 0U);
  EXPECT_EQ(scene.disk->contents("data").value(), scene.data);
}

TEST(Rebuild, works_when_the_log_cannot_be_replayed_over_the_damage) {
  const Scene scene = make_scene(KeyKind::bytes, true);
  std::vector<std::size_t> all;
  for (const std::size_t at : pages_of(scene.data, false)) all.push_back(at + 3000);
  const auto image = with_flips(scene, all);
  EXPECT_EQ(Store::open(image->killed(), scene.options).error().kind, ErrorKind::corruption)
      << "the range erase in the log has to read the tree";
  const auto report = Store::rebuild(image, scene.options, {});
  ASSERT_TRUE(report) << report.error().what;
  expect_whole(image->crashed(keep_none), scene);
}

TEST(Rebuild, makes_a_damaged_filter_anew) {
  const Scene scene = make_scene(KeyKind::u64, false);
  // The filter lies behind the values; its place is in no page, so every block without a page is
  // hit in turn until verify notices nothing but a filter.
  std::size_t filters = 0;
  for (std::size_t at = 2 * page_bytes; at + page_bytes <= scene.data.size(); at += 512) {
    if (scene.data.compare(at / page_bytes * page_bytes, 4, "lPag") == 0) continue;
    const auto image = with_flips(scene, {at});
    auto store = Store::open(image, scene.options);
    if (!store) continue;  // a manifest
    const auto verified = (*store)->verify();
    if (verified || verified.error().what.find("filter") == std::string::npos) continue;
    ++filters;
    const auto disk = image->killed();
    const auto report = Store::rebuild(disk, scene.options, {});
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->lost.empty());
    expect_whole(disk->crashed(keep_none), scene);
  }
  EXPECT_GE(filters, 1U);
}

TEST(Rebuild, reports_what_a_damaged_leaf_costs_and_changes_nothing_unless_told_to) {
  for (const KeyKind keys : {KeyKind::bytes, KeyKind::u64}) {
    const Scene scene = make_scene(keys, false);
    const auto leaves = pages_of(scene.data, true);
    const auto inner = pages_of(scene.data, false);
    for (std::size_t i = 0; i < leaves.size(); i += leaves.size() / 9 + 1) {
      for (const bool and_inner : {false, true}) {
        SCOPED_TRACE("leaf at " + std::to_string(leaves[i]) + (and_inner ? " and its parent" : ""));
        std::vector<std::size_t> flips{leaves[i] + 2000};
        if (and_inner) flips.push_back(inner[0] + 3000);
        const auto image = with_flips(scene, flips);
        const std::string before = image->contents("data").value();
        const auto refused = Store::rebuild(image->killed(), scene.options, {});
        ASSERT_TRUE(refused) << refused.error().what;
        ASSERT_FALSE(refused->lost.empty());
        EXPECT_GT(refused->lost_entries, 0U);
        EXPECT_EQ(refused->rebuilt_trees, 0U);
        EXPECT_TRUE(image->contents("data").value() == before) << "nothing was changed";
        const auto disk = image->killed();
        const auto report = Store::rebuild(disk, scene.options, {.accept_loss = true});
        ASSERT_TRUE(report) << report.error().what;
        EXPECT_EQ(report->rebuilt_trees, report->damaged_trees);
        auto store = Store::open(disk->crashed(keep_none), scene.options).value();
        ASSERT_TRUE(store->verify());
        const Model now = contents_of(store->snapshot());
        std::uint64_t different = 0;
        const auto is_lost = [&](const std::string& key) {
          return std::any_of(report->lost.begin(), report->lost.end(), [&](const LostRange& range) {
            return range.first <= key && key <= range.last;
          });
        };
        for (const auto& [key, value] : scene.model) {
          const auto found = now.find(key);
          if (found != now.end() && found->second == value) continue;
          ++different;
          ASSERT_TRUE(is_lost(key)) << "a key outside of the reported ranges is gone";
        }
        for (const auto& [key, value] : now) {
          ASSERT_TRUE(scene.model.contains(key) || is_lost(key)) << "an erased key is back";
        }
        EXPECT_LE(different, report->lost_entries);
        EXPECT_LT(report->lost_entries, 900U / 10) << "one leaf is not the tree";
      }
    }
  }
}

TEST(Rebuild, reports_the_key_of_a_damaged_large_value) {
  const Scene scene = make_scene(KeyKind::bytes, false);
  const std::size_t at = scene.data.rfind("LLLLLLLLLLLLLLLL");
  ASSERT_NE(at, std::string::npos);
  const auto image = with_flips(scene, {at});
  const auto report = Store::rebuild(image, scene.options, {.accept_loss = true});
  ASSERT_TRUE(report);
  ASSERT_EQ(report->lost.size(), 1U);
  EXPECT_EQ(report->lost[0].first, report->lost[0].last);
  EXPECT_EQ(report->lost_entries, 1U);
  auto store = Store::open(image->crashed(keep_none), scene.options).value();
  EXPECT_TRUE(store->verify());
}

TEST(Rebuild, of_the_index_alone_leaves_damaged_values_to_their_readers) {
  const Scene scene = make_scene(KeyKind::bytes, false);
  const std::size_t at = scene.data.rfind("LLLLLLLLLLLLLLLL");
  ASSERT_NE(at, std::string::npos);
  const auto image = with_flips(scene, {at, pages_of(scene.data, false)[0] + 3000});
  const auto report = Store::rebuild(image, scene.options, {.check_values = false});
  ASSERT_TRUE(report) << report.error().what;
  EXPECT_TRUE(report->lost.empty());
  EXPECT_EQ(report->restored_pages, 1U);
  auto store = Store::open(image->crashed(keep_none), scene.options).value();
  EXPECT_EQ(store->verify().error().kind, ErrorKind::corruption) << "the value is still damaged";
}

TEST(Rebuild, cut_off_anywhere_can_be_done_again) {
  const Scene scene = make_scene(KeyKind::bytes, true);
  std::vector<std::size_t> all;
  for (const std::size_t at : pages_of(scene.data, false)) all.push_back(at + 3000);
  const auto damaged = with_flips(scene, all);
  bool finished = false;
  std::uint64_t call = 1;
  for (; !finished; ++call) {
    const auto disk = damaged->killed();
    disk->fail_at(call, Fault::power_cut);
    finished = Store::rebuild(disk, scene.options, {}).has_value();
    for (const std::uint64_t seed : {0U, 1U, 2U, 3U}) {
      SCOPED_TRACE("power cut at call " + std::to_string(call) + ", choice " +
                   std::to_string(seed));
      const auto image = disk->crashed(seed == 0   ? keep_none
                                       : seed == 1 ? keep_all
                                                   : keep_some(call * 4 + seed, 60));
      if (!finished) {
        const auto again = Store::rebuild(image->killed(), scene.options, {});
        ASSERT_TRUE(again) << again.error().what;
        ASSERT_TRUE(again->lost.empty()) << "a leaf was overwritten";
        const auto disk_after = image->killed();
        ASSERT_TRUE(Store::rebuild(disk_after, scene.options, {}));
        expect_whole(disk_after->crashed(keep_none), scene);
      } else {
        expect_whole(image, scene);
      }
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_GT(call, 6U);
}

}  // namespace
}  // namespace lode
