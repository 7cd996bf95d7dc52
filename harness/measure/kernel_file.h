// Files of /proc and /sys: small, made anew at each read, of unknown size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/result.h"

namespace assay {

/// The whole file.
[[nodiscard]] Result<std::string> read_kernel_file(const std::string& path);
/// The first line without its line feed; empty when the file cannot be read.
[[nodiscard]] std::string read_kernel_line(const std::string& path);
/// The number after `name` and a colon or blanks at the start of a line ("VmRSS:  12 kB").
[[nodiscard]] Result<std::uint64_t> kernel_number(std::string_view text, std::string_view name,
                                                  const std::string& path);
/// Unsigned numbers of a line, up to the first word that is none.
[[nodiscard]] std::vector<std::uint64_t> numbers_of(std::string_view line);
/// Lines of `text`, without the line feeds.
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace assay
