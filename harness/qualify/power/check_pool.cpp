#include "harness/qualify/power/check_pool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

namespace assay::qualify::power {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void look(const Check& check, const std::string& directory,
                       const Acknowledgements& known, int pipe) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_DUMPABLE, 0);  // a store that crashes leaves no core file
  Judgement judgement = check(directory, known);
  judgement.found.clear();  // what it has is of no interest, and long
  const std::string text = to_json(judgement).dump();
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t put = ::write(pipe, text.data() + done, text.size() - done);
    if (put <= 0) ::_exit(1);
    done += static_cast<std::size_t>(put);
  }
  ::_exit(0);
}

}  // namespace

CheckPool::CheckPool(Plan plan, Done done) : plan_(std::move(plan)), done_(std::move(done)) {
  for (std::uint32_t job = 0; job < std::max(plan_.jobs, 1U); ++job) {
    Place place;
    place.directory = fmt::format("{}/state-{}", plan_.directory, job);
    places_.push_back(std::move(place));
  }
}

CheckPool::~CheckPool() {
  for (Place& place : places_) {
    if (place.child == 0) continue;
    ::kill(place.child, SIGKILL);
    ::waitpid(place.child, nullptr, 0);
    ::close(place.pipe);
  }
  for (const Place& place : places_) {
    std::error_code ignored;
    std::filesystem::remove_all(place.directory, ignored);
  }
}

Status CheckPool::submit(const Tree& tree, const Acknowledgements& known, std::uint64_t token) {
  Place* free = nullptr;
  while (free == nullptr) {
    for (Place& place : places_) {
      if (place.child == 0) free = &place;
    }
    if (free == nullptr) wait_for_one();
  }
  std::error_code error;
  std::filesystem::create_directory(free->directory, error);
  empty_directory(free->directory);
  ASSAY_TRY(write_tree(tree, free->directory));
  std::array<int, 2> pipe;
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return fail(system_error("cannot make a pipe", errno));
  const pid_t child = ::fork();
  if (child < 0) {
    const int code = errno;
    ::close(pipe[0]);
    ::close(pipe[1]);
    return fail(system_error("cannot start a process to look at a crash state", code));
  }
  if (child == 0) look(plan_.check, free->directory, known, pipe[1]);
  ::close(pipe[1]);
  free->child = child;
  free->pipe = pipe[0];
  free->token = token;
  free->answer.clear();
  free->created = known.created;
  free->deadline = Clock::now() + plan_.timeout;
  return {};
}

void CheckPool::wait_for_one() {
  std::vector<pollfd> waiting;
  std::vector<Place*> places;
  Clock::time_point first = Clock::time_point::max();
  for (Place& place : places_) {
    if (place.child == 0) continue;
    waiting.push_back({place.pipe, POLLIN, 0});
    places.push_back(&place);
    first = std::min(first, place.deadline);
  }
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(first - Clock::now()).count() + 1;
  ::poll(waiting.data(), waiting.size(), static_cast<int>(std::max<std::int64_t>(left, 0)));
  for (std::size_t index = 0; index < places.size(); ++index) {
    if (waiting[index].revents != 0) {
      read_from(*places[index]);
    } else if (Clock::now() >= places[index]->deadline) {
      finish(*places[index], true);
    }
  }
}

void CheckPool::read_from(Place& place) {
  std::array<char, 16'384> buffer;
  const ssize_t got = ::read(place.pipe, buffer.data(), buffer.size());
  if (got < 0 && errno == EINTR) return;
  if (got > 0) {
    place.answer.append(buffer.data(), static_cast<std::size_t>(got));
    return;
  }
  finish(place, false);
}

Judgement CheckPool::verdict(const Place& place, int status, bool hung) const {
  Acknowledgements known;
  known.created = place.created;
  if (hung) {
    return judge_unopened(
        known, Finding::Kind::hung,
        fmt::format("it does not open or answer within {} ms", plan_.timeout.count()));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    const auto json = nlohmann::json::parse(place.answer, nullptr, false);
    if (!json.is_discarded()) {
      Result<Judgement> judgement = judgement_from_json(json);
      if (judgement) return std::move(*judgement);
    }
  }
  const std::string how =
      WIFSIGNALED(status) ? fmt::format("it dies of signal {} ({})", WTERMSIG(status),
                                        ::strsignal(WTERMSIG(status)))
                          : fmt::format("it ends the process with status {}", WEXITSTATUS(status));
  return judge_unopened(known, Finding::Kind::crashed, how);
}

void CheckPool::finish(Place& place, bool hung) {
  if (hung) ::kill(place.child, SIGKILL);
  int status = 0;
  while (::waitpid(place.child, &status, 0) < 0 && errno == EINTR) {
  }
  ::close(place.pipe);
  place.child = 0;
  place.pipe = -1;
  done_(place.token, verdict(place, status, hung));
}

void CheckPool::drain() {
  const auto busy = [&] {
    return std::any_of(places_.begin(), places_.end(),
                       [](const Place& place) { return place.child != 0; });
  };
  while (busy()) wait_for_one();
}

Result<std::string> make_state_directory(const std::string& otherwise) {
  constexpr std::uint64_t kRoom = std::uint64_t{256} << 20;
  struct statvfs space{};
  const bool in_memory = ::statvfs("/dev/shm", &space) == 0 &&
                         std::uint64_t{space.f_bavail} * space.f_frsize >= kRoom &&
                         ::access("/dev/shm", W_OK) == 0;
  std::string pattern = (in_memory ? std::string("/dev/shm") : otherwise) + "/assay-states-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) {
    return fail(system_error("cannot make a directory for crash states", errno).at(pattern));
  }
  return pattern;
}

}  // namespace assay::qualify::power
