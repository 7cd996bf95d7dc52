// Numbers as people read them: three significant digits, a prefix, a unit.
#pragma once

#include <string>

#include "harness/report/model.h"

namespace assay::report {

/// "0.0123", "1.23", "12.3", "123": three significant digits, no exponent, trailing zeros kept.
[[nodiscard]] std::string format_number(double value);
/// "12.3 k", "1.23 M": decimal prefixes, for counts and rates.
[[nodiscard]] std::string format_count(double value);
/// "850 ns", "12.3 us", "4.56 ms", "7.89 s", "12.3 min"; the sign for micro is the Greek letter.
[[nodiscard]] std::string format_time_ns(double ns);
/// "512 B", "4.00 KiB", "1.25 GiB".
[[nodiscard]] std::string format_bytes(double bytes);
/// "1.32x".
[[nodiscard]] std::string format_ratio(double ratio);
/// "71 %", "0.4 %".
[[nodiscard]] std::string format_percent(double fraction);
/// In the verdict's unit: "12.3 k/s" for operations/s, a time for ns, else number and unit.
[[nodiscard]] std::string format_metric(double value, const std::string& unit);

/// `format` of the value, or "?" when it is not known.
[[nodiscard]] std::string shown(const Quantity& quantity, std::string (*format)(double));

}  // namespace assay::report
