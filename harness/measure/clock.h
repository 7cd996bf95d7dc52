// The clock of the timed part: the CPU's invariant time stamp counter, converted to nanoseconds
// of CLOCK_MONOTONIC_RAW by a calibration at start.
//
// Where the counter is not invariant (it would change its rate with the CPU's frequency or stop
// in idle states) ticks_now() reads CLOCK_MONOTONIC_RAW instead, a tick is then one nanosecond, and
// TickScale::source() says why. The choice is made once, before main(). Every function may be
// called from any thread.
#pragma once

#include <time.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace assay {

namespace clock_detail {
/// True when the counter may be used; fixed before main() runs.
extern const bool use_counter;
/// Whether the flags line of /proc/cpuinfo promises a counter of constant rate that never stops.
[[nodiscard]] bool counter_is_invariant(std::string_view cpuinfo);
}  // namespace clock_detail

/// CLOCK_MONOTONIC_RAW now, ns; about 38 ns a call on a virtual machine.
[[nodiscard]] inline std::uint64_t monotonic_raw_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// Ticks now; about 16 ns on a virtual machine. Not serialising: neighbouring instructions may
/// overlap by a few ns.
[[nodiscard]] inline std::uint64_t ticks_now() {
#if defined(__x86_64__)
  if (clock_detail::use_counter) [[likely]]
    return __builtin_ia32_rdtsc();
#endif
  return monotonic_raw_ns();
}

/// True when `after` lies before `before`. The counters of two CPUs may stand some ticks apart, and
/// a thread may move between its two readings. Differences are taken modulo 2^64, so that a counter
/// that wraps between the two is no step back.
[[nodiscard]] constexpr bool clock_stepped_back(std::uint64_t before, std::uint64_t after) {
  return (after - before) >> 63 != 0;
}
/// Ticks from `before` to `after`; 0 after a step back, never 2^64 less a few.
[[nodiscard]] constexpr std::uint64_t ticks_between(std::uint64_t before, std::uint64_t after) {
  return clock_stepped_back(before, after) ? 0 : after - before;
}

/// Conversion of tick differences, found once a process (takes about 2 ms the first time).
class TickScale {
 public:
  static const TickScale& get();
  /// Nanoseconds of a difference of ticks (ticks_between).
  [[nodiscard]] std::uint64_t to_ns(std::uint64_t ticks) const {
    return static_cast<std::uint64_t>((static_cast<Wide>(ticks) * multiplier_) >> 32);
  }
  /// Ticks of a number of nanoseconds, for deadlines.
  [[nodiscard]] std::uint64_t to_ticks(std::uint64_t ns) const;
  [[nodiscard]] double ns_per_tick() const;
  /// "tsc", or "clock_monotonic_raw: " and why the counter cannot be trusted here.
  [[nodiscard]] const std::string& source() const { return source_; }

 private:
  __extension__ using Wide = unsigned __int128;

  TickScale();
  std::uint64_t multiplier_ = 0;  ///< ns per tick, 32 fractional bits
  std::string source_;
};

}  // namespace assay
