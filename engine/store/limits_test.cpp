// Bounds: memory, log, files, and data larger than the memory that is allowed for it.
#include "engine/base/coding.h"
#include "engine/base/crc32c.h"
#include "engine/store/root.h"
#include "engine/store/store_fixture.h"

namespace lode {
namespace {

std::size_t log_files(SimDisk& disk) {
  std::size_t count = 0;
  const std::vector<std::string> names =
      disk.list().value();  // a range-for over the temporary would dangle
  for (const std::string& name : names) {
    if (name.starts_with("log-")) ++count;
  }
  return count;
}

TEST(Limits, opening_and_closing_does_not_use_up_log_segments) {
  std::shared_ptr<SimDisk> disk = SimDisk::make();
  Options options = small_options();
  for (int i = 0; i < 20; ++i) {
    auto store = Store::open(disk, options).value();
    ASSERT_TRUE(store->close());
    disk = disk->killed();
  }
  EXPECT_LE(log_files(*disk), 3U);
}

TEST(Limits, the_log_stays_bounded_when_one_key_is_written_over_and_over) {
  // The overlay never fills; the log alone has to bring about a checkpoint.
  const auto disk = SimDisk::make();
  Options options = small_options();
  options.background = true;
  options.overlay_bytes = 16384;
  auto store = Store::open(disk, options).value();
  std::size_t most = 0;
  for (int i = 0; i < 6000; ++i) {
    ASSERT_TRUE(store->put("key", std::string(500, 'v'), Durability::buffered));
    if (i % 100 == 0) most = std::max(most, log_files(*disk));
  }
  // 14 commits a segment: without checkpoints there would be 430 files. The log may grow to three
  // times its limit of 8 segments before commits wait, and the older root keeps as much.
  EXPECT_LE(most, 70U);
  EXPECT_GE(store->statistics().at("checkpoints"), 5.0);
}

TEST(Limits, data_far_larger_than_overlay_and_cache_is_written_read_and_scanned) {
  const auto disk = SimDisk::make();
  Options options;
  options.log_method = LogMethod::fdatasync;
  options.log_segment_bytes = 65536;
  options.background = true;
  options.overlay_bytes = 100000;
  options.cache_bytes = 0;  // the least: 64 pages
  options.tree_bytes = 300000;
  options.level_ratio = 3;
  auto store = Store::open(disk, options).value();
  std::mt19937_64 random(17);
  Model model;
  for (int i = 0; i < 12000; ++i) {
    const std::string key = "user" + std::to_string(random() % 9000);
    if (random() % 10 == 0) {
      ASSERT_TRUE(store->erase(key, Durability::volatile_));
      model.erase(key);
      continue;
    }
    const std::string value(300 + random() % 200, static_cast<char>('a' + random() % 26));
    ASSERT_TRUE(store->put(key, value, Durability::volatile_));
    model[key] = value;
  }
  EXPECT_LE(store->statistics().at("overlay_bytes"), 2.5 * 100000);
  std::string value;
  for (int i = 0; i < 3000; ++i) {
    const std::string key = "user" + std::to_string(random() % 9000);
    const auto found = model.find(key);
    ASSERT_EQ(store->get(key, value).value(), found != model.end());
    if (found != model.end()) {
      ASSERT_EQ(value, found->second);
    }
  }
  ASSERT_EQ(contents_of(store->snapshot()), model);
  ASSERT_TRUE(store->compact());
  ASSERT_EQ(contents_of(store->snapshot()), model);
  EXPECT_EQ(store->statistics().at("tree_entries"), static_cast<double>(model.size()));
  const auto status = store->verify();
  EXPECT_TRUE(status) << status.error().what;
  EXPECT_TRUE(store->close());
}

TEST(Limits, sequential_loads_are_not_rewritten_by_merges) {
  Options options = small_options();
  options.level_ratio = 2;
  auto store = Store::open(SimDisk::make(), options).value();
  for (int i = 0; i < 40; ++i) {
    for (int k = 0; k < 20; ++k) {
      ASSERT_TRUE(store->put("key" + std::to_string(100000 + i * 20 + k), std::string(400, 'v'),
                             Durability::volatile_));
    }
    ASSERT_TRUE(store->drain());
  }
  const auto statistics = store->statistics();
  EXPECT_GT(statistics.at("merges"), 10.0);
  EXPECT_LT(statistics.at("merge_written_bytes"), statistics.at("checkpoint_written_bytes"));
  EXPECT_TRUE(store->verify());
}

TEST(Limits, a_store_of_another_format_version_is_refused_by_its_number) {
  const auto disk = SimDisk::make();
  {
    auto store = open_small(disk);
    ASSERT_TRUE(store->put("key", "value", Durability::sync));
    ASSERT_TRUE(store->checkpoint());
    ASSERT_TRUE(store->close());
  }
  std::string data = *disk->contents("data");
  for (std::size_t slot = 0; slot < 2; ++slot) {
    std::byte* root = reinterpret_cast<std::byte*>(data.data()) + slot * page_bytes;
    store(root + 8, std::uint32_t{1});
    store(root + 12, std::uint32_t{0});
    store(root + 12, crc32c(ConstBytes(root, root_record_bytes)));
  }
  disk->set_contents("data", data);
  const auto opened = Store::open(disk->killed(), small_options());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, ErrorKind::wrong_version);
  EXPECT_NE(opened.error().what.find("format version 1 "), std::string::npos)
      << opened.error().what;
  EXPECT_EQ(*disk->contents("data"), data) << "nothing was written";
}

}  // namespace
}  // namespace lode
