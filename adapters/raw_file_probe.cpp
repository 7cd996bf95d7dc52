#include "adapters/raw_file_probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <vector>

namespace assay {
namespace {

constexpr std::array<RawMethod, 3> kDurable{RawMethod::fdatasync, RawMethod::odsync,
                                            RawMethod::odirect_dsync};
constexpr std::uint64_t kProbeFileBytes = 256 << 10;
constexpr std::uint64_t kProbeAppendBytes = 200;
constexpr int kProbeAppends = 12;

struct Free {
  void operator()(char* memory) const { std::free(memory); }
};

/// The median time of an append in nanoseconds, 0 when the method does not work here.
double time_method(const std::string& path, RawMethod method, char* block) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | open_flags(method));
  if (file < 0) return 0;
  std::vector<double> times;
  std::uint64_t end = 0;
  bool works = true;
  for (int i = 0; works && i < kProbeAppends; ++i) {
    // As the log does it: the block in which the append begins is written whole.
    const std::uint64_t begin = end / kRawBlockBytes * kRawBlockBytes;
    end += kProbeAppendBytes;
    const std::uint64_t bytes =
        (end - begin + kRawBlockBytes - 1) / kRawBlockBytes * kRawBlockBytes;
    std::fill_n(block, bytes, static_cast<char>(i + 1));
    const auto start = std::chrono::steady_clock::now();
    works = write_fully(file, block, bytes, begin) == 0;
    if (works && method == RawMethod::fdatasync) works = ::fdatasync(file) == 0;
    times.push_back(
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  ::close(file);
  if (!works) return 0;
  std::ranges::nth_element(times, times.begin() + kProbeAppends / 2);
  return times[kProbeAppends / 2];
}

}  // namespace

std::string_view to_string(RawMethod method) {
  switch (method) {
    case RawMethod::none:
      return "none";
    case RawMethod::fdatasync:
      return "fdatasync";
    case RawMethod::odsync:
      return "odsync";
    case RawMethod::odirect_dsync:
      return "odirect_dsync";
  }
  ASSAY_CHECK(false, "a method outside of the enumeration");
}

RawMethod raw_method_of(std::string_view name) {
  for (const RawMethod method : kDurable) {
    if (name == to_string(method)) return method;
  }
  return RawMethod::none;
}

int open_flags(RawMethod method) {
  if (method == RawMethod::odsync) return O_DSYNC;
  if (method == RawMethod::odirect_dsync) return O_DIRECT | O_DSYNC;
  return 0;
}

int write_fully(int file, const char* data, std::size_t bytes, std::uint64_t offset) {
  while (bytes > 0) {
    const ssize_t written = ::pwrite(file, data, bytes, static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (written == 0) return EIO;
    data += written;
    bytes -= static_cast<std::size_t>(written);
    offset += static_cast<std::uint64_t>(written);
  }
  return 0;
}

Status write_zeros(const std::string& path, std::uint64_t bytes, bool durable) {
  constexpr std::size_t kChunk = 1 << 20;
  constexpr std::uint64_t kSyncEvery = 8 << 20;  // no long queue in front of others' syncs
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return fail(system_error("raw-file: cannot create a file", errno).at(path));
  const std::vector<char> zeros(kChunk, '\0');
  int code = 0;
  for (std::uint64_t at = 0; code == 0 && at < bytes; at += kChunk) {
    code = write_fully(file, zeros.data(), std::min<std::uint64_t>(kChunk, bytes - at), at);
    const bool sync = durable && (at + kChunk) % kSyncEvery == 0;
    if (code == 0 && sync && ::fdatasync(file) != 0) code = errno;
  }
  if (code == 0 && durable && ::fsync(file) != 0) code = errno;
  ::close(file);
  if (code == 0) return {};
  ::unlink(path.c_str());
  return fail(system_error(fmt::format("raw-file: cannot write {} zeros", bytes), code).at(path));
}

Result<RawProbe> probe_raw_methods(const std::string& directory) {
  const std::string path = directory + "/raw-probe.tmp";
  ::unlink(path.c_str());  // of a probe that was killed
  ASSAY_TRY(write_zeros(path, kProbeFileBytes));
  const std::unique_ptr<char, Free> block(
      static_cast<char*>(std::aligned_alloc(kRawBlockBytes, 2 * kRawBlockBytes)));
  ASSAY_CHECK(block != nullptr, "no memory for two blocks");
  RawProbe probe;
  double best = 0;
  for (const RawMethod method : kDurable) {
    const double median = time_method(path, method, block.get());
    if (median == 0) continue;
    probe.append_ns_median[method] = median;
    if (best == 0 || median < best) {
      best = median;
      probe.fastest = method;
    }
  }
  ::unlink(path.c_str());
  if (best == 0) {
    return fail(
        Error(ErrorKind::environment, "raw-file: no way to sync a file works here").at(directory));
  }
  return probe;
}

}  // namespace assay
