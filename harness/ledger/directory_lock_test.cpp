#include "harness/ledger/directory_lock.h"

#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"

namespace assay {
namespace {

TEST(DirectoryLock, is_had_by_one_at_a_time_and_let_go_of_at_its_end) {
  const TemporaryDirectory home;
  {
    const auto first = DirectoryLock::take(home.path());
    ASSERT_TRUE(first) << first.error().message();
    const auto second = DirectoryLock::take(home.path());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind(), ErrorKind::environment);
    EXPECT_NE(second.error().message().find("another assay"), std::string::npos);
  }
  EXPECT_TRUE(DirectoryLock::take(home.path()));
}

TEST(DirectoryLock, of_a_directory_that_is_not_there_is_an_error) {
  const TemporaryDirectory home;
  EXPECT_FALSE(DirectoryLock::take(home.file("none")));
}

}  // namespace
}  // namespace assay
