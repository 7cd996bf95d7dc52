// How a p-value is written, everywhere: "0.031", "3e-8", "< 1e-15" (below that the figure says more
// about the distribution's tail than about the samples). Pure functions, callable from any thread.
#pragma once

#include <cmath>
#include <string>

#include <fmt/format.h>

namespace assay::stats {

/// Two digits from 0.001 on, else one digit and an exponent.
[[nodiscard]] inline std::string p_text(double p) {
  if (p < 1e-15) return "< 1e-15";
  if (p >= 0.001) return fmt::format("{:.2g}", p);
  const int exponent = static_cast<int>(std::floor(std::log10(p)));
  const long digit = std::lround(p / std::pow(10.0, exponent));
  return digit == 10 ? fmt::format("1e{}", exponent + 1) : fmt::format("{}e{}", digit, exponent);
}

/// "p = 0.04", "p < 1e-15".
[[nodiscard]] inline std::string p_phrase(double p) {
  const std::string text = p_text(p);
  return (text.starts_with('<') ? "p " : "p = ") + text;
}

}  // namespace assay::stats
