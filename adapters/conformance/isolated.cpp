#include "adapters/conformance/isolated.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "adapters/plugin/crash_note.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;

/// A message of the child: what it is, and its text.
enum class MessageKind : char { step = 's', result = 'r', error = 'e' };

struct Message {
  MessageKind kind;
  std::string text;
};

std::string shown_signal(int signal) {
  return fmt::format("signal {}, {}", signal, ::strsignal(signal));
}

std::string words(const CrashNote& note) {
  if (note.signal == 0) return fmt::format("store {} was still in {}", note.store, note.call);
  return fmt::format("store {} crashed ({}) in {}", note.store, shown_signal(note.signal),
                     note.call);
}

/// Closes what it holds. -1 is nothing.
class File {
 public:
  explicit File(int file = -1) : file_(file) {}
  ~File() { reset(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  void reset(int file = -1) {
    if (file_ >= 0) ::close(file_);
    file_ = file;
  }
  [[nodiscard]] int get() const { return file_; }

 private:
  int file_;
};

void write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // the reader is gone: there is nobody to tell
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void send(int file, MessageKind kind, std::string_view text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  std::string frame(1 + sizeof(size), static_cast<char>(kind));
  std::memcpy(frame.data() + 1, &size, sizeof(size));
  frame += text;
  write_all(file, frame);
}

/// Takes one whole message off the front of `bytes`.
std::optional<Message> take_message(std::string& bytes) {
  std::uint32_t size = 0;
  if (bytes.size() < 1 + sizeof(size)) return std::nullopt;
  std::memcpy(&size, bytes.data() + 1, sizeof(size));
  if (bytes.size() - 1 - sizeof(size) < size) return std::nullopt;
  Message message{static_cast<MessageKind>(bytes[0]), bytes.substr(1 + sizeof(size), size)};
  bytes.erase(0, 1 + sizeof(size) + size);
  return message;
}

// Not every byte of an error message need be UTF-8: it may quote a store.
std::string error_text(const Error& error) {
  return nlohmann::json{{"kind", static_cast<int>(error.kind())},
                        {"what", error.what()},
                        {"where", error.where()},
                        {"hint", error.hint_text()}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Error error_from_text(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return Error(ErrorKind::child, "the child process sent a broken message");
  Error error(static_cast<ErrorKind>(json.value("kind", 0)), json.value("what", std::string()));
  if (const auto where = json.value("where", std::string()); !where.empty()) error.at(where);
  if (const auto hint = json.value("hint", std::string()); !hint.empty()) error.hint(hint);
  return error;
}

[[noreturn]] void be_the_child(int messages, int errors,
                               const std::function<Result<std::string>(const OnStep&)>& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // never outlives us
  ::dup2(errors, STDERR_FILENO);
  const Result<std::string> result =
      work([messages](std::string_view step) { send(messages, MessageKind::step, step); });
  std::fflush(nullptr);
  if (result) {
    send(messages, MessageKind::result, *result);
  } else {
    send(messages, MessageKind::error, error_text(result.error()));
  }
  ::_exit(0);  // destructors of the parent's objects are none of the child's business
}

volatile sig_atomic_t interrupted = 0;

/// Catches Ctrl-C while the child runs, so that we can end it and clean up.
class CatchInterrupt {
 public:
  CatchInterrupt() {
    interrupted = 0;
    struct sigaction action{};
    action.sa_handler = [](int) { interrupted = 1; };
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGINT, &action, &former_int_);
    ::sigaction(SIGTERM, &action, &former_term_);
  }
  ~CatchInterrupt() {
    ::sigaction(SIGINT, &former_int_, nullptr);
    ::sigaction(SIGTERM, &former_term_, nullptr);
  }
  CatchInterrupt(const CatchInterrupt&) = delete;
  CatchInterrupt& operator=(const CatchInterrupt&) = delete;

 private:
  struct sigaction former_int_{};
  struct sigaction former_term_{};
};

/// The parent's side of one child.
class Watch {
 public:
  Watch(const Isolation& isolation, pid_t child, int messages, int errors)
      : isolation_(isolation), child_(child), messages_(messages), errors_(errors) {}

  Result<std::string> run() {
    Clock::time_point heard = Clock::now();
    while (messages_ >= 0 || errors_ >= 0) {
      if (interrupted != 0) {
        end_child();
        return fail(ErrorKind::interrupted, fmt::format("stopped during {}", step_));
      }
      if (!hung_ && Clock::now() - heard > isolation_.silence_limit) {
        hung_ = true;
        ask_where_it_hangs();
        heard = Clock::now();
      } else if (hung_ && Clock::now() - heard > std::chrono::seconds(2)) {
        break;
      }
      if (read_some()) heard = Clock::now();
    }
    end_child();
    return outcome();
  }

 private:
  /// Waits a little for bytes of the child; true if it sent a message.
  bool read_some() {
    std::array<pollfd, 2> files{{{messages_, POLLIN, 0}, {errors_, POLLIN, 0}}};
    if (::poll(files.data(), files.size(), 50) <= 0) return false;
    bool heard = false;
    if (files[0].revents != 0) {
      read_from(messages_, message_bytes_);
      while (auto message = take_message(message_bytes_)) {
        heard = true;
        take(std::move(*message));
      }
    }
    if (files[1].revents != 0) {
      read_from(errors_, error_bytes_);
      forward_lines();
    }
    return heard;
  }

  static void read_from(int& file, std::string& to) {
    std::array<char, 65536> buffer;
    const ssize_t count = ::read(file, buffer.data(), buffer.size());
    if (count > 0) to.append(buffer.data(), static_cast<std::size_t>(count));
    if (count == 0 || (count < 0 && errno != EINTR)) file = -1;
  }

  void take(Message message) {
    if (message.kind == MessageKind::step) {
      step_ = std::move(message.text);
      if (isolation_.on_step) isolation_.on_step(step_);
    } else {
      result_ = std::move(message);
    }
  }

  /// What the child says on standard error is the user's to read; a crash note is ours.
  void forward_lines() {
    if (errors_ < 0 && !error_bytes_.empty() && error_bytes_.back() != '\n') error_bytes_ += '\n';
    for (std::size_t end; (end = error_bytes_.find('\n')) != std::string::npos;) {
      const std::string line = error_bytes_.substr(0, end);
      error_bytes_.erase(0, end + 1);
      if (auto note = parse_crash_note(line)) {
        note_ = std::move(note);
      } else {
        write_all(STDERR_FILENO, line + "\n");
      }
    }
  }

  /// SIGQUIT makes the loader of plug-ins leave a note; no core file is wanted for it.
  void ask_where_it_hangs() const {
    const struct rlimit none{};
    ::prlimit(child_, RLIMIT_CORE, &none, nullptr);
    ::kill(child_, SIGQUIT);
  }

  void end_child() {
    if (!result_) {
      // It may be about to die by itself: the pipes close a little before.
      for (int i = 0; i < 40 && !reaped(WNOHANG); ++i) ::usleep(5'000);
    }
    if (!reaped(WNOHANG)) {
      ::kill(child_, SIGKILL);
      reaped(0);
    }
  }

  bool reaped(int flags) {
    if (status_) return true;
    int status = 0;
    pid_t done = 0;
    do {
      done = ::waitpid(child_, &status, flags);
    } while (done < 0 && errno == EINTR);
    if (done == child_) status_ = status;
    return done != 0;
  }

  Result<std::string> outcome() const {
    if (result_ && result_->kind == MessageKind::result) return result_->text;
    if (result_) return fail(error_from_text(result_->text));
    const std::string store = fmt::format("store {}", note_ ? note_->store : isolation_.subject);
    const std::string call = note_ ? fmt::format(" in {}", note_->call) : std::string();
    const std::string during = fmt::format(" during {}", step_);
    if (hung_) {
      return fail(
          Error(ErrorKind::child,
                fmt::format("{} hung{}{}: nothing for {:.3g} s", store, call, during,
                            std::chrono::duration<double>(isolation_.silence_limit).count()))
              .hint("--timeout takes the seconds to wait"));
    }
    // A sanitizer turns a signal into an exit status; the note has the signal.
    if (note_ && note_->signal != 0) return fail(ErrorKind::child, words(*note_) + during);
    if (status_ && WIFSIGNALED(*status_)) {
      const int signal = WTERMSIG(*status_);
      if (signal == SIGINT) return fail(ErrorKind::interrupted, "stopped" + during);
      return fail(ErrorKind::child,
                  fmt::format("{} crashed ({}){}", store, shown_signal(signal), during));
    }
    const int code = status_ && WIFEXITED(*status_) ? WEXITSTATUS(*status_) : -1;
    return fail(ErrorKind::child,
                fmt::format("{} ended its process with status {}{}", store, code, during));
  }

  const Isolation& isolation_;
  pid_t child_;
  int messages_;
  int errors_;
  std::string message_bytes_;
  std::string error_bytes_;
  std::string step_ = "loading";
  std::optional<Message> result_;
  std::optional<CrashNote> note_;
  std::optional<int> status_;
  bool hung_ = false;
};

}  // namespace

Result<std::string> run_isolated(const Isolation& isolation,
                                 const std::function<Result<std::string>(const OnStep&)>& work) {
  std::array<int, 2> messages{};
  std::array<int, 2> errors{};
  if (::pipe2(messages.data(), O_CLOEXEC) != 0)
    return fail(system_error("cannot make a pipe", errno));
  File messages_read(messages[0]);
  File messages_write(messages[1]);
  if (::pipe2(errors.data(), O_CLOEXEC) != 0)
    return fail(system_error("cannot make a pipe", errno));
  File errors_read(errors[0]);
  File errors_write(errors[1]);
  std::fflush(nullptr);  // or the child would write what is in our buffers once more
  const pid_t child = ::fork();
  if (child < 0) return fail(system_error("cannot start a child process", errno));
  if (child == 0) be_the_child(messages_write.get(), errors_write.get(), work);
  const CatchInterrupt caught;
  messages_write.reset();
  errors_write.reset();
  return Watch(isolation, child, messages_read.get(), errors_read.get()).run();
}

Result<ConformanceReport> check_isolated(const Isolation& isolation,
                                         const std::function<Result<const Driver*>()>& find,
                                         const ConformanceOptions& options) {
  const Result<std::string> text =
      run_isolated(isolation, [&](const OnStep& step) -> Result<std::string> {
        const Result<const Driver*> driver = find();
        if (!driver) return std::unexpected(driver.error());
        ConformanceOptions told = options;
        told.on_check = [&step](std::string_view check) { step(fmt::format("check {}", check)); };
        const Result<ConformanceReport> report = check_conformance(**driver, told);
        if (!report) return std::unexpected(report.error());
        return to_json(*report).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      });
  if (!text) return std::unexpected(text.error());
  return conformance_report_from_json(nlohmann::json::parse(*text, nullptr, false));
}

std::string crash_note_in(std::string_view output) {
  while (!output.empty()) {
    const std::string_view line = output.substr(0, output.find('\n'));
    if (const auto note = parse_crash_note(line)) return words(*note);
    output.remove_prefix(std::min(line.size() + 1, output.size()));
  }
  return {};
}

}  // namespace assay
