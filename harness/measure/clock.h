// The clock of the timed part: the CPU's invariant time stamp counter, converted to nanoseconds
// of CLOCK_MONOTONIC_RAW by a calibration at start.
#pragma once

#include <cstdint>
#include <string>

namespace assay {

/// Ticks now; about 16 ns on a virtual machine. Not serialising: neighbouring instructions may
/// overlap by a few ns.
[[nodiscard]] inline std::uint64_t ticks_now() { return __builtin_ia32_rdtsc(); }

/// Conversion of tick differences, found once a process (takes about 10 ms the first time).
class TickScale {
 public:
  static const TickScale& get();
  [[nodiscard]] std::uint64_t to_ns(std::uint64_t ticks) const {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(ticks) * multiplier_) >> 32);
  }
  [[nodiscard]] double ns_per_tick() const;
  /// "tsc" or why the counter cannot be trusted here (not invariant).
  [[nodiscard]] const std::string& source() const { return source_; }

 private:
  TickScale();
  std::uint64_t multiplier_ = 0;  ///< ns per tick, 32 fractional bits
  std::string source_;
};

}  // namespace assay
