#include "harness/trial/idle_cpu.h"

#include <filesystem>
#include <fstream>
#include <string>

namespace assay {

std::uint64_t cpu_ns_of(pid_t pid) {
  namespace fs = std::filesystem;
  std::error_code code;
  std::uint64_t sum = 0;
  fs::directory_iterator tasks("/proc/" + std::to_string(pid) + "/task", code);
  for (; !code && tasks != fs::end(tasks); tasks.increment(code)) {
    std::ifstream file(tasks->path() / "schedstat");
    std::uint64_t ns = 0;
    if (file >> ns) sum += ns;
  }
  return sum;
}

}  // namespace assay
