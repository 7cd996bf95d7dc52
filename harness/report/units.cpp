#include "harness/report/units.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include <fmt/format.h>

namespace assay::report {
namespace {

struct Prefix {
  double factor;
  const char* name;
};

/// Rounds to three significant digits first, so that 999.7 becomes "1.00 k" and not "1000".
std::string with_prefix(double value, std::span<const Prefix> prefixes, double step) {
  const double size = std::fabs(value);
  std::size_t i = 0;
  while (i + 1 < prefixes.size() && size / prefixes[i].factor >= step * 0.9995) {
    if (size < prefixes[i + 1].factor * 0.9995) break;
    ++i;
  }
  const double scaled = value / prefixes[i].factor;
  return fmt::format("{} {}", format_number(scaled), prefixes[i].name);
}

}  // namespace

std::string format_number(double value) {
  if (!std::isfinite(value)) return "?";
  if (value == 0.0) return "0";
  const double size = std::fabs(value);
  // Digits after the point that leave three significant ones; 9.995 rounds up to 10.0.
  const int magnitude = static_cast<int>(std::floor(std::log10(size * 1.0005)));
  const int decimals = std::clamp(2 - magnitude, 0, 6);
  return fmt::format("{:.{}f}", value, decimals);
}

std::string format_count(double value) {
  static constexpr std::array<Prefix, 5> kPrefixes{
      {{1.0, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}}};
  std::string text = with_prefix(value, kPrefixes, 1e3);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string format_time_ns(double ns) {
  static constexpr std::array<Prefix, 4> kPrefixes{
      {{1.0, "ns"}, {1e3, "\u00b5s"}, {1e6, "ms"}, {1e9, "s"}}};
  if (ns >= 120e9) return fmt::format("{} min", format_number(ns / 60e9));
  return with_prefix(ns, kPrefixes, 1e3);
}

std::string format_bytes(double bytes) {
  static constexpr std::array<Prefix, 5> kPrefixes{{{1.0, "B"},
                                                    {1024.0, "KiB"},
                                                    {1048576.0, "MiB"},
                                                    {1073741824.0, "GiB"},
                                                    {1099511627776.0, "TiB"}}};
  return with_prefix(bytes, kPrefixes, 1024.0);
}

std::string format_ratio(double ratio) {
  return fmt::format("{}x", format_number(ratio));
}

std::string format_percent(double fraction) {
  const double percent = fraction * 100.0;
  if (percent != 0.0 && std::fabs(percent) < 9.95) return fmt::format("{:.1f} %", percent);
  return fmt::format("{:.0f} %", percent);
}

std::string format_metric(double value, const std::string& unit) {
  if (unit == "operations/s") return format_count(value) + "/s";
  if (unit == "ns") return format_time_ns(value);
  if (unit == "bytes") return format_bytes(value);
  return unit.empty() ? format_count(value) : format_count(value) + " " + unit;
}

std::string shown(const Quantity& quantity, std::string (*format)(double)) {
  return quantity.value ? format(*quantity.value) : "?";
}

}  // namespace assay::report
