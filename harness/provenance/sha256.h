// SHA-256 by OpenSSL, as lower-case hex: the identity of plans, records, files and binaries.
// Free functions without state; any thread.
#pragma once

#include <string>
#include <string_view>

#include "adapters/result.h"

namespace assay {

/// 64 hex digits.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);
/// Of a whole file, read in pieces. An unreadable file is an error that names it.
[[nodiscard]] Result<std::string> sha256_file(const std::string& path);

}  // namespace assay
