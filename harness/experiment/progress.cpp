#include "harness/experiment/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

namespace assay {
namespace {

constexpr auto kRefresh = std::chrono::milliseconds(100);

}  // namespace

std::string duration_text(std::uint64_t seconds) {
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {:02} min", seconds / 3600, seconds / 60 % 60);
}

ProgressLine::ProgressLine(std::FILE* out, bool terminal, std::size_t columns,
                           std::chrono::milliseconds quiet)
    : out_(out), terminal_(terminal), columns_(std::max<std::size_t>(columns, 20)), quiet_(quiet) {}

ProgressLine ProgressLine::standard_error() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return {stderr, ::isatty(STDERR_FILENO) != 0, known ? size.ws_col : std::size_t{80}};
}

void ProgressLine::run_begins(const std::string& title, std::uint64_t done, std::uint64_t planned) {
  done_ = done;
  planned_ = planned;
  began_ = Clock::now();
  print_line(done == 0
                 ? fmt::format("{}: {} trials", title, planned)
                 : fmt::format("{}: resuming, {} of {} trials are done", title, done, planned));
}

void ProgressLine::trial_begins(const std::string& arm) {
  arm_ = arm;
  progress_ = {"starting", 0.0};
  show(true);
}

void ProgressLine::trial_progress(const Progress& progress) {
  progress_ = progress;
  show(false);
}

void ProgressLine::trial_ends(const std::string& arm, std::uint64_t trials,
                              const std::string& status, const std::string& reason) {
  if (status == "ok" || status == "disqualified") {
    done_ += trials;
    done_here_ += trials;
  }
  progress_ = {"recorded", 0.0};
  const bool sound = status == "ok";
  if (terminal_ && sound) {
    show(true);
    return;
  }
  print_line(fmt::format("{}{}{}", line(), sound ? "" : ": " + status,
                         reason.empty() || sound ? "" : " (" + reason + ")"));
  if (!sound && !arm.empty() && terminal_) show(true);
}

void ProgressLine::note(const std::string& sentence) {
  print_line("note: " + sentence);
}

void ProgressLine::say(const std::string& sentence) {
  print_line(sentence);
}

void ProgressLine::run_ends() {
  clear();
}

std::string ProgressLine::line() const {
  const auto elapsed = std::chrono::duration<double>(Clock::now() - began_).count();
  std::string text = fmt::format("[{}/{}] {} {}", done_, planned_, arm_, progress_.what);
  if (progress_.fraction > 0.0 && progress_.fraction < 1.0) {
    text += fmt::format(" {:.0f} %", progress_.fraction * 100.0);
  }
  text += fmt::format(", {} elapsed", duration_text(static_cast<std::uint64_t>(elapsed)));
  const double here = static_cast<double>(done_here_);
  if (done_here_ > 0 && planned_ > done_) {
    const double left = elapsed / here * static_cast<double>(planned_ - done_);
    text += fmt::format(", about {} left", duration_text(static_cast<std::uint64_t>(left + 0.5)));
  }
  return text;
}

void ProgressLine::show(bool force) {
  const auto now = Clock::now();
  if (!terminal_) {  // a line now and then, so that a long trial does not look like a hung one
    if (now - printed_ >= quiet_) print_line(line());
    return;
  }
  if (!force && now - shown_ < kRefresh) return;
  shown_ = now;
  fmt::print(out_, "\r\x1b[K{}", printable(line()).substr(0, columns_ - 1));
  std::fflush(out_);
}

void ProgressLine::clear() {
  if (!terminal_) return;
  fmt::print(out_, "\r\x1b[K");
  std::fflush(out_);
}

void ProgressLine::print_line(const std::string& text) {
  clear();
  fmt::print(out_, "{}\n", printable(text));
  printed_ = Clock::now();
  std::fflush(out_);
}

}  // namespace assay
