// A soak of stores that keep their promises, and of one that tears a batch now and then.
#include "harness/soak/soak.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/registry.h"
#include "adapters/temporary_directory.h"

namespace assay {
namespace {

const std::atomic<bool> kGoOn{false};

SoakPlan small_plan(const Driver& driver, const TemporaryDirectory& directory) {
  SoakPlan plan;
  plan.driver = &driver;
  plan.durability = DurabilityClass::process;
  plan.root = directory.path();
  plan.clients = {1, 4};
  plan.seconds = 0.4;
  plan.accounts = 20;
  return plan;
}

class SoakOf : public ::testing::TestWithParam<const char*> {};

TEST_P(SoakOf, finds_nothing_and_leaves_nothing) {
  const TemporaryDirectory directory;
  const SoakPlan plan = small_plan(**find_driver(GetParam()), directory);
  std::vector<bool> killed;
  const Result<SoakReport> report =
      run_soak(plan, kGoOn, [&](const SoakRound& round) { killed.push_back(round.killed); });
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->violation, "");
  EXPECT_EQ(killed, (std::vector<bool>{false, true, false, true}));
  ASSERT_EQ(report->rounds.size(), 4U);
  for (const SoakRound& round : report->rounds) EXPECT_GE(round.checks, 1U);
  EXPECT_EQ(report->digest.size(), 64U);
  EXPECT_EQ(report->digest, report->restored_digest);
  EXPECT_GT(report->backup_bytes, 0U);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

INSTANTIATE_TEST_SUITE_P(Stores, SoakOf, ::testing::Values("lode", "sqlite"));

/// SQLite, but of every 20th batch the second change is not made.
class TearingSession final : public Session {
 public:
  explicit TearingSession(std::unique_ptr<Session> inner) : inner_(std::move(inner)) {}
  Result<bool> get(std::string_view key, std::string_view& value) override {
    return inner_->get(key, value);
  }
  Status put(std::string_view key, std::string_view value) override {
    return inner_->put(key, value);
  }
  Status erase(std::string_view key) override { return inner_->erase(key); }
  Status apply(std::span<const Mutation> mutations) override {
    std::vector<Mutation> kept(mutations.begin(), mutations.end());
    if (++batches_ % 20 == 0) kept.erase(kept.begin() + 1);
    return inner_->apply(kept);
  }
  Status rollback(std::span<const Mutation> mutations) override {
    return inner_->rollback(mutations);
  }
  Result<std::uint64_t> scan(const ScanRange& range, ScanSink& sink) override {
    return inner_->scan(range, sink);
  }

 private:
  std::unique_ptr<Session> inner_;
  int batches_ = 0;
};

class TearingStore final : public Store {
 public:
  TearingStore(std::unique_ptr<Store> inner, std::string directory)
      : Store(std::move(directory)), inner_(std::move(inner)) {}
  Result<std::unique_ptr<Session>> session() override {
    Result<std::unique_ptr<Session>> session = inner_->session();
    if (!session) return session;
    return std::make_unique<TearingSession>(std::move(*session));
  }
  Status sync() override { return inner_->sync(); }
  Status checkpoint() override { return inner_->checkpoint(); }
  Status settle() override { return inner_->settle(); }
  Result<Settings> effective_settings() override { return inner_->effective_settings(); }
  Status close() override { return inner_->close(); }

 private:
  std::unique_ptr<Store> inner_;
};

class TearingDriver final : public Driver {
 public:
  std::string name() const override { return "tearing"; }
  std::string version() const override { return "1"; }
  Capabilities capabilities() const override { return inner_.capabilities(); }
  std::vector<Setting> settings(DurabilityClass durability) const override {
    return inner_.settings(durability);
  }
  Result<std::unique_ptr<Store>> open(const OpenOptions& options) const override {
    Result<std::unique_ptr<Store>> store = inner_.open(options);
    if (!store) return store;
    return std::make_unique<TearingStore>(std::move(*store), options.directory);
  }

 private:
  const Driver& inner_ = **find_driver("sqlite");
};

TEST(Soak, tells_of_a_batch_that_was_half_made) {
  const TemporaryDirectory directory;
  const TearingDriver driver;
  SoakPlan plan = small_plan(driver, directory);
  plan.seconds = 600;  // ends with the first round that finds it
  const Result<SoakReport> report = run_soak(plan, kGoOn, {});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_NE(report->violation.find("20 accounts hold "), std::string::npos) << report->violation;
  EXPECT_EQ(soak_json(plan, *report)["violation"], report->violation);
}

TEST(Soak, refuses_what_it_could_not_check) {
  const TemporaryDirectory directory;
  SoakPlan plan = small_plan(**find_driver("null"), directory);
  EXPECT_EQ(run_soak(plan, kGoOn, {}).error().kind(), ErrorKind::unsupported);
  plan.driver = *find_driver("sqlite");
  plan.durability = DurabilityClass::volatile_;
  plan.settings = {};
  const auto refused = [&] {
    const Result<SoakReport> report = run_soak(plan, kGoOn, {});
    return report ? std::string("done") : report.error().message();
  };
  plan.clients = {0};
  EXPECT_EQ(refused(), "a soak has 1 to 1024 clients, not 0");
  plan.clients = {1};
  plan.driver = *find_driver("lode");
  EXPECT_NE(refused().find("class volatile does not survive"), std::string::npos) << refused();
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

}  // namespace
}  // namespace assay
