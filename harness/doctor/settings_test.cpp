#include "harness/doctor/settings.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"

namespace assay::doctor {
namespace {

namespace fs = std::filesystem;

class Settings : public ::testing::Test {
 protected:
  Settings() {
    place_.system_root = directory_.path();
    place_.journal = directory_.path() + "/run/doctor.json";
    fs::create_directories(directory_.path() + "/run");
    put("/proc/sys/kernel/random/boot_id", "this-boot\n");
    put("/a", "old\n");
    put("/b", "[slow] fast\n");
  }

  void put(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(directory_.path() + path).parent_path());
    std::ofstream(directory_.path() + path) << text;
  }
  std::string text(const std::string& path) const {
    std::ifstream file(directory_.path() + path);
    std::string line;
    std::getline(file, line);
    return line;
  }
  bool journal_is_there() const { return fs::exists(place_.journal); }

  const std::vector<Remedy> remedies_ = {{"/a", "new"}, {"/b", "fast"}};
  TemporaryDirectory directory_;
  SettingsPlace place_;
};

TEST_F(Settings, are_applied_and_put_back) {
  Result<HeldSettings> held = HeldSettings::apply(remedies_, place_);
  ASSERT_TRUE(held) << held.error().message();
  EXPECT_EQ(text("/a"), "new");
  EXPECT_EQ(text("/b"), "fast");
  ASSERT_EQ(held->changes().size(), 2U);
  EXPECT_EQ(held->changes()[1].before, "slow") << "the choice in brackets";
  EXPECT_TRUE(journal_is_there());
  const Status restored = held->restore();
  ASSERT_TRUE(restored) << restored.error().message();
  EXPECT_EQ(text("/a"), "old");
  EXPECT_EQ(text("/b"), "slow");
  EXPECT_FALSE(journal_is_there());
}

TEST_F(Settings, are_put_back_at_the_end_of_their_scope) {
  {
    ASSERT_TRUE(HeldSettings::apply(remedies_, place_));
  }
  EXPECT_EQ(text("/a"), "old");
}

TEST_F(Settings, are_put_back_by_the_guardian_when_their_holder_is_killed) {
  const pid_t holder = ::fork();
  if (holder == 0) {
    const auto held = HeldSettings::apply(remedies_, place_);
    if (held) ::raise(SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(holder, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  for (int i = 0; i < 2000 && journal_is_there(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(text("/a"), "old");
  EXPECT_EQ(text("/b"), "slow");
  EXPECT_FALSE(journal_is_there());
}

TEST_F(Settings, that_the_guardian_could_not_put_back_either_are_put_back_at_the_next_start) {
  put("/run/doctor.json",
      R"({"schema":1,"boot_id":"this-boot","changes":[{"path":"/a","before":"older","applied":"old"}]})");
  const Leftovers told = restore_leftovers(place_);
  ASSERT_FALSE(told.trouble) << told.trouble->message();
  ASSERT_EQ(told.restored.size(), 1U);
  EXPECT_EQ(text("/a"), "older");
  EXPECT_FALSE(journal_is_there());
  EXPECT_TRUE(restore_leftovers(place_).restored.empty());
}

TEST_F(Settings, of_an_earlier_boot_are_left_alone) {
  put("/run/doctor.json",
      R"({"schema":1,"boot_id":"other","changes":[{"path":"/a","before":"older","applied":"old"}]})");
  ASSERT_FALSE(restore_leftovers(place_).trouble);
  EXPECT_EQ(text("/a"), "old");
  EXPECT_FALSE(journal_is_there());
}

TEST_F(Settings, that_somebody_else_changed_meanwhile_are_left_and_named) {
  put("/run/doctor.json",
      R"({"schema":1,"boot_id":"this-boot","changes":[{"path":"/a","before":"older","applied":"x"}]})");
  const Leftovers told = restore_leftovers(place_);
  ASSERT_FALSE(told.trouble) << told.trouble->message();
  EXPECT_NE(told.restored.at(0).find("somebody else"), std::string::npos);
  EXPECT_EQ(text("/a"), "old");
}

TEST_F(Settings, have_one_holder_at_a_time) {
  const auto held = HeldSettings::apply(remedies_, place_);
  ASSERT_TRUE(held) << held.error().message();
  const auto second = HeldSettings::apply({{"/a", "newer"}}, place_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind(), ErrorKind::environment);
  const Leftovers looked = restore_leftovers(place_);
  ASSERT_TRUE(looked.trouble) << "they are held, not left";
  EXPECT_NE(looked.trouble->message().find(place_.journal), std::string::npos);
  EXPECT_TRUE(looked.restored.empty());
  EXPECT_EQ(text("/a"), "new");
}

TEST_F(Settings, are_applied_all_or_none) {
  // A file of /proc that nobody may write to, whoever asks.
  fs::create_symlink("/proc/version", directory_.path() + "/refusing");
  const auto held = HeldSettings::apply({{"/a", "new"}, {"/refusing", "x"}}, place_);
  ASSERT_FALSE(held);
  EXPECT_NE(held.error().message().find("/refusing"), std::string::npos);
  EXPECT_EQ(text("/a"), "old");
  EXPECT_FALSE(journal_is_there());
}

TEST_F(Settings, that_are_missing_are_told_before_anything_is_changed) {
  const auto held = HeldSettings::apply({{"/a", "new"}, {"/nowhere", "x"}}, place_);
  ASSERT_FALSE(held);
  EXPECT_EQ(text("/a"), "old");
  EXPECT_FALSE(journal_is_there());
}

TEST_F(Settings, that_cannot_be_put_back_do_not_keep_the_others_from_it) {
  put("/run/doctor.json",
      R"({"schema":1,"boot_id":"this-boot","changes":[{"path":"/a","before":"older","applied":"old"},)"
      R"({"path":"/nowhere","before":"1","applied":"2"}]})");
  const Leftovers told = restore_leftovers(place_);
  ASSERT_TRUE(told.trouble);
  EXPECT_NE(told.trouble->message().find("/nowhere"), std::string::npos);
  EXPECT_EQ(told.restored.size(), 1U);
  EXPECT_EQ(text("/a"), "older");
  EXPECT_TRUE(journal_is_there()) << "it still names what is not back";
}

TEST_F(Settings, of_a_broken_journal_are_refused_with_its_path) {
  put("/run/doctor.json", "{\"changes\": 7}");
  const Leftovers told = restore_leftovers(place_);
  ASSERT_TRUE(told.trouble);
  EXPECT_NE(told.trouble->message().find("doctor.json"), std::string::npos);
  EXPECT_TRUE(journal_is_there()) << "it is what a person has to look at";
}

}  // namespace
}  // namespace assay::doctor
