// How stores are opened: classes and settings, wrong directories, and what a failing disk does.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>

#include "adapters/opening.h"
#include "adapters/store_fixture.h"

namespace assay {
namespace {

using testing::key_of;
using testing::new_session;
using testing::ok;
using testing::open_store;
using testing::read;

std::vector<std::string> stores_with_files() {
  std::vector<std::string> names = testing::quick_stores();
  std::erase(names, "null");
  return names;
}

OpenOptions options_for(const TemporaryDirectory& directory, DurabilityClass durability) {
  OpenOptions options;
  options.directory = directory.path();
  options.durability = durability;
  options.memory_bytes = 8 << 20;
  return options;
}

/// The message with which `store` refuses to open; fails the test when it opens.
std::string refusal(const std::string& store, const OpenOptions& options, ErrorKind kind) {
  Result<std::unique_ptr<Store>> opened = find_driver(store).value()->open(options);
  if (opened) {
    ADD_FAILURE() << store << " opened";
    return {};
  }
  EXPECT_EQ(opened.error().kind(), kind) << opened.error().message();
  return opened.error().message();
}

Settings effective(const std::string& store, DurabilityClass durability, Settings given = {}) {
  const TemporaryDirectory directory;
  OpenOptions options = options_for(directory, durability);
  options.settings = std::move(given);
  const std::unique_ptr<Store> opened = open_store(store, options);
  if (opened == nullptr) return {};
  const Result<Settings> settings = opened->effective_settings();
  EXPECT_TRUE(settings);
  EXPECT_TRUE(ok(opened->close()));
  return settings ? *settings : Settings{};
}

constexpr auto kVolatile = DurabilityClass::volatile_;
constexpr auto kProcess = DurabilityClass::process;
constexpr auto kPrefix = DurabilityClass::power_prefix;
constexpr auto kLast = DurabilityClass::power_last;
constexpr auto kPower = DurabilityClass::power;

TEST(DurabilityClasses, set_sqlites_pragmas) {
  for (const auto& [durability, level] :
       {std::pair{kVolatile, "off"}, std::pair{kProcess, "off"}, std::pair{kPrefix, "normal"},
        std::pair{kLast, "full"}, std::pair{kPower, "full"}}) {
    const Settings settings = effective("sqlite", durability);
    EXPECT_EQ(settings.at("synchronous"), level) << to_string(durability);
    EXPECT_EQ(settings.at("journal_mode"), "wal") << to_string(durability);
    EXPECT_EQ(settings.at("wal_autocheckpoint_pages"), "1000");
    EXPECT_EQ(settings.at("cache_kib"), "2000");  // the least, with a budget of 8 MiB
    EXPECT_EQ(settings.at("mmap_bytes"), std::to_string(7 << 20));
  }
}

// A mapping is charged to the memory budget page by page; one of more than the budget holds makes
// the kernel drop and read the same pages over and over.
TEST(SqliteMapping, is_given_up_where_the_file_outgrows_the_memory_budget) {
  const auto mapped = [](std::uint64_t expected_bytes, Settings given = {}) {
    const TemporaryDirectory directory;
    OpenOptions options = options_for(directory, DurabilityClass::process);
    options.expected_bytes = expected_bytes;
    options.settings = std::move(given);
    const std::unique_ptr<Store> store = open_store("sqlite", options);
    const Result<Settings> settings = store->effective_settings();
    return settings ? settings->at("mmap_bytes") : settings.error().message();
  };
  const std::string all_but_one_cache = std::to_string(7 << 20);  // of a budget of 8 MiB
  EXPECT_EQ(mapped(1 << 20), all_but_one_cache);
  EXPECT_EQ(mapped(4 << 20), all_but_one_cache);
  EXPECT_EQ(mapped(5 << 20), "0");  // 7.5 MiB with the room that splits of pages leave
  EXPECT_EQ(mapped(std::uint64_t{1} << 30), "0");
  EXPECT_EQ(mapped(UINT64_MAX), "0");
  EXPECT_EQ(mapped(std::uint64_t{1} << 30, {{"mmap_bytes", "65536"}}), "65536");
}

TEST(DurabilityClasses, set_lmdbs_flags) {
  for (const auto& [durability, sync] :
       {std::pair{kVolatile, "nosync"}, std::pair{kProcess, "nosync"},
        std::pair{kPrefix, "nometasync"}, std::pair{kLast, "nometasync"},
        std::pair{kPower, "full"}}) {
    const Settings settings = effective("lmdb", durability);
    EXPECT_EQ(settings.at("sync"), sync) << to_string(durability);
    EXPECT_EQ(settings.at("writemap"), "off");
    EXPECT_EQ(settings.at("notls"), "on");
    EXPECT_EQ(settings.at("max_key_bytes"), "511");
  }
}

TEST(DurabilityClasses, set_rocksdbs_write_options) {
  for (const auto& [durability, sync, wal] :
       {std::tuple{kVolatile, "off", "off"}, std::tuple{kProcess, "off", "on"},
        std::tuple{kPrefix, "off", "on"}, std::tuple{kLast, "on", "on"},
        std::tuple{kPower, "on", "on"}}) {
    const Settings settings = effective("rocksdb", durability);
    EXPECT_EQ(settings.at("sync"), sync) << to_string(durability);
    EXPECT_EQ(settings.at("wal"), wal) << to_string(durability);
    EXPECT_EQ(settings.at("wal_recovery_mode"), "point_in_time");
    EXPECT_EQ(settings.at("block_cache_bytes"), std::to_string(4 << 20));
    EXPECT_EQ(settings.at("write_buffer_bytes"), std::to_string(1 << 20));
    EXPECT_EQ(settings.at("filter_policy").substr(0, 11), "bloomfilter");
    EXPECT_NE(settings.at("db_options").find("wal_recovery_mode=kPointInTimeRecovery"),
              std::string::npos);
    EXPECT_NE(settings.at("cf_options").find("compression=kNoCompression"), std::string::npos);
  }
}

// Window mode acknowledges before anything is written: a kill loses what it still holds.
TEST(DurabilityClasses, set_lodes_mode) {
  for (const auto& [durability, mode] :
       {std::pair{kVolatile, "volatile"}, std::pair{kProcess, "buffered"},
        std::pair{kPrefix, "buffered"}, std::pair{kLast, "sync"}, std::pair{kPower, "sync"}}) {
    EXPECT_EQ(effective("lode", durability).at("durability"), mode) << to_string(durability);
  }
}

TEST(DurabilityClasses, set_raw_files_method) {
  for (const auto durability : {kVolatile, kProcess, kPrefix}) {
    EXPECT_EQ(effective("raw-file", durability).at("method"), "none");
  }
  for (const auto durability : {kLast, kPower}) {
    const std::string method =
        effective("raw-file", durability, {{"segment_bytes", "65536"}}).at("method");
    EXPECT_TRUE(method == "fdatasync" || method == "odsync" || method == "odirect_dsync") << method;
  }
}

TEST(StoreSettings, override_what_the_class_maps_to) {
  EXPECT_EQ(effective("sqlite", kPower, {{"journal_mode", "delete"}, {"synchronous", "extra"}})
                .at("synchronous"),
            "extra");
  EXPECT_EQ(effective("sqlite", kProcess, {{"page_size", "8192"}}).at("page_size"), "8192");
  EXPECT_EQ(effective("sqlite", kProcess, {{"cache_kib", "4000"}}).at("cache_kib"), "4000");
  EXPECT_EQ(effective("lmdb", kProcess, {{"map_bytes", "1048576"}}).at("map_bytes"), "1048576");
  EXPECT_EQ(effective("lmdb", kProcess, {{"read_ahead", "off"}}).at("read_ahead"), "off");
  EXPECT_EQ(effective("rocksdb", kProcess, {{"compression", "lz4"}}).at("compression"),
            "kLZ4Compression");
  EXPECT_EQ(effective("rocksdb", kProcess, {{"bloom_bits_per_key", "0"}}).at("filter_policy"),
            "none");
}

// RocksDB 7.8.3 refuses recycled logs under point-in-time recovery; what is in force must show it.
TEST(StoreSettings, read_back_what_rocksdb_made_of_them) {
  EXPECT_EQ(
      effective("rocksdb", kProcess, {{"recycle_log_file_num", "4"}}).at("recycle_log_file_num"),
      "0");
}

// The file was made with another segment size and is opened with another method than asked before:
// what is read back is what the files and handles say, not what this opening asks for.
TEST(StoreSettings, are_read_back_from_raw_files_handles_and_files) {
  const TemporaryDirectory directory;
  OpenOptions options = options_for(directory, kPower);
  options.settings = {
      {"method", "fdatasync"}, {"segment_bytes", "65536"}, {"prepare_bytes", "131072"}};
  std::unique_ptr<Store> store = open_store("raw-file", options);
  Settings settings = store->effective_settings().value();
  EXPECT_EQ(settings.at("method"), "fdatasync");
  EXPECT_EQ(settings.at("open_flags"), "none");
  EXPECT_EQ(settings.at("segment_bytes"), "65536");
  EXPECT_EQ(settings.at("prepare_bytes"), "131072");
  ASSERT_TRUE(ok(store->close()));
  options.settings = {
      {"method", "odsync"}, {"segment_bytes", "1048576"}, {"prepare_bytes", "8388608"}};
  store = open_store("raw-file", options);
  settings = store->effective_settings().value();
  EXPECT_EQ(settings.at("method"), "odsync");
  EXPECT_EQ(settings.at("open_flags"), "O_DSYNC");
  EXPECT_EQ(settings.at("segment_bytes"), "65536");
  EXPECT_EQ(settings.at("prepare_bytes"), "131072");
  EXPECT_TRUE(ok(store->close()));
}

TEST(StoreSettings, are_read_back_from_the_open_lode) {
  const Settings settings =
      effective("lode", kPower, {{"log_segment_bytes", "10000"}, {"log_method", "dsync"}});
  EXPECT_EQ(settings.at("log_segment_bytes"), "8192") << "whole blocks of 4096 bytes";
  EXPECT_EQ(settings.at("log_method"), "dsync");
}

TEST(StoreSettings, keep_lodes_u64_keys_as_bytes_when_asked_and_find_them_in_the_same_order) {
  for (const auto& [form, in_force] : {std::pair{"auto", "native"}, std::pair{"bytes", "bytes"}}) {
    const TemporaryDirectory directory;
    OpenOptions options = options_for(directory, kProcess);
    options.key_kind = KeyKind::u64;
    options.settings = {{"u64_keys", form}};
    std::unique_ptr<Store> store = open_store("lode", options);
    EXPECT_EQ(store->effective_settings().value().at("u64_keys"), in_force);
    {
      auto session = store->session().value();
      const std::string low("\0\0\0\0\0\0\0\x7f", 8);
      const std::string high("\0\0\0\0\0\0\1\0", 8);
      ASSERT_TRUE(ok(session->put(high, "b")));
      ASSERT_TRUE(ok(session->put(low, "a")));
      ASSERT_TRUE(ok(store->checkpoint()));
      std::string_view value;
      EXPECT_TRUE(session->get(low, value).value());
      EXPECT_EQ(value, "a");
      EXPECT_FALSE(session->put("four", "refused in either form"));
    }
    ASSERT_TRUE(ok(store->close()));
    store = open_store("lode", options);
    EXPECT_TRUE(ok(store->close()));
  }
}

TEST(Index, is_removed_and_made_again_in_lode_and_refused_by_stores_without_one_apart) {
  for (const char* name : {"sqlite", "rocksdb", "lmdb", "raw-file", "null", "lode"}) {
    SCOPED_TRACE(name);
    const TemporaryDirectory directory;
    OpenOptions options = options_for(directory, kProcess);
    const Driver& driver = **find_driver(name);
    const bool can = std::string_view(name) == "lode";
    EXPECT_EQ(driver.capabilities().rebuilds_index, can);
    if (!can) {
      EXPECT_EQ(driver.drop_index(options).error().kind(), ErrorKind::unsupported);
      EXPECT_EQ(driver.rebuild_index(options).error().kind(), ErrorKind::unsupported);
      continue;
    }
    std::unique_ptr<Store> store = open_store(name, options);
    const auto key = [](int i) { return "key" + std::to_string(100'000 + i); };
    {
      auto session = store->session().value();
      for (int i = 0; i < 2000; ++i) ASSERT_TRUE(ok(session->put(key(i), std::string(100, 'v'))));
    }
    ASSERT_TRUE(ok(store->checkpoint()));
    ASSERT_TRUE(ok(store->close()));
    ASSERT_EQ(driver.rebuild_index(options).value(), 0U) << "nothing is missing yet";
    ASSERT_TRUE(ok(driver.drop_index(options)));
    EXPECT_EQ(driver.rebuild_index(options).value(), 2000U);
    store = open_store(name, options);
    {
      auto session = store->session().value();
      std::string_view value;
      for (int i = 0; i < 2000; ++i) ASSERT_TRUE(session->get(key(i), value).value()) << i;
    }
    EXPECT_TRUE(ok(store->close()));
  }
}

TEST(StoreSettings, give_lmdb_read_ahead_only_where_the_data_fit_in_memory) {
  const TemporaryDirectory directory;
  OpenOptions options = options_for(directory, kProcess);
  options.expected_bytes = options.memory_bytes + 1;
  const std::unique_ptr<Store> store = open_store("lmdb", options);
  EXPECT_EQ(store->effective_settings().value().at("read_ahead"), "off");
  EXPECT_TRUE(ok(store->close()));
  EXPECT_EQ(effective("lmdb", kProcess).at("read_ahead"), "on");
}

TEST(StoreSettings, that_do_not_exist_name_the_nearest_one) {
  const TemporaryDirectory directory;
  OpenOptions options = options_for(directory, kPower);
  options.settings = {{"synchronus", "full"}};
  EXPECT_NE(refusal("sqlite", options, ErrorKind::bad_input).find("did you mean \"synchronous\"?"),
            std::string::npos);
  options.settings = {{"synchronous", "ful"}};
  EXPECT_NE(refusal("sqlite", options, ErrorKind::bad_input).find("full"), std::string::npos);
  options.settings = {{"page_size", "5000"}};
  EXPECT_NE(refusal("sqlite", options, ErrorKind::bad_input).find("power of two"),
            std::string::npos);
  options.settings = {{"map_bytes", "12 MiB"}};
  EXPECT_NE(refusal("lmdb", options, ErrorKind::bad_input).find("a whole number"),
            std::string::npos);
  options.settings = {{"mapasync", "on"}};
  EXPECT_NE(refusal("lmdb", options, ErrorKind::bad_input).find("writemap"), std::string::npos);
  options.settings = {{"wal", "off"}};
  EXPECT_NE(refusal("rocksdb", options, ErrorKind::bad_input).find("sync"), std::string::npos);
  options.settings = {{"segment_bytes", "1"}};
  refusal("raw-file", options, ErrorKind::bad_input);
  options.settings = {{"anything", "1"}};
  refusal("null", options, ErrorKind::bad_input);
}

TEST(StoreSettings, all_give_a_reason_and_a_source) {
  for (const std::string& name : stores_with_files()) {
    const Driver& driver = *find_driver(name).value();
    EXPECT_FALSE(driver.capabilities().durability.empty()) << name;
    for (const auto durability : driver.capabilities().durability) {
      const std::vector<Setting> settings = driver.settings(durability);
      EXPECT_FALSE(settings.empty()) << name;
      for (const Setting& setting : settings) {
        EXPECT_FALSE(setting.reason.empty()) << name << " " << setting.name;
        EXPECT_FALSE(setting.source.empty()) << name << " " << setting.name;
        if (!setting.choices.empty()) {
          EXPECT_NE(std::ranges::find(setting.choices, setting.value), setting.choices.end())
              << name << " " << setting.name;
        }
      }
    }
  }
}

class Opening : public ::testing::TestWithParam<std::string> {};
std::string test_name(const ::testing::TestParamInfo<std::string>& tested) {
  std::string name = tested.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Stores, Opening, ::testing::ValuesIn(stores_with_files()), test_name);

TEST_P(Opening, refuses_an_empty_directory_when_nothing_may_be_created) {
  const TemporaryDirectory directory;
  OpenOptions options = options_for(directory, kProcess);
  options.create = false;
  const std::string message = refusal(GetParam(), options, ErrorKind::bad_input);
  EXPECT_NE(message.find(directory.path()), std::string::npos) << message;
  EXPECT_NE(message.find("no " + GetParam() + " store"), std::string::npos) << message;
}

TEST_P(Opening, refuses_what_is_no_directory) {
  const TemporaryDirectory directory;
  OpenOptions options = options_for(directory, kProcess);
  options.directory = directory.path() + "/missing";
  EXPECT_NE(refusal(GetParam(), options, ErrorKind::bad_input).find("missing"), std::string::npos);
  std::ofstream(options.directory) << "a file";
  refusal(GetParam(), options, ErrorKind::bad_input);
}

TEST_P(Opening, refuses_the_directory_of_another_store) {
  const TemporaryDirectory directory;
  const std::string other = GetParam() == "sqlite" ? "lmdb" : "sqlite";
  const OpenOptions options = options_for(directory, kProcess);
  const std::unique_ptr<Store> store = open_store(other, options);
  ASSERT_TRUE(ok(store->close()));
  EXPECT_NE(refusal(GetParam(), options, ErrorKind::bad_input).find("store of " + other),
            std::string::npos);
}

TEST_P(Opening, refuses_a_file_of_somebody_else) {
  const TemporaryDirectory directory;
  const OpenOptions options = options_for(directory, kProcess);
  const std::string path = directory.path() + "/" + std::string(main_file(GetParam()));
  std::ofstream(path) << std::string(100'000, 'x');
  const Result<std::unique_ptr<Store>> opened = find_driver(GetParam()).value()->open(options);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message().find(directory.path()), std::string::npos)
      << opened.error().message();
}

TEST_P(Opening, finds_its_store_again_without_creating) {
  const TemporaryDirectory directory;
  OpenOptions options = options_for(directory, kProcess);
  std::unique_ptr<Store> store = open_store(GetParam(), options);
  EXPECT_TRUE(ok(new_session(*store)->put("k", "v")));
  ASSERT_TRUE(ok(store->close()));
  options.create = false;
  store = open_store(GetParam(), options);
  EXPECT_EQ(read(*new_session(*store), "k"), "v");
  ASSERT_TRUE(ok(store->close()));
}

TEST_P(Opening, refuses_to_close_under_a_session) {
  const TemporaryDirectory directory;
  const std::unique_ptr<Store> store = open_store(GetParam(), options_for(directory, kProcess));
  std::unique_ptr<Session> session = new_session(*store);
  EXPECT_FALSE(store->close());
  session.reset();
  EXPECT_TRUE(ok(store->close()));
}

TEST_P(Opening, refuses_a_u64_key_of_another_length) {
  const TemporaryDirectory directory;
  OpenOptions options = options_for(directory, kProcess);
  options.key_kind = KeyKind::u64;
  const std::unique_ptr<Store> store = open_store(GetParam(), options);
  std::unique_ptr<Session> session = new_session(*store);
  const Status status = session->put("seven b", "v");
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message().find("u64"), std::string::npos);
  session.reset();
  EXPECT_TRUE(ok(store->close()));
}

/// Files of this process may not grow beyond a megabyte while it lives.
class FileSizeLimit {
 public:
  FileSizeLimit() {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = 1 << 20, .rlim_max = before_.rlim_max};
    signal_before_ = ::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, signal_before_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*signal_before_)(int) = SIG_DFL;
};

// A file that may not grow stands for a disk that is full: the store must report it, and what it
// had acknowledged must be there afterwards.
TEST_P(Opening, reports_a_file_that_cannot_grow_and_keeps_what_it_acknowledged) {
  constexpr std::uint64_t kTries = 200;
  const TemporaryDirectory directory;
  OpenOptions options = options_for(directory, kProcess);
  options.memory_bytes = 64 << 20;  // so that RocksDB's log outgrows the limit before a flush
  const std::string value(20'000, 'v');
  std::unique_ptr<Store> store = open_store(GetParam(), options);
  std::unique_ptr<Session> session = new_session(*store);
  std::uint64_t acknowledged = 0;
  Status status;
  {
    const FileSizeLimit limit;
    while (acknowledged < kTries) {
      status = session->put(key_of(KeyKind::bytes, acknowledged), value);
      if (!status) break;
      ++acknowledged;
    }
  }
  ASSERT_GT(acknowledged, 0U);
  ASSERT_LT(acknowledged, kTries) << "nothing failed";
  EXPECT_NE(status.error().message().find(directory.path()), std::string::npos)
      << status.error().message();
  session.reset();
  static_cast<void>(store->close());  // may well report the failure again
  store = open_store(GetParam(), options);
  ASSERT_NE(store, nullptr);
  session = new_session(*store);
  for (std::uint64_t n = 0; n < acknowledged; ++n) {
    EXPECT_EQ(read(*session, key_of(KeyKind::bytes, n)), value) << n;
  }
  EXPECT_TRUE(ok(session->put("more", "fits now")));
  session.reset();
  EXPECT_TRUE(ok(store->close()));
}

TEST(SecondOpening, is_refused_where_a_store_allows_one_process) {
  for (const std::string name : {"rocksdb", "raw-file"}) {
    const TemporaryDirectory directory;
    const OpenOptions options = options_for(directory, kProcess);
    const std::unique_ptr<Store> store = open_store(name, options);
    const std::string message = refusal(name, options, ErrorKind::store);
    EXPECT_NE(message.find(directory.path()), std::string::npos) << message;
    EXPECT_TRUE(ok(store->close()));
  }
}

TEST(KeyKinds, are_fixed_when_a_store_with_native_integers_is_created) {
  for (const std::string name : {"sqlite", "lmdb"}) {
    for (const KeyKind kind : {KeyKind::bytes, KeyKind::u64}) {
      const TemporaryDirectory directory;
      OpenOptions options = options_for(directory, kProcess);
      options.key_kind = kind;
      const std::unique_ptr<Store> store = open_store(name, options);
      EXPECT_TRUE(ok(new_session(*store)->put(key_of(kind, 1), "v")));
      ASSERT_TRUE(ok(store->close()));
      options.key_kind = kind == KeyKind::bytes ? KeyKind::u64 : KeyKind::bytes;
      refusal(name, options, ErrorKind::bad_input);
    }
  }
}

TEST(SqliteExclusive, allows_one_session_and_says_so) {
  const TemporaryDirectory directory;
  OpenOptions options = options_for(directory, kProcess);
  options.settings = {{"locking_mode", "exclusive"}};
  const std::unique_ptr<Store> store = open_store("sqlite", options);
  std::unique_ptr<Session> session = new_session(*store);
  EXPECT_TRUE(ok(session->put("k", "v")));
  EXPECT_TRUE(ok(store->checkpoint()));
  EXPECT_TRUE(ok(store->sync()));
  EXPECT_EQ(read(*session, "k"), "v");
  const Result<std::unique_ptr<Session>> second = store->session();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind(), ErrorKind::unsupported);
  session.reset();
  EXPECT_TRUE(ok(store->close()));
}

}  // namespace
}  // namespace assay
