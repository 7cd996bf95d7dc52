#include "harness/qualify/block/lane.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "harness/qualify/block/runner.h"
#include "harness/trial/worker_request.h"

namespace assay::qualify::block {
namespace {

constexpr std::chrono::milliseconds kGrace{5'000};

/// Ends of conversations that this process holds: a new lane must not keep others' open.
std::vector<int>& open_ends() {
  static std::vector<int> ends;
  return ends;
}

void die_with(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
}

void say_error(int fd, const Error& error) {
  const std::string line = nlohmann::json{{"error", error_to_json(error)}}.dump() + "\n";
  static_cast<void>(!::send(fd, line.data(), line.size(), MSG_NOSIGNAL));
}

/// The lane's first process: serves the disk until its child ends.
[[noreturn]] void become_lane(const LanePlan& plan, SharedDisk& disk, const std::string& directory,
                              int conversation) {
  const std::string mount_point = directory + "/disk";
  const std::string mounted = directory + "/mnt";
  std::error_code code;
  std::filesystem::create_directories(mount_point, code);
  std::filesystem::create_directories(mounted, code);
  std::array<int, 2> control{};
  const Status alone = enter_own_namespace();
  if (!alone) {
    say_error(conversation, alone.error());
    ::_exit(1);
  }
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control.data()) != 0) {
    say_error(conversation, system_error("cannot make a socket", errno));
    ::_exit(1);
  }
  const pid_t server = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    say_error(conversation, system_error("cannot fork", errno));
    ::_exit(1);
  }
  if (child == 0) {
    die_with(server);
    ::close(control[0]);
    run_lane(plan, disk, directory, control[1], conversation);
    ::_exit(0);
  }
  ::close(control[1]);
  ::close(conversation);
  serve_disk(disk, mount_point, control[0], plan.fault);
  ::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  ::_exit(0);
}

}  // namespace

Result<Recorded> recorded_from_json(const nlohmann::json& json) {
  Recorded recorded;
  try {
    Result<TimedAcknowledgements> timed = timed_acknowledgements_from_json(json.at("timed"));
    if (!timed) return fail(timed.error());
    recorded.timed = std::move(*timed);
    recorded.canaries = json.at("canaries").get<std::vector<std::uint32_t>>();
    recorded.file_system = json.at("file_system");
    recorded.settings_in_force = json.at("settings").get<Settings>();
    recorded.seconds = json.at("seconds");
    for (const nlohmann::json& one : json.at("extents"))
      recorded.extents.push_back({one.at(0), one.at(1), one.at(2), one.at(3)});
  } catch (const nlohmann::json::exception& exception) {
    return fail(ErrorKind::child, fmt::format("a lane spoke nonsense: {}", exception.what()));
  }
  return recorded;
}

Result<Checked> checked_from_json(const nlohmann::json& json) {
  Checked checked;
  try {
    checked.not_mounted = json.at("not_mounted");
    if (!checked.not_mounted.empty()) return checked;
    checked.canaries = json.at("canaries");
    if (json.at("judgement").is_null()) return checked;
    Result<Judgement> judgement = judgement_from_json(json.at("judgement"));
    if (!judgement) return fail(judgement.error());
    checked.judgement = std::move(*judgement);
  } catch (const nlohmann::json::exception& exception) {
    return fail(ErrorKind::child, fmt::format("a lane spoke nonsense: {}", exception.what()));
  }
  return checked;
}

Result<Lane> Lane::start(const LanePlan& plan, SharedDisk& disk, const std::string& directory) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail(system_error("cannot make a socket", errno));
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    const int code = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    return fail(system_error("cannot fork", code));
  }
  if (pid == 0) {
    ::setpgid(0, 0);
    die_with(parent);
    for (const int end : open_ends()) ::close(end);
    ::close(ends[0]);
    become_lane(plan, disk, directory, ends[1]);
  }
  ::setpgid(pid, pid);
  ::close(ends[1]);
  open_ends().push_back(ends[0]);
  return Lane(pid, ends[0]);
}

Lane::Lane(Lane&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      fd_(std::exchange(other.fd_, -1)),
      busy_(other.busy_),
      unread_(std::move(other.unread_)) {}

Lane::~Lane() {
  if (pid_ == 0) return;
  // The end of the conversation ends an idle lane in good order; a busy one is not waited for.
  std::erase(open_ends(), fd_);
  ::close(fd_);
  const auto until = std::chrono::steady_clock::now() + (busy_ ? kGrace / 10 : kGrace);
  while (::waitpid(pid_, nullptr, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= until) {
      ::kill(-pid_, SIGKILL);
      while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
      }
      return;
    }
    ::usleep(2'000);
  }
}

Status Lane::send(const nlohmann::json& message) {
  ASSAY_CHECK(!busy_, "a lane does one thing at a time");
  const std::string line = message.dump() + "\n";
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t put = ::send(fd_, line.data() + done, line.size() - done, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return fail(ErrorKind::child, "a lane of level B ended");
    done += static_cast<std::size_t>(put);
  }
  busy_ = true;
  return {};
}

Status Lane::ask_to_record(std::uint64_t seed) {
  return send({{"record", seed}});
}

Status Lane::ask_to_check(std::uint64_t seed, const DiskState& state, const Acknowledgements& known,
                          const std::string& image) {
  nlohmann::json pieces = nlohmann::json::array();
  for (const Piece& piece : state.kept)
    pieces.push_back({piece.entry, piece.first_sector, piece.sectors});
  return send({{"check", seed},
               {"durable_end", state.durable_end},
               {"pieces", std::move(pieces)},
               {"known", to_json(known)},
               {"image", image}});
}

Result<nlohmann::json> Lane::answer(std::chrono::milliseconds timeout) {
  for (;;) {
    const std::size_t end = unread_.find('\n');
    if (end != std::string::npos) {
      nlohmann::json message = nlohmann::json::parse(unread_.substr(0, end), nullptr, false);
      unread_.erase(0, end + 1);
      busy_ = false;
      if (!message.is_object()) return fail(ErrorKind::child, "a lane of level B spoke nonsense");
      if (message.contains("error")) return fail(error_from_json(message["error"]));
      return message;
    }
    pollfd poll{fd_, POLLIN, 0};
    if (::poll(&poll, 1, static_cast<int>(timeout.count())) <= 0) return nlohmann::json(nullptr);
    std::array<char, 65'536> buffer;
    const ssize_t got = ::read(fd_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return fail(ErrorKind::child, "a lane of level B died");
    unread_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

void Lane::wait_for_any(const std::vector<Lane>& lanes, std::chrono::milliseconds timeout) {
  std::vector<pollfd> waiting;
  for (const Lane& lane : lanes)
    if (lane.busy_) waiting.push_back({lane.fd_, POLLIN, 0});
  ::poll(waiting.data(), waiting.size(), static_cast<int>(timeout.count()));
}

}  // namespace assay::qualify::block
