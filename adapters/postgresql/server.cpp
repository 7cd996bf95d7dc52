#include "adapters/postgresql/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <libpq-fe.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "adapters/opening.h"
#include "adapters/postgresql/child.h"

namespace assay::postgresql {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kLook = 10ms;                         // between two looks at a server
constexpr auto kLeaving = std::chrono::seconds(60);  // for an earlier server to be gone
constexpr std::size_t kLogShown = 400;               // bytes of the log in a message

std::string cluster_of(const std::string& directory) {
  return fmt::format("{}/{}", directory, kCluster);
}
std::string log_of(const std::string& directory) {
  return fmt::format("{}/{}.log", directory, kCluster);
}

/// The end of the log, on one line.
std::string last_words(const std::string& directory) {
  std::ifstream file(log_of(directory), std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.size() > kLogShown) text = "... " + text.substr(text.size() - kLogShown);
  for (char& one : text) {
    if (one == '\n') one = '|';
  }
  return text;
}

Error failed(const std::string& what, const std::string& directory) {
  const std::string log = last_words(directory);
  const bool full = log.find("No space left") != std::string::npos;
  return Error(full ? ErrorKind::environment : ErrorKind::store,
               fmt::format("PostgreSQL: {}: {}", what, log.empty() ? "it said nothing" : log))
      .at(log_of(directory));
}

/// A process of a server that works in the cluster, as far as we may see; 0: none does.
pid_t server_in(const std::string& cluster) {
  std::error_code error;
  if (!fs::exists(cluster + "/postmaster.pid", error)) return 0;
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    const pid_t pid = std::atoi(process.path().filename().c_str());
    std::error_code hidden;
    if (pid > 0 && fs::equivalent(process.path() / "cwd", cluster, hidden) && !hidden) return pid;
  }
  return 0;
}

Status wait_for_earlier(const std::string& cluster) {
  const auto until = std::chrono::steady_clock::now() + kLeaving;
  pid_t pid = 0;
  while ((pid = server_in(cluster)) != 0) {
    if (std::chrono::steady_clock::now() > until) {
      return fail(Error(ErrorKind::store, fmt::format("PostgreSQL: process {} serves this "
                                                      "directory already",
                                                      pid))
                      .at(cluster)
                      .hint("one process at a time opens a store"));
    }
    std::this_thread::sleep_for(kLook);
  }
  // What it left names a process that is gone, or another one by now, which the new server would
  // take for the old one.
  std::error_code ignored;
  fs::remove(cluster + "/postmaster.pid", ignored);
  return {};
}

/// A copy of a cluster belongs to who made it and is open to others; the server refuses both.
Status take_over(const std::string& cluster) {
  const Account who = account();
  struct stat info{};
  if (::stat(cluster.c_str(), &info) != 0)
    return fail(system_error("cannot look at the cluster", errno).at(cluster));
  std::error_code error;
  if (who.change && info.st_uid != who.user) {
    fs::recursive_directory_iterator files(cluster, error);
    for (; !error && files != fs::end(files); files.increment(error)) {
      if (::lchown(files->path().c_str(), who.user, who.group) != 0)
        return fail(system_error("cannot give a file to PostgreSQL", errno).at(files->path()));
    }
    if (!error && ::chown(cluster.c_str(), who.user, who.group) != 0)
      error.assign(errno, std::generic_category());
  }
  if (!error && (info.st_mode & 0077) != 0 && ::chmod(cluster.c_str(), 0700) != 0)
    error.assign(errno, std::generic_category());
  if (error)
    return fail(system_error("cannot give the cluster to PostgreSQL", error.value()).at(cluster));
  return {};
}

bool has_programs(const fs::path& folder) {
  return ::access((folder / "initdb").c_str(), X_OK) == 0 &&
         ::access((folder / "postgres").c_str(), X_OK) == 0;
}

}  // namespace

Result<std::string> find_programs(const std::string& wanted) {
  if (wanted != "auto") {
    if (has_programs(wanted)) return wanted;
    return fail(Error(ErrorKind::environment, "no PostgreSQL server here")
                    .at(wanted)
                    .hint("the setting programs names the folder of initdb and postgres"));
  }
  std::string best;
  int newest = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", error)) {
    const int number = std::atoi(entry.path().filename().c_str());
    if (number <= newest || !has_programs(entry.path() / "bin")) continue;
    newest = number;
    best = entry.path() / "bin";
  }
  for (const char* folder : {"/usr/local/pgsql/bin", "/usr/bin"}) {
    if (best.empty() && has_programs(folder)) best = folder;
  }
  if (!best.empty()) return best;
  return fail(Error(ErrorKind::environment, "the server of PostgreSQL is not installed")
                  .at("/usr/lib/postgresql")
                  .hint("install the Debian package postgresql (scripts/setup does), or name the "
                        "folder of initdb and postgres with the setting programs"));
}

const std::string& server_version() {
  static const std::string version = [] {
    const Result<std::string> programs = find_programs("auto");
    std::string text;
    if (!programs) return std::string("none");
    std::FILE* const out = ::popen((*programs + "/postgres --version").c_str(), "re");
    if (out == nullptr) return std::string("unknown");
    std::array<char, 256> line{};
    if (std::fgets(line.data(), line.size(), out) != nullptr) text = line.data();
    ::pclose(out);
    // "postgres (PostgreSQL) 15.18 (Debian ...)"
    const std::size_t begin = text.find(") ");
    if (begin == std::string::npos) return std::string("unknown");
    return text.substr(begin + 2, text.find_first_of(" \n", begin + 2) - begin - 2);
  }();
  return version;
}

