// The server's core over a socket, in one process: several clients, bad frames, its end.
#include "harness/serve/server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "adapters/registry.h"
#include "adapters/served/client.h"
#include "adapters/temporary_directory.h"
#include "harness/serve/serve_directory.h"

namespace assay {
namespace {

using served::Client;
using served::Op;

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    OpenOptions options;
    options.directory = directory_.file("data");
    options.durability = DurabilityClass::process;
    options.memory_bytes = 8 << 20;
    std::filesystem::create_directory(options.directory);
    auto store = find_driver("lode").value()->open(options);
    ASSERT_TRUE(store) << store.error().message();
    store_ = std::move(*store);
    auto server = Server::listen(*store_, socket_);
    ASSERT_TRUE(server) << server.error().message();
    server_ = std::move(*server);
    thread_ = std::thread([this] { ended_by_client_ = server_->run(stop_).value(); });
  }
  void TearDown() override {
    stop();
    if (store_ != nullptr) {
      EXPECT_TRUE(store_->close());
    }
  }
  void stop() {
    stop_.store(true);
    if (thread_.joinable()) thread_.join();
  }
  std::unique_ptr<Client> client() {
    auto made = Client::connect(socket_);
    EXPECT_TRUE(made) << made.error().message();
    return made ? std::move(*made) : nullptr;
  }

  const TemporaryDirectory directory_;
  const std::string socket_ = directory_.file("socket");
  std::unique_ptr<Store> store_;
  std::unique_ptr<Server> server_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> ended_by_client_{false};
  std::thread thread_;
};

struct Counter final : ScanSink {
  bool entry(std::string_view key, std::string_view) override {
    last = key;
    return ++count < stop_at;
  }
  std::size_t count = 0;
  std::size_t stop_at = SIZE_MAX;
  std::string last;
};

TEST_F(ServerTest, TwoClientsSeeOneStore) {
  const auto writer = client();
  const auto reader = client();
  ASSERT_TRUE(writer->put("key", "value"));
  std::string_view value;
  EXPECT_TRUE(reader->get("key", value).value());
  EXPECT_EQ(value, "value");
  ASSERT_TRUE(writer->erase("key"));
  EXPECT_FALSE(reader->get("key", value).value());
}

TEST_F(ServerTest, ClientsWriteAndReadSideBySide) {
  constexpr int kClients = 4;
  constexpr int kEach = 200;
  std::vector<std::thread> threads;
  for (int n = 0; n < kClients; ++n) {
    threads.emplace_back([this, n] {
      const auto own = client();
      for (int i = 0; i < kEach; ++i) {
        const std::string key = std::to_string(n) + "-" + std::to_string(i);
        ASSERT_TRUE(own->put(key, key));
        std::string_view value;
        ASSERT_TRUE(own->get(key, value).value());
        ASSERT_EQ(value, key);
        if (i % 50 == 0) {
          ASSERT_TRUE(own->ask(Op::stats));
          ASSERT_TRUE(own->ask(Op::sync));
        }
      }
    });
  }
  for (std::thread& one : threads) one.join();
  Counter all;
  EXPECT_EQ(client()->scan({}, all).value(), kClients * kEach);
  stop();
  Telemetry telemetry;
  server_->add_telemetry(telemetry);
  const nlohmann::json commands = telemetry.json().at("commands");
  EXPECT_EQ(commands.at(0).at("command"), "get");
  EXPECT_EQ(commands.at(0).at("count"), kClients * kEach);
  EXPECT_EQ(commands.at(1).at("command"), "put");
  EXPECT_EQ(commands.at(1).at("failed"), 0);
  EXPECT_GE(commands.at(1).at("max_ns"), commands.at(1).at("p50_ns"));
}

TEST_F(ServerTest, AScanOfManyFramesIsWholeAndCanBeEnded) {
  const auto own = client();
  const std::string value(10'000, 'v');
  for (int i = 100; i < 150; ++i) ASSERT_TRUE(own->put(std::to_string(i), value));
  Counter all;
  EXPECT_EQ(own->scan({}, all).value(), 50U);
  EXPECT_EQ(all.last, "149");
  Counter some;
  some.stop_at = 3;
  EXPECT_EQ(own->scan({}, some).value(), 3U);
  std::string_view again;
  EXPECT_TRUE(own->get("100", again).value());  // the connection goes on
}

TEST_F(ServerTest, ABadFrameEndsItsOwnConnectionWithAnError) {
  const auto good = client();
  for (const std::string& bad : {std::string("\0\0\0\0", 4), std::string("\xff\xff\xff\xff", 4),
                                 std::string("\1\0\0\0\x63", 5), std::string("\2\0\0\0\1\1", 6)}) {
    int code = 0;
    const Result<int> socket = served::open_socket(socket_, served::Use::connect, code);
    ASSERT_TRUE(socket);
    served::Channel channel(*socket);
    std::string_view body;
    ASSERT_TRUE(channel.receive(body).value());  // the greeting
    ASSERT_TRUE(channel.send(bad));
    ASSERT_TRUE(channel.receive(body).value());
    EXPECT_EQ(static_cast<std::uint8_t>(body.front()),
              static_cast<std::uint8_t>(served::Answer::error));
    EXPECT_EQ(served::decode_error(body.substr(1)).kind(), ErrorKind::bad_input);
    EXPECT_FALSE(channel.receive(body).value());
  }
  EXPECT_TRUE(good->put("still", "there"));
}

TEST_F(ServerTest, AnErrorOfTheStoreLeavesTheConnectionAlive) {
  const auto own = client();
  EXPECT_FALSE(own->put(std::string(100'000, 'k'), "value"));
  EXPECT_TRUE(own->put("key", "value"));
}

TEST_F(ServerTest, WhatHasArrivedIsAnsweredWhenItStops) {
  const auto other = client();
  const auto own = client();
  EXPECT_TRUE(own->put("key", "value"));
  EXPECT_TRUE(own->ask(Op::shutdown));
  thread_.join();
  EXPECT_TRUE(ended_by_client_.load());
  EXPECT_FALSE(std::filesystem::exists(socket_));
  EXPECT_FALSE(other->put("late", "value"));
}

TEST_F(ServerTest, ASocketInUseAForeignFileAndALongPathAreRefused) {
  const auto refusal = [&](const std::string& path) {
    const auto second = Server::listen(*store_, path);
    return second ? std::string("listens") : second.error().message();
  };
  EXPECT_NE(refusal(socket_).find("another process listens"), std::string::npos);
  EXPECT_NE(refusal(directory_.fill("file", 1)).find("no socket"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(directory_.file("file")));
  EXPECT_NE(refusal(directory_.file(std::string(200, 's'))).find("107"), std::string::npos);
  EXPECT_NE(refusal(directory_.file("none/socket")).find("folder"), std::string::npos);
}

TEST(ServeDirectory, IsGoneOnWithAndNeverForeign) {
  const TemporaryDirectory root;
  {
    const auto first = ServeDirectory::below(root.path(), "lode");
    ASSERT_TRUE(first) << first.error().message();
    const auto second = ServeDirectory::below(root.path(), "lode");
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().message().find("another server"), std::string::npos);
  }
  EXPECT_TRUE(ServeDirectory::below(root.path(), "lode"));
  std::filesystem::create_directories(root.file("assay-served-sqlite/data"));
  EXPECT_FALSE(ServeDirectory::below(root.path(), "sqlite"));
  EXPECT_FALSE(ServeDirectory::below(root.file("none"), "lode"));
}

}  // namespace
}  // namespace assay
