// Shared by the store's tests: a model, ways to compare it with a store, small options.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/file/sim_disk.h"
#include "engine/lode.h"

namespace lode {

using Model = std::map<std::string, std::string>;

/// Options that make every mechanism happen within a few commits.
inline Options small_options() {
  Options options;
  options.log_method = LogMethod::fdatasync;
  options.log_segment_bytes = 8192;
  options.cache_bytes = 0;
  options.tree_bytes = 6000;
  options.level_ratio = 2;
  options.background = false;
  return options;
}

/// The store on `disk`; null and a test failure when it does not open.
inline std::unique_ptr<Store> open_small(const std::shared_ptr<SimDisk>& disk) {
  auto store = Store::open(disk, small_options());
  EXPECT_TRUE(store) << store.error().what;
  return store ? std::move(*store) : nullptr;
}

inline bool keep_all(std::size_t /*unit*/) {
  return true;
}
inline bool keep_none(std::size_t /*unit*/) {
  return false;
}

inline void erase_range(Model& model, const std::string& first, const std::string& last) {
  if (first < last) model.erase(model.lower_bound(first), model.lower_bound(last));
}

/// All entries forward; empty with a test failure on an error.
inline Model contents_of(const Snapshot& snapshot) {
  Model found;
  Cursor cursor = snapshot.cursor();
  for (cursor.seek_first(); cursor.valid(); cursor.next()) {
    auto value = cursor.value();
    EXPECT_TRUE(value) << value.error().what;
    if (!value) return {};
    found.emplace_hint(found.end(), cursor.key(), *value);
  }
  EXPECT_TRUE(cursor.status());
  return found;
}

/// Forward, backward and by key.
inline void expect_contents(const Snapshot& snapshot, const Model& model, std::mt19937_64& random) {
  ASSERT_EQ(contents_of(snapshot), model);
  Cursor cursor = snapshot.cursor();
  cursor.seek_last();
  for (auto at = model.rbegin(); at != model.rend(); ++at) {
    ASSERT_TRUE(cursor.valid());
    ASSERT_EQ(cursor.key(), at->first);
    ASSERT_EQ(cursor.value().value(), at->second);
    cursor.prev();
  }
  ASSERT_FALSE(cursor.valid());
  for (int i = 0; i < 10; ++i) {
    std::string key = "k" + std::to_string(random() % 60);
    if (random() % 3 == 0 && !model.empty()) {
      key = std::next(model.begin(), static_cast<std::ptrdiff_t>(random() % model.size()))->first;
    }
    std::string value;
    const auto found = model.find(key);
    ASSERT_EQ(snapshot.get(key, value).value(), found != model.end()) << key;
    if (found != model.end()) {
      ASSERT_EQ(value, found->second);
    }
    const auto bound = model.lower_bound(key);
    cursor.seek(key);
    ASSERT_EQ(cursor.valid(), bound != model.end());
    if (cursor.valid()) {
      ASSERT_EQ(cursor.key(), bound->first);
    }
    // A walk that turns around, to and fro.
    auto place = bound;
    for (int step = 0; step < 6 && cursor.valid(); ++step) {
      if (random() % 2 == 0) {
        cursor.next();
        ++place;
        if (place == model.end()) {
          ASSERT_FALSE(cursor.valid());
        }
      } else {
        cursor.prev();
        if (place == model.begin()) {
          ASSERT_FALSE(cursor.valid());
          break;
        }
        --place;
      }
      if (place == model.end()) break;
      ASSERT_TRUE(cursor.valid());
      ASSERT_EQ(cursor.key(), place->first);
      ASSERT_EQ(cursor.value().value(), place->second);
    }
    cursor.seek_at_or_below(key);
    const auto above = model.upper_bound(key);
    ASSERT_EQ(cursor.valid(), above != model.begin());
    if (cursor.valid()) {
      ASSERT_EQ(cursor.key(), std::prev(above)->first);
    }
  }
}

inline std::string random_key(std::mt19937_64& random, KeyKind keys = KeyKind::bytes) {
  if (keys == KeyKind::u64) {  // neighbours, far ones, both ends
    const std::uint64_t number = random() % 60;
    return u64_key(random() % 6 == 0 ? number << 40 : random() % 20 == 0 ? ~number : number);
  }
  std::string key = "k" + std::to_string(random() % 60);
  if (random() % 10 == 0) key += std::string(random() % 200, 'x');
  if (random() % 20 == 0) key.clear();
  return key;
}

inline std::string random_value(std::mt19937_64& random) {
  const std::size_t bytes = random() % 25 == 0  ? random() % 5000
                            : random() % 4 == 0 ? random() % 300
                                                : random() % 20;
  return std::string(bytes, static_cast<char>('a' + random() % 26)) + std::to_string(random());
}

/// A batch of a few operations, made to `model` as well.
inline WriteBatch random_batch(std::mt19937_64& random, Model& model,
                               KeyKind keys = KeyKind::bytes) {
  WriteBatch batch;
  for (std::size_t n = 1 + random() % 6; n > 0; --n) {
    const std::string key = random_key(random, keys);
    switch (random() % 8) {
      case 0:
      case 1:
        batch.erase(key);
        model.erase(key);
        break;
      case 2: {
        if (random() % 3 != 0) break;
        const std::string last = random_key(random, keys);
        batch.erase_range(key, last);
        erase_range(model, key, last);
        break;
      }
      default: {
        const std::string value = random_value(random);
        batch.put(key, value);
        model[key] = value;
        break;
      }
    }
  }
  if (batch.empty()) {
    batch.put("fillings", "1");  // 8 bytes: a number as well
    model["fillings"] = "1";
  }
  return batch;
}

inline Durability random_durability(std::mt19937_64& random) {
  switch (random() % 4) {
    case 0:
      return Durability::buffered;
    case 1:
      return Durability::volatile_;
    default:
      return Durability::sync;
  }
}

}  // namespace lode
