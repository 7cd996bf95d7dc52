#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "engine/overlay/radix_trie.h"

namespace lode {
namespace {

using Model = std::map<std::string, std::string>;

// Keys that provoke the trie: short alphabets, prefixes of each other, runs, all 256 bytes.
std::string random_key(std::mt19937_64& random) {
  std::string key;
  switch (random() % 4) {
    case 0:
      for (std::size_t n = random() % 6; n > 0; --n) key += static_cast<char>('a' + random() % 2);
      break;
    case 1:
      for (std::size_t n = random() % 4; n > 0; --n) key += static_cast<char>(random());
      break;
    case 2:
      key = std::string(random() % 40, 'x') + static_cast<char>(random() % 3);
      break;
    default:
      key = "user" + std::to_string(random() % 1000);
      break;
  }
  return key;
}

void expect_same(const trie::Node* root, const Model& model, std::mt19937_64& random) {
  TrieCursor cursor(root);
  cursor.seek_first();
  for (const auto& [key, value] : model) {
    ASSERT_TRUE(cursor.valid());
    ASSERT_EQ(cursor.key(), key);
    ASSERT_EQ(cursor.leaf()->value(), value);
    cursor.next();
  }
  ASSERT_FALSE(cursor.valid());
  cursor.seek_last();
  for (auto at = model.rbegin(); at != model.rend(); ++at) {
    ASSERT_TRUE(cursor.valid());
    ASSERT_EQ(cursor.key(), at->first);
    cursor.prev();
  }
  ASSERT_FALSE(cursor.valid());
  for (int i = 0; i < 30; ++i) {
    const std::string key = random_key(random);
    const trie::Leaf* leaf = RadixTrie::find(root, key);
    const auto found = model.find(key);
    ASSERT_EQ(leaf != nullptr, found != model.end());
    if (leaf != nullptr) {
      ASSERT_EQ(leaf->value(), found->second);
    }
    auto bound = model.lower_bound(key);
    cursor.seek(key);
    ASSERT_EQ(cursor.valid(), bound != model.end());
    if (!cursor.valid()) continue;
    ASSERT_EQ(cursor.key(), bound->first);
    // Turn around in the middle.
    cursor.prev();
    ASSERT_EQ(cursor.valid(), bound != model.begin());
    if (cursor.valid()) {
      ASSERT_EQ(cursor.key(), std::prev(bound)->first);
      cursor.next();
      ASSERT_EQ(cursor.key(), bound->first);
    }
  }
}

TEST(RadixTrie, agrees_with_an_ordered_map_and_keeps_its_old_states) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Readers readers;
    RadixTrie overlay(readers);
    Model model;
    std::map<std::uint64_t, std::pair<const trie::Node*, Model>> snapshots;
    for (std::uint64_t generation = 1; generation <= 120; ++generation) {
      overlay.begin_generation(Generation(generation));
      for (std::size_t n = random() % 12; n > 0; --n) {
        const std::string key = random_key(random);
        const std::string value = std::to_string(random() % 100000);
        overlay.put(key, EntryKind::value, value, Sequence(generation));
        model[key] = value;
      }
      ASSERT_EQ(overlay.entries(), model.size());
      if (random() % 4 == 0) {
        readers.pin(Generation(generation));
        snapshots[generation] = {overlay.root(), model};
      }
      if (random() % 5 == 0 && !snapshots.empty()) {
        auto victim =
            std::next(snapshots.begin(), static_cast<std::ptrdiff_t>(random() % snapshots.size()));
        expect_same(victim->second.first, victim->second.second, random);
        readers.unpin(Generation(victim->first));
        snapshots.erase(victim);
      }
      overlay.reclaim(Generation(generation));
      if (generation % 10 == 0) expect_same(overlay.root(), model, random);
    }
    for (const auto& [generation, state] : snapshots) {
      expect_same(state.first, state.second, random);
      readers.unpin(Generation(generation));
    }
    overlay.reclaim(Generation(120));
    EXPECT_EQ(overlay.retired_nodes(), 0U);
  }
}

TEST(RadixTrie, holds_keys_that_are_prefixes_of_others_and_the_empty_key) {
  Readers readers;
  RadixTrie overlay(readers);
  Model model;
  std::mt19937_64 random(3);
  std::string key;
  for (int i = 0; i <= 1024; ++i) {
    overlay.put(key, EntryKind::value, std::to_string(i), Sequence(1));
    model[key] = std::to_string(i);
    key += static_cast<char>(i % 3);
  }
  expect_same(overlay.root(), model, random);
}

TEST(RadixTrie, backtracks_in_seek_where_a_subtree_is_smaller_than_the_key) {
  Readers readers;
  RadixTrie overlay(readers);
  for (const char* key : {"aab", "aac", "abz", "b"}) {
    overlay.put(key, EntryKind::value, key, Sequence(1));
  }
  TrieCursor cursor(overlay.root());
  const auto expect = [&](std::string_view key, std::string_view found) {
    cursor.seek(key);
    ASSERT_TRUE(cursor.valid()) << key;
    EXPECT_EQ(cursor.key(), found) << key;
  };
  expect("aad", "abz");
  expect("aabx", "aac");
  expect("abzz", "b");
  expect("aa", "aab");
  expect("", "aab");
  cursor.seek("bb");
  EXPECT_FALSE(cursor.valid());
}

