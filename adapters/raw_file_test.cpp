// The raw-file log: torn tails, stale tails, segments, methods.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "adapters/raw_file_log.h"
#include "adapters/store_fixture.h"

namespace assay {
namespace {

using testing::new_session;
using testing::ok;
using testing::open_store;
using testing::read;

class RawFile : public ::testing::Test {
 protected:
  void TearDown() override { close(); }
  void open(Settings settings = {}, DurabilityClass durability = DurabilityClass::process) {
    close();
    OpenOptions options;
    options.directory = directory_.path();
    options.durability = durability;
    options.settings = std::move(settings);
    store_ = open_store("raw-file", options);
    ASSERT_NE(store_, nullptr);
    session_ = new_session(*store_);
  }
  void close() {
    session_.reset();
    if (store_ != nullptr) {
      EXPECT_TRUE(ok(store_->close()));
    }
    store_.reset();
  }
  void put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(ok(session_->put(key, value)));
  }
  [[nodiscard]] std::string segment(int number) const {
    return directory_.path() + "/raw-00000" + std::to_string(number) + ".log";
  }
  /// Where in the first segment `text` is.
  [[nodiscard]] std::streamoff place(const std::string& text) const {
    std::ifstream file(segment(1), std::ios::binary);
    const std::string all((std::istreambuf_iterator<char>(file)), {});
    return static_cast<std::streamoff>(all.find(text));
  }
  void damage(std::streamoff at) const {
    std::fstream file(segment(1), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(at);
    file.put('#');
  }
  [[nodiscard]] double counter(const std::string& name) const {
    return store_->counters().at(name);
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Session> session_;
};

TEST_F(RawFile, cuts_a_torn_tail_and_goes_on_behind_it) {
  open();
  for (int i = 0; i < 10; ++i) put("k" + std::to_string(i), "value-" + std::to_string(i));
  close();
  std::filesystem::resize_file(segment(1), static_cast<std::uintmax_t>(place("value-9")) + 3);
  open();
  EXPECT_EQ(counter("recovered_commits"), 9);
  EXPECT_EQ(read(*session_, "k8"), "value-8");
  EXPECT_EQ(read(*session_, "k9"), "(none)");
  put("k9", "again");
  open();
  EXPECT_EQ(read(*session_, "k9"), "again");
  EXPECT_EQ(counter("recovered_commits"), 10);
}

TEST_F(RawFile, ends_at_the_first_damaged_commit) {
  open();
  for (int i = 0; i < 10; ++i) put("k" + std::to_string(i), "value-" + std::to_string(i));
  close();
  damage(place("value-4"));
  open();
  EXPECT_EQ(read(*session_, "k3"), "value-3");
  for (int i = 4; i < 10; ++i) EXPECT_EQ(read(*session_, "k" + std::to_string(i)), "(none)");
}

// A tail that was cut off must stay off, even when the very same commit is written again in front
// of what is left of it.
TEST_F(RawFile, never_revives_a_tail_that_was_cut_off) {
  open();
  put("a", "value-a");
  put("b", "value-b");
  put("c", "value-c");
  close();
  const std::streamoff at = place("value-b");
  damage(at);
  open();
  put("b", "value-b");
  open();
  EXPECT_EQ(read(*session_, "a"), "value-a");
  EXPECT_EQ(read(*session_, "b"), "value-b");
  EXPECT_EQ(read(*session_, "c"), "(none)");
  EXPECT_EQ(counter("recovered_commits"), 2);
}

TEST_F(RawFile, goes_on_in_further_segments) {
  const Settings settings{{"segment_bytes", "65536"}, {"method", "fdatasync"}};
  open(settings, DurabilityClass::power);
  const std::string value(9'000, 'v');
  for (int i = 0; i < 40; ++i) put("k" + std::to_string(i), value + std::to_string(i));
  put("large", std::string(300'000, 'l'));  // larger than a segment
  put("after", "it");
  EXPECT_GE(counter("segments"), 6);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 40; ++i) {
      EXPECT_EQ(read(*session_, "k" + std::to_string(i)), value + std::to_string(i)) << i;
    }
    EXPECT_EQ(read(*session_, "large").size(), 300'000U);
    EXPECT_EQ(read(*session_, "after"), "it");
    open(settings, DurabilityClass::power);
  }
}

TEST_F(RawFile, without_syncs_ends_before_a_segment_that_a_power_cut_left_short) {
  const Settings settings{{"segment_bytes", "65536"}, {"method", "none"}};
  for (const int left : {0, 20, -1}) {  // bytes that came back; -1: all, as zeros
    open(settings);
    for (int i = 0; i < 20; ++i) put("k" + std::to_string(i), std::string(9'000, 'v'));
    ASSERT_GE(counter("segments"), 2);
    close();
    const auto size = std::filesystem::file_size(segment(2));
    std::filesystem::resize_file(segment(2), left < 0 ? 0 : static_cast<std::uintmax_t>(left));
    if (left < 0) std::filesystem::resize_file(segment(2), size);
    open(settings);
    EXPECT_EQ(read(*session_, "k0"), std::string(9'000, 'v')) << left;
    EXPECT_EQ(read(*session_, "k19"), "(none)") << left;
    put("after", "it");
    open(settings);
    EXPECT_EQ(read(*session_, "after"), "it") << left;
    close();
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
      std::filesystem::remove_all(entry.path());
    }
  }
}

TEST_F(RawFile, keeps_its_contents_under_every_method) {
  const RawProbe probe = probe_raw_methods(directory_.path()).value();
  EXPECT_TRUE(probe.append_ns_median.contains(RawMethod::fdatasync));
  EXPECT_TRUE(probe.append_ns_median.contains(probe.fastest));
  int n = 0;
  for (const auto& [method, median] : probe.append_ns_median) {
    EXPECT_GT(median, 0);
    open({{"method", std::string(to_string(method))}, {"segment_bytes", "65536"}},
         DurabilityClass::power);
    EXPECT_EQ(store_->effective_settings().value().at("method"), to_string(method));
    const double syncs = counter("syncs");
    for (int i = 0; i < 30; ++i, ++n)
      put("k" + std::to_string(n), std::string(700, 'a') + std::to_string(n));
    EXPECT_GE(counter("syncs") - syncs, 30);  // one a commit, one more where a segment ends
    EXPECT_LE(counter("syncs") - syncs, 32);
  }
  open();
  for (int i = 0; i < n; ++i) {
    EXPECT_EQ(read(*session_, "k" + std::to_string(i)), std::string(700, 'a') + std::to_string(i));
  }
  EXPECT_FALSE(std::filesystem::exists(directory_.path() + "/raw-probe.tmp"));
}

TEST_F(RawFile, remembers_what_the_probe_found) {
  open({{"segment_bytes", "65536"}}, DurabilityClass::power);
  const std::string method = store_->effective_settings().value().at("method");
  EXPECT_TRUE(store_->counters().contains("probe_fdatasync_ns"));
  open({{"segment_bytes", "65536"}}, DurabilityClass::power);
  EXPECT_EQ(store_->effective_settings().value().at("method"), method);
  EXPECT_FALSE(store_->counters().contains("probe_fdatasync_ns"));
}

TEST_F(RawFile, commits_together_what_waits_together) {
  open({{"method", "fdatasync"}, {"segment_bytes", "1048576"}}, DurabilityClass::power);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const std::unique_ptr<Session> session = new_session(*store_);
      for (int i = 0; i < 25; ++i) {
        if (!session->put(std::to_string(t) + "-" + std::to_string(i), "v")) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(counter("commits"), 200);
  EXPECT_LE(counter("syncs"), 200);
  EXPECT_EQ(counter("groups"), counter("syncs"));
  open();
  EXPECT_EQ(counter("recovered_commits"), 200);
}

TEST(RawPayload, is_refused_when_malformed) {
  RawFrame frame;
  frame.clear();
  frame.put("key", "value");
  frame.erase("gone");
  const std::string payload(frame.payload());
  int seen = 0;
  EXPECT_TRUE(visit_entries(payload, [&](const RawEntry& entry) {
    EXPECT_EQ(entry.erased, seen == 1);
    EXPECT_EQ(entry.key, seen == 0 ? "key" : "gone");
    EXPECT_EQ(payload.substr(entry.value_offset, entry.value_bytes), seen == 0 ? "value" : "");
    ++seen;
  }));
  EXPECT_EQ(seen, 2);
  EXPECT_FALSE(visit_entries(payload.substr(0, payload.size() - 1), [](const RawEntry&) {}));
  EXPECT_FALSE(visit_entries(payload.substr(0, 5), [](const RawEntry&) {}));
}

}  // namespace
}  // namespace assay
