// The preloaded object: starts the recorder in a program that knows nothing of it, when the
// environment names the descriptor of a log. Marks come through assay_record_mark().
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstdlib>

#include "harness/qualify/power/recorder.h"

namespace {

[[gnu::constructor]] void begin() {
  const char* const given = std::getenv("ASSAY_RECORD_LOG");
  if (given == nullptr) return;
  const int file = std::atoi(given);
  struct stat status{};
  if (::fstat(file, &status) != 0) return;
  // In a program that a recorded one started the filter is there before the handler: only the stub
  // can make a shared mapping now.
  if (!assay::qualify::power::detail::map_stub()) return;
  const long memory = assay::qualify::power::detail::raw(
      SYS_mmap, 0, static_cast<std::uint64_t>(status.st_size), PROT_READ | PROT_WRITE, MAP_SHARED,
      static_cast<std::uint64_t>(file), 0);
  if (memory < 0 && memory > -4096) return;
  auto& header = *reinterpret_cast<assay::qualify::power::LogHeader*>(memory);
  if (header.magic != assay::qualify::power::kLogMagic) return;
  assay::qualify::power::start_recording(header);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] std::uint64_t assay_record_mark(std::uint64_t what,
                                                                          std::uint64_t a,
                                                                          std::uint64_t b) {
  return assay::qualify::power::record_mark(what, a, b);
}
