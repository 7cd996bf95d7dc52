// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78; RFC 3720 appendix B.4 has test vectors).
// Thread-safe. The instruction of SSE 4.2 where the CPU has it, else the table; both are tested
// against each other.
#pragma once

#include <cstdint>

#include "engine/base/types.h"

namespace lode {

/// Checksum of `data`, continued from `seed` (the checksum of what came before; 0 = start).
[[nodiscard]] std::uint32_t crc32c(ConstBytes data, std::uint32_t seed = 0);

/// The scalar twin, the same on every machine.
[[nodiscard]] std::uint32_t crc32c_scalar(ConstBytes data, std::uint32_t seed = 0);
/// Whether crc32c() uses the instruction.
[[nodiscard]] bool crc32c_has_hardware();

}  // namespace lode
