#include "harness/cli/number_flags.h"

#include <charconv>
#include <cmath>
#include <string>

#include <fmt/format.h>

namespace assay::cli {
namespace {

/// An upper limit that says nothing to people is left out.
template <class Number>
std::string range_text(Number least, Number most) {
  if (static_cast<double>(most) >= 1e18) return fmt::format("{} or more", least);
  return fmt::format("from {} to {}", least, most);
}

/// A check that takes what `Number` reads whole and `fits`.
template <class Number, class Fits>
CLI::Validator check_of(const char* what, Number least, Number most, Fits fits) {
  const std::string range = range_text(least, most);
  const auto check = [what, range, fits](std::string& text) -> std::string {
    Number value{};
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = read.ec == std::errc{} && read.ptr == text.data() + text.size();
    if (whole && fits(value)) return {};
    const bool too_large = read.ec == std::errc::result_out_of_range;
    return fmt::format("'{}' is {} {}, {}", text, too_large ? "too large for" : "not", what, range);
  };
  return CLI::Validator(check, "[" + range + "]");
}

}  // namespace

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return check_of("a whole number", least, most,
                  [=](std::uint64_t value) { return value >= least && value <= most; });
}

CLI::Validator number(double least, double most) {
  return check_of("a number", least, most, [=](double value) {
    return std::isfinite(value) && value >= least && value <= most;
  });
}

}  // namespace assay::cli
