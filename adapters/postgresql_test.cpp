// What only PostgreSQL's adapter has: a server in a process of its own. What every store must do is
// checked by the suite of conformance, a part of it here: each cluster takes a second to make.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "adapters/conformance/conformance.h"
#include "adapters/store_fixture.h"

namespace assay {
namespace {

using testing::Collector;
using testing::key_of;
using testing::new_session;
using testing::ok;
using testing::open_store;
using testing::read;

namespace fs = std::filesystem;

constexpr const char* kName = "postgresql";

class Postgresql : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<const Driver*> driver = find_driver(kName);
    if (!driver || (*driver)->version() == "none")
      GTEST_SKIP() << "PostgreSQL's client library or server is not installed";
    options_.directory = directory_.path();
    options_.durability = DurabilityClass::process;
    options_.memory_bytes = 64 << 20;
  }
  /// The process that serves the directory; 0: none.
  [[nodiscard]] pid_t server() const {
    std::ifstream file(directory_.file("postgresql/postmaster.pid"));
    pid_t pid = 0;
    file >> pid;
    return pid;
  }

  TemporaryDirectory directory_;
  OpenOptions options_;
};

TEST_F(Postgresql, keeps_the_promises_of_every_store) {
  ConformanceOptions options;
  options.directory = directory_.path();
  options.durability = DurabilityClass::process;
  options.only = {"random_history", "snapshot", "concurrent_writers"};
  const auto report = check_conformance(**find_driver(kName), options);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->outcomes.size(), options.only.size());
  for (const CheckOutcome& outcome : report->outcomes)
    EXPECT_EQ(to_string(outcome.result), "passed") << outcome.check << ": " << outcome.detail;
}

TEST_F(Postgresql, is_reached_below_folders_that_its_user_cannot_enter_and_by_a_long_path) {
  options_.directory = directory_.file(std::string(120, 'd'));
  ASSERT_EQ(::mkdir(options_.directory.c_str(), 0700), 0);
  std::unique_ptr<Store> store = open_store(kName, options_);
  ASSERT_NE(store, nullptr);
  struct stat info{};
  ASSERT_EQ(::stat((options_.directory + "/postgresql").c_str(), &info), 0);
  EXPECT_NE(info.st_uid, 0U) << "the server refuses to run as root";
  // More than one part of a cursor, and its end in mid-way.
  std::unique_ptr<Session> session = new_session(*store);
  std::vector<std::string> keys;
  for (std::uint64_t n = 0; n < 5000; ++n) keys.push_back(key_of(KeyKind::bytes, n));
  std::vector<Mutation> batch;
  for (const std::string& key : keys) batch.push_back({Mutation::Kind::put, key, "value"});
  ASSERT_TRUE(ok(session->apply(batch)));
  Collector all;
  EXPECT_EQ(session->scan({}, all).value(), 5000U);
  EXPECT_EQ(all.entries.back().first, keys.back());
  Collector some(1000);
  EXPECT_EQ(session->scan({.backward = true}, some).value(), 1000U);
  EXPECT_EQ(some.entries.back().first, keys[4000]);
  EXPECT_EQ(read(*session, keys[17]), "value");
  EXPECT_GT(store->counters()["wal_bytes"], 0);
  session.reset();
  EXPECT_TRUE(ok(store->close()));
}

// A SIGKILL of the process that opened the store: the server goes, what was acknowledged stays.
TEST_F(Postgresql, ends_with_a_killed_process_and_has_every_commit_when_opened_again) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::unique_ptr<Store> store = open_store(kName, options_);
    const std::unique_ptr<Session> session = store ? new_session(*store) : nullptr;
    const bool done = session && session->put("key", "kept");
    const char byte = done ? 'y' : 'n';
    static_cast<void>(!::write(ends[1], &byte, 1));
    ::pause();
    ::_exit(0);
  }
  ::close(ends[1]);
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  ::close(ends[0]);
  EXPECT_EQ(byte, 'y');
  const pid_t pid = server();
  EXPECT_GT(pid, 0);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  options_.create = false;
  const std::unique_ptr<Store> store = open_store(kName, options_);
  ASSERT_NE(store, nullptr);
  EXPECT_NE(server(), pid);
  EXPECT_EQ(read(*new_session(*store), "key"), "kept");
  EXPECT_TRUE(ok(store->close()));
  EXPECT_EQ(server(), 0) << "a closed store has no server";
  // A copy, which belongs to who made it.
  const TemporaryDirectory copy;
  fs::copy(directory_.path(), copy.path(), fs::copy_options::recursive);
  options_.directory = copy.path();
  const std::unique_ptr<Store> copied = open_store(kName, options_);
  ASSERT_NE(copied, nullptr);
  EXPECT_EQ(read(*new_session(*copied), "key"), "kept");
  EXPECT_TRUE(ok(copied->close()));
}

TEST_F(Postgresql, refuses_with_one_message_what_it_cannot_open) {
  options_.settings = {{"programs", "/nowhere"}};
  Result<std::unique_ptr<Store>> opened = (*find_driver(kName))->open(options_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind(), ErrorKind::environment);
  EXPECT_EQ(opened.error().message(),
            "/nowhere: no PostgreSQL server here (the setting programs names the folder of initdb "
            "and postgres)");
  // A making that was cut short leaves nothing that the next one stumbles over.
  options_.settings.clear();
  fs::create_directories(directory_.file("postgresql.new/base"));
  std::unique_ptr<Store> store = open_store(kName, options_);
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(ok(store->close()));
  options_.key_kind = KeyKind::u64;
  opened = (*find_driver(kName))->open(options_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind(), ErrorKind::bad_input);
  EXPECT_NE(opened.error().message().find("another kind of key"), std::string::npos);
}

// The manual on asynchronous commit: what is acknowledged in memory dies with the server.
TEST(PostgresqlDurability, follows_its_log) {
  const Result<const Driver*> driver = find_driver(kName);
  if (!driver) GTEST_SKIP() << driver.error().message();
  const auto given = [&](DurabilityClass asked, const Settings& settings) {
    return given_durability(**driver, asked, settings).value().given;
  };
  using enum DurabilityClass;
  EXPECT_EQ(given(power, {{"synchronous_commit", "off"}}), volatile_);
  EXPECT_EQ(given(power, {{"fsync", "off"}}), process);
  EXPECT_EQ(given(power, {{"full_page_writes", "off"}}), process);
  EXPECT_EQ(given(power_prefix, {{"wal_sync_method", "open_datasync"}}), power_prefix);
  EXPECT_FALSE((*driver)->check_settings({}, 1000));
}

}  // namespace
}  // namespace assay
