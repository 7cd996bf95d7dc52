#include "harness/trial/delayed_store.h"

#include <array>
#include <chrono>

#include <gtest/gtest.h>

#include "adapters/registry.h"
#include "adapters/temporary_directory.h"

namespace assay {
namespace {

// A lower bound only: the wait is busy and never shorter than asked.
TEST(DelayedStore, does_what_the_inner_store_does_and_takes_no_less_than_the_delay) {
  const TemporaryDirectory directory;
  const auto driver = find_driver("sqlite");
  ASSERT_TRUE(driver);
  OpenOptions options;
  options.directory = directory.path();
  options.durability = DurabilityClass::process;
  auto inner = (*driver)->open(options);
  ASSERT_TRUE(inner) << inner.error().message();
  constexpr std::uint64_t kDelayNs = 2'000'000;
  const auto store = delayed_store(std::move(*inner), directory.path(), kDelayNs);
  {
    const auto session = store->session();
    ASSERT_TRUE(session) << session.error().message();
    const auto begun = std::chrono::steady_clock::now();
    ASSERT_TRUE((*session)->put("key", "value"));
    const std::array<Mutation, 1> batch = {Mutation{Mutation::Kind::put, "other", "thing"}};
    ASSERT_TRUE((*session)->apply(batch));
    std::string_view value;
    const auto found = (*session)->get("key", value);
    ASSERT_TRUE(found);
    EXPECT_TRUE(*found);
    EXPECT_EQ(value, "value");
    ASSERT_TRUE((*session)->erase("key"));
    EXPECT_FALSE(*(*session)->get("key", value));
    EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::nanoseconds(4 * kDelayNs));
  }
  EXPECT_TRUE(store->effective_settings());
  EXPECT_TRUE(store->sync());
  EXPECT_TRUE(store->close());
}

}  // namespace
}  // namespace assay
