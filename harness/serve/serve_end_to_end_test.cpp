// The real command: what a killed server had acknowledged is there, and the child behind a served
// store ends with the process that opened it, however that ends.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "adapters/registry.h"
#include "adapters/served/client.h"
#include "adapters/temporary_directory.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace assay {
namespace {

using served::Client;
constexpr int kPatienceMs = 30'000;  ///< before a test gives up; nothing is judged by it

/// Asks again and again, until true or out of patience.
template <class Question>
bool eventually(Question&& question) {
  for (int waited = 0; waited < kPatienceMs; waited += 10) {
    if (question()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

pid_t start(std::vector<std::string> words) {
  words.insert(words.begin(), ASSAY_COMMAND);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = -1;
  EXPECT_EQ(::posix_spawn(&pid, ASSAY_COMMAND, nullptr, nullptr, arguments.data(), environ), 0);
  return pid;
}

int reap(pid_t pid) {
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return status;
}

bool listens(const std::string& socket) {
  return Client::connect(socket).has_value();
}

struct Counter final : ScanSink {
  bool entry(std::string_view, std::string_view) override { return true; }
};

class KilledServer : public ::testing::TestWithParam<const char*> {};

TEST_P(KilledServer, HasWhatItAcknowledged) {
  const TemporaryDirectory root;
  const std::string socket = root.file("socket");
  const std::vector<std::string> serve{"serve",     GetParam(), "--durability", "process", "--root",
                                       root.path(), "--socket", socket,         "--json"};
  constexpr int kRounds = 3;
  constexpr int kEach = 200;
  for (int round = 0; round <= kRounds; ++round) {
    const pid_t server = start(serve);
    ASSERT_TRUE(eventually([&] { return listens(socket); }));
    auto client = Client::connect(socket);
    ASSERT_TRUE(client) << client.error().message();
    Counter every;
    ASSERT_EQ((*client)->scan({}, every).value(), round * kEach);
    for (int i = 0; i < kEach; ++i) {
      const std::string key = std::to_string(round * kEach + i);
      ASSERT_TRUE((*client)->put(key, key + " of a killed server"));
    }
    std::string_view value;
    ASSERT_TRUE((*client)->get("0", value).value());
    EXPECT_EQ(value, "0 of a killed server");
    ::kill(server, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(reap(server)));
    EXPECT_FALSE((*client)->put("late", "value"));  // an error, neither a hang nor a signal
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, KilledServer, ::testing::Values("lode", "sqlite"));

// SQLite takes any key; what is declared of a served one is less, so that a frame always holds it.
TEST(ServedStore, RefusesKeysBeyondWhatItDeclares) {
  const TemporaryDirectory directory;
  OpenOptions options;
  options.directory = directory.path();
  options.durability = DurabilityClass::process;
  options.settings["command"] = ASSAY_COMMAND;
  const Driver* const driver = find_driver("served-sqlite").value();
  const std::string longest(driver->capabilities().max_key_bytes, 'k');
  const std::string longer = longest + "k";
  const Mutation batch[] = {{.key = "short"}, {.key = longer}};
  auto store = driver->open(options);
  ASSERT_TRUE(store) << store.error().message();
  {
    auto session = (*store)->session();
    ASSERT_TRUE(session);
    EXPECT_TRUE((*session)->put(longest, "value"));
    EXPECT_FALSE((*session)->put(longer, "value"));
    EXPECT_FALSE((*session)->erase(longer));
    EXPECT_FALSE((*session)->apply(batch));
    EXPECT_FALSE((*session)->rollback(batch));
    Counter every;
    EXPECT_EQ((*session)->scan({}, every).value(), 1U);
  }
  EXPECT_TRUE((*store)->close());
}

// A command a process: the same answers, and the daemon tells how long each took.
TEST(ServedStore, AnswersAClientProcessACommandAsItAnswersAConnection) {
  const TemporaryDirectory directory;
  OpenOptions options;
  options.directory = directory.path();
  options.durability = DurabilityClass::process;
  options.settings = {{"command", ASSAY_COMMAND}, {"client", "process"}};
  auto store = find_driver("served-lode").value()->open(options);
  ASSERT_TRUE(store) << store.error().message();
  {
    auto session = (*store)->session();
    ASSERT_TRUE(session);
    std::string_view value;
    EXPECT_FALSE((*session)->get("a", value).value());
    const Status put = (*session)->put("a", std::string(200'000, 'v'));
    ASSERT_TRUE(put) << put.error().message();
    EXPECT_TRUE((*session)->get("a", value).value());
    EXPECT_EQ(value, std::string(200'000, 'v'));
    const Mutation batch[] = {{.key = "b", .value = "1"}, {.key = "c", .value = "2"}};
    EXPECT_TRUE((*session)->apply(batch));
    EXPECT_TRUE((*session)->erase("b"));
    Counter every;
    EXPECT_EQ((*session)->scan({}, every).value(), 2U);
    EXPECT_FALSE((*session)->put("", std::string(70 << 20, 'v')));
  }
  const auto counters = (*store)->counters();
  EXPECT_EQ(counters.at("daemon_get_count"), 2);
  EXPECT_EQ(counters.at("daemon_put_count"), 1);
  EXPECT_EQ(counters.at("daemon_put_failed"), 0);
  EXPECT_GT(counters.at("daemon_put_max_ns"), 0);
  EXPECT_TRUE((*store)->close());
}

/// What a process does with itself when its test says so.
void end_by(int way) {
  if (way == SIGKILL || way == SIGABRT) ::kill(::getpid(), way);
  if (way == 0) ::_exit(0);
  std::exit(0);  // NOLINT(concurrency-mt-unsafe): destructors of statics run
}

/// In a process of its own: opens by a thread that ends, goes on by another, says so, waits for the
/// word, ends.
void open_and_end(const std::string& directory, int way, int ready, int word) {
  OpenOptions options;
  options.directory = directory;
  options.durability = DurabilityClass::process;
  options.settings["command"] = ASSAY_COMMAND;
  Store* store = nullptr;  // never closed
  std::thread([&] {
    auto opened = find_driver("served-lode").value()->open(options);
    if (opened) store = opened->release();
  }).join();
  if (store == nullptr) ::_exit(2);
  // A server that went with the thread would be gone by now or soon; so ask more than once.
  for (int i = 0; i < 20; ++i) {
    auto session = store->session();
    if (!session || !(*session)->put(std::to_string(i), "value")) ::_exit(3);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  char byte = 'r';
  if (::write(ready, &byte, 1) != 1 || ::read(word, &byte, 1) != 1) ::_exit(4);
  end_by(way);
}

class ParentOfAServer : public ::testing::TestWithParam<int> {};

TEST_P(ParentOfAServer, TakesItsServerAlongAndNotBefore) {
  const TemporaryDirectory directory;
  int ready[2];
  int word[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(word), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    open_and_end(directory.path(), GetParam(), ready[1], word[0]);
    ::_exit(5);
  }
  ::close(ready[1]);
  char byte = 0;
  const bool opened = ::read(ready[0], &byte, 1) == 1;
  const std::string socket = "@assay-served-" + std::to_string(parent) + "-0";
  EXPECT_TRUE(opened && listens(socket));
  EXPECT_EQ(::write(word[1], &byte, 1), 1);
  const int status = reap(parent);
  EXPECT_TRUE(opened) << "the parent ended with status " << status;
  EXPECT_TRUE(eventually([&] { return !listens(socket); }));
  // Nobody has the directory any more, and what was acknowledged is there.
  OpenOptions options;
  options.directory = directory.path();
  options.durability = DurabilityClass::process;
  options.create = false;
  options.settings["command"] = ASSAY_COMMAND;
  auto again = find_driver("served-lode").value()->open(options);
  ASSERT_TRUE(again) << again.error().message();
  {
    auto session = (*again)->session();
    ASSERT_TRUE(session);
    Counter every;
    EXPECT_EQ((*session)->scan({}, every).value(), 20U);
  }
  EXPECT_TRUE((*again)->close());
  for (const int end : {ready[0], word[0], word[1]}) ::close(end);
}

constexpr int kExit = -1;  ///< with the destructors of statics; 0 is without
INSTANTIATE_TEST_SUITE_P(Ways, ParentOfAServer, ::testing::Values(SIGKILL, SIGABRT, 0, kExit));

}  // namespace
}  // namespace assay
