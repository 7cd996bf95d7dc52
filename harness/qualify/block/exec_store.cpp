#include "harness/qualify/block/exec_store.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "adapters/registry.h"

namespace assay::qualify::block {
namespace {

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += kDigits[value >> 4];
    text += kDigits[value & 15];
  }
  // An empty word would not show.
  return text.empty() ? "-" : text;
}

std::optional<std::string> unhex(std::string_view text) {
  if (text == "-") return std::string();
  const auto digit = [](char letter) {
    if (letter >= '0' && letter <= '9') return letter - '0';
    if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
    if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
    return -1;
  };
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t at = 0; at < text.size(); at += 2) {
    const int high = digit(text[at]);
    const int low = digit(text[at + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

/// Words of a line, separated by one blank.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

/// The program and the two directions of talking to it.
class Conversation {
 public:
  static Result<std::unique_ptr<Conversation>> start(const std::string& command) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      return fail(system_error("cannot make a socket", errno));
    const std::string shell_line = "exec " + command;
    const pid_t pid = ::fork();
    if (pid < 0) {
      const int code = errno;
      ::close(ends[0]);
      ::close(ends[1]);
      return fail(system_error("cannot start a program", code));
    }
    if (pid == 0) {
      ::dup2(ends[1], STDIN_FILENO);
      ::dup2(ends[1], STDOUT_FILENO);
      ::execl("/bin/sh", "sh", "-c", shell_line.c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(ends[1]);
    return std::unique_ptr<Conversation>(new Conversation(pid, ends[0]));
  }

  ~Conversation() { static_cast<void>(end()); }
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

  Status say(const std::string& line) {
    const std::string whole = line + "\n";
    for (std::size_t done = 0; done < whole.size();) {
      const ssize_t put = ::send(fd_, whole.data() + done, whole.size() - done, MSG_NOSIGNAL);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return fail(ErrorKind::store, "the program ended without an answer");
      done += static_cast<std::size_t>(put);
    }
    return {};
  }

  Result<std::string> hear() {
    for (;;) {
      const std::size_t end = unread_.find('\n');
      if (end != std::string::npos) {
        std::string line = unread_.substr(0, end);
        unread_.erase(0, end + 1);
        if (line.starts_with("error"))
          return fail(ErrorKind::store, "the program says: " + printable(line));
        return line;
      }
      std::array<char, 65'536> buffer;
      const ssize_t got = ::read(fd_, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return fail(ErrorKind::store, "the program ended without an answer");
      unread_.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }

  Status ask(const std::string& line) {
    ASSAY_TRY(say(line));
    const Result<std::string> answer = hear();
    if (!answer) return fail(answer.error());
    if (*answer != "ok")
      return fail(ErrorKind::store,
                  fmt::format("the program answers '{}' to '{}'", printable(*answer).substr(0, 80),
                              line.substr(0, line.find(' '))));
    return {};
  }

  /// Nothing more is said; waits for the program's end.
  Status end() {
    if (pid_ == 0) return {};
    ::close(fd_);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    return fail(ErrorKind::store,
                WIFEXITED(status)
                    ? fmt::format("the program ended with status {}", WEXITSTATUS(status))
                    : fmt::format("the program died of signal {}", WTERMSIG(status)));
  }

 private:
  Conversation(pid_t pid, int fd) : pid_(pid), fd_(fd) {}
  pid_t pid_;
  int fd_;
  std::mutex mutex_;
  std::string unread_;
};

class ExecSession final : public Session {
 public:
  explicit ExecSession(Conversation& program) : program_(program) {}

  Result<bool> get(std::string_view key, std::string_view& value) override {
    const std::scoped_lock undivided(program_);
    ASSAY_TRY(program_.say("get " + hex(key)));
    const Result<std::string> answer = program_.hear();
    if (!answer) return fail(answer.error());
    if (*answer == "none") return false;
    const auto words = words_of(*answer);
    const auto bytes = words.size() == 2 && words[0] == "value" ? unhex(words[1]) : std::nullopt;
    if (!bytes)
      return fail(ErrorKind::store,
                  "the program answers '" + printable(*answer).substr(0, 80) + "' to 'get'");
    value_ = *bytes;
    value = value_;
    return true;
  }

  Status put(std::string_view key, std::string_view value) override {
    const Mutation one{.kind = Mutation::Kind::put, .key = key, .value = value};
    return apply({&one, 1});
  }
  Status erase(std::string_view key) override {
    const Mutation one{.kind = Mutation::Kind::erase, .key = key};
    return apply({&one, 1});
  }

  Status apply(std::span<const Mutation> mutations) override {
    const std::scoped_lock undivided(program_);
    std::string batch = "begin\n";
    for (const Mutation& one : mutations)
      batch += one.kind == Mutation::Kind::put
                   ? fmt::format("put {} {}\n", hex(one.key), hex(one.value))
                   : fmt::format("delete {}\n", hex(one.key));
    return program_.ask(batch + "commit");
  }

  Status rollback(std::span<const Mutation> /*mutations*/) override {
    return fail(ErrorKind::unsupported, "the protocol has no rollback");
  }

  Result<std::uint64_t> scan(const ScanRange& range, ScanSink& sink) override {
    std::vector<std::pair<std::string, std::string>> entries;
    ASSAY_TRY(read_all(entries));
    if (range.backward) std::ranges::reverse(entries);
    std::uint64_t visited = 0;
    for (const auto& [key, value] : entries) {
      if (!range.from_start && key < range.first) continue;
      if (!range.to_end && key > range.last) continue;
      if (range.limit != 0 && visited == range.limit) break;
      ++visited;
      if (!sink.entry(key, value)) break;
    }
    return visited;
  }

 private:
  Status read_all(std::vector<std::pair<std::string, std::string>>& entries) {
    const std::scoped_lock undivided(program_);
    ASSAY_TRY(program_.say("scan"));
    for (;;) {
      const Result<std::string> line = program_.hear();
      if (!line) return fail(line.error());
      if (*line == "end") return {};
      const auto words = words_of(*line);
      const bool entry = words.size() == 3 && words[0] == "entry";
      const auto key = entry ? unhex(words[1]) : std::nullopt;
      const auto value = entry ? unhex(words[2]) : std::nullopt;
      if (!key || !value)
        return fail(ErrorKind::store,
                    "the program answers '" + printable(*line).substr(0, 80) + "' to 'scan'");
      entries.emplace_back(*key, *value);
    }
  }

  Conversation& program_;
  std::string value_;
};

class ExecStore final : public Store {
 public:
  ExecStore(const std::string& directory, std::unique_ptr<Conversation> program)
      : Store(directory), program_(std::move(program)) {}

  Result<std::unique_ptr<Session>> session() override {
    return std::make_unique<ExecSession>(*program_);
  }
  Status sync() override { return fail(ErrorKind::unsupported, "the protocol has no sync"); }
  Status checkpoint() override { return {}; }
  Status settle() override { return {}; }
  Result<Settings> effective_settings() override { return Settings(); }
  Status close() override {
    ASSAY_TRY(program_->ask("close"));
    return program_->end();
  }

 private:
  std::unique_ptr<Conversation> program_;
};

class ExecDriver final : public Driver {
 public:
  explicit ExecDriver(std::string command) : command_(std::move(command)) {}
  std::string name() const override { return std::string(kExecPrefix) + command_; }
  std::string version() const override { return "unknown"; }
  Capabilities capabilities() const override {
    return {.ordered = true,
            .rollback = false,
            .atomic_batches = true,
            .concurrent_writers = false,
            .larger_than_memory = false,
            .durability = {DurabilityClass::volatile_, DurabilityClass::process,
                           DurabilityClass::power_prefix, DurabilityClass::power_last,
                           DurabilityClass::power},
            .max_key_bytes = 1024,
            .max_value_bytes = 1 << 20};
  }
  std::vector<Setting> settings(DurabilityClass /*durability*/) const override { return {}; }
  Result<std::unique_ptr<Store>> open(const OpenOptions& options) const override {
    Result<std::unique_ptr<Conversation>> program = Conversation::start(command_);
    if (!program) return fail(program.error());
    ASSAY_TRY((*program)->ask(fmt::format("open {}", options.directory)));
    return std::make_unique<ExecStore>(options.directory, std::move(*program));
  }

 private:
  std::string command_;
};

}  // namespace

Result<const Driver*> find_block_store(const std::string& name) {
  if (!name.starts_with(kExecPrefix)) return find_driver(name);
  static std::map<std::string, ExecDriver> programs;
  const std::string command = name.substr(kExecPrefix.size());
  if (command.find_first_not_of(' ') == std::string::npos)
    return fail(ErrorKind::bad_input, "--exec needs a program");
  return &programs.try_emplace(command, command).first->second;
}

}  // namespace assay::qualify::block
