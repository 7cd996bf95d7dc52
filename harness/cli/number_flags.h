// What a flag that takes a number accepts, said the same way by every verb. CLI11's own checks wrap
// a negative count round, take "nan" for a number and print their limits to 300 digits.
#pragma once

#include <cstdint>

#include <CLI/CLI.hpp>

namespace assay::cli {

/// Decimal digits only, from `least` to `most`.
[[nodiscard]] CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);
/// A finite number from `least` to `most`.
[[nodiscard]] CLI::Validator number(double least, double most);

/// The most that a seed may be, and a count that has no limit of its own: what JSON readers of the
/// ledger that know signed numbers only can still hold.
inline constexpr std::uint64_t kMostWhole = 9'223'372'036'854'775'807ULL;

}  // namespace assay::cli
