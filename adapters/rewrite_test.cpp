// What makes the control one: bytes that grow with the square of the writes, and a loss of all that
// was not flushed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "adapters/store_fixture.h"

namespace assay {
namespace {

using testing::new_session;
using testing::ok;
using testing::open_store;
using testing::read;

OpenOptions options_for(const TemporaryDirectory& directory, const char* flush) {
  OpenOptions options;
  options.directory = directory.path();
  options.durability = DurabilityClass::volatile_;
  options.settings = {{"flush", flush}};
  return options;
}

TEST(Rewrite, writes_everything_again_at_each_commit) {
  const TemporaryDirectory directory;
  const std::unique_ptr<Store> store = open_store("rewrite", options_for(directory, "written"));
  constexpr std::uint64_t kWrites = 50;
  {
    const std::unique_ptr<Session> session = new_session(*store);
    for (std::uint64_t i = 0; i < kWrites; ++i) {
      ASSERT_TRUE(ok(session->put(testing::key_of(KeyKind::u64, i), std::string(12, 'v'))));
    }
  }
  // A file is 24 bytes and 28 an entry; there was one with none, then one with each number of them.
  EXPECT_EQ(store->counters().at("bytes_written"),
            24 * (kWrites + 1) + 28 * kWrites * (kWrites + 1) / 2);
  EXPECT_EQ(store->counters().at("rewrites"), kWrites + 1);
  EXPECT_EQ(std::filesystem::file_size(directory.path() + "/map"), 24 + 28 * kWrites);
  EXPECT_TRUE(ok(store->close()));
}

TEST(Rewrite, loses_what_was_not_flushed_when_it_ends_without_being_closed) {
  const TemporaryDirectory directory;
  for (const auto& [synced, expected] : {std::pair{false, "(none)"}, std::pair{true, "one"}}) {
    {
      const std::unique_ptr<Store> store = open_store("rewrite", options_for(directory, "close"));
      ASSERT_TRUE(ok(new_session(*store)->put("1", "one")));
      if (synced) {
        ASSERT_TRUE(ok(store->sync()));
      }
    }  // as a kill would: nobody closes it
    const std::unique_ptr<Store> store = open_store("rewrite", options_for(directory, "close"));
    EXPECT_EQ(read(*new_session(*store), "1"), expected);
    EXPECT_TRUE(ok(store->close()));
  }
}

TEST(Rewrite, refuses_a_file_with_a_changed_or_missing_byte) {
  const TemporaryDirectory directory;
  const OpenOptions options = options_for(directory, "close");
  {
    const std::unique_ptr<Store> store = open_store("rewrite", options);
    ASSERT_TRUE(ok(new_session(*store)->put("key", "value")));
    ASSERT_TRUE(ok(store->close()));
  }
  const std::string path = directory.path() + "/map";
  const auto bytes = std::filesystem::file_size(path);
  for (std::uint64_t at = 0; at <= bytes; ++at) {
    const std::string saved = path + ".saved";
    std::filesystem::copy_file(path, saved);
    if (at == bytes) {
      std::filesystem::resize_file(path, bytes - 1);
    } else {
      std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
      file.seekg(static_cast<std::streamoff>(at));
      const int old = file.get();
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(old ^ 1));
    }
    EXPECT_FALSE(find_driver("rewrite").value()->open(options)) << at;
    std::filesystem::rename(saved, path);
  }
}

}  // namespace
}  // namespace assay
