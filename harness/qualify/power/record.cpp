#include "harness/qualify/power/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "harness/qualify/power/recorder.h"

namespace assay::qualify::power {
namespace {

/// The log in memory without a name, which children inherit.
class SharedLog {
 public:
  static Result<SharedLog> make(const RecordPlan& plan) {
    const int file = ::memfd_create("assay-record", 0);
    const std::size_t bytes = kLogRecordsAt + plan.log_bytes;
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
      const int code = errno;
      if (file >= 0) ::close(file);
      return fail(system_error("cannot set memory aside for a record", code));
    }
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
      const int code = errno;
      ::close(file);
      return fail(system_error("cannot map memory for a record", code));
    }
    auto* const header = static_cast<LogHeader*>(memory);
    header->magic = kLogMagic;
    header->capacity = plan.log_bytes;
    header->stacks = plan.stacks;
    header->fail_sync = plan.fail_sync;
    return SharedLog(file, header, bytes);
  }
  SharedLog(SharedLog&& other) noexcept
      : file_(std::exchange(other.file_, -1)),
        header_(std::exchange(other.header_, nullptr)),
        bytes_(other.bytes_) {}
  SharedLog& operator=(SharedLog&&) = delete;
  SharedLog(const SharedLog&) = delete;
  SharedLog& operator=(const SharedLog&) = delete;
  ~SharedLog() {
    if (header_ != nullptr) ::munmap(header_, bytes_);
    if (file_ >= 0) ::close(file_);
  }
  [[nodiscard]] LogHeader& header() const { return *header_; }
  [[nodiscard]] int file() const { return file_; }

 private:
  SharedLog(int file, LogHeader* header, std::size_t bytes)
      : file_(file), header_(header), bytes_(bytes) {}
  int file_;
  LogHeader* header_;
  std::size_t bytes_;
};

Status aim(LogHeader& header, const std::string& directory,
           const std::vector<std::uint64_t>& inodes) {
  char root[kPathMax];
  struct stat status{};
  if (::realpath(directory.c_str(), root) == nullptr || ::stat(root, &status) != 0) {
    return fail(system_error("cannot look at the store's directory", errno).at(directory));
  }
  std::memcpy(header.root, root, std::strlen(root) + 1);
  header.root_bytes = static_cast<std::uint32_t>(std::strlen(root));
  header.device = status.st_dev;
  for (const std::uint64_t inode : inodes) add_inode(header, inode);
  return {};
}

std::string how_it_ended(int status) {
  if (WIFEXITED(status)) return fmt::format("ended with status {}", WEXITSTATUS(status));
  if (WTERMSIG(status) == SIGSYS) {
    return "was stopped at a system call that the recorder could not take: a thread blocked its "
           "signal, or a program without the recorder was started";
  }
  return fmt::format("died of signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
}

/// Waits; kills at the timeout. The wait status, or nothing after a kill.
std::optional<int> wait_for(pid_t child, std::chrono::milliseconds timeout) {
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  pollfd waiting{handle, POLLIN, 0};
  const bool ended = handle < 0 || ::poll(&waiting, 1, static_cast<int>(timeout.count())) > 0;
  if (!ended) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (handle >= 0) ::close(handle);
  if (!ended) return std::nullopt;
  return status;
}

struct Before {
  Trace trace;
  std::vector<std::uint64_t> inodes;
};

Result<Before> read_before(const RecordPlan& plan, LogHeader& header) {
  Before before;
  auto tree = read_tree(plan.directory, *before.trace.pool, before.inodes);
  if (!tree) return std::unexpected(tree.error());
  before.trace.initial = std::move(*tree);
  ASSAY_TRY(aim(header, plan.directory, before.inodes));
  return before;
}

/// Events from the log, and the proof that nothing is missing from them.
Result<Trace> finish(const RecordPlan& plan, const LogHeader& header, Before before) {
  if (header.refused != 0) {
    return fail(Error(ErrorKind::unsupported, fmt::format("recording: {}", header.refusal))
                    .at(plan.directory));
  }
  if (header.attached == 0) {
    return fail(Error(ErrorKind::unsupported,
                      "recording: the program did not load the recorder; a statically linked one "
                      "cannot")
                    .hint("qualify it under a real file system instead (level B)"));
  }
  ASSAY_TRY(read_events(header, before.inodes, before.trace));
  std::vector<std::uint64_t> inodes;
  const auto actual = read_tree(plan.directory, *before.trace.pool, inodes);
  if (!actual) return std::unexpected(actual.error());
  const std::string wrong = difference(before.trace.final, *actual);
  if (!wrong.empty()) {
    return fail(Error(ErrorKind::internal,
                      fmt::format("recording: replaying all {} events does not give the directory: "
                                  "{}",
                                  before.trace.events.size(), wrong))
                    .at(plan.directory)
                    .hint("the store changed its files in a way that was not seen, or another "
                          "process did; this recording is not used"));
  }
  return std::move(before.trace);
}

constexpr int kWorkFailed = 100;

}  // namespace

Result<Trace> record_call(const RecordPlan& plan, const std::function<Status()>& work) {
  const auto log = SharedLog::make(plan);
  if (!log) return std::unexpected(log.error());
  LogHeader& header = log->header();
  auto before = read_before(plan, header);
  if (!before) return std::unexpected(before.error());
  std::array<int, 2> pipe;
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    return fail(system_error("cannot make a pipe", errno));
  }
  const pid_t child = ::fork();
  if (child < 0) return fail(system_error("cannot start a recorded process", errno));
  if (child == 0) {
    if (!start_recording(header)) ::_exit(0);
    const Status done = work();
    if (done) ::_exit(0);
    const std::string text = done.error().message().substr(0, 4000);
    static_cast<void>(!::write(pipe[1], text.data(), text.size()));
    ::_exit(kWorkFailed);
  }
  ::close(pipe[1]);
  const std::optional<int> status = wait_for(child, plan.timeout);
  std::string text(4096, '\0');
  const ssize_t got = ::read(pipe[0], text.data(), text.size());
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  ::close(pipe[0]);
  if (header.refused == 0 && !(status && WIFEXITED(*status) && WEXITSTATUS(*status) == 0)) {
    return fail(Error(text.empty() ? ErrorKind::child : ErrorKind::store,
                      fmt::format("recording: {}",
                                  !status        ? "the store did not end in time"
                                  : text.empty() ? "the recorded process " + how_it_ended(*status)
                                                 : text))
                    .at(plan.directory));
  }
  return finish(plan, header, std::move(*before));
}

Result<Trace> record_program(const RecordPlan& plan, const std::string& recorder,
                             const std::vector<std::string>& command) {
  const auto log = SharedLog::make(plan);
  if (!log) return std::unexpected(log.error());
  LogHeader& header = log->header();
  auto before = read_before(plan, header);
  if (!before) return std::unexpected(before.error());
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return fail(system_error("cannot start a recorded process", errno));
  if (child == 0) {
    ::setenv("LD_PRELOAD", recorder.c_str(), 1);
    ::setenv("ASSAY_RECORD_LOG", fmt::format("{}", log->file()).c_str(), 1);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  const std::optional<int> status = wait_for(child, plan.timeout);
  if (header.refused == 0 && header.attached != 0 &&
      !(status && WIFEXITED(*status) && WEXITSTATUS(*status) == 0)) {
    return fail(ErrorKind::child,
                fmt::format("recording: {} {}", command.front(),
                            status ? how_it_ended(*status) : std::string("did not end in time")));
  }
  return finish(plan, header, std::move(*before));
}

}  // namespace assay::qualify::power
