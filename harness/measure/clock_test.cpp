#include <gtest/gtest.h>

#include "harness/measure/clock.h"

namespace assay {
namespace {

TEST(Clock, agrees_with_the_kernels_clock_over_a_pause) {
  const TickScale& scale = TickScale::get();
  const std::uint64_t start_ns = monotonic_raw_ns();
  const std::uint64_t start = ticks_now();
  while (monotonic_raw_ns() - start_ns < 20'000'000) {
  }
  const std::uint64_t outer = monotonic_raw_ns();
  const std::uint64_t ticks = ticks_now() - start;
  // The ticks lie inside a bracket of the kernel's clock, but for a preemption at one of its ends.
  const double measured = static_cast<double>(scale.to_ns(ticks));
  EXPECT_GT(measured, 20e6 * 0.99);
  EXPECT_LT(measured, static_cast<double>(monotonic_raw_ns() - start_ns) * 1.01);
  EXPECT_GT(outer, start_ns);
}

TEST(Clock, converts_ticks_there_and_back) {
  const TickScale& scale = TickScale::get();
  for (const std::uint64_t ns : {1'000ULL, 1'000'000ULL, 3'600'000'000'000ULL}) {
    const double back = static_cast<double>(scale.to_ns(scale.to_ticks(ns)));
    EXPECT_NEAR(back, static_cast<double>(ns), 2.0 + static_cast<double>(ns) * 1e-9);
  }
  // Ten years of ticks neither overflow nor lose the rate.
  const std::uint64_t long_ago = scale.to_ticks(315'360'000'000'000'000ULL);
  EXPECT_NEAR(static_cast<double>(scale.to_ns(long_ago)), 3.1536e17, 1e9);
}

TEST(Clock, never_runs_backward_on_one_thread) {
  std::uint64_t last = ticks_now();
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t now = ticks_now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(Clock, trusts_the_counter_only_when_every_processor_promises_it) {
  using clock_detail::counter_is_invariant;
  EXPECT_TRUE(counter_is_invariant("model: x\nflags\t\t: fpu constant_tsc nonstop_tsc\n"));
  EXPECT_FALSE(counter_is_invariant("flags\t\t: fpu constant_tsc\n"));
  EXPECT_FALSE(counter_is_invariant("flags\t\t: fpu my_constant_tsc nonstop_tsc_not\n"));
  EXPECT_FALSE(counter_is_invariant("flags: constant_tsc nonstop_tsc\nflags: constant_tsc fpu\n"));
  EXPECT_FALSE(counter_is_invariant(""));
  EXPECT_FALSE(TickScale::get().source().empty());
}

}  // namespace
}  // namespace assay
