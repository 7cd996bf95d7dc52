#include "harness/measure/clock.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>

#include "adapters/result.h"

namespace assay {
namespace {

/// Part of a trial's fixed cost, so it is short: reading both clocks is off by some 40 ns, which is
/// 6e-5 of one of the three parts, a tenth of what the histogram resolves.
constexpr std::uint64_t kCalibrationNs = 2'000'000;
constexpr double kFraction = 4294967296.0;  // 2^32

struct Pair {
  std::uint64_t ticks = 0;
  std::uint64_t ns = 0;
};

/// Both clocks at one moment: of several readings the one whose bracket is narrowest, so that an
/// interrupt between the two clocks does not bend the scale.
Pair read_both() {
  Pair best;
  std::uint64_t narrowest = ~std::uint64_t{0};
  for (int attempt = 0; attempt < 16; ++attempt) {
    const std::uint64_t before = ticks_now();
    const std::uint64_t ns = monotonic_raw_ns();
    const std::uint64_t after = ticks_now();
    if (after - before < narrowest) {
      narrowest = after - before;
      best = {before + (after - before) / 2, ns};
    }
  }
  return best;
}

std::string cpuinfo() {
  std::ifstream file("/proc/cpuinfo");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool has_word(std::string_view line, std::string_view word) {
  for (std::size_t at = line.find(word); at != line.npos; at = line.find(word, at + 1)) {
    const bool starts = at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t';
    const std::size_t end = at + word.size();
    if (starts && (end == line.size() || line[end] == ' ')) return true;
  }
  return false;
}

}  // namespace

namespace clock_detail {

bool counter_is_invariant(std::string_view text) {
  bool found = false;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (!line.starts_with("flags")) continue;
    // One processor without it is enough: threads move between processors.
    if (!has_word(line, "constant_tsc") || !has_word(line, "nonstop_tsc")) return false;
    found = true;
  }
  return found;
}

const bool use_counter = counter_is_invariant(cpuinfo());

}  // namespace clock_detail

TickScale::TickScale() {
  if (!clock_detail::use_counter) {
    multiplier_ = std::uint64_t{1} << 32;
    source_ =
        "clock_monotonic_raw: /proc/cpuinfo does not list constant_tsc and nonstop_tsc for every "
        "CPU";
    return;
  }
  // The median of three short calibrations: one of them may contain a preemption.
  std::array<double, 3> rates{};
  for (double& rate : rates) {
    const Pair first = read_both();
    while (monotonic_raw_ns() - first.ns < kCalibrationNs / rates.size()) {
    }
    const Pair last = read_both();
    ASSAY_CHECK(last.ticks > first.ticks, "the time stamp counter does not advance");
    rate = static_cast<double>(last.ns - first.ns) / static_cast<double>(last.ticks - first.ticks);
  }
  std::ranges::sort(rates);
  multiplier_ = static_cast<std::uint64_t>(std::llround(rates[1] * kFraction));
  source_ = "tsc";
}

const TickScale& TickScale::get() {
  static const TickScale scale;
  return scale;
}

std::uint64_t TickScale::to_ticks(std::uint64_t ns) const {
  return static_cast<std::uint64_t>((static_cast<Wide>(ns) << 32) / multiplier_);
}

double TickScale::ns_per_tick() const {
  return static_cast<double>(multiplier_) / kFraction;
}

}  // namespace assay