Status make_cluster(const std::string& programs, const std::string& directory) {
  const std::string made = cluster_of(directory) + ".new";
  std::error_code error;
  fs::remove_all(made, error);
  if (error)
    return fail(system_error("cannot remove an unfinished cluster", error.value()).at(made));
  if (::mkdir(made.c_str(), 0700) != 0)
    return fail(system_error("cannot make a directory for PostgreSQL", errno).at(made));
  Result<Handle> handle = open_handle(made, O_RDONLY | O_DIRECTORY, "cannot open a directory");
  if (!handle) return fail(handle.error());
  const Result<Handle> log =
      open_handle(log_of(directory), O_WRONLY | O_CREAT | O_APPEND, "cannot make a log");
  if (!log) return fail(log.error());
  const Account who = account();
  if (who.change && ::fchown(handle->get(), who.user, who.group) != 0)
    return fail(system_error("cannot give the directory to PostgreSQL", errno).at(made));
  const Result<pid_t> child = start_child(
      {.words = {programs + "/initdb", "-D", kChildDirectory, "-U", "assay", "-A", "trust",
                 "--locale=C", "-E", "UTF8", "--data-checksums", "--no-sync", "--no-instructions"},
       .directory = handle->get(),
       .log = log->get(),
       .death_signal = SIGKILL});
  if (!child) return fail(child.error());
  if (wait_child(*child) != 0) return fail(failed("initdb failed", directory));
  if (::rename(made.c_str(), cluster_of(directory).c_str()) != 0)
    return fail(system_error("cannot name the cluster", errno).at(made));
  return {};
}

// The server's parent is a thread that lives as long as the server does: the death signal is sent
// when that thread ends, which it does only with the whole process.
struct Server::Guard {
  Handle directory;
  Handle log;
  std::thread thread;
  std::mutex lock;
  std::condition_variable changed;
  Result<pid_t> pid = fail(ErrorKind::internal, "not started");
  bool started = false;
  bool ended = false;
  int status = 0;

  void serve(const std::vector<std::string>& words) {
    Result<pid_t> child = start_child(
        {.words = words, .directory = directory.get(), .log = log.get(), .death_signal = SIGQUIT});
    const pid_t own = child ? *child : 0;
    {
      const std::scoped_lock hold(lock);
      pid = std::move(child);
      started = true;
      ended = own == 0;
    }
    changed.notify_all();
    if (own == 0) return;
    // Left unreaped until nobody can send it a signal any more: its number stays its own.
    siginfo_t info{};
    while (::waitid(P_PID, static_cast<id_t>(own), &info, WEXITED | WNOWAIT) != 0 &&
           errno == EINTR) {
    }
    const std::scoped_lock hold(lock);
    status = wait_child(own);
    ended = true;
    changed.notify_all();
  }
  bool is_over() {
    const std::scoped_lock hold(lock);
    return ended;
  }
  /// Its exit status.
  int end(int signal) {
    {
      const std::scoped_lock hold(lock);
      if (!ended) ::kill(*pid, signal);
    }
    thread.join();
    return status;
  }
};

Server::Server() : guard_(std::make_unique<Guard>()) {}

int Server::directory_handle() const {
  return guard_->directory.get();
}

Result<std::unique_ptr<Server>> Server::start(const std::string& programs,
                                              const std::string& directory,
                                              const std::vector<std::string>& options) {
  ASSAY_TRY(wait_for_earlier(cluster_of(directory)));
  ASSAY_TRY(take_over(cluster_of(directory)));
  std::unique_ptr<Server> server(new Server());
  Guard& guard = *server->guard_;
  server->directory_ = directory;
  Result<Handle> cluster =
      open_handle(cluster_of(directory), O_RDONLY | O_DIRECTORY, "cannot open the cluster");
  if (!cluster) return fail(cluster.error());
  Result<Handle> log =
      open_handle(log_of(directory), O_WRONLY | O_CREAT | O_APPEND, "cannot open the log");
  if (!log) return fail(log.error());
  guard.directory = std::move(*cluster);
  guard.log = std::move(*log);
  server->socket_folder_ = fmt::format("/proc/self/fd/{}", guard.directory.get());
  std::vector<std::string> words{programs + "/postgres", "-D", kChildDirectory};
  for (const std::string& option : options) {
    words.emplace_back("-c");
    words.push_back(option);
  }
  guard.thread = std::thread([&guard, words] { guard.serve(words); });
  {
    std::unique_lock hold(guard.lock);
    guard.changed.wait(hold, [&guard] { return guard.started; });
    if (!guard.pid) return fail(guard.pid.error());
  }
  const std::array<const char*, 4> names{"host", "port", "user", nullptr};
  const std::array<const char*, 4> values{server->socket_folder_.c_str(), "5432", "assay", nullptr};
  while (PQpingParams(names.data(), values.data(), 0) != PQPING_OK) {
    if (guard.is_over()) return fail(failed("the server did not start", directory));
    std::this_thread::sleep_for(kLook);
  }
  return server;
}

Server::~Server() {
  if (guard_->thread.joinable()) guard_->end(SIGQUIT);
}

Status Server::stop() {
  if (!guard_->thread.joinable()) return {};
  const bool gone = guard_->is_over();
  const int status = guard_->end(SIGINT);
  if (gone || status != 0)
    return fail(failed(fmt::format("the server ended with status {}", status), directory_));
  return {};
}

}  // namespace assay::postgresql
