#include "adapters/plugin/crash_note.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstring>
#include <memory>
#include <mutex>

namespace assay {

thread_local constinit CallMark::Place CallMark::current{nullptr, nullptr};

namespace {

constexpr std::string_view kStart = "assay: store ";
constexpr std::string_view kCrashed = " crashed with signal ";
constexpr std::string_view kInside = " inside ";
constexpr std::string_view kStill = " was still inside ";

constexpr std::array kSignals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGQUIT};
std::array<struct sigaction, kSignals.size()> former_actions;
std::atomic_flag note_written = ATOMIC_FLAG_INIT;

/// A line put together without allocation, for use inside a signal handler.
class Line {
 public:
  void add(std::string_view text) {
    const std::size_t room = text_.size() - size_;
    const std::size_t count = text.size() < room ? text.size() : room;
    std::memcpy(text_.data() + size_, text.data(), count);
    size_ += count;
  }
  void add(int number) {
    std::array<char, 12> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    add(std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())));
  }
  void write_to(int file) const {
    std::size_t done = 0;
    while (done < size_) {
      const ssize_t count = ::write(file, text_.data() + done, size_ - done);
      if (count <= 0) return;
      done += static_cast<std::size_t>(count);
    }
  }

 private:
  std::array<char, 256> text_{};
  std::size_t size_ = 0;
};

void write_note(int signal) {
  const CallMark::Place place = CallMark::current;
  if (place.call == nullptr || note_written.test_and_set()) return;
  Line line;
  line.add(kStart);
  line.add(place.store);
  if (signal == SIGQUIT) {
    line.add(kStill);
  } else {
    line.add(kCrashed);
    line.add(signal);
    line.add(kInside);
  }
  line.add(place.call);
  line.add("\n");
  line.write_to(STDERR_FILENO);
}

void handle(int signal, siginfo_t*, void*) {
  write_note(signal);
  // The signal is blocked until we return; raised again, it is then taken by the former action at
  // the very instruction that failed.
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (kSignals[i] == signal) ::sigaction(signal, &former_actions[i], nullptr);
  }
  ::raise(signal);
}

/// The signal stack of one thread. Given back before the memory goes.
class SignalStack {
 public:
  SignalStack() : memory_(std::make_unique<char[]>(kBytes)) {
    stack_t existing{};
    if (::sigaltstack(nullptr, &existing) != 0 || (existing.ss_flags & SS_DISABLE) == 0) return;
    stack_t ours{};
    ours.ss_sp = memory_.get();
    ours.ss_size = kBytes;
    installed_ = ::sigaltstack(&ours, nullptr) == 0;
  }
  ~SignalStack() {
    if (!installed_) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  static constexpr std::size_t kBytes = std::size_t{64} << 10;
  std::unique_ptr<char[]> memory_;
  bool installed_ = false;
};

}  // namespace

void install_crash_notes() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      struct sigaction action{};
      action.sa_sigaction = handle;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      ::sigemptyset(&action.sa_mask);
      ::sigaction(kSignals[i], &action, &former_actions[i]);
    }
  });
  prepare_thread_for_crash_notes();
}

void prepare_thread_for_crash_notes() {
  static const thread_local SignalStack stack;
}

std::optional<CrashNote> parse_crash_note(std::string_view line) {
  if (!line.starts_with(kStart)) return std::nullopt;
  line.remove_prefix(kStart.size());
  CrashNote note;
  if (const auto still = line.find(kStill); still != std::string_view::npos) {
    note.store = line.substr(0, still);
    note.call = line.substr(still + kStill.size());
    return note;
  }
  const auto crashed = line.find(kCrashed);
  const auto inside = line.find(kInside);
  if (crashed == std::string_view::npos || inside == std::string_view::npos) return std::nullopt;
  note.store = line.substr(0, crashed);
  const char* digits = line.data() + crashed + kCrashed.size();
  const auto parsed = std::from_chars(digits, line.data() + inside, note.signal);
  if (parsed.ec != std::errc{} || parsed.ptr != line.data() + inside) return std::nullopt;
  note.call = line.substr(inside + kInside.size());
  return note;
}

}  // namespace assay