TEST(RadixTrie, grows_through_every_node_size_and_back_to_any_child) {
  Readers readers;
  RadixTrie overlay(readers);
  Model model;
  std::mt19937_64 random(5);
  for (int i = 0; i < 256; ++i) {
    const std::string key = std::string("pre") + static_cast<char>(i * 37 % 256) + "t";
    overlay.begin_generation(Generation(static_cast<std::uint64_t>(i) + 1));
    overlay.put(key, EntryKind::value, key, Sequence(1));
    model[key] = key;
    expect_same(overlay.root(), model, random);
    overlay.reclaim(Generation(static_cast<std::uint64_t>(i) + 1));
  }
}

TEST(RadixTrie, edits_a_generation_in_place_and_copies_only_across_generations) {
  Readers readers;
  RadixTrie overlay(readers);
  for (int i = 0; i < 1000; ++i) {
    overlay.put("key" + std::to_string(i), EntryKind::value, "v", Sequence(1));
  }
  EXPECT_EQ(overlay.retired_nodes(), 0U) << "nothing was visible yet";
  const std::size_t bytes = overlay.memory_bytes();
  for (int i = 0; i < 1000; ++i) {
    overlay.put("key" + std::to_string(i), EntryKind::value, "w", Sequence(2));
  }
  EXPECT_EQ(overlay.memory_bytes(), bytes);
  overlay.begin_generation(Generation(2));
  overlay.put("key7", EntryKind::value, "x", Sequence(3));
  EXPECT_GT(overlay.retired_nodes(), 1U);
}

TEST(ChunkPool, gives_the_memory_of_one_overlay_to_the_next_and_keeps_no_more_than_it_may) {
  ChunkPool pool(2 * ChunkPool::chunk_bytes);
  void* a = pool.take();
  void* b = pool.take();
  void* c = pool.take();
  EXPECT_NE(a, b);
  pool.give(a);
  pool.give(b);
  pool.give(c);  // one too many: back to the heap
  EXPECT_EQ(pool.take(), b);
  EXPECT_EQ(pool.take(), a);
  pool.give(a);
  pool.give(b);

  const auto shared = std::make_shared<ChunkPool>(8 * ChunkPool::chunk_bytes);
  const Readers readers;
  for (int round = 0; round < 3; ++round) {  // large ones; ASan watches that none is used twice
    RadixTrie trie(readers, shared);
    for (int i = 0; i < 30000; ++i) {
      trie.put("key" + std::to_string(i * 7919 % 30000), EntryKind::value, std::string(150, 'v'),
               Sequence(1));
    }
    TrieCursor cursor(trie.root());
    int count = 0;
    for (cursor.seek_first(); cursor.valid(); cursor.next()) ++count;
    EXPECT_EQ(count, 30000);
  }
}

TEST(Reclaimer, is_not_pinned_without_bound_by_a_sleeping_cursor) {
  // A snapshot of generation 1 sleeps while one key is overwritten 10,000 times. It may keep what
  // it shows, not the history that came after it.
  Readers readers;
  RadixTrie overlay(readers);
  overlay.put("key", EntryKind::value, "first", Sequence(1));
  overlay.put("kez", EntryKind::value, "other", Sequence(1));
  const trie::Node* snapshot = overlay.root();
  readers.pin(Generation(1));
  std::size_t most = 0;
  for (std::uint64_t generation = 2; generation < 10000; ++generation) {
    overlay.begin_generation(Generation(generation));
    overlay.put("key", EntryKind::value, std::to_string(generation), Sequence(generation));
    overlay.reclaim(Generation(generation));
    most = std::max(most, overlay.retired_nodes());
  }
  EXPECT_LE(most, 4U);
  EXPECT_EQ(RadixTrie::find(snapshot, "key")->value(), "first");
  readers.unpin(Generation(1));
  overlay.reclaim(Generation(10000));
  EXPECT_EQ(overlay.retired_nodes(), 0U);
}

TEST(Readers, keep_a_state_alive_while_a_writer_goes_on) {
  // TSan and ASan watch: readers look up keys of whatever state is current, without a lock.
  Readers readers;
  RadixTrie overlay(readers);
  std::atomic<std::uint64_t> published{1};
  overlay.put("k0", EntryKind::value, "0", Sequence(1));
  std::atomic<const trie::Node*> root{overlay.root()};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> lookups{0};
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<std::uint64_t>(t));
      while (!stop.load()) {
        const std::size_t slot = readers.enter(published);
        const trie::Node* state = root.load(std::memory_order_seq_cst);
        const std::string key = "k" + std::to_string(random() % 64);
        if (const trie::Leaf* leaf = RadixTrie::find(state, key)) {
          EXPECT_EQ(leaf->key(), key);
          EXPECT_FALSE(leaf->value().empty());
          lookups.fetch_add(1);
        }
        readers.leave(slot);
      }
    });
  }
  for (std::uint64_t generation = 2; generation < 3000 || lookups.load() < 100; ++generation) {
    overlay.begin_generation(Generation(generation));
    overlay.put("k" + std::to_string(generation % 64), EntryKind::value, std::to_string(generation),
                Sequence(generation));
    root.store(overlay.root(), std::memory_order_seq_cst);
    published.store(generation, std::memory_order_seq_cst);
    overlay.reclaim(Generation(generation));
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace lode
