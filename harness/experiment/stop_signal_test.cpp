#include "harness/experiment/stop_signal.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(StopOnSignal, survives_however_many_signals_and_tells_of_them) {
  const StopOnSignal stop;
  EXPECT_FALSE(stop.flag().load());
  for (const int signal : {SIGINT, SIGINT, SIGTERM, SIGHUP}) ::raise(signal);
  EXPECT_TRUE(stop.flag().load());
}

TEST(StopOnSignal, begins_unset_and_gives_the_old_handlers_back) {
  struct sigaction before{};
  ::sigaction(SIGINT, nullptr, &before);
  {
    const StopOnSignal stop;
    ::raise(SIGINT);
  }
  struct sigaction after{};
  ::sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
  const StopOnSignal again;
  EXPECT_FALSE(again.flag().load());
}

}  // namespace
}  // namespace assay
