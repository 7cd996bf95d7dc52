// What the tests of the stores share: a fresh directory, keys of both kinds, a collecting sink.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/registry.h"
#include "adapters/store.h"
#include "adapters/temporary_directory.h"

namespace assay::testing {

/// The n-th key: 8 big-endian bytes, or text that sorts by n.
inline std::string key_of(KeyKind kind, std::uint64_t n) {
  if (kind == KeyKind::bytes) {
    std::string text = std::to_string(n);
    return "key" + std::string(20 - text.size(), '0') + text;
  }
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(n >> (8 * (7 - i)));
  return bytes;
}

/// The stores that work in this process. PostgreSQL's take a second each to make, and have a test
/// of their own (postgresql_test.cpp).
inline std::vector<std::string> quick_stores() {
  std::vector<std::string> names = store_names();
  std::erase(names, "postgresql");
  return names;
}

using Entries = std::vector<std::pair<std::string, std::string>>;

class Collector final : public ScanSink {
 public:
  explicit Collector(std::size_t stop_after = SIZE_MAX) : stop_after_(stop_after) {}
  bool entry(std::string_view key, std::string_view value) override {
    entries.emplace_back(key, value);
    return entries.size() < stop_after_;
  }
  Entries entries;

 private:
  std::size_t stop_after_;
};

/// Opens or fails the test with the store's own message.
inline std::unique_ptr<Store> open_store(const std::string& name, const OpenOptions& options) {
  const Result<const Driver*> driver = find_driver(name);
  if (!driver) {
    ADD_FAILURE() << driver.error().message();
    return nullptr;
  }
  Result<std::unique_ptr<Store>> store = (*driver)->open(options);
  if (!store) {
    ADD_FAILURE() << store.error().message();
    return nullptr;
  }
  return std::move(*store);
}

inline std::unique_ptr<Session> new_session(Store& store) {
  Result<std::unique_ptr<Session>> session = store.session();
  if (!session) {
    ADD_FAILURE() << session.error().message();
    return nullptr;
  }
  return std::move(*session);
}

/// The value of a key, "(none)" when it is not there, the message when the store failed.
inline std::string read(Session& session, std::string_view key) {
  std::string_view value;
  const Result<bool> found = session.get(key, value);
  if (!found) return found.error().message();
  return *found ? std::string(value) : "(none)";
}

inline ::testing::AssertionResult ok(const Status& status) {
  if (status) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << status.error().message();
}

}  // namespace assay::testing
