// What a store would refuse of its settings is told before anything is opened.
#include <gtest/gtest.h>

#include <filesystem>

#include "adapters/registry.h"

namespace assay {
namespace {

constexpr auto kPower = DurabilityClass::power;

/// Refused, with a message that holds every text of `parts`.
void expect_refusal(const std::string& store, const Settings& given, std::uint32_t sessions,
                    const std::vector<std::string>& parts) {
  const Status status = validate_settings(store, kPower, given, sessions);
  ASSERT_FALSE(status) << store << " accepts " << given.begin()->first;
  EXPECT_EQ(status.error().kind(), ErrorKind::bad_input) << status.error().message();
  for (const std::string& part : parts) {
    EXPECT_NE(status.error().message().find(part), std::string::npos)
        << status.error().message() << "\nlacks " << part;
  }
}

TEST(SettingsCheck, names_store_setting_value_and_range_of_a_bad_number) {
  expect_refusal("lmdb", {{"map_bytes", "-1"}}, 1,
                 {"lmdb", "map_bytes", "\"-1\"", "from 65536 to 70368744177664", "auto"});
  expect_refusal("rocksdb", {{"block_cache_bytes", "-5"}}, 1,
                 {"rocksdb", "block_cache_bytes", "\"-5\"", "from 0 to"});
  expect_refusal("sqlite", {{"cache_kib", "abc"}}, 1,
                 {"sqlite", "cache_kib", "\"abc\"", "from 1 to"});
  expect_refusal("raw-file", {{"segment_bytes", "1"}}, 1, {"segment_bytes", "from 65536 to"});
  expect_refusal("lode", {{"level_ratio", "1"}}, 1, {"level_ratio", "from 2 to 64"});
  expect_refusal("lode", {{"max_bytes", "4096"}}, 1, {"max_bytes", "4096", "1048576"});
  expect_refusal("lode", {{"admission", "wheighted"}}, 1, {"admission", "weighted"});
  expect_refusal("rocksdb", {{"max_background_jobs", "18446744073709551616"}}, 1,
                 {"max_background_jobs", "from 1 to 256"});
}

TEST(SettingsCheck, refuses_settings_that_exclude_each_other) {
  expect_refusal("rocksdb", {{"wal", "off"}}, 1, {"sync", "wal=off"});
  expect_refusal("lmdb", {{"mapasync", "on"}}, 1, {"mapasync", "writemap"});
  expect_refusal("sqlite", {{"page_size", "5000"}}, 1, {"page_size", "power of two"});
}

TEST(SettingsCheck, refuses_more_threads_than_a_setting_lets_in) {
  expect_refusal("sqlite", {{"locking_mode", "EXCLUSIVE"}}, 2,
                 {"locking_mode", "exclusive", "1 session at once", "2 are wanted"});
  expect_refusal("lmdb", {{"max_readers", "4"}}, 5, {"max_readers", "4 sessions", "5 are wanted"});
  EXPECT_TRUE(validate_settings("sqlite", kPower, {{"locking_mode", "EXCLUSIVE"}}, 1));
  EXPECT_TRUE(validate_settings("sqlite", kPower, {{"locking_mode", "EXCLUSIVE"}}, 0));
  EXPECT_TRUE(validate_settings("lmdb", kPower, {{"max_readers", "4"}}, 4));
}

TEST(SettingsCheck, names_the_nearest_setting_choice_and_store) {
  expect_refusal("sqlite", {{"synchronus", "full"}}, 1, {"did you mean \"synchronous\"?"});
  expect_refusal("sqlite", {{"synchronous", "ful"}}, 1, {"\"ful\"", "normal"});
  expect_refusal("null", {{"anything", "1"}}, 1, {"null", "anything"});
  expect_refusal("sqllite", {{"synchronous", "full"}}, 1, {"did you mean \"sqlite\"?"});
}

TEST(SettingsCheck, accepts_the_defaults_of_every_store_and_class) {
  for (const std::string& name : store_names()) {
    for (const auto durability : find_driver(name).value()->capabilities().durability) {
      const Status status = validate_settings(name, durability, {}, 16);
      EXPECT_TRUE(status) << name << ": " << (status ? "" : status.error().message());
    }
  }
}

DurabilityClass given_by(const std::string& store, DurabilityClass asked, const Settings& given) {
  const auto result = given_durability(*find_driver(store).value(), asked, given);
  EXPECT_TRUE(result) << store;
  return result ? result->given : asked;
}

constexpr auto kVolatile = DurabilityClass::volatile_;
constexpr auto kProcess = DurabilityClass::process;
constexpr auto kPrefix = DurabilityClass::power_prefix;
constexpr auto kLast = DurabilityClass::power_last;

// What is right comes from the stores' documentation, not from the adapters.
TEST(GivenDurability, of_sqlite_follows_synchronous_and_journal_mode) {
  for (const auto& [journal, level, given] :
       {std::tuple{"wal", "off", kProcess}, std::tuple{"wal", "normal", kPrefix},
        std::tuple{"wal", "full", kPower}, std::tuple{"wal", "EXTRA", kPower},
        std::tuple{"delete", "off", kProcess}, std::tuple{"delete", "normal", kProcess},
        std::tuple{"delete", "full", kLast}, std::tuple{"delete", "extra", kPower},
        std::tuple{"truncate", "full", kPower}, std::tuple{"persist", "full", kPower},
        std::tuple{"memory", "full", kVolatile}, std::tuple{"off", "extra", kVolatile}}) {
    const Settings settings{{"journal_mode", journal}, {"synchronous", level}};
    EXPECT_EQ(given_by("sqlite", kPower, settings), given) << journal << " " << level;
  }
}

TEST(GivenDurability, of_lmdb_follows_its_sync_flags) {
  EXPECT_EQ(given_by("lmdb", kPower, {{"sync", "nosync"}}), kProcess);
  EXPECT_EQ(given_by("lmdb", kPower, {{"sync", "nometasync"}}), kLast);
  EXPECT_EQ(given_by("lmdb", kPower, {{"writemap", "on"}}), kPower);
  EXPECT_EQ(given_by("lmdb", kPower, {{"writemap", "on"}, {"mapasync", "on"}}), kProcess);
}

TEST(GivenDurability, of_rocksdb_follows_its_log) {
  EXPECT_EQ(given_by("rocksdb", kPower, {{"sync", "off"}}), kPrefix);
  EXPECT_EQ(given_by("rocksdb", kPower, {{"sync", "off"}, {"wal", "off"}}), kVolatile);
  EXPECT_EQ(given_by("rocksdb", kPower, {{"manual_wal_flush", "on"}}), kVolatile);
  EXPECT_EQ(given_by("rocksdb", kPower, {{"wal_recovery_mode", "absolute"}}), kVolatile);
  EXPECT_EQ(given_by("rocksdb", kPower, {{"wal_recovery_mode", "skip_any"}}), kPower);
  EXPECT_EQ(given_by("rocksdb", kPrefix, {{"wal_recovery_mode", "skip_any"}}), kProcess);
  EXPECT_EQ(given_by("rocksdb", kPrefix, {{"wal_recovery_mode", "tolerate_corrupted_tail"}}),
            kProcess);
}

TEST(GivenDurability, of_lode_and_of_raw_file_follows_their_way_to_sync) {
  EXPECT_EQ(given_by("lode", kPower, {{"durability", "window"}}), kVolatile);
  EXPECT_EQ(given_by("lode", kPower, {{"durability", "buffered"}}), kPrefix);
  EXPECT_EQ(given_by("lode", kPower, {{"durability", "volatile"}}), kVolatile);
  EXPECT_EQ(given_by("lode", kPower, {{"log_method", "dsync"}}), kPower);
  EXPECT_EQ(given_by("raw-file", kPower, {{"method", "none"}}), kPrefix);
  EXPECT_EQ(given_by("raw-file", kPower, {{"method", "odsync"}}), kPower);
}

TEST(GivenDurability, is_the_class_itself_by_default_and_where_a_setting_strengthens_it) {
  for (const std::string& name : store_names()) {
    for (const auto durability : find_driver(name).value()->capabilities().durability) {
      EXPECT_EQ(given_by(name, durability, {}), durability) << name;
    }
  }
  EXPECT_EQ(given_by("sqlite", kProcess, {{"synchronous", "full"}}), kProcess);
  EXPECT_EQ(given_by("rocksdb", kVolatile, {{"wal", "on"}, {"sync", "on"}}), kVolatile);
}

TEST(GivenDurability, names_the_settings_that_lower_it) {
  const auto by = [](const std::string& store, const Settings& given) {
    return given_durability(*find_driver(store).value(), kPower, given).value().weakened_by;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(by("sqlite", {{"cache_kib", "4000"}, {"synchronous", "off"}}), Names{"synchronous"});
  EXPECT_EQ(by("lmdb", {{"writemap", "on"}, {"mapasync", "on"}}), (Names{"mapasync", "writemap"}));
  EXPECT_EQ(by("sqlite", {{"journal_mode", "truncate"}}), Names{});
  const auto typo = given_durability(*find_driver("sqlite").value(), kPower, {{"synk", "off"}});
  EXPECT_FALSE(typo);
}

// The checks run where no store is wanted yet: in the directory from which a user starts.
TEST(SettingsCheck, leaves_no_file_behind) {
  const auto files = [] {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(".")) ++count;
    return count;
  };
  const std::size_t before = files();
  for (const std::string& name : store_names()) {
    EXPECT_TRUE(validate_settings(name, kPower, {}, 1));
  }
  EXPECT_EQ(files(), before);
}

}  // namespace
}  // namespace assay
