#include "harness/trial/left_running.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace assay {
namespace {

struct Known {
  std::mutex mutex;
  bool adopts = false;
  std::set<pid_t> before;  ///< children of whoever this program was before, such as a shell's jobs
  std::set<pid_t> live;
};

Known& known() {
  static auto& one = *new Known;
  return one;
}

/// The children of every thread of this process, zombies included.
std::vector<pid_t> children() {
  std::vector<pid_t> all;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream file(task.path() / "children");
    for (pid_t child = 0; file >> child;) all.push_back(child);
  }
  return all;
}

void wait_for(pid_t child) {
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

/// Needs the mutex. What is killed leaves its own children to this process: look again.
std::uint32_t end_the_left() {
  constexpr int kRoundsMax = 1000;  // against one that forks as fast as it is killed
  std::uint32_t ended = 0;
  std::set<pid_t> immortal;  // of another user
  for (int round = 0; round < kRoundsMax; ++round) {
    bool any = false;
    for (const pid_t child : children()) {
      const bool ours = known().before.contains(child) || known().live.contains(child);
      if (ours || immortal.contains(child)) continue;
      if (::kill(child, SIGKILL) != 0) {
        immortal.insert(child);
        continue;
      }
      wait_for(child);
      any = true;
      ++ended;
    }
    if (!any) break;
  }
  return ended + static_cast<std::uint32_t>(immortal.size());
}

}  // namespace

void LiveChildren::add(const std::function<pid_t()>& start) {
  const std::lock_guard lock(known().mutex);
  if (!known().adopts) {
    const std::vector<pid_t> before = children();
    known().before = {before.begin(), before.end()};
    // Linux has had this since 3.4; where it fails, what is left goes to init as it always did.
    known().adopts = ::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
  }
  const pid_t child = start();
  if (child > 0) known().live.insert(child);
}

std::uint32_t LiveChildren::remove(pid_t child) {
  const std::lock_guard lock(known().mutex);
  known().live.erase(child);
  return end_the_left();
}

void adopt_in_child() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

}  // namespace assay
