// Ways to make appended bytes durable, and a short probe that finds the fastest one here.
//
// Stateless functions, callable from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "adapters/result.h"

namespace assay {

enum class RawMethod : std::uint8_t {
  none,           ///< pwrite only: survives the process, not the loss of power
  fdatasync,      ///< pwrite, then fdatasync
  odsync,         ///< pwrite to a file opened with O_DSYNC
  odirect_dsync,  ///< pwrite of whole blocks to a file opened with O_DIRECT and O_DSYNC
};
[[nodiscard]] std::string_view to_string(RawMethod method);
[[nodiscard]] RawMethod raw_method_of(std::string_view name);
/// Flags of open(2) that the method needs beside O_WRONLY.
[[nodiscard]] int open_flags(RawMethod method);

struct RawProbe {
  RawMethod fastest = RawMethod::fdatasync;
  std::map<RawMethod, double> append_ns_median;  ///< methods that work in this directory
};
/// Times a dozen 200-byte appends with every method in a scratch file of `directory` that was
/// written with zeros and synced before; tens of milliseconds. Methods that the file system
/// refuses are left out.
[[nodiscard]] Result<RawProbe> probe_raw_methods(const std::string& directory);

/// Makes `path` a file of `bytes` zeros, so that later writes into it change no metadata. Syncs it
/// unless `durable` is false. Fails if it exists.
[[nodiscard]] Status write_zeros(const std::string& path, std::uint64_t bytes, bool durable = true);

/// pwrite until everything is written. 0 or an errno value.
[[nodiscard]] int write_fully(int file, const char* data, std::size_t bytes, std::uint64_t offset);

constexpr std::size_t kRawBlockBytes = 4096;  ///< alignment of direct writes

}  // namespace assay
